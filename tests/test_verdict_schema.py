"""The JSON schema for servers that enforce one, against the parser that reads what they send.

A reply that the schema allows is always read, and with equal scores; what the parser refuses as scores the
schema refuses too. The parser is wider in a few listed points, since not every server enforces a schema.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agentworldbench.prompts import VERDICT_SCHEMA
from agentworldbench.records import DIMENSIONS
from agentworldbench.resources import asset
from agentworldbench.scoring.verdict import ReadVerdict, read_verdict

VALIDATOR = Draft202012Validator(VERDICT_SCHEMA)
GOOD: dict[str, Any] = {
    "reasons": "One value differs.",
    "strengths": ["layout"],
    "weaknesses": [],
    "scores": dict.fromkeys(DIMENSIONS, 3),
}


def text_of(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    alphabet = st.characters(exclude_categories=["Cs"], exclude_characters="<")
    return st.text(alphabet, max_size=min(schema["maxLength"], 20))


def matching(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema of the kinds used in VERDICT_SCHEMA allows."""
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False and set(schema["required"]) == set(
            schema["properties"]
        )
        return st.fixed_dictionaries({name: matching(part) for name, part in schema["properties"].items()})
    if schema["type"] == "array":
        return st.lists(matching(schema["items"]), max_size=schema["maxItems"])
    return text_of(schema) if schema["type"] == "string" else st.sampled_from(schema["enum"])


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(VERDICT_SCHEMA)
    assert tuple(VERDICT_SCHEMA["properties"]["scores"]["properties"]) == DIMENSIONS


def test_the_answer_form_has_the_keys_of_the_schema_in_its_order() -> None:
    form = asset("tasks", "prompts", "builtin", "answer_json.md").read_text(encoding="utf-8")
    positions = [form.index(f"`{name}`") for name in (*VERDICT_SCHEMA["required"], *DIMENSIONS)]
    assert positions == sorted(positions)


@settings(deadline=None)
@given(matching(VERDICT_SCHEMA), st.sampled_from([None, 2]))
def test_what_the_schema_allows_is_read(value: dict[str, Any], indent: int | None) -> None:
    assert VALIDATOR.is_valid(value)
    verdict = read_verdict(json.dumps(value, ensure_ascii=False, indent=indent))
    assert isinstance(verdict, ReadVerdict), verdict
    assert verdict.scores == value["scores"]
    assert list(verdict.strengths) == value["strengths"]
    assert list(verdict.weaknesses) == value["weaknesses"]


@pytest.mark.parametrize("score", [0, 6, -1, True, None, "four", 4.5, [4], {"score": 4}, "", 10**20])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_what_the_parser_refuses_the_schema_refuses(dimension: str, score: Any) -> None:
    bad = GOOD | {"scores": GOOD["scores"] | {dimension: score}}
    assert not isinstance(read_verdict(json.dumps(bad)), ReadVerdict)
    assert not VALIDATOR.is_valid(bad)


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_a_missing_dimension_is_refused_by_both(dimension: str) -> None:
    bad = GOOD | {"scores": {name: 3 for name in DIMENSIONS if name != dimension}}
    assert not isinstance(read_verdict(json.dumps(bad)), ReadVerdict)
    assert not VALIDATOR.is_valid(bad)


@pytest.mark.parametrize(
    "wider",
    [
        {"scores": GOOD["scores"] | {"format": "4"}},
        {"scores": GOOD["scores"] | {"overall": 3}},
        {"scores": {name.title(): 3 for name in DIMENSIONS}},
        {"strengths": "one sentence"},
        {"strengths": ["x"] * 6},
        {"note": "x"},
    ],
    ids=str,
)
def test_where_the_parser_is_wider(wider: dict[str, Any]) -> None:
    value = GOOD | wider
    assert isinstance(read_verdict(json.dumps(value)), ReadVerdict)
    assert not VALIDATOR.is_valid(value)
