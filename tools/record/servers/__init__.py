"""The MCP servers of the mcp recorder: their worlds, and the calls made in their environment."""
