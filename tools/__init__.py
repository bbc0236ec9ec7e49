"""Developer tools of the repository: not part of the installed package.

`tools.record` holds the recorders that made the bundled data set. Each is run from the
repository root as a module, for example `python -m tools.record.terminal`.
"""
