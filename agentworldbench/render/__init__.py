"""Tables as text and Markdown, shared by runs and leaderboards."""
