"""What may have changed a run's numbers unseen: each kind of warning, from records and from a whole run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentworldbench.records import Usage
from agentworldbench.render.results import notes_table
from agentworldbench.run import evaluate, load_run, score_run
from agentworldbench.run_record import PROMPT_CUT, PROMPT_PERHAPS_CUT, ModelFacts, Session
from agentworldbench.stats.results import PredictionResults, Spending
from agentworldbench.stats.warnings import warnings_of
from tests.helpers.engine_servers import VllmServer
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, echo_world
from tests.helpers.whole_runs import options


def session(**facts: Any) -> Session:
    return Session(
        started_at="2026-01-01T00:00:00Z", harness="0", git_commit=None, git_dirty=None, packages={},
        model_url=None, judge_urls={}, model_facts=ModelFacts(**facts) if facts else None,
    )  # fmt: skip


def predictions(
    served: tuple[str, ...] = ("m",),
    truncated: int = 0,
    notes: dict[str, int] | None = None,
    **counts: int,
) -> PredictionResults:
    return PredictionResults(
        samples={"terminal": 100},
        predicted={"terminal": 100 - truncated},
        failures={"terminal": {"truncated": truncated} if truncated else {}},
        served=served,
        examples={},
        notes=notes or {},
        spent=Spending(usage=Usage(), cost_usd=None),
        **counts,
    )


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Any:
    output = tmp_path_factory.mktemp("run") / "run"
    return evaluate(model="baseline/empty", limit="1", output=output).record


CASES: list[tuple[list[Session], PredictionResults, list[str]]] = [
    ([session()], predictions(), []),
    ([session(engine_version="1"), session(), session(engine_version="1")], predictions(), []),
    ([session(engine_version="1"), session(engine_version="2")], predictions(), ["engine version changed"]),
    (
        [session(chat_template_sha256="a" * 64), session(chat_template_sha256="b" * 64)],
        predictions(),
        ["chat template sha256 changed between sessions (aaaaaaaaaaaa… → bbbbbbbbbbbb…)"],
    ),
    ([session(quantization="Q4"), session(quantization="Q8")], predictions(), ["Q4 → Q8"]),
    ([session(context=1), session(context=2)], predictions(), []),
    ([session()], predictions(served=("m-1", "m-2")), ["answered under 2 names (m-1, m-2)"]),
    ([session()], predictions(truncated=1), []),
    ([session()], predictions(truncated=40), ["40 of 100 answers were cut by the token limit"]),
    ([session()], predictions(notes={"lone surrogates replaced": 9}), []),
    ([session()], predictions(notes={PROMPT_CUT: 2, PROMPT_PERHAPS_CUT: 1}), ["3 prompts were cut"]),
    ([session()], predictions(shortened=3), ["3 predictions were made on a shortened history"]),
    (
        [session()],
        predictions(less_room=3),
        ["model baseline/empty: 3 answers were asked for with fewer tokens than --max-tokens says"],
    ),
]


@pytest.mark.parametrize(("sessions", "counts", "expected"), CASES)
def test_warnings(
    record: Any, sessions: list[Session], counts: PredictionResults, expected: list[str]
) -> None:
    run = record.model_copy(update={"sessions": tuple(sessions)})
    found = list(warnings_of(run, counts, ()))
    assert len(found) == len(expected), found
    for line, words in zip(found, expected, strict=True):
        assert words in line


def test_a_served_name_that_changes_within_a_run_is_shown(tmp_path: Path) -> None:
    data = make_official_folder(tmp_path / "data", trajectories=1, observation_chars=100).folder

    def renamed(call: ChatCall) -> Reply:
        world = echo_world(call)
        return Reply(content=world.content, model="m-1" if call.index % 2 else "m-2")

    with ScriptedServer(renamed) as server:
        asked = options(server, tmp_path / "run", data, judge=(), judge_base_url=(), tasks="terminal")
        run = evaluate(**asked)
    assert run.results is not None
    (warning,) = run.results.warnings
    assert "m-1, m-2" in warning
    table = notes_table(run.results)
    assert table is not None
    assert table.rows[0][:2] == ("warning", warning)
    assert score_run(run.path).results == load_run(run.path).results


def test_what_the_server_tells_is_kept_by_session(tmp_path: Path) -> None:
    data = make_official_folder(tmp_path / "data", trajectories=1, observation_chars=100).folder
    for version in ("0.24.0", "0.33.0"):
        with VllmServer(echo_world, context=60_000, served="world", version=version) as server:
            limit = "1" if version == "0.24.0" else "2"
            asked = options(server, tmp_path / "run", data, judge=(), judge_base_url=(), tasks="terminal")
            run = evaluate(**asked, limit=limit, seed=1)
    facts = [one.model_facts for one in run.record.sessions]
    assert [one and (one.engine, one.engine_version, one.context) for one in facts] == [
        ("vllm", "0.24.0", 60_000),
        ("vllm", "0.33.0", 60_000),
    ]
    assert facts[0] is not None
    assert facts[0].listed["owned_by"] == "vllm"
    assert run.results is not None
    assert any(
        "engine version changed between sessions (0.24.0 → 0.33.0)" in one for one in run.results.warnings
    )
