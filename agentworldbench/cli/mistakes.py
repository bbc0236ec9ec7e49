"""Wrong words on the command line, told in one line that says what to type.

In: Typer's error of usage. Out: its message and a hint: the option or command that was meant, the command that has the
option, what stands here for a word of another harness, the flag that a loose word wants, the value that an option lost to
the option behind it.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import typer

from agentworldbench.other_harnesses import COMMANDS, option_elsewhere
from agentworldbench.records import OFFICIAL_DOMAINS

_NEAR: Final = 0.75
"""How like two words must be (0 to 1) for one to be offered for the other."""
_ASKING: Final = ("awb", "awb run", "awb infer", "awb judge", "awb score", "awb doctor", "awb estimate")
"""Commands whose options other harnesses have, too. `awb` itself: someone left out the command."""


def corrected(problem: typer.BadParameter) -> str:
    """The message of a usage error with what helps."""
    message = problem.format_message().replace("Value error, ", "").rstrip(".")
    kind = type(problem).__name__
    if kind == "NoSuchOption":
        option = str(getattr(problem, "option_name", ""))
        return f"No such option: {option}{_option_hint(option, problem.ctx)}"
    if found := re.match(r"No such command '(.*?)'", message):
        instead = COMMANDS.get(found[1].lower()) if _path(problem.ctx) == "awb" else None
        return f"{found[0]}; here: {instead}" if instead else message
    if found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message):
        return message + _loose_words(found[1].split(" "), problem.ctx)
    if found := re.match(r"Invalid value for '(--[\w-]+)'", message):
        return message + _given_value(found[1])
    return message


def _path(context: Any) -> str:
    return context.command_path if context else "awb"


def _option_hint(option: str, context: Any) -> str:
    path = _path(context)
    if said := option_elsewhere(option, "" if path in _ASKING else path.removeprefix("awb ")):
        return said
    own = [flag for one in context.command.params for flag in one.opts] if context else []
    if near := _nearest(option, own):
        return f"; did you mean {near}?"
    having = [name for name, flags in _commands(context.find_root()) if option in flags] if context else []
    if path == "awb" and having:
        return f"; options stand behind a command: {having[0]} {option}"
    return f"; {_listed(having)}" if having else ""


def _nearest(option: str, known: list[str]) -> str | None:
    """The option that is most like another, if one is like it or one begins as the other does."""
    bare = option.lstrip("-")
    if len(bare) < 2:
        return None
    longer = [one for one in known if one.startswith("--") and len(one) > 4]
    begun = [one for one in longer if one.startswith(option) or option.startswith(f"{one}-")]
    near = difflib.get_close_matches(option, longer, n=1, cutoff=_NEAR)
    return next(iter(near or begun), None)


def _listed(names: list[str]) -> str:
    """Who has an option; of many only the first, which is the most used."""
    if len(names) > 4:
        return f"{names[0]} and others have it"
    return f"{', '.join(names[:-1])} and {names[-1]} have it" if len(names) > 1 else f"{names[0]} has it"


def _commands(root: Any) -> Iterator[tuple[str, frozenset[str]]]:
    """Every command below `awb`, with its options."""
    for name in root.command.list_commands(root):
        command = root.command.resolve_command(root, [name])[1]
        if hasattr(command, "list_commands"):
            inner = type(root)(command, info_name=name, parent=root)
            yield from (
                (f"{root.info_name} {name} {rest.partition(' ')[2]}", flags)
                for rest, flags in _commands(inner)
            )
        else:
            shown = (one for one in command.params if not getattr(one, "hidden", False))
            yield f"{root.info_name} {name}", frozenset(flag for one in shown for flag in one.opts)


def _loose_words(words: list[str], context: Any) -> str:
    """Where words without a flag belong, for commands that take none."""
    if _path(context) not in ("awb run", "awb infer", "awb doctor", "awb estimate"):
        return ""
    if all(word in OFFICIAL_DOMAINS for word in words):
        given = [*(context.params.get("tasks") or []), *words]
        return f"; write domains with commas: --tasks {','.join(given)}"
    return f"; {_path(context)} takes flags alone, such as --model {words[0]}"


def _given_value(option: str) -> str:
    """The value that does not fit: often the next option, because the value was left out."""
    words = [word.replace("_", "-", word.count("_") if word.startswith("--") else 0) for word in sys.argv[1:]]
    for word, behind in pairwise(words):
        if word == option:
            lost = f"; {option} wants a value, and {behind} stands behind it"
            return lost if behind.startswith("--") else f" (got {behind!r:.80})"
    return ""
