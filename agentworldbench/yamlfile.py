"""Strict YAML: a file is exactly what its pydantic model says, or one clear line says why not.

In: a path, a model class, the error class to raise. Out: an instance of the model. Unknown,
missing, repeated or ill-typed keys are refused with `file:line`, the key's full name and, for an
unknown key, the nearest known one. Used for task files and for `--config`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from agentworldbench.errors import AwbError

T = TypeVar("T", bound=BaseModel)
UNSHOWN = "unshown"
"""Type of a validation error (`PydanticCustomError`) whose input may be a secret and is not echoed."""


_Loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""libyaml reads the bundled tasks in a twentieth of the time that the parser in Python takes."""
_TOO_DEEP = "exceeded maximum nesting depth"
"""libyaml's words for what is a RecursionError in Python."""
_NESTED = "nested too deeply, or an alias stands inside itself"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known word, or the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def load_yaml(
    path: Path,
    model: type[T],
    error: type[AwbError],
    context: dict[str, Any] | None = None,
    unknown: Callable[[str], str] = lambda key: "",
) -> T:
    """Read `path` as a mapping that must fit `model`; `context` adds fields that no file may set, `unknown` says
    what is known of a key that the model has not (`; …`), before the nearest one is guessed.

    Raises `error` with file:line for anything that does not fit.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{path}: cannot be read ({problem})") from problem
    lines: dict[tuple[Any, ...], int] = {}
    try:
        node, data = _read(text)
        _collect_lines(node, (), lines, path, error)
    except yaml.YAMLError as problem:
        if _TOO_DEEP in str(problem):
            raise error(f"{path}:1: {_NESTED}") from None
        mark = getattr(problem, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        what = getattr(problem, "problem", None) or str(problem).splitlines()[0]
        raise error(f"{path}:{line}: not valid YAML: {what}") from problem
    except RecursionError:
        raise error(f"{path}:1: {_NESTED}") from None
    if not isinstance(node, yaml.MappingNode):
        raise error(f"{path}:1: expected a mapping of keys to values")
    if context:
        for name in context.keys() & data.keys():
            raise error(f"{path}:{lines[(name,)]}: unknown key '{name}'")
        data = data | context
    try:
        return model.model_validate(data)
    except ValidationError as problem:
        raise error(_first_problem(path, problem, lines, model, unknown)) from None


def json_lines(text: str) -> dict[tuple[Any, ...], int]:
    """The line of every key and list item of a JSON text, read as the YAML that it is; none where it cannot be."""
    lines: dict[tuple[Any, ...], int] = {}
    with suppress(yaml.YAMLError, RecursionError, ValueError, AwbError):
        _collect_lines(_read(text)[0], (), lines, Path(), AwbError)
    return lines


def _read(text: str) -> tuple[yaml.Node | None, Any]:
    """The nodes of a YAML text, and what they stand for."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        _make_keys_text(node)
        return node, None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _make_keys_text(root: yaml.Node | None) -> None:
    """YAML 1.1 would read the key `yes` as true and `1` as a number."""
    seen: set[int] = set()  # an alias is its anchor's node once more
    due = [] if root is None else [root]
    while due:
        node = due.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            due += node.value
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                due += (key, value)
                if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                    key.tag = "tag:yaml.org,2002:str"


def _collect_lines(
    node: yaml.Node | None,
    where: tuple[Any, ...],
    lines: dict[tuple[Any, ...], int],
    path: Path,
    error: type[AwbError],
) -> None:
    """Note the line of every key and list item; refuse repeated keys, which YAML would let pass."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*where, key.value)
            line = key.start_mark.line + 1
            if place in lines:
                raise error(f"{path}:{line}: key '{key.value}' stands twice (first on line {lines[place]})")
            lines[place] = line
            _collect_lines(value, place, lines, path, error)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*where, index)] = value.start_mark.line + 1
            _collect_lines(value, (*where, index), lines, path, error)


def _first_problem(
    path: Path,
    problem: ValidationError,
    lines: dict[tuple[Any, ...], int],
    model: type[BaseModel],
    unknown: Callable[[str], str],
) -> str:
    # A misspelt key is an unknown one and a missing one: the former says what to mend.
    details = sorted(problem.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
    detail = details[0]
    place = tuple(detail["loc"])
    line = next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), 1)
    name = ".".join(str(part) for part in place)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        key = str(place[-1])
        what = f"unknown key '{name}'{unknown(key) or did_you_mean(key, _known_keys(model, place[:-1]))}"
    elif detail["type"] == "missing":
        what = f"required key '{name}' is missing"
    elif detail["type"] == "literal_error":
        known = [word.strip("' ") for word in detail["ctx"]["expected"].replace(" or ", ", ").split(",")]
        what = f"'{name}' is {detail['input']!r}{did_you_mean(str(detail['input']), known)} (known: {', '.join(known)})"
    elif not place:
        what = message
    elif detail["type"] == UNSHOWN:
        what = f"'{name}': {message}"
    else:
        what = f"'{name}': {message} (got {detail['input']!r:.80})"
    return f"{path}:{line}: {what}"


def _known_keys(model: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """Field names of the model that stands at `place` inside `model`."""
    for part in place:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        if field is None or not (
            isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
        ):
            return []
        model = field.annotation
    return [name for name, field in model.model_fields.items() if not field.exclude]
