"""`--thinking` and `--reasoning-effort`: what each family and provider is sent, as a table of cases.

The table says what we ask for. That it reaches the wire is shown by asking look-alike servers: here
for LiteLLM's translations, in `test_models_behaviours.py` for whole exchanges.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, create_model
from agentworldbench.models.adapt import Adaptation
from agentworldbench.records import Completion, Sampling
from tests.helpers.asking import TASKS, ask_once, cases, make_request
from tests.helpers.scripted_server import ChatCall, Reply

KEYS = [
    "OPENAI",
    "ANTHROPIC",
    "GEMINI",
    "DEEPSEEK",
    "MOONSHOT",
    "ZAI",
    "DASHSCOPE",
    "GROQ",
    "MISTRAL",
    "XAI",
    "OPENROUTER",
]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(f"{name}_API_KEY", "sk-for-tests-0123456789abcdef")


@pytest.mark.parametrize("case", cases("models/thinking.yaml"))
def test_what_the_flags_stand_for(case: dict[str, Any]) -> None:
    connection = Connection(base_url="http://127.0.0.1:9/v1" if case.get("own") else None)
    model = create_model(case["model"], connection, TASKS)
    asked = (case.get("thinking", "default"), case.get("effort"))
    if "refused" in case:
        with pytest.raises(ConfigError, match=case["refused"]):
            model.switches(*asked)
    else:
        assert model.switches(*asked) == case["body"]


def ok(call: ChatCall) -> Reply:
    return Reply(content="total 2")


@pytest.mark.parametrize(
    ("model", "extra", "sent"),
    [
        ("openai/tiny", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        ("xai/grok-4", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ("deepseek/tiny", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("dashscope/tiny", {"enable_thinking": True}, {"enable_thinking": True}),
        ("moonshot/kimi-k2.6", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("openrouter/tiny", {"reasoning": {"enabled": True}}, {"reasoning": {"enabled": True}}),
        ("hosted_vllm/tiny", {"top_k": 3, "chat_template_kwargs": {"enable_thinking": True}},
         {"top_k": 3, "chat_template_kwargs": {"enable_thinking": True}}),
    ],
)  # fmt: skip
def test_what_is_asked_for_reaches_the_wire_through_litellm(
    model: str, extra: dict[str, Any], sent: dict[str, Any]
) -> None:
    outcome, server = ask_once(model, ok, make_request(Sampling(max_tokens=64, extra=extra)))
    assert isinstance(outcome, Completion), outcome
    (call,) = server.calls
    assert {name: call.body.get(name) for name in sent} == sent
    assert outcome.adapted == {}
    assert os.environ["OPENAI_API_KEY"] not in outcome.model_dump_json()


def test_what_litellm_leaves_out_unasked_is_recorded() -> None:
    sampling = Sampling(temperature=0.6, max_tokens=64)
    outcome, server = ask_once("moonshot/kimi-k2.6", ok, make_request(sampling))
    assert isinstance(outcome, Completion), outcome
    (call,) = server.calls
    assert "temperature" not in call.body
    assert outcome.adapted == {"temperature": None}
    assert outcome.notes == ("temperature not accepted by the endpoint: sent without",)


@pytest.mark.parametrize(
    ("budget", "room", "sent"),
    [(16384, 32768, 16384), (16384, 16384, 8192), (16384, 2000, 1000), (-1, 64, -1)],
)
def test_a_thinking_budget_leaves_room_for_the_answer(budget: int, room: int, sent: int) -> None:
    body = {"max_tokens": room, "thinking": {"type": "enabled", "budget_tokens": budget}}
    adapted = Adaptation().apply(body)
    assert adapted.body["thinking"] == {"type": "enabled", "budget_tokens": sent}
    assert adapted.changes == ({} if sent == budget else {"thinking.budget_tokens": sent})
    assert body["thinking"] == {"type": "enabled", "budget_tokens": budget}, "the request itself is unchanged"
