"""The table `cases/docs/commands.yaml`: which commands of the documentation are only read, and what stands in for what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

_TABLE: Final[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "cases/docs/commands.yaml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Parsed:
    """Commands that are not run, and why."""

    commands: str
    why: str


@dataclass(frozen=True)
class Rules:
    """The whole table."""

    parsed: tuple[Parsed, ...]
    foreign: str
    foreign_flags: dict[str, list[str]]
    compiled: dict[str, str]
    before: dict[str, list[str]]
    codes: dict[str, int]
    stand_ins: tuple[tuple[str, str], ...]


RULES: Final = Rules(**{**_TABLE, "parsed": tuple(Parsed(**one) for one in _TABLE["parsed"])})


def fits(text: str) -> Parsed | None:
    """The rule by which a command is only read; None for one that is run."""
    return next((rule for rule in RULES.parsed if re.search(rule.commands, text)), None)
