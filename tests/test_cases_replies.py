"""Public reports JP-… and MO-… in whole runs: each odd reply costs its own sample, is counted, and is seen.

`cases/whole_replies.yaml` holds one reply a sample. What a reply is read as: `test_observation.py`,
`test_judge_bugs.py`; here is what a run makes of it: no failure is text, a judge never sees one, no failure
is a low score, and every way in which a reply was mended is counted by the run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.render.results import failure_table, notes_table
from agentworldbench.run import Run, evaluate
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import options
from tests.test_verdict import written_out

CASES: Mapping[str, list[dict[str, Any]]] = yaml.safe_load(
    (Path(__file__).parent / "cases" / "whole_replies.yaml").read_text(encoding="utf-8")
)
WORLD, JUDGE = CASES["predictions"], CASES["verdicts"]
GOOD = "BLK(5,5,5,5,5)"
TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}

pytestmark = pytest.mark.usefixtures("quick_retries")


def reply_of(case: dict[str, Any]) -> Reply:
    fields = dict(case["reply"])
    if "raw_body" in fields:
        fields["raw_body"] = json.dumps(fields["raw_body"]).encode()
    if fields.pop("tool_calls", False):
        fields["tool_calls"] = [TOOL_CALL]
    if fields.get("content"):
        fields["content"] = written_out(fields["content"])
    return Reply(**fields)


def ids(count: int) -> list[str]:
    return [f"terminal/{number}/1" for number in range(count)]


def run_of(
    folder: Path, count: int, world: list[dict[str, Any]], judge: list[dict[str, Any]]
) -> tuple[Run, Counter[str]]:
    """A run in which sample n is answered by case n, and how often each sample's judge was asked."""
    rows = [
        {
            "task": "terminal", "id": number, "prompt": ["p"], "response": ["**Environment Observation:**\na.txt"],
            "current_prompt": f"**Action:**\nls {number}.", "system_str": f"{number}.", "turn_idx": 1, "total_turns": 1,
        }
        for number in range(count)
    ]  # fmt: skip
    (folder / "data").mkdir()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "data" / "terminal_test.jsonl").write_text(text, encoding="utf-8")
    judged: Counter[str] = Counter()

    def script(call: ChatCall) -> Reply:
        if call.model == "world":
            return reply_of(world[int(call.system.partition(".")[0])])
        number = next(n for n in range(count) if f"ls {n}." in call.last_user)
        judged[ids(count)[number]] += 1
        return reply_of(judge[number])

    with ScriptedServer(script) as server:
        run = evaluate(**options(server, folder / "run", folder / "data", max_retries=0, judge_attempts=2))
    return run, judged


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Counter[str]]:
    good = [{"reply": {"content": GOOD}}] * len(WORLD)
    return run_of(tmp_path_factory.mktemp("world"), len(WORLD), WORLD, good)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Counter[str]]:
    good = [WORLD[-1]] * len(JUDGE)
    return run_of(tmp_path_factory.mktemp("judge"), len(JUDGE), good, JUDGE)


@pytest.mark.parametrize("number", range(len(WORLD)), ids=[case["report"] for case in WORLD])
def test_a_reply_costs_its_own_sample(number: int, predicted: tuple[Run, Counter[str]]) -> None:
    run, asked = predicted
    (record,) = (one for one in run.predictions() if one.sample_id == f"terminal/{number}/1")
    failure = WORLD[number].get("failure")
    assert (record.failure and record.failure.kind) == failure
    assert (record.observation is None) is (failure is not None)
    assert asked[record.sample_id] == (0 if failure else 1), "no judge is asked about a failure"
    if "note" in WORLD[number]:
        assert WORLD[number]["note"] in record.notes


def test_failed_replies_are_counted_apart_from_scores(predicted: tuple[Run, Counter[str]]) -> None:
    """MO-04 and the others: what was cut is no bad answer, and the tables say how much there was."""
    results = predicted[0].results
    assert results is not None
    failed = Counter(case["failure"] for case in WORLD if "failure" in case)
    assert results.predictions.failures["terminal"] == failed
    (judge,) = results.judges
    scored = len(WORLD) - failed.total()
    assert judge.strict.micro.scored == scored
    assert judge.strict.micro.exclude["total"] == 100.0
    assert judge.strict.micro.floor["total"] == pytest.approx(100.0 * scored / len(WORLD))
    table = failure_table(results)
    assert table is not None
    assert {(row[0], row[1]): row[-1] for row in table.rows} == {
        ("prediction", kind): str(count) for kind, count in failed.items()
    }
    assert any("answers were cut by the token limit" in line for line in results.warnings)


@pytest.mark.parametrize("number", range(len(JUDGE)), ids=[case["report"] for case in JUDGE])
def test_a_verdict_costs_its_own_sample(number: int, judged: tuple[Run, Counter[str]]) -> None:
    run, asked = judged
    (record,) = (one for one in run.verdicts() if one.sample_id == f"terminal/{number}/1")
    case = JUDGE[number]
    assert (record.failure and record.failure.kind) == case.get("failure")
    assert (record.scores is None) is ("failure" in case)
    unread = case.get("failure", "provider_error") != "provider_error"
    assert asked[record.sample_id] == (2 if unread else 1), "a reply without verdict is an attempt"
    if content := case["reply"].get("content"):
        assert (record.reply or "").startswith(written_out(content)[:40]), "what came is kept"


def test_failed_verdicts_are_no_low_scores_and_mended_ones_are_counted(
    judged: tuple[Run, Counter[str]],
) -> None:
    """JP-20, JP-23, JP-30: each with its class, or with how it was read."""
    results = judged[0].results
    assert results is not None
    (judge,) = results.judges
    failed = Counter(case["failure"] for case in JUDGE if "failure" in case)
    counts = {kind: count for kind, count in judge.failures["terminal"]["judge"].items() if count}
    assert counts == failed
    assert judge.strict.micro.exclude["total"] == 50.0, "threes, and nothing else"
    notes = Counter(case["note"] for case in JUDGE if "note" in case)
    found = {name: sum(n for note, n in judge.notes.items() if name in note) for name in notes}
    assert found == notes
    table = notes_table(results)
    assert table is not None
    shown = {row[1]: int(row[-1]) for row in table.rows if row[0].startswith("judge")}
    assert shown == judge.notes
