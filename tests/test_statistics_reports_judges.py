"""Public bug reports of the group ST about judges who change their minds or leave things out, in whole runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.results import run_tables
from agentworldbench.run import Run, evaluate, judge_run, load_run
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, verdict_text
from tests.helpers.whole_runs import good, options


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "data"
    make_official_folder(folder, domains=("swe", "os"), trajectories=3, special=False, turns=3)
    return folder


def results_of(run: Run) -> Any:
    assert run.results is not None
    return run.results


def test_st_13_the_judge_is_named_and_its_changes_of_mind_are_measured(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that changes between 3 and 5, another one beside it: model as served, temperature, prompts, spread."""
    use_prompts(monkeypatch)

    def changing(call: ChatCall) -> Reply:
        if call.model in ("judge", "other"):
            grade = 3 if call.key[0] < "8" or call.attempt % 3 == 0 else 5
            return Reply(content=verdict_text(dict.fromkeys(DIMENSIONS, grade)))
        return good(call)

    path = data.parent / "moods"
    with ScriptedServer(changing) as server:
        evaluate(**options(server, path, data, judge_repeats=2, epochs=2))
        judge_run(path, make_config({"judge": "openai-api/other", "judge_base_url": server.base_url}))
    results = results_of(load_run(path))
    assert [one.judge.model for one in results.judges] == ["openai-api/judge", "openai-api/other"]
    texts = [table.to_text(200) for table in run_tables(results)]
    for name in ("judge", "other"):
        (text,) = [
            text for text in texts if text.startswith("Judge scores") and f"openai-api/{name} " in text
        ]
        assert f"(served as {name})" in text
        assert "temperature 0.0, prompts " in text
        assert "digest " in text
    again = results.judges[0].headline.macro_rerun.floor
    assert again is not None and again.half is not None and again.half > 1
    (note,) = [note for note in run_tables(results)[0].notes if "Interval re-run" in note]
    assert f"Judge A ± {again.half:.2f}" in note


def test_st_15_in_a_whole_run_too(data: Path) -> None:
    """A judge that leaves a dimension out of every fourth verdict."""

    def incomplete(call: ChatCall) -> Reply:
        if call.model != "judge":
            return good(call)
        scores: dict[str, object] = {name: 2 + place % 3 for place, name in enumerate(DIMENSIONS)}
        if call.index % 4 == 0:
            scores.pop("quality")
        return Reply(content=verdict_text(scores))

    with ScriptedServer(incomplete) as server:
        run = evaluate(**options(server, data.parent / "incomplete", data, judge_attempts=1))
    judge = results_of(run).judges[0]
    assert 0 < judge.micro.scored < judge.micro.samples
    for one in (*judge.domains.values(), judge.micro):
        mean = sum(one.exclude[name] for name in DIMENSIONS) / len(DIMENSIONS)
        assert one.exclude["total"] == pytest.approx(mean)
