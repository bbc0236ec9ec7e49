"""Writes docs/commands.md: every command of `awb` with its arguments and flags, exit codes, variables of the environment.

In: the command line as Typer builds it, and the tables of `cli/reference.py`. Out: a page in which each flag is
described once: a command that takes flags of `awb run` names them and links there. From the repository root:
`python -m tools.make_command_reference`; a test fails when the page is stale.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, get_args, get_origin

import typer

from agentworldbench.cli import main as cli
from agentworldbench.cli.reference import ENVIRONMENT, EXIT_CODES
from agentworldbench.render.table import markdown_cell

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "commands.md"
WHOLE: Final = "awb run"
"""The command whose flags others share."""
COUNTED: Final = 12
"""So many shared flags are a reason to name them and link to their description."""
WORDS: Final = {int: "N", float: "X", Path: "PATH", str: "TEXT"}
HELP: Final = re.compile(r" \[([^\[\]]*)\]$")
"""What `options.py` puts behind a help text: choices, or the default."""

HEAD: Final = """# Commands and flags

Written by `python -m tools.make_command_reference` from the command line itself; not edited by hand.

`-` and `_` are the same in flag names. Every flag of `awb run` is also a key of a `--config` file and an argument of
`evaluate` in Python, under its first long name with underscores (`--max-connections` is `max_connections`). Tables and
results go to standard output, everything else to standard error.
"""


@dataclass(frozen=True)
class Flag:
    """One flag or argument as the page shows it."""

    names: tuple[str, ...]
    value: str
    text: str
    default: str
    panel: str


@dataclass(frozen=True)
class Command:
    """One command: `awb runs list`."""

    name: str
    text: tuple[str, ...]
    arguments: tuple[Flag, ...]
    flags: tuple[Flag, ...]
    required: frozenset[str]
    """Of the arguments, those that must be given."""

    @property
    def usage(self) -> str:
        """How it is typed."""
        words = [one.value if one.value in self.required else f"[{one.value}]" for one in self.arguments]
        return " ".join([self.name, *words, *(["[FLAGS]"] if self.flags else [])])


def commands() -> Iterator[Command]:
    """All commands in the order of `awb --help`."""
    root = typer.main.get_command(cli.app)
    context = root.make_context("awb", ["run"], resilient_parsing=True)
    yield from _below(root, context, "awb")


def _below(group: Any, context: Any, name: str) -> Iterator[Command]:
    for word in group.list_commands(context):
        command = group.resolve_command(context, [word])[1]
        inner = type(context)(command, info_name=word, parent=context)
        if hasattr(command, "list_commands"):
            yield from _below(command, inner, f"{name} {word}")
        else:
            yield _command(command, inner, f"{name} {word}")


def _command(command: Any, context: Any, name: str) -> Command:
    shown = [one for one in command.get_params(context) if not one.hidden and one.name != "help"]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    return Command(
        name,
        tuple(inspect.cleandoc(command.help or "").split("\n\n")),
        tuple(map(_flag, arguments)),
        tuple(_flag(one) for one in shown if one not in arguments),
        frozenset(_value(one) for one in arguments if one.required),
    )


def _flag(parameter: Any) -> Flag:
    text = " ".join((parameter.help or "").split()).replace("\\[", "[")
    default = _given(parameter.default) if parameter.show_default else ""
    value = _value(parameter)
    if found := HELP.search(text):
        text, inside = text[: found.start()].rstrip(), found[1]
        if inside.startswith("default: "):
            default = inside.removeprefix("default: ")
        else:
            value = inside
    names = sorted(parameter.opts, key=lambda name: not name.startswith("--"))
    return Flag(tuple(names), value, text, default, getattr(parameter, "rich_help_panel", None) or "")


def _given(default: Any) -> str:
    """A default as it would be typed; nothing for what is no value."""
    if default in (None, False) or callable(default):
        return ""
    return str(default.value if isinstance(default, Enum) else default)


def _value(parameter: Any) -> str:
    if getattr(parameter, "is_flag", False):
        return ""
    kind = parameter.type_descriptor.annotation
    many = get_origin(kind) in (list, tuple)
    kind = get_args(kind)[0] if many else kind
    if isinstance(kind, type) and issubclass(kind, Enum):
        word = "|".join(one.value for one in kind)
    else:
        word = parameter.metavar or WORDS[kind]
    argument = parameter.param_type_name == "argument"
    return f"{word}…" if many and argument and not word.endswith("…") else word


def anchor(heading: str) -> str:
    """The id that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def page() -> str:
    """The whole page."""
    known = list(commands())
    whole = next(one for one in known if one.name == WHOLE)
    parts = [HEAD, "## All commands", _overview(known)]
    parts += [_section(one, whole) for one in known]
    parts += [
        "## Exit codes",
        _table(("code", "means"), ((f"`{code}`", means) for code, means in EXIT_CODES)),
    ]
    parts.append(
        "After 4, 5 and 130 nothing is lost: the same command goes on where it stopped ([runs](runs.md))."
    )
    parts += [
        "## Variables of the environment",
        "A file `.env` in the working directory may set them too; the environment wins.",
    ]
    parts.append(_table(("variable", "what it is for"), ENVIRONMENT))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _overview(known: Iterable[Command]) -> str:
    rows = (
        (f"[`{one.name}`](#{anchor(one.name)})", _cell(one.text[0].split(". ")[0].rstrip(".") + "."))
        for one in known
    )
    return _table(("command", "what it does"), rows)


def _section(command: Command, whole: Command) -> str:
    parts = [f"## {command.name}", f"`{command.usage}`", *map(_cell, command.text)]
    if command.arguments:
        rows = ((f"`{one.value.strip('[]')}`", _described(one)) for one in command.arguments)
        parts.append(_table(("argument", "what it is"), rows))
    shared = [one for one in command.flags if one in whole.flags] if command is not whole else []
    if len(shared) < COUNTED:
        shared = []
    for panel in dict.fromkeys(one.panel for one in command.flags if one not in shared):
        own = [one for one in command.flags if one.panel == panel and one not in shared]
        parts += [f"### {command.name}: {panel.lower()}"] if panel else []
        parts.append(_flags(own))
    parts += [_shared(shared, whole)] if shared else []
    return "\n\n".join(parts)


def _shared(shared: Sequence[Flag], whole: Command) -> str:
    """Which flags a command has from another: those, or all but those, whatever is shorter."""
    missing = [one for one in whole.flags if one not in shared]
    where = f"flags of [`{whole.name}`](#{anchor(whole.name)})"
    if not missing:
        return f"And all {where}."
    named, words = (
        (shared, f"And these {where}:") if len(missing) > len(shared) else (missing, f"And all {where} but")
    )
    return f"{words} {', '.join(f'`{one.names[0]}`' for one in named)}."


def _cell(text: str) -> str:
    """Prose as a cell or a paragraph: code stays code, flags become code, all else is shown as it stands."""
    pieces = re.split(r"(`[^`]+`|(?<![\w-])--[a-z][\w-]*)", " ".join(text.split()))
    code = (
        f"`{piece.strip('`')}`" if number % 2 else markdown_cell(piece) for number, piece in enumerate(pieces)
    )
    return "".join(code)


def _flags(flags: Sequence[Flag]) -> str:
    rows = []
    for one in flags:
        names = ", ".join(f"`{name}`" for name in one.names)
        value = f" `{one.value}`".replace("|", "\\|") if one.value else ""
        rows.append((names + value, _described(one)))
    return _table(("flag", "what it does"), rows)


def _described(flag: Flag) -> str:
    text = _cell(flag.text)
    return f"{text} Default: `{flag.default}`." if flag.default else text


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
