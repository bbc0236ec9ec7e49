"""A real llama.cpp server with a context of 4,096 tokens a slot, and samples up to twice as long.

llama-server shortens an answer in silence when prompt and answer do not fit. Here no sample that
fits is lost, none is cut unseen, and those that do not fit are `context_overflow`; what fits is
decided by the server's own count, asked for by this test itself. Samples are few and answers short:
the time goes into reading prompts.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.engine.fitting import RESERVE
from agentworldbench.prompts import predict_messages
from agentworldbench.run import Run, evaluate, load_run
from tests.helpers.official_folder import make_official_folder
from tools import demo_llm

CONTEXT = 4096
LEAST, MOST = 24, 40
KEY = "sk-loopback-0123456789"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(demo_llm.unavailable() is not None, reason=str(demo_llm.unavailable())),
]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    packages = demo_llm.install(demo_llm.ROOT / ".demo")
    log = tmp_path_factory.mktemp("server") / "log.txt"
    with demo_llm.server(packages, log, KEY, CONTEXT) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWB_API_KEY", KEY)
        yield address


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(
        folder, domains=["terminal"], trajectories=2, turns=10, observation_chars=2000, special=False
    )
    return folder


@pytest.fixture(scope="module")
def known(url: str, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that has learned all that the server tells."""
    return run(url, data, tmp_path_factory.mktemp("known") / "run")


@pytest.fixture(scope="module")
def tokens(known: Run, url: str) -> dict[str, int]:
    """Prompt tokens by sample id, counted without the package's help."""
    from agentworldbench.resume import reopen_samples

    samples = reopen_samples(known.path, known.record)
    found = {}
    for ref in samples.refs:
        messages = predict_messages(samples.dataset.load(ref))
        found[ref.id] = counted(url, [message.model_dump() for message in messages])
    return found


def run(url: str, data: Path, output: Path, **options: Any) -> Run:
    """The terminal samples, greedily."""
    return evaluate(
        model="openai-api/smollm2", base_url=url, data=str(data), tasks="terminal", output=output,
        max_tokens=MOST, min_output=LEAST, temperature=0.0, max_connections=demo_llm.SLOTS, **options,
    )  # fmt: skip


def counted(url: str, messages: list[dict[str, str]]) -> int:
    """Prompt tokens by the server's template and tokenizer."""
    prompt = post(url, "/apply-template", {"messages": messages})["prompt"]
    return len(post(url, "/tokenize", {"content": prompt, "add_special": True})["tokens"])


def post(url: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(url.removesuffix("/v1") + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_what_fits_is_asked_and_what_does_not_is_an_overflow(known: Run, tokens: dict[str, int]) -> None:
    room = CONTEXT - RESERVE - LEAST
    predictions = {record.sample_id: record for record in known.predictions()}
    assert predictions.keys() == tokens.keys()
    over = {
        name
        for name, record in predictions.items()
        if record.failure and record.failure.kind == "context_overflow"
    }
    assert over == {name for name, count in tokens.items() if count > room}
    assert 2 <= len(over) <= len(tokens) - 2, f"the data lies on both sides of the limit: {tokens}"
    for name in predictions.keys() - over:
        record = predictions[name]
        assert record.prompt_tokens_from in ("counted", "estimated")
        assert record.usage.prompt_tokens == tokens[name], "nothing was cut from the prompt"
        assert record.max_tokens == min(MOST, CONTEXT - tokens[name] - RESERVE)
        assert not any("server" in note for note in record.notes)
        made = record.usage.completion_tokens or 0
        if record.finish_reason == "length":
            assert made == record.max_tokens, "the whole budget was given"
    for name in over:
        assert predictions[name].usage.prompt_tokens is None, "not sent"
    facts = known.record.sessions[-1].model_facts
    assert facts is not None
    assert (facts.engine, facts.context, facts.prompts_counted) == ("llama.cpp", CONTEXT, True)
    assert facts.quantization == "Q4_1"
    assert len(facts.chat_template_sha256 or "") == 64


def test_without_knowing_the_context_the_server_decides(
    url: str, data: Path, tokens: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworldbench.models.openai_api import OpenAIModel

    async def tells_nothing(self: OpenAIModel, asked: Any) -> None:
        return None

    monkeypatch.setattr(OpenAIModel, "_ask", tells_nothing)
    monkeypatch.setattr(OpenAIModel, "_learn", tells_nothing)
    stored = run(url, data, tmp_path / "run")
    for record in stored.predictions():
        if tokens[record.sample_id] > CONTEXT:
            assert record.failure is not None
            assert record.failure.kind == "context_overflow"
        elif tokens[record.sample_id] + MOST <= CONTEXT:
            assert record.failure is None or record.failure.kind in ("truncated", "empty")
            assert record.usage.prompt_tokens == tokens[record.sample_id]
    facts = load_run(stored.path).record.sessions[-1].model_facts
    assert facts is not None
    assert (facts.context, facts.context_from) == (CONTEXT, "the server's refusal")


def test_with_drop_oldest_every_sample_is_asked(url: str, data: Path, tmp_path: Path) -> None:
    stored = run(url, data, tmp_path / "run", context_policy="drop-oldest", limit="5")
    kinds = {record.failure.kind for record in stored.predictions() if record.failure}
    assert "context_overflow" not in kinds
    shortened = [record for record in stored.predictions() if record.dropped_turns]
    assert len(shortened) >= 2
    for record in shortened:
        assert (record.usage.prompt_tokens or 0) <= CONTEXT - RESERVE - LEAST
    assert stored.results is not None
    answered = [record for record in shortened if record.failure is None]
    assert stored.results.predictions.shortened == len(answered)
    assert any("never ranked" in warning for warning in stored.results.warnings) is bool(answered)
