"""Builds a command's flags from `RunConfig`, so that every knob is written down once.

In: which stages a command covers, and a function that takes the given values. Out: a function with
the signature that Typer reads. Flags keep the names people know from other harnesses; `-` and `_`
are the same in flag names. A flag that is not given is None and leaves the configuration file or
the default in force; what a file switches on, `--no-…` switches off.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from agentworldbench.config import PANELS, RunConfig, Stage

_ONE_WAY: Final = ("no_judge", "allow_code")
"""Flags without a form that takes them back: `--judge NAME` does it for the first, no file may set the second."""
_ONCE: Final = frozenset(["model"])
"""Flags whose second is not passed over: whoever gives two models wants both. `RunConfig` refuses them."""
ConfigFile = typer.Option(
    "--config", "-C", help="YAML file with the same names as the flags (underscores), or a bundled recipe "
    "such as qwen-agentworld-35b-a3b; flags win, and --no-FLAG takes back what the file switches on.",
    rich_help_panel="Start here", show_default=False,
)  # fmt: skip


def with_options(
    stages: Iterable[Stage], function: Callable[..., None], *further: inspect.Parameter
) -> Callable[..., None]:
    """`function(values, config_file, **further)` as a command with the options of `stages`."""
    wanted = set(stages)
    own = [one for one in further if one.kind is inspect.Parameter.KEYWORD_ONLY]
    parameters = [one for one in further if one not in own]
    parameters.append(
        inspect.Parameter(
            "config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotated(Path, ConfigFile)
        )
    )
    names, taken_back = [], []
    for name, field in _in_panel_order():
        face = _face(field)
        if wanted & set(face["stages"]):
            names.append(name)
            parameters.append(_parameter(name, field, face))
            if field.annotation is bool and name not in _ONE_WAY:
                taken_back.append(name)
                parameters.append(_taking_back(name, face))
    parameters += own  # their panel, if they have one, comes last

    def command(**given: Any) -> None:
        values = {name: given.pop(name) for name in names}
        # Typer gives an empty list for a list option that was not given.
        values = {name: value for name, value in values.items() if value not in (None, [])}
        values |= {name: False for name in taken_back if given.pop(_back(name))}
        function(values, given.pop("config"), **given)

    command.__name__ = function.__name__
    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _in_panel_order() -> list[tuple[str, FieldInfo]]:
    fields = [item for item in RunConfig.model_fields.items() if item[1].json_schema_extra]
    return sorted(fields, key=lambda item: PANELS.index(_face(item[1])["panel"]))


def _face(field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    face = extra["cli"]
    assert isinstance(face, dict)
    return face


def _annotated(kind: Any, option: Any) -> Any:
    from typing import Annotated

    return Annotated[kind | None, option]


def _parameter(name: str, field: FieldInfo, face: dict[str, Any]) -> inspect.Parameter:
    flags = _flags(name, face)
    kind, many, choices = _kind(field.annotation)
    text = field.description or ""
    if choices:
        text += f" [{'|'.join(choices)}]"
    default = field.default
    if default not in (None, False, (), {}) and not choices:
        text += f" [default: {default:g}]" if isinstance(default, float) else f" [default: {default}]"
    option = typer.Option(
        *flags,
        help=text.replace("[", "\\["),  # not markup
        rich_help_panel=face["panel"],
        show_default=False,
        metavar=_metavar(name, kind, choices),
    )
    annotation = _annotated(list[str] if many or name in _ONCE else kind, option)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _back(name: str) -> str:
    return f"not_{name}"


def _flags(name: str, face: dict[str, Any]) -> list[str]:
    found: list[str] = face["flags"] or ["--" + name.replace("_", "-")]
    return found


def _taking_back(name: str, face: dict[str, Any]) -> inspect.Parameter:
    """`--no-FLAG` beside a flag. Not among the helps: it would take half of their width from every other flag."""
    option = typer.Option(f"--no-{_flags(name, face)[0].removeprefix('--')}", hidden=True)
    return inspect.Parameter(
        _back(name), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotated(bool, option)
    )


def _kind(annotation: Any) -> tuple[Any, bool, tuple[str, ...]]:
    """(type on the command line, may be repeated, choices) of a field."""
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is Literal:
        return str, False, get_args(annotation)
    if get_origin(annotation) is tuple:
        return str, True, ()
    if annotation in (int, float, bool, Path):
        return annotation, False, ()
    return str, False, ()


def _metavar(name: str, kind: Any, choices: tuple[str, ...]) -> str | None:
    if kind is bool:
        return None
    known = {"model": "MODEL", "judge": "MODEL", "limit": "N|F|A-B", "tasks": "DOMAINS", "data": "DATA"}
    known |= {"model_args": "K=V,…", "gen_kwargs": "K=V,…", "batch_size": "N|auto"}
    known |= {"price": "MODEL=IN,OUT", "output_tokens": "LOW-HIGH", "judge_output_tokens": "LOW-HIGH"}
    if name in known:
        return known[name]
    if choices:
        return "WORD"
    return {int: "N", float: "X", Path: "DIR"}.get(kind, "JSON" if name.endswith("body") else "TEXT")
