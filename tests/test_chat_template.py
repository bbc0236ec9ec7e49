"""Prompt tokens and answers as text, by a scripted tokenizer: nothing added twice, nothing lost."""

from __future__ import annotations

from typing import Any

import pytest

from agentworldbench.models.chat_template import ChatTemplate, TemplateRefused
from agentworldbench.observation import read_reply
from agentworldbench.records import Completion, FailureKind, Message
from tests.helpers.fake_engine import BOS, END, FakeTokenizer

USER = (Message(role="user", content="hi"),)


def template(tokenizer: FakeTokenizer | None = None, **more: Any) -> ChatTemplate:
    return ChatTemplate("hf/x", tokenizer or FakeTokenizer(), {END}, **more)


def said(text: str, opener: str = "", stops: tuple[str, ...] = ()) -> str:
    """What is read from an answer of this text that ends by itself."""
    return template().read([*map(ord, text), END], opener, stops)


def test_a_prompt_is_what_the_template_renders() -> None:
    prompt = template().encode(USER, {})
    assert "".join(map(chr, prompt.tokens)) == "user:hi\n"
    assert prompt.opener == ""


def test_a_bos_is_put_in_front_only_where_it_is_wanted_and_missing() -> None:
    assert list(template(bos=True).encode(USER, {}).tokens[:2]) == [BOS, ord("u")]
    written = FakeTokenizer()
    written.apply_chat_template = lambda messages, **more: chr(BOS) + "x"  # type: ignore[method-assign]
    assert list(template(written, bos=True).encode(USER, {}).tokens) == [BOS, ord("x")]


def test_arguments_of_the_request_win() -> None:
    tokenizer = FakeTokenizer()
    template(tokenizer, arguments={"a": 1, "b": 1}).encode(USER, {"b": 2})
    assert {name: tokenizer.arguments[0][name] for name in "ab"} == {"a": 1, "b": 2}


def test_a_refusal_is_told_and_nothing_is_taken_out() -> None:
    with pytest.raises(TemplateRefused, match="System role not supported"):
        template(given="no system role").encode((Message(role="system", content="s"), *USER), {})


OPENERS = {
    "none": ("", ""),
    "open": ("<think>\n", "<think>\n"),
    "closed again": ("<think>\n\n</think>\n\n", ""),
    "of another family": ("[THINK]", "[THINK]"),
    "far from the end": ("<think>" + "x" * 300, ""),
}


@pytest.mark.parametrize("case", OPENERS)
def test_the_opener_that_a_prompt_ends_with(case: str) -> None:
    tail, opener = OPENERS[case]
    assert template(FakeTokenizer(tail=tail)).encode(USER, {}).opener == opener


HARMONY = "<|channel|>analysis<|message|>let me see<|end|><|start|>assistant<|channel|>final<|message|>done"
READ: dict[str, tuple[str, str]] = {
    "plain": (said("done"), "done"),
    "markers stay": (said("<think>a</think>b"), "<think>a</think>b"),
    "special tokens inside stay": (said(HARMONY), HARMONY),
    "opener of the prompt": (said("a</think>b", opener="<think>\n"), "<think>\na</think>b"),
    "the first stop string": (said("one STOP two END", stops=("END", "STOP")), "one "),
    "a stop string that does not come": (said("one", stops=("END",)), "one"),
    "a stop string in the prompt's opener": (said("a", opener="<think>\n", stops=("<think>",)), "<think>\na"),
}


@pytest.mark.parametrize("case", READ)
def test_what_is_read_from_tokens(case: str) -> None:
    assert READ[case][0] == READ[case][1]


def test_only_end_tokens_at_the_end_go() -> None:
    assert template().read([ord("a"), END, ord("b"), END, END]) == "a<end>b"


DRAFT = "a <predicted_observation>draft</predicted_observation>"
CUT = {
    "think": said(DRAFT, opener="<think>\n"),
    "harmony": said(f"<|channel|>analysis<|message|>{DRAFT}"),
}


@pytest.mark.parametrize("case", CUT)
def test_an_answer_cut_while_thinking_is_no_answer(case: str) -> None:
    completion = Completion(text=CUT[case], finish_reason="length")
    reading = read_reply(
        completion, "predicted_observation", "**Environment Observation:**", stops_sent=False
    )
    assert reading.observation is None
    assert reading.failure is not None
    assert reading.failure.kind is FailureKind.TRUNCATED
