"""Breakpoints for the provider's cache of prompts: where they stand, and when none is put."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from agentworldbench.engine.order import Reads, Taken, reads
from agentworldbench.engine.recall import cache_key
from agentworldbench.models import Connection, create_model
from agentworldbench.models.cache_breakpoints import MOST, CacheBreakpoints, marked, refuses_breakpoints
from agentworldbench.models.chat import read_usage, request_body
from agentworldbench.models.litellm_api import load_litellm
from agentworldbench.records import Message, Request, SampleRef, Sampling, Usage
from tests.helpers.asking import KEY, TASKS, make_sample

CLAUDE = "claude-sonnet-4-5"
WROTE = Usage(prompt_tokens=9, cached_tokens=0, cache_write_tokens=7)
NOTHING = Usage(prompt_tokens=9, cached_tokens=0, cache_write_tokens=0)


class Clock:
    """Seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def request_of(*texts: str, again: Sequence[int] = ()) -> Request:
    """A request whose messages have these texts, the first the system's."""
    roles = itertools.chain(["system"], itertools.cycle(["user", "assistant"]))
    messages = tuple(Message(role=role, content=text) for role, text in zip(roles, texts, strict=False))  # type: ignore[arg-type]
    return Request(sample=make_sample(), messages=messages, sampling=Sampling(), read_again=tuple(again))


def claude(clock: Clock | None = None) -> CacheBreakpoints:
    return CacheBreakpoints("anthropic", f"anthropic/{CLAUDE}", clock or Clock())


# --- where they stand ---------------------------------------------------------------------------


def test_what_is_read_again_is_written_and_then_read_where_it_was_written() -> None:
    place = claude()
    first = place.place(request_of("s", "a", again=[1]))
    assert first.lengths == (1,)
    place.heard(first, WROTE)
    second = place.place(request_of("s", "a'", "b", "c", again=[3]))
    assert second.lengths == (1, 3), "reads the first, writes to the third"
    place.heard(second, WROTE)
    last = place.place(request_of("s", "a'", "b", "c'", "d", "e"))
    assert last.lengths == (3,), "nothing new is written, and what was written last is read"
    assert place.place(request_of("t", "a'", "b", "c'")).lengths == (), "another beginning"


def test_nothing_is_read_that_no_answer_has_shown_to_be_there() -> None:
    place = claude()
    place.heard(place.place(request_of("s", "a", again=[1])), NOTHING)
    assert place.place(request_of("s", "b")).lengths == ()


@pytest.mark.parametrize(("seconds", "lengths"), [(239.0, (1,)), (241.0, ())])
def test_what_has_expired_is_not_read(seconds: float, lengths: tuple[int, ...]) -> None:
    clock = Clock()
    place = claude(clock)
    placed = place.place(request_of("s", "a", again=[1]))
    place.heard(placed, WROTE)
    clock.now = seconds
    assert place.place(request_of("s", "b")).lengths == lengths


def test_a_read_keeps_it_alive() -> None:
    clock = Clock()
    place = claude(clock)
    for clock.now in (0.0, 200.0, 400.0):
        placed = place.place(request_of("s", str(clock.now), again=[1]))
        place.heard(placed, WROTE)
    clock.now = 600.0
    assert place.place(request_of("s", "a")).lengths == (1,)


@pytest.mark.parametrize(("seconds", "lengths"), [(100.0, (3,)), (300.0, ())])
def test_nothing_is_written_that_would_expire_during_the_next_answer(
    seconds: float, lengths: tuple[int, ...]
) -> None:
    clock = Clock()
    place = claude(clock)
    for _ in range(12):
        placed = place.place(request_of("x", "a"))
        clock.now += seconds
        place.heard(placed, NOTHING)
    assert place.place(request_of("s", "a", "b", "c", again=[3])).lengths == lengths


def test_a_message_without_text_takes_none() -> None:
    assert claude().place(request_of("s", "a", " \n", "c", again=[1, 3])).lengths == (1,)


def test_there_are_four_at_most_and_the_longest_ones() -> None:
    placed = claude().place(request_of(*"sabcdefg", again=[1, 2, 3, 5, 7]))
    assert placed.lengths == (2, 3, 5, 7)
    assert len(placed.lengths) == MOST


WANTED = [
    ("anthropic", f"anthropic/{CLAUDE}"),
    ("bedrock", "bedrock/us.anthropic.claude-opus-4-6-v1"),
    ("vertex_ai", "vertex_ai/claude-opus-4-6"),
    ("azure_ai", "azure_ai/claude-opus-4-6"),
    ("openrouter", "openrouter/anthropic/claude-opus-4.6"),
]
NOT_WANTED = [
    ("openai", "openai/gpt-5.4"),
    ("gemini", "gemini/gemini-3.1-pro-preview"),
    ("vertex_ai", "vertex_ai/gemini-3.1-pro-preview"),
    ("deepseek", "deepseek/deepseek-chat"),
    ("bedrock", "bedrock/amazon.nova-pro-v1:0"),
    ("openrouter", "openrouter/google/gemini-3.1-pro"),
    ("openai", "openai/claude-by-another-name"),
]


@pytest.mark.parametrize(
    ("provider", "name", "wanted"),
    [(*one, True) for one in WANTED] + [(*one, False) for one in NOT_WANTED],
)
def test_they_are_for_claude_where_litellm_hands_them_on(provider: str, name: str, wanted: bool) -> None:
    placed = CacheBreakpoints(provider, name).place(request_of("s", "a", again=[1]))
    assert placed.lengths == ((1,) if wanted else ())


def test_marks_change_no_text() -> None:
    request = request_of("s", "a", "b", "c", again=[1, 3])
    plain = request_body(request)["messages"]
    made = marked(plain, claude().place(request))
    assert [isinstance(one["content"], list) for one in made] == [True, False, True, False]
    assert [one["role"] for one in made] == [one["role"] for one in plain]
    texts = [one["content"] if isinstance(one["content"], str) else one["content"][0]["text"] for one in made]
    assert texts == ["s", "a", "b", "c"]
    assert plain == request_body(request)["messages"], "the body itself is left alone"


@pytest.mark.parametrize("name", ["openrouter/anthropic/claude-sonnet-4.6", "azure_ai/claude-opus-4-6"])
def test_litellm_hands_them_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_litellm()
    from litellm.types.utils import CallTypes
    from litellm.utils import return_raw_request

    for variable in ("OPENROUTER_API_KEY", "AZURE_AI_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    request = request_of("s", "a", "b", "c", again=[1, 3])
    provider = name.partition("/")[0]
    messages = marked(request_body(request)["messages"], CacheBreakpoints(provider, name).place(request))
    asked = {"model": name, "messages": messages, "max_tokens": 5, "api_base": "http://127.0.0.1:1/anthropic"}
    sent = return_raw_request(CallTypes.completion, asked)["raw_request_body"]
    system = [{"role": "system", "content": sent["system"]}] if "system" in sent else []
    parts = [
        part for one in [*system, *sent["messages"]] for part in one["content"] if isinstance(part, dict)
    ]
    assert [part["text"] for part in parts if "cache_control" in part] == ["s", "b"]


def test_litellm_hands_them_on_to_vertex() -> None:
    """As to Anthropic, and without the beta header that Vertex refuses. Nothing is sent: Google wants a login first."""
    load_litellm()
    from litellm.llms.vertex_ai.vertex_ai_partner_models.anthropic.transformation import (
        VertexAIAnthropicConfig,
    )

    request, headers = request_of("s", "a", "b", "c", again=[1, 3]), dict[str, str]()
    breakpoints = CacheBreakpoints("vertex_ai", "vertex_ai/claude-opus-4-6")
    messages = marked(request_body(request)["messages"], breakpoints.place(request))
    sent = VertexAIAnthropicConfig().transform_request(
        model="claude-opus-4-6",
        messages=messages,
        optional_params={"max_tokens": 5},
        litellm_params={},
        headers=headers,
    )
    parts = [*sent["system"], *(part for message in sent["messages"] for part in message["content"])]
    assert [part["text"] for part in parts] == ["s", "a", "b", "c"]
    assert [part["text"] for part in parts if "cache_control" in part] == ["s", "b"]
    assert "prompt-caching" not in str(headers)


REFUSALS = [
    (400, "messages.0.content.0.cache_control: Extra inputs are not permitted", True),
    (400, "Explicit caching is disabled for this project.", True),
    (403, "Prompt caching is not enabled for project 17", True),
    (400, "max_tokens is too large", False),
    (429, "Prompt caching quota exceeded", False),
    (400, "invalid text: " + 300 * "x" + " cache_control", False),
]


@pytest.mark.parametrize(("status", "message", "refuses"), REFUSALS)
def test_a_refusal_of_breakpoints_is_known_by_its_words(status: int, message: str, refuses: bool) -> None:
    assert refuses_breakpoints(status, message) is refuses


# --- what the engine says -----------------------------------------------------------------------


def ref_of(turn: int, row: int = 7, total: int = 9, chars: int = 100) -> SampleRef:
    changes = {"id": f"terminal/{row}/{turn}", "turn_idx": turn, "row_id": row}
    return make_sample().ref.model_copy(update=changes | {"total_turns": total, "context_chars": chars})


def test_a_later_turn_of_the_same_episode_reads_the_history() -> None:
    turns = (ref_of(1), ref_of(4), ref_of(9))
    taken = Taken(0, turns)
    assert reads(taken, turns[0], turns[1:], None) == Reads(history=True)
    assert reads(taken, turns[2], (), None) == Reads()
    assert reads(taken, turns[1], [ref_of(9, row=8)], None) == Reads(), "it parts from this one"
    assert reads(taken, turns[1], [ref_of(9, total=12)], None) == Reads()
    assert reads(taken, turns[1], [ref_of(9, chars=3001)], 1000) == Reads(), "it may not fit"
    assert reads(taken, turns[1], [turns[1], turns[2]], None) == Reads(history=True, whole=True)
    assert reads(taken, turns[2], [turns[2]], None) == Reads(whole=True), "another epoch"


def test_others_of_the_task_read_the_system_prompt_of_the_first() -> None:
    turns = (ref_of(4), ref_of(9))
    taken = Taken(0, turns, more=True)
    assert reads(taken, turns[0], turns[1:], None) == Reads(first=True, history=True)
    assert reads(taken, turns[1], (), None) == Reads()


@pytest.mark.parametrize(
    ("of", "texts", "lengths"),
    [
        (Reads(), "sa", ()),
        (Reads(first=True), "sa", (1,)),
        (Reads(history=True), "sabc", (3,)),
        (Reads(True, True, True), "sabc", (1, 3, 4)),
        (Reads(history=True, whole=True), "sa", (1, 2)),
    ],
)
def test_reads_as_numbers_of_messages(of: Reads, texts: str, lengths: tuple[int, ...]) -> None:
    assert of.lengths(request_of(*texts).messages) == lengths


def test_a_prompt_without_system_text_has_no_shared_first_message() -> None:
    messages = (Message(role="user", content="a"),)
    assert Reads(first=True, history=True).lengths(messages) == ()


def test_the_response_cache_does_not_look_at_them() -> None:
    model = create_model("openai-api/m", Connection(base_url="http://127.0.0.1:1/v1"), TASKS)
    assert cache_key(model, request_of("s", "a", again=[1])) == cache_key(model, request_of("s", "a"))


# --- usage --------------------------------------------------------------------------------------

USAGES = [
    ({"prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4}}, 3, 4),
    ({"prompt_tokens_details": {"cached_tokens": 0, "cache_creation_tokens": 4}}, 0, 4),
    ({"prompt_tokens_details": {"cached_tokens": 3, "cache_creation_input_tokens": 4}}, 3, 4),
    ({"cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}, 3, 4),
    ({"prompt_cache_hit_tokens": 3, "prompt_cache_miss_tokens": 5}, 3, None),
    ({"cached_tokens": 3}, 3, None),
    ({"prompt_tokens_details": None}, None, None),
    ({"prompt_tokens_details": {"cached_tokens": -1, "cache_write_tokens": True}}, None, None),
]


@pytest.mark.parametrize(("told", "cached", "written"), USAGES)
def test_usage(told: dict[str, Any], cached: int | None, written: int | None) -> None:
    usage = read_usage({"prompt_tokens": 8, "completion_tokens": 1} | told)
    assert (usage.cached_tokens, usage.cache_write_tokens) == (cached, written)
