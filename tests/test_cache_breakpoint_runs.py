"""Whole runs with breakpoints for the provider's cache of prompts: what is sent, read, written and recorded.

Through LiteLLM to a stand-in for Anthropic whose cache works as documented.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.prompts import predict_messages
from agentworldbench.records import Prediction, SampleRef
from agentworldbench.resume import reopen_samples
from agentworldbench.run import Run, evaluate
from tests.helpers.anthropic_cache import CachingAnthropicServer
from tests.helpers.asking import KEY
from tests.helpers.official_folder import make_official_folder

CLAUDE = "claude-sonnet-4-5"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    make_official_folder(tmp_path / "data", domains=["terminal"], trajectories=3, special=False)
    return tmp_path / "data"


def run(server: CachingAnthropicServer, data: Path, output: Path, **more: Any) -> Run:
    return evaluate(
        model=f"anthropic/{CLAUDE}", base_url=server.api_base, data=str(data), tasks="terminal", output=output,
        max_tokens=64, min_output=1, **more,
    )  # fmt: skip


def episodes(made: Run) -> list[list[tuple[SampleRef, Prediction]]]:
    """Predictions by trajectory, turns ascending."""
    samples = reopen_samples(made.path, made.record)
    predictions = {one.sample_id: one for one in made.predictions()}
    refs = sorted(samples.refs, key=lambda ref: (ref.cluster, ref.turn_idx))
    grouped = itertools.groupby(refs, key=lambda ref: ref.cluster)
    return [[(ref, predictions[ref.id]) for ref in some] for _, some in grouped]


def server_of(**options: Any) -> CachingAnthropicServer:
    return CachingAnthropicServer(served=CLAUDE, context=200_000, **options)


def test_each_turn_reads_the_one_before_and_the_last_writes_nothing(data: Path, tmp_path: Path) -> None:
    with server_of() as server:
        made = run(server, data, tmp_path / "run", max_connections=3)
    assert len(episodes(made)) == 3
    for turns in episodes(made):
        assert len(turns) == 5
        for (_, before), (_, now) in itertools.pairwise(turns):
            lying = (before.usage.cached_tokens or 0) + (before.usage.cache_write_tokens or 0)
            assert now.usage.cached_tokens == lying > 0
        for _, prediction in turns[1:-1]:
            assert prediction.cache_breakpoints == 2
            assert prediction.usage.cache_write_tokens
        first = turns[0][1]  # its system text lies there already where another trajectory was earlier
        assert first.cache_breakpoints == 1
        last = turns[-1][1]
        assert (last.cache_breakpoints, last.usage.cache_write_tokens) == (1, 0)
        assert last.cost_usd is not None


def test_the_prompts_are_the_same_as_without(data: Path, tmp_path: Path) -> None:
    with server_of() as server, server_of(refuses=True) as plain:
        with_marks = run(server, data, tmp_path / "with", max_connections=1)
        without = run(plain, data, tmp_path / "without", max_connections=1)
        texts = {
            name: [call.messages for call in one.calls]
            for name, one in (("with", server), ("without", plain))
        }
    assert any(server.marks)
    assert not any(plain.marks)
    assert [one.cache_breakpoints for one in without.predictions()] == [0] * 15
    hashes = [[one.prompt_sha256 for one in made.predictions()] for made in (with_marks, without)]
    assert hashes[0] == hashes[1]
    answered = texts["without"][1:]  # the first was refused for its breakpoint, and sent again without
    assert [_texts(one) for one in texts["with"]] == [_texts(one) for one in answered]


def _texts(messages: Any) -> list[tuple[str, str]]:
    found = []
    for message in messages:
        content = message["content"]
        parts = [content] if isinstance(content, str) else [part["text"] for part in content]
        found.append((message["role"], "".join(parts)))
    return found


def test_a_resumed_run_reads_nothing_that_this_session_has_not_written(data: Path, tmp_path: Path) -> None:
    with server_of() as server:
        ids = [f"terminal/{ref.row_id}/{ref.turn_idx}" for ref in _first_turns(data, server, tmp_path)]
        assert ids
        made = run(server, data, tmp_path / "run", max_connections=1)
        resumed = server.marks[len(ids) :]
    assert all(marks for marks in server.marks[: len(ids)]) is False, "a lone turn is read by nobody"
    assert len(list(made.predictions())) == 15
    assert len(resumed) == 15 - len(ids)


def _first_turns(data: Path, server: CachingAnthropicServer, tmp_path: Path) -> list[SampleRef]:
    made = run(server, data, tmp_path / "run", max_connections=1, limit="3")
    return list(reopen_samples(made.path, made.record).refs)


def test_a_judge_reads_its_system_prompt_again(data: Path, tmp_path: Path) -> None:
    with server_of(output_cap=20_000) as server:
        made = evaluate(
            model="baseline/copy-last", judge=f"anthropic/{CLAUDE}", judge_base_url=server.api_base,
            data=str(data), tasks="terminal", output=tmp_path / "run", max_connections=1,
        )  # fmt: skip
    verdicts = list(made.verdicts())
    assert len(verdicts) == 15
    wrote, *others = verdicts
    assert wrote.usage.cache_write_tokens
    for verdict in others:
        assert (verdict.usage.cached_tokens, verdict.usage.cache_write_tokens) == (
            wrote.usage.cache_write_tokens,
            0,
        )
    assert {marks for marks in server.marks} == {(1,)}


def test_predict_messages_of_a_turn_begin_with_the_history_of_the_one_before(
    data: Path, tmp_path: Path
) -> None:
    """What the breakpoints rest on."""
    with server_of() as server:
        made = run(server, data, tmp_path / "run", max_connections=1)
    samples = reopen_samples(made.path, made.record)
    for turns in episodes(made):
        for (before, _), (now, _) in itertools.pairwise(turns):
            earlier = predict_messages(samples.dataset.load(before))
            later = predict_messages(samples.dataset.load(now))
            assert later[: len(earlier) - 1] == earlier[:-1]
            assert later[: len(earlier)] != earlier, "its last message ends in the instruction suffix"
