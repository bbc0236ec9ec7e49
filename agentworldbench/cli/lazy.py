"""Builds the commands with many flags only when they are invoked.

The flags of `run`, `infer` and `judge` come from `RunConfig`, whose pydantic model takes longer to
import than `awb --help` may take in all. The group holds a stand-in with the command's help text;
invoking it puts the full command in its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from agentworldbench.config import Stage

_FULL = "awb_full_command"


def later(
    stages: Sequence[Stage], function: Callable[..., None], *further: inspect.Parameter
) -> Callable[[], None]:
    """A stand-in for `options.with_options(stages, function, *further)`."""

    def full() -> Callable[..., None]:
        from agentworldbench.cli.options import with_options

        return with_options(stages, function, *further)

    def stand_in() -> None:
        """Replaced by LazyGroup before it could run."""

    stand_in.__doc__ = function.__doc__
    setattr(stand_in, _FULL, full)
    return stand_in


class LazyGroup(TyperGroup):
    """Resolves a stand-in to the full command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As in click; the returned command is the full one."""
        name, command, rest = super().resolve_command(ctx, args)
        full = getattr(getattr(command, "callback", None), "__wrapped__", getattr(command, "callback", None))
        build = getattr(full, _FULL, None)
        return name, command if build is None else _built(name, build), rest


@cache
def _built(name: str | None, build: Callable[[], Callable[..., None]]) -> Any:
    """The full command; a process that invokes it again does not build it again."""
    single = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    single.command(name)(build())
    return typer.main.get_command(single)
