"""`python -m agentworldbench` is `awb`."""

from agentworldbench.cli.main import command

command()
