"""Reads words as the real command line does, without doing what they say.

In: words behind `awb`. Out: nothing, or an assertion with the complaint a user would see. Values of the flags of `awb run`
are checked by `RunConfig`, configuration files are opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import typer

from agentworldbench.cli import main as cli
from agentworldbench.config import RunConfig, make_config
from agentworldbench.errors import AwbError

EVERYWHERE: Final = frozenset({"--help", "-h", "--version"})


@cache
def _root() -> Any:
    return typer.main.get_command(cli.app)


def _named(words: Sequence[str]) -> tuple[Any, str, list[str], Any]:
    """(command, its name, further words, context of its group)."""
    command = _root()
    context = command.make_context("awb", list(words), resilient_parsing=False)
    rest = [*context._protected_args, *context.args]
    name = "awb"
    while hasattr(command, "list_commands"):
        word, command, rest = command.resolve_command(context, rest)
        name = f"{name} {word}"
        if hasattr(command, "list_commands"):
            context = command.make_context(word, rest, parent=context)
            rest = [*context._protected_args, *context.args]
    return command, name, rest, context


def complaint(words: Sequence[str]) -> str | None:
    """What `awb WORDS…` would say is wrong with the words; None where they can be obeyed."""
    try:
        command, name, rest, context = _named(words)
        given = command.make_context(name.rpartition(" ")[2], list(rest), parent=context).params
        values = {key: given[key] for key in RunConfig.model_fields.keys() & given.keys()}
        if "model" in values or "judge_attempts" in values:
            make_config(
                {key: value for key, value in values.items() if value not in (None, [])}, given["config"]
            )
    except (typer.BadParameter.__mro__[1], AwbError) as problem:  # type: ignore[misc]
        return problem.format_message() if hasattr(problem, "format_message") else str(problem)
    return None


def unknown_words(text: str) -> list[str]:
    """Of a command mentioned in prose (`awb tasks list|show`, `awb score RUN --explain`): the words that do not exist."""
    command, context = _root(), _root().make_context("awb", ["run"], resilient_parsing=True)
    words = text.partition(" | ")[0].split()[1:]
    while words and hasattr(command, "list_commands"):
        if words[0].isupper() or words[0] in ("…", *EVERYWHERE):  # stands for other words, or is no command
            return []
        if missing := [name for name in words[0].split("|") if name not in command.list_commands(context)]:
            return missing
        command = command.resolve_command(context, [words.pop(0).split("|")[0]])[1]
    flags = {flag for parameter in command.params for flag in parameter.opts} | EVERYWHERE
    return [
        word
        for word in words
        if word.startswith("-") and word.split("=")[0].replace("_", "-") not in flags and word != "-"
    ]


@cache
def all_flags() -> frozenset[str]:
    """Every long flag of every command."""
    found = set(EVERYWHERE)

    def below(command: Any, context: Any) -> None:
        for word in command.list_commands(context):
            inner = command.resolve_command(context, [word])[1]
            if hasattr(inner, "list_commands"):
                below(inner, type(context)(inner, info_name=word, parent=context))
            else:
                shown = (one for one in inner.params if not getattr(one, "hidden", False))
                found.update(flag for parameter in shown for flag in parameter.opts if flag[0] == "-")

    root = _root()
    below(root, root.make_context("awb", ["run"], resilient_parsing=True))
    return frozenset(found)
