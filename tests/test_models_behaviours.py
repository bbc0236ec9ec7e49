"""The matrix: one sample, one server that behaves as a real one does, one whole evaluation.

`cases/models/behaviours.yaml` says for each case the server, the flags and the size of the prompt, and
what must come of it: every chat request in order, with the whole of its body but the messages, the
record that is stored, and what the run has learned of the model. A prompt's size is exact, since the
servers count with a tokenizer that this module knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.run import Run, evaluate
from tests.helpers import engine_servers as engines
from tests.helpers.asking import cases
from tests.helpers.engine_servers import EngineServer, prompt_tokens
from tests.helpers.scripted_calls import Reply, Script

Case = Mapping[str, Any]
CASES = cases("models/behaviours.yaml")
SYSTEM = "You are a shell."
CHAT = ("/v1/chat/completions", "/v1/messages")
APART = ("model", "messages", "system", "contents", "systemInstruction", "system_instruction")
"""Keys of a body that hold the prompt, or name the model."""
UNSHOWN = {
    *("schema_version", "sample_id", "row_hash", "prompt_sha256", "started_at", "seconds", "response_id"),
    *("text", "cost_usd", "epoch", "official_sha256"),
}
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWB_API_KEY", "AWB_JUDGE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, "sk-for-tests-0123456789abcdef")


def rows_of(case: Case) -> list[dict[str, Any]]:
    """Rows of one trajectory each, whose prompts have exactly the tokens that `prompt` says (one or more)."""
    sizes = case["prompt"] if isinstance(case["prompt"], list) else [case["prompt"]]
    return [row_of(case, size) | {"id": number} for number, size in enumerate(sizes, 1)]


def row_of(case: Case, size: int) -> dict[str, Any]:
    """A row whose prompt has `size` tokens; `history` has the tokens of each earlier turn."""
    word = f"{case.get('word', 'word')} "
    prompts, responses = [], []
    messages = [{"role": "system", "content": SYSTEM}]
    for turn in case.get("history", ()):
        text = (word * (turn // 2 - engines.PER_MESSAGE)).strip()
        prompts.append(text)
        responses.append(text)
        messages += [{"role": role, "content": text} for role in ("user", "assistant")]
    left = size - prompt_tokens([*messages, {"role": "user", "content": ""}])
    prompts.append((word * left).strip())
    assert prompt_tokens([*messages, {"role": "user", "content": prompts[-1]}]) == size
    return {
        "task": "terminal",
        "prompt": prompts,
        "response": [*responses, "**Environment Observation:**\ntotal 2"],
        "current_prompt": prompts[-1],
        "system_str": SYSTEM,
        "turn_idx": len(prompts),
        "total_turns": len(prompts),
    }


def script_of(case: Case) -> Script:
    """Replies in order, the last one again and again; `words` is an answer of so many."""

    def reply(told: Mapping[str, Any]) -> Reply:
        words = " ".join(["so"] * told.get("words", 3))
        whole = f"<predicted_observation>\n{words}\n</predicted_observation>"
        fields = {name: value for name, value in told.items() if name != "words"}
        return Reply(**{"content": whole} | fields)

    replies = [reply(one) for one in case.get("replies", [{}])]
    return lambda call: replies[min(call.index, len(replies)) - 1]


def chats(server: EngineServer) -> list[dict[str, Any]]:
    """Bodies of the chat requests without the prompt."""
    bodies = [
        one.body for one in server.requests if one.path in CHAT or one.path.endswith(":generateContent")
    ]
    return [{name: value for name, value in body.items() if name not in APART} for body in bodies]


def shown(run: Run) -> list[dict[str, Any]]:
    """What the records say, defaults and hashes left out."""
    records = []
    for prediction in sorted(run.predictions(), key=lambda one: one.sample_id):
        record = prediction.model_dump(mode="json", exclude_defaults=True, exclude=UNSHOWN)
        if prediction.failure:
            record["failure"] = prediction.failure.kind.value
        if prediction.attempts:
            record["attempts"] = [attempt.outcome for attempt in prediction.attempts]
        records.append(record)
    return records


@pytest.mark.parametrize("case", CASES)
def test_a_server_is_asked_and_recorded_as_the_case_says(case: Case, tmp_path: Path) -> None:
    rows = [json.dumps(row) + "\n" for row in rows_of(case)]
    (tmp_path / "terminal_test.jsonl").write_text("".join(rows), encoding="utf-8")
    make = getattr(engines, case["server"])
    with make(script_of(case), **case.get("options", {})) as server:
        name = case["model"]
        base = server.base_url if name.startswith("openai-api/") else server.api_base
        flags = {"data": str(tmp_path), "tasks": "terminal", "output": tmp_path / "run"} | case["flags"]
        if "error" in case:
            with pytest.raises(ConfigError, match=case["error"]):
                evaluate(model=name, base_url=base, **flags)
            assert chats(server) == []
            return
        run = evaluate(model=name, base_url=base, max_connections=1, max_retries=0, **flags)
    assert chats(server) == case["requests"]
    assert shown(run) == case["records"]
    facts = run.record.sessions[-1].model_facts
    assert facts is not None
    assert {name: getattr(facts, name) for name in case.get("facts", {})} == case.get("facts", {})
    assert run.results is not None
    warned = case.get("warnings", [])
    shorter = "asked for with fewer tokens"  # follows from `max_tokens`, which each case states
    told = [warning for warning in run.results.warnings if shorter not in warning]
    assert len(told) == len(warned), told
    for warning, words in zip(told, warned, strict=True):
        assert words in warning


def test_the_matrix_is_as_wide_as_it_says() -> None:
    servers = {case.values[0]["server"] for case in CASES}
    assert len(CASES) >= 30
    assert servers == {name for name in vars(engines) if name.endswith("Server") and name != "EngineServer"}
