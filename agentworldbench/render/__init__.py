"""Tables, charts, the shell of pages, and escaping: shared by runs, leaderboards and reports."""
