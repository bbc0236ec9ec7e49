"""What the tests of models, engine and runs share: a sample, requests, one-off calls, case files.

`ask_once` sends one request through the real SDK to a `ScriptedServer`; `cases` reads
`tests/cases/**.yaml` into parameters with readable ids; `reply_of` makes a `Reply` from a case.
`KEY` is the key that these tests set; `KEY-IN-USE` in a case file stands for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from agentworldbench.models import Connection, Model, create_model
from agentworldbench.observation import read_reply
from agentworldbench.prices import Price
from agentworldbench.records import (
    CallFailure,
    Completion,
    Message,
    Request,
    Sample,
    SampleRef,
    Sampling,
    Usage,
)
from agentworldbench.task import Task, load_tasks

from .scripted_server import ChatCall, Reply, Script, ScriptedServer

CASES = Path(__file__).resolve().parents[1] / "cases"
KEY = "sk-for-tests-0123456789abcdef"
LIMIT_S = 30.0
Outcome = TypeVar("Outcome")
TASKS: Mapping[str, Task] = load_tasks()


def cases(name: str) -> list[Any]:
    """The cases of `tests/cases/<name>` as pytest parameters."""
    loaded = yaml.safe_load((CASES / name).read_text(encoding="utf-8").replace("KEY-IN-USE", KEY))
    return [pytest.param(case, id=case["name"].replace(" ", "-")) for case in loaded]


def reply_of(case: Mapping[str, Any]) -> Reply:
    """The server's answer in a case of `replies.yaml` or `errors.yaml`."""
    status, headers = case.get("status", 200), case.get("headers", {})
    if "nested" in case:
        return Reply(raw_body=b"[" * case["nested"])
    if "body" in case:
        return Reply(status=status, headers=headers, raw_body=case["body"].encode())
    if "reply" in case:
        return Reply(**case["reply"])
    message = case.get("message", "a scripted refusal")
    error = case.get("error") or {"message": message, "type": case.get("type"), "code": case.get("code")}
    return Reply(status=status, headers=headers, error=error)


def make_sample(
    turns: int = 2, domain: str = "terminal", row_id: int = 7, cluster: str = "c", action: str = "ls"
) -> Sample:
    """A sample whose texts name their turn; the current action is `action`."""
    prompts = [f"### Turn {n}\n\n**Action:**\n```\ndo {n}\n```" for n in range(1, turns)]
    current = f"### Turn {turns}\n\n**Action:**\n```\n{action}\n```"
    ref = SampleRef(
        id=f"{domain}/{row_id}/{turns}",
        domain=domain,
        row_id=row_id,
        turn_idx=turns,
        total_turns=turns,
        cluster=cluster,
        task_key="t",
        row_hash="0" * 64,
        line=1,
        offset=0,
        length=1,
        context_chars=100,
    )
    responses = tuple(f"**Environment Observation:**\nanswer {n}" for n in range(1, turns + 1))
    return Sample(
        ref=ref, system="You are a shell.", prompts=(*prompts, current), responses=responses, action=current
    )


def make_request(
    sampling: Sampling | None = None, text: str = "What does `ls` print?", **more: Any
) -> Request:
    """A request of a system and a user message."""
    messages = (Message(role="system", content="You are a shell."), Message(role="user", content=text))
    return Request(sample=make_sample(), messages=messages, sampling=sampling or Sampling(), **more)


class Talk:
    """One model that keeps talking to one scripted server: a client costs 0.1 s to make, a call 5 ms.

    `ask` sends one request under a script and returns the outcome and the requests it took.
    """

    def __init__(self, model: str) -> None:
        self.server = ScriptedServer()
        self._runner = asyncio.Runner()
        self._name = model

    def __enter__(self) -> Talk:
        self.server.start()
        self._model = create_model(
            self._name, Connection(base_url=self.server.base_url, timeout=LIMIT_S), TASKS
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._model.close())
        self._runner.close()
        self.server.stop()

    def ask(
        self, script: Script, request: Request | None = None
    ) -> tuple[Completion | CallFailure, tuple[ChatCall, ...]]:
        """One `generate`, bounded; the calls that it made."""
        before = len(self.server.calls)
        self.server.script = script
        asked = self._model.generate(request or make_request())
        outcome = self._runner.run(_bounded(asked))
        return outcome, self.server.calls[before:]


async def _bounded(work: Awaitable[Outcome]) -> Outcome:
    return await asyncio.wait_for(work, LIMIT_S)


def ask_once(
    model: str,
    script: Script,
    request: Request | None = None,
    timeout: float = LIMIT_S,
    price: Price | None = None,
) -> tuple[Completion | CallFailure, ScriptedServer]:
    """The outcome of one `generate` against a server with `script`, and the (stopped) server."""

    async def run(url: str) -> Completion | CallFailure:
        made = create_model(model, Connection(base_url=url, timeout=timeout, price=price), TASKS)
        try:
            return await asyncio.wait_for(made.generate(request or make_request()), LIMIT_S)
        finally:
            await made.close()

    with ScriptedServer(script) as server:
        outcome = asyncio.run(run(server.base_url))
    return outcome, server


def assert_outcome(case: Mapping[str, Any], outcome: Completion | CallFailure) -> None:
    """The outcome is what a case of `replies.yaml` or `errors.yaml` says, and can be stored."""
    expected = dict(case)
    if "failure" in expected or "kind" in expected:
        assert isinstance(outcome, CallFailure), outcome
        assert outcome.failure.kind == expected.get("failure", expected.get("kind"))
        assert expected.get("says", "") in outcome.failure.message
        assert "\n" not in outcome.failure.message
        assert outcome.cost_usd == (0.0 if "kind" in expected and "cost" not in expected else None)
        assert outcome.failure.message
        if "kind" in expected:
            assert outcome.failure.status == expected["status"]
            assert outcome.retry_after == expected.get("wait")
    else:
        assert isinstance(outcome, Completion), outcome
        if "completion" in expected:
            apart = {"usage", "cost_usd", "model_served", "response_id"}
            assert (
                outcome.model_dump(mode="json", exclude_defaults=True, exclude=apart)
                == expected["completion"]
            )
        for name in ("response_id", "fingerprint"):
            if name in expected:
                assert getattr(outcome, name) == expected[name]
        assert outcome.cost_usd is None
    if "usage" in expected:
        assert outcome.usage == Usage(**expected["usage"])
    if expected.get("kept") is not None:
        assert isinstance(outcome, CallFailure)
        assert outcome.reply == expected["kept"]
    assert KEY not in outcome.model_dump_json()


def assert_read(case: Mapping[str, Any], outcome: Completion | CallFailure) -> None:
    """Reading the completion for a prediction gives what the case says."""
    if "read" in case:
        assert isinstance(outcome, Completion)
        read = read_reply(outcome, "predicted_observation", "**Environment Observation:**", stops_sent=False)
        observation, failure = read.observation, read.failure
        if isinstance(case["read"], str):
            assert (observation, failure) == (case["read"], None)
        else:
            assert observation is None
            assert failure is not None
            assert failure.kind == case["read"]["failure"]


def in_litellm(case: Mapping[str, Any]) -> dict[str, Any]:
    """The case as it is when the same server is asked through LiteLLM."""
    other = case.get("litellm", {})
    kept = {
        name: value
        for name, value in case.items()
        if not ("failure" in other and name in ("completion", "read", "failure", "says"))
    }
    return kept | other


def set_key(patch: pytest.MonkeyPatch) -> None:
    """`KEY` in OPENAI_API_KEY, and no other key of the harness."""
    for name in ("AWB_API_KEY", "AWB_JUDGE_API_KEY"):
        patch.delenv(name, raising=False)
    patch.setenv("OPENAI_API_KEY", KEY)


async def _ask_many(model: Model, count: int, sampling: Sampling) -> list[Completion | CallFailure]:
    requests = [make_request(sampling, text=f"question {n}") for n in range(count)]
    return list(await asyncio.gather(*(model.generate(request) for request in requests)))


def ask_many(model: str, script: Script, count: int, sampling: Sampling) -> tuple[list[Any], ScriptedServer]:
    """`count` requests of one model in flight together."""

    async def run(url: str) -> list[Completion | CallFailure]:
        made = create_model(model, Connection(base_url=url, timeout=LIMIT_S), TASKS)
        try:
            return await asyncio.wait_for(_ask_many(made, count, sampling), LIMIT_S)
        finally:
            await made.close()

    with ScriptedServer(script) as server:
        outcomes = asyncio.run(run(server.base_url))
    return outcomes, server
