"""The forms in which option values are written: lists, `key=value,…`, JSON objects, limits, token ranges.

In: what a command line, a YAML file or Python gives. Out: the checked value, or a ValueError whose text
`config.py` shows behind the flag's name. What a request body may not hold by hand stands here too: a
value that is set twice would be recorded wrongly, and keys never come from a configuration.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from agentworldbench.yamlfile import UNSHOWN


def _path_text(value: Any) -> Any:
    """A folder may come from Python as a path."""
    return str(value) if isinstance(value, Path) else value


def _words(value: Any) -> Any:
    """Lists from the command line and comma-separated strings alike; paths from Python, too."""
    if isinstance(value, (str, Path)):
        value = [value]
    if isinstance(value, (list, tuple)):
        value = [_path_text(item) for item in value]
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(word.strip() for item in value for word in item.split(",") if word.strip())
    return value


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _model_name(value: Any) -> Any:
    """A model is named. Objects and functions have no name under which a run could be made again."""
    if value is None or isinstance(value, str):
        return value
    if callable(value) or hasattr(value, "generate"):
        raise PydanticCustomError(
            UNSHOWN,
            "a model is named by a string; one that is Python code writes its answers to a file for "
            "replay/FILE.jsonl (docs/python.md), or stands behind a server",
        )
    return value


def _one_model(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        if len(value) > 1:
            raise PydanticCustomError(UNSHOWN, "a run is of one model; type the command once for each")
        value = value[0] if value else None
    return _model_name(value)


def _model_names(value: Any) -> Any:
    value = _one_or_more(_model_name(value))
    return tuple(map(_model_name, value)) if isinstance(value, (list, tuple)) else value


def _mapping(value: Any) -> Any:
    """A mapping, a JSON object, or `key=value,key=value` with JSON values where they parse."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError as problem:
            raise PydanticCustomError(UNSHOWN, f"not a JSON object: {problem}") from None
    result: dict[str, Any] = {}
    for part in filter(None, map(str.strip, _split(text))):
        key, equals, raw = part.partition("=")
        if not equals or not key.strip():
            raise PydanticCustomError(UNSHOWN, "expected key=value,… or a JSON object")
        try:
            result[key.strip()] = json.loads(raw)
        except ValueError:
            result[key.strip()] = raw
    return result


def _split(text: str) -> list[str]:
    """Parts between commas; those within brackets, braces or double quotes part nothing, where these are closed."""
    parts, depth, quoted = [""], 0, False
    for char in text:
        quoted ^= char == '"'
        depth += 0 if quoted else (char in "[{") - (char in "]}")
        if depth < 0:
            break
        if char == "," and not quoted and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return text.split(",") if quoted or depth else parts


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """Every key of a JSON-like value with what stands under it, however deep."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key), inner
            yield from _pairs(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _pairs(inner)


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Strings = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
PathText = Annotated[str, BeforeValidator(_path_text)]
ModelName = Annotated[str | None, BeforeValidator(_one_model)]
ModelNames = Annotated[tuple[str, ...], BeforeValidator(_model_names)]
Parameters = Annotated[dict[str, Any], BeforeValidator(_mapping)]

_CREDENTIAL = re.compile(
    r"api[-_]?key|secret|passw|authorization|^((access|(use[-_]?)?auth|bearer|hf)[-_]?)?token$", re.IGNORECASE
)
_SWITCH: Final = frozenset({"true", "false", "none"})
_SET_HERE: Final = {
    "model": "--model",
    "max_completion_tokens": "--max-tokens",
    "max_tokens": "--max-tokens",
    "temperature": "--temperature",
    "top_p": "--top-p",
    "seed": "--seed",
    "response_format": None,
    "messages": None,
    "stream": None,
    "n": None,
    "tools": None,
}
"""Names of a request's body that --extra-body may not hold, with the flag that sets each."""
_SET_FOR_JUDGES: Final = _SET_HERE | {
    "model": "--judge",
    "max_completion_tokens": "--judge-max-tokens",
    "max_tokens": "--judge-max-tokens",
    "temperature": "--judge-temperature",
    "response_format": "--judge-json-schema",
}
_OF_LM_EVAL: Final = {
    "max_gen_toks": "--max-tokens",
    "max_new_tokens": "--max-tokens",
    "do_sample": "--temperature (0 is greedy)",
    "until": "stop",
}
"""lm-eval's and transformers' names, which servers pass over in silence, and what is meant."""
_NOT_IN: Final[Mapping[str, Mapping[str, str | None]]] = {
    "extra_body": _SET_HERE,
    "judge_extra_body": {name: _SET_FOR_JUDGES[name] for name in _SET_FOR_JUDGES.keys() - {"top_p", "seed"}},
    "gen_kwargs": {
        name: _SET_HERE[name] for name in _SET_HERE.keys() - {"max_tokens", "temperature", "top_p"}
    }
    | _OF_LM_EVAL,
}
"""What each field of free parameters may not hold: a value set twice would be recorded wrongly."""
_LIMIT = re.compile(
    r"(?P<first>[1-9]\d*)-(?P<last>[1-9]\d*)|(?P<count>[1-9]\d*)|(?P<fraction>0?\.\d*[1-9]\d*|1\.0)"
)


def limit_form(value: Any) -> str:
    """A number of samples, a fraction, or rows a-b."""
    match = _LIMIT.fullmatch(str(value).strip())
    if not match:
        raise ValueError("expected a number of samples (10), a fraction (0.1), or rows a-b (1-20)")
    if match["first"] and int(match["last"]) < int(match["first"]):
        raise ValueError("the range ends before it begins")
    return match.group()


def shard_form(value: str) -> str:
    """`I/N`, the I-th of N parts; several parts as `I,J/N`, in ascending order."""
    parts, whole = shard_parts(value)
    return f"{','.join(map(str, parts))}/{whole}"


def shard_parts(value: str) -> tuple[tuple[int, ...], int]:
    """The parts that a shard names, ascending, and how many there are in all."""
    match = re.fullmatch(r"([1-9]\d{0,3}(?:,[1-9]\d{0,3})*)/([1-9]\d{0,3})", "".join(value.split()))
    if not match:
        raise ValueError("expected I/N, the I-th of N parts (1/4)")
    parts, whole = sorted({int(part) for part in match[1].split(",")}), int(match[2])
    if parts[-1] > whole:
        raise ValueError(f"there is no part {parts[-1]} of {whole}")
    return tuple(parts), whole


def batch_form(value: Any) -> str:
    """A number of samples, or auto."""
    if not re.fullmatch(r"auto|[1-9]\d{0,4}", str(value).strip()):
        raise ValueError("expected a number of samples, or auto")
    return str(value).strip()


def token_range(value: Any) -> str:
    """`LOW-HIGH` tokens; one number is both."""
    match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", str(value).strip())
    if not match:
        raise ValueError("expected tokens of one answer as LOW-HIGH (500-8000)")
    low, high = int(match[1]), int(match[2] or match[1])
    if high < low:
        raise ValueError("the range ends before it begins")
    return f"{low}-{high}"


def refuse_parameters(name: str, value: Mapping[str, Any]) -> None:
    """Raise for a parameter that the option `name` may not hold.

    `token=True` of an engine's arguments says that the stored one is to be used, and holds none.
    """
    for key, inner in _pairs(value):
        switch = name == "model_args" and str(inner).lower() in _SWITCH
        if _CREDENTIAL.search(key) and not switch:
            raise PydanticCustomError(
                UNSHOWN, f"'{key}' looks like a credential; keys come from the environment only"
            )
    taken = _NOT_IN.get(name, {})
    for key in filter(taken.__contains__, value):
        flag = taken[key]
        instead = f"use {flag}" if flag else "the harness sets it or needs it unset"
        raise PydanticCustomError(UNSHOWN, f"'{key}' cannot be given here: {instead}")
