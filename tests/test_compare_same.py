"""A run beside itself: resumed, copied, renamed, replayed, with shared cached answers. No false difference, and why.

Model and judge answer otherwise each time they are asked, so that what is drawn twice differs.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentworldbench.compare.several import rank_runs
from agentworldbench.compare.two import Comparison, compare_runs
from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError
from agentworldbench.run import evaluate, judge_run, load_run
from tests.helpers.asking import set_key
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, hash_scores, verdict_text
from tests.helpers.whole_runs import good, options

DOMAINS = ("os",)
HALF = 8
_numbers = itertools.count()


def moody(call: ChatCall) -> Reply:
    """Another observation, or another verdict, at every call."""
    number = next(_numbers)
    if call.model == "judge":
        return Reply(content=verdict_text(hash_scores(f"{number}")))
    reply = good(call)
    return replace(reply, content=str(reply.content).replace("total 2", f"total {number}"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`run`; `copied` and `linked` (a link); `rejudged` (its predictions, judged anew); `replayed` (asked by replay);
    `half` and `other half` (one directory copied in the middle, then both done); `second` (asked anew);
    `cached` and `cached again` (one cache, no judge's answer in it)."""
    folder = tmp_path_factory.mktemp("same")
    data = folder / "data"
    make_official_folder(data, domains=DOMAINS, trajectories=4, special=False)
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(moody) as server:
        set_key(patch)
        evaluate(**options(server, folder / "run", data))
        shutil.copytree(folder / "run", folder / "copied")
        (folder / "linked").symlink_to(folder / "run")
        shutil.copytree(folder / "run", folder / "rejudged")
        (folder / "rejudged" / "verdicts.jsonl").unlink()
        judging = {"judge": "openai-api/judge", "judge_base_url": server.base_url}
        judge_run(folder / "rejudged", make_config(judging))
        evaluate(
            **options(server, folder / "replayed", data)
            | {"model": f"replay/{folder / 'run'}", "base_url": None}
        )
        evaluate(**options(server, folder / "half", data, limit=str(HALF)))
        shutil.copytree(folder / "half", folder / "other half")
        for name in ("half", "other half", "second"):
            evaluate(**options(server, folder / name, data))
        for name in ("cached", "cached again"):
            evaluate(**options(server, folder / name, data, no_judge=True, cache=folder / "cache"))
            judge_run(folder / name, make_config(judging))
    yield folder


def difference_of(comparison: Comparison) -> list[float | None]:
    return [measure.differences.macro.difference for measure in comparison.measures]


@pytest.mark.parametrize("name", ["copied", "rejudged", "replayed", "linked"])
def test_a_run_and_itself_do_not_differ(runs: Path, name: str) -> None:
    comparison = compare_runs(runs / "run", runs / name, force=name == "replayed")
    assert difference_of(comparison) == [0, 0]
    for measure in comparison.measures:
        assert measure.differences.macro.p_holm == 1
        assert (measure.differences.micro.better, measure.differences.micro.worse) == (0, 0)
        assert measure.regressions == ()
    assert (comparison.same_answer, comparison.same_record) == (0, comparison.shared)
    told = "Both are one directory: nothing can differ" if name == "linked" else (
        f"What was answered to {comparison.shared} samples stands in both as one record, or is replayed"
    )  # fmt: skip
    assert comparison.notes[0].startswith(told)
    assert len(comparison.notes) == 1, "nothing else is to be said"


def test_the_verdicts_did_differ(runs: Path) -> None:
    """One answer, judged twice: without the rule for one draw the judge's mood would be a difference."""
    scores = [load_run(runs / name).results for name in ("run", "rejudged")]
    means = [one.judges[0].macro_floor["total"] for one in scores if one is not None]
    assert means[0] is not None and means[1] is not None
    assert abs(means[0] - means[1]) > 0.5
    row = compare_runs(runs / "run", runs / "rejudged").measures[0].differences.macro
    assert row.first == row.second == pytest.approx((means[0] + means[1]) / 2)


def test_cached_answers_judged_apart_are_one_draw(runs: Path) -> None:
    comparison = compare_runs(runs / "cached", runs / "cached again")
    assert comparison.same_answer == comparison.shared > 0
    assert difference_of(comparison) == [0, 0]
    assert comparison.notes == (
        f"What was answered to {comparison.shared} samples is the same in both, taken from a response cache: each is one draw and "
        "differs by 0, whatever judges said of it twice",
    )


def test_a_copy_resumed_differs_by_its_own_half_alone(runs: Path) -> None:
    comparison = compare_runs(runs / "half", runs / "other half")
    early = HALF
    assert comparison.same_record == early < comparison.shared
    judge = comparison.measures[0].differences.micro
    assert judge.equal >= early
    assert 0 < judge.better + judge.worse <= comparison.shared - early
    assert comparison.notes == (
        f"What was answered to {early} samples stands in both as one record, or is replayed (a copied directory, perhaps resumed): each is "
        "one draw and differs by 0, whatever judges said of it twice",
        "Both asked one model in one way, by their records: what differs are draws of its answers, not models",
    )


def test_another_draw_is_said_to_be_one(runs: Path) -> None:
    comparison = compare_runs(runs / "run", runs / "second")
    assert (comparison.same_answer, comparison.same_record) == (0, 0)
    assert [note.partition(",")[0] for note in comparison.notes] == ["Both asked one model in one way"]


def test_copies_stand_once_in_a_ranking(runs: Path) -> None:
    names = ("run", "linked", "copied", "second", "half")
    ranking = rank_runs([runs / name for name in names])
    assert [Path(one.path).name for one in ranking.runs] == ["run", "second", "half"]
    assert ranking.left_out == (
        f"{runs / 'linked'} is the directory of {runs / 'run'} and stands once",
        f"{runs / 'copied'} has the same answers as {runs / 'run'} to all {ranking.shared} shared samples and is left out",
    )
    judge, rules = ranking.measures
    assert {one.rank for one in (*judge.standings, *rules.standings)} == {1}, "three draws of one model"
    (note,) = ranking.notes
    assert note.startswith("A, B and C asked one model in one way")


def test_nothing_but_copies_is_nothing_to_compare(runs: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"is left alone, there is nothing to compare: .* stands once; .* is left out"
    ):
        rank_runs([runs / "run", runs / "linked", runs / "copied"])


def test_replies_can_be_found(runs: Path) -> None:
    """File and line of both replies are those of the sample."""
    found = 0
    for measure in compare_runs(runs / "run", runs / "second").measures:
        for one in measure.regressions:
            for name, replies in (("run", one.first_replies), ("second", one.second_replies)):
                (reply,) = replies
                assert Path(reply.file) == runs / name / "predictions.jsonl"
                line = Path(reply.file).read_text(encoding="utf-8").split("\n")[reply.line - 1]
                record = json.loads(line)
                assert (record["sample_id"], record.get("epoch", 1)) == (one.sample_id, reply.epoch)
                found += 1
    assert found > 4
