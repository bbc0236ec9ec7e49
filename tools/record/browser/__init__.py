"""What the web recorder drives: a client of the Playwright MCP server, and elements of its snapshots."""
