"""Free parameters (--gen-kwargs, --extra-body, --judge-extra-body): what has a flag of its own is refused.

A value that could be set in two places would be recorded in one and sent from the other.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError

ELSEWHERE: list[tuple[str, str, str | None]] = [
    # field, key, the flag that is to be used (None: there is none)
    *(("extra_body", key, f"--{key.replace('_', '-')}") for key in ("max_tokens", "temperature", "top_p", "seed", "model")),
    ("extra_body", "max_completion_tokens", "--max-tokens"),
    ("gen_kwargs", "max_completion_tokens", "--max-tokens"),
    ("gen_kwargs", "seed", "--seed"),
    ("gen_kwargs", "model", "--model"),
    ("judge_extra_body", "max_tokens", "--judge-max-tokens"),
    ("judge_extra_body", "max_completion_tokens", "--judge-max-tokens"),
    ("judge_extra_body", "temperature", "--judge-temperature"),
    ("judge_extra_body", "response_format", "--judge-json-schema"),
    ("judge_extra_body", "model", "--judge"),
    *((field, "response_format", None) for field in ("extra_body", "gen_kwargs")),
    *(
        (field, key, None)
        for field in ("extra_body", "gen_kwargs", "judge_extra_body")
        for key in ("messages", "stream", "n", "tools")
    ),
]  # fmt: skip


@pytest.mark.parametrize(("field", "key", "flag"), ELSEWHERE)
def test_what_has_a_flag_is_no_free_parameter(field: str, key: str, flag: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config({field: {"top_k": 4, key: 1}})
    reason = f"use {flag}" if flag else "the harness sets it or needs it unset"
    flag_of_field = "--" + field.replace("_", "-")
    assert str(caught.value) == f"{flag_of_field}: '{key}' cannot be given here: {reason}"


@pytest.mark.parametrize(
    ("field", "key"),
    [
        *(("gen_kwargs", key) for key in ("max_tokens", "temperature", "top_p", "top_k")),
        *(("judge_extra_body", key) for key in ("top_p", "seed", "stop")),
        ("extra_body", "chat_template_kwargs"),
    ],
)
def test_free_parameters(field: str, key: str) -> None:
    assert getattr(make_config({field: {key: 1}}), field) == {key: 1}
    assert getattr(make_config({field: {"x": {"model": 1, "seed": 2}}}), field) == {
        "x": {"model": 1, "seed": 2}
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('stop=["a","b"],top_k=3', {"stop": ["a", "b"], "top_k": 3}),
        ('a={"b": [1, 2], "c": "x,y"},d=e', {"a": {"b": [1, 2], "c": "x,y"}, "d": "e"}),
        ('a="x,y]",b=1', {"a": "x,y]", "b": 1}),
        ("a=[,b=1", {"a": "[", "b": 1}),
        ('a=5",b=1', {"a": '5"', "b": 1}),
        ("a=],b=[", {"a": "]", "b": "["}),
    ],
)
def test_commas_within_brackets_and_quotes_part_nothing(text: str, value: object) -> None:
    assert make_config({"gen_kwargs": text}).gen_kwargs == value


@given(
    st.lists(
        st.one_of(st.integers(), st.text("ab,[]{}=", max_size=5), st.lists(st.text("a,]", max_size=3))),
        max_size=4,
    )
)
def test_json_values_come_back(values: list[object]) -> None:
    text = ",".join(f"k{number}={json.dumps(value)}" for number, value in enumerate(values))
    assert make_config({"gen_kwargs": text}).gen_kwargs == {f"k{n}": value for n, value in enumerate(values)}
