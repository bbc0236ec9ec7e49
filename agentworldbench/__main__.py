"""`python -m agentworldbench` is `awb`."""

from agentworldbench.cli.main import main

main()
