"""Arguments and options that several commands share, one wording each. Nothing heavy is imported here."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_RUN = typer.Argument(help="Run directory.", metavar="RUN", show_default=False)
RunPath = Annotated[Path, _RUN]
OptionalRunPath = Annotated[Path | None, _RUN]
MovedData = Annotated[
    str | None,
    typer.Option("--data", help="Where the data are now, when they have moved.", show_default=False),
]
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Let metrics run that are Python code beside a task file.")
]


class Form(StrEnum):
    """Output formats."""

    TABLE = "table"
    MD = "md"
    JSON = "json"


FormOption = Annotated[Form, typer.Option("--format", "-f", help="How to print.")]
