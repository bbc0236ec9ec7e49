"""Several runs at once, as pure functions: every pair, Holm over all pairs, and ranks by hand; and whole rankings."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.compare.several import Ranking, Standings, rank_runs
from agentworldbench.errors import ConfigError
from agentworldbench.render.ranking import letter
from agentworldbench.run import evaluate, load_run
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.paired import Difference, Pair, differences, holm
from agentworldbench.stats.ranking import PairDifference, SharedSample, all_pairs, ranks_of
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, kind_of_call, options


def samples(seed: int, shifts: tuple[float, ...], clusters: int = 30, size: int = 3) -> list[SharedSample]:
    """Samples in clusters, a run for each shift."""
    random_ = random.Random(seed)
    found = []
    for cluster in range(clusters):
        ease = random_.gauss(50, 20)
        for n in range(size):
            scores = tuple(ease + shift + random_.gauss(0, 5) for shift in shifts)
            found.append(SharedSample(f"s{cluster}/{n}", f"c{cluster}", f"t{cluster // 2}", scores))
    return found


def row(difference: float | None, p_holm: float | None) -> Difference:
    return Difference(
        samples=9, clusters=9, first=None, second=None, difference=difference, p=p_holm, p_holm=p_holm, better=0,
        equal=0, worse=0,
    )  # fmt: skip


def pair(first: int, second: int, difference: float | None, p_holm: float | None) -> PairDifference:
    macro = row(difference, p_holm)
    return PairDifference(first=first, second=second, domains={}, macro=macro, macro_by_task=macro)


RANKS = {
    "all alike": ([pair(0, 1, 1, 0.4), pair(0, 2, 2, 0.3), pair(1, 2, 1, 0.9)], 3, [1, 1, 1]),
    "one better": ([pair(0, 1, 9, 0.001), pair(0, 2, 1, 0.5), pair(1, 2, -8, 0.01)], 3, [2, 1, 2]),
    "a chain that is told from end to end alone": (
        [pair(0, 1, 3, 0.2), pair(0, 2, 6, 0.02), pair(1, 2, 3, 0.2)], 3, [2, 1, 1],
    ),
    "not below 0.05": ([pair(0, 1, 9, 0.05)], 2, [1, 1]),
    "not available": ([pair(0, 1, None, None)], 2, [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("name", RANKS)
def test_ranks_by_hand(name: str) -> None:
    pairs, runs, expected = RANKS[name]
    assert ranks_of(pairs, list(range(runs)), [True] * runs) == expected


def test_what_has_no_rank_is_nobodys_better_model() -> None:
    pairs = [pair(0, 1, 9, 0.001), pair(0, 2, 9, 0.001), pair(1, 2, 0, 1)]
    assert ranks_of(pairs, [0, 1, 2], [True, False, True]) == [2, None, 1]


def test_runs_of_one_model_are_one_better_model_and_none_of_their_own() -> None:
    pairs = [pair(0, 1, 9, 0.001), pair(0, 2, 9, 0.001), pair(1, 2, 5, 0.001)]
    assert ranks_of(pairs, [0, 1, 1], [True] * 3) == [2, 1, 1]
    assert ranks_of(pairs, [0, 1, 2], [True] * 3) == [3, 2, 1]


def test_pairs_are_those_of_two_runs_with_holm_over_all_pairs() -> None:
    domains = {"os": samples(1, (0, 3, 3.5)), "swe": samples(2, (0, 1, 4), clusters=9)}
    found = all_pairs(domains, 3)
    assert [(one.first, one.second) for one in found] == [(0, 1), (0, 2), (1, 2)]
    for one in found:
        alone = differences(
            {
                domain: [
                    Pair(s.sample_id, s.cluster, s.scores[one.first], s.scores[one.second]) for s in some
                ]
                for domain, some in domains.items()
            }
        )
        assert one.macro.model_copy(update={"p_holm": alone.macro.p_holm}) == alone.macro
        for domain, other in alone.domains.items():
            assert one.domains[domain].model_copy(update={"p_holm": other.p_holm}) == other
    assert [one.macro.p_holm for one in found] == holm([one.macro.p for one in found])
    every = [one.domains[domain] for one in found for domain in domains]
    assert [one.p_holm for one in every] == holm([one.p for one in every])
    assert found[0].macro_by_task.clusters == 15 + 5 < found[0].macro.clusters == 30 + 9


def test_the_other_way_round() -> None:
    interval = Interval(method="clustered", low=1.0, high=5.0, half=2.0, se=1.0, df=9.0, clusters=10)
    one = row(3.0, 0.01).model_copy(update={"interval": interval, "first": 1.0, "second": 4.0, "better": 7})
    other = one.turned()
    assert (other.difference, other.first, other.second, other.better, other.worse) == (-3, 4, 1, 0, 7)
    assert other.interval is not None and (other.interval.low, other.interval.high) == (-5, -1)
    assert other.turned() == one
    assert row(None, None).turned() == row(None, None)


def some_empty(call: ChatCall) -> Reply:
    """The model answers nothing in a tenth of its calls."""
    return Reply(content="") if call.model != "judge" and kind_of_call(call) == 0 else good(call)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`failing` (a tenth), baselines `copying`, `nearest`, `empty`, `true`, and `few` (copying, two trajectories)."""
    folder = tmp_path_factory.mktemp("ranked")
    data = str(folder / "data")
    make_official_folder(folder / "data", domains=("swe", "os"), trajectories=5)
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(some_empty) as server:
        set_key(patch)
        evaluate(**options(server, folder / "failing", data, no_judge=True))
    for name, model in (
        ("copying", "copy-last"),
        ("nearest", "nearest"),
        ("empty", "empty"),
        ("true", "reference"),
    ):
        evaluate(f"baseline/{model}", output=folder / name, data=data)
    evaluate("baseline/copy-last", output=folder / "few", data=data, limit_trajectories=2)
    yield folder


@pytest.fixture
def awb(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(runs, monkeypatch, capsys)


def rules(ranking: Ranking) -> Standings:
    (measure,) = ranking.measures
    assert (measure.judge, measure.policy) == (None, "floor")
    return measure


def test_scores_and_intervals_are_those_of_results_on_what_all_share(runs: Path) -> None:
    names = ("failing", "copying", "true")
    measure = rules(rank_runs([runs / name for name in names]))
    for one in measure.standings:
        results = load_run(runs / names[one.run]).results
        assert results is not None
        found = results.rules
        overall = found.macro["rule_score"].floor
        assert overall is not None
        assert one.overall.value == pytest.approx(100 * overall)
        mine, theirs = one.overall.interval, found.macro_intervals.floor
        assert mine is not None and theirs is not None
        assert (mine.half is None) == (theirs.half is None)
        if mine.half is not None and theirs.half is not None:
            assert mine.half == pytest.approx(100 * theirs.half)
        for domain, score in one.domains.items():
            mean = found.score[domain].floor
            assert mean is not None
            assert score.value == pytest.approx(100 * mean)
            assert one.coverage[domain] == found.score[domain].scored / found.score[domain].n


def test_ranks_need_coverage(runs: Path) -> None:
    measure = rules(rank_runs([runs / name for name in ("failing", "copying", "nearest", "true")]))
    found = {one.run: one for one in measure.standings}
    assert found[0].rank is None
    assert (found[0].unranked or "").startswith("coverage below 99 % (")
    assert found[3].rank == 1 and measure.standings[0].run == 3
    assert {found[1].rank, found[2].rank} <= {2, 3}


def test_order_does_not_depend_on_the_list(runs: Path) -> None:
    names = ["copying", "true", "empty"]
    orders = []
    for listed in (names, names[::-1]):
        measure = rules(rank_runs([runs / name for name in listed]))
        orders.append([(listed[one.run], one.rank) for one in measure.standings])
    assert orders[0] == orders[1]
    assert [name for name, _ in orders[0]] == ["true", "copying", "empty"]


def test_what_all_share_is_compared(runs: Path) -> None:
    ranking = rank_runs([runs / name for name in ("true", "few", "nearest")])
    part = load_run(runs / "few").results
    assert part is not None
    count = sum(part.predictions.samples.values())
    assert ranking.shared == count == sum(rules(ranking).samples.values())
    whole = sum(part.data_samples.values())
    assert f"A and C: {whole - count} of its samples are not asked in all runs and left out" in ranking.notes
    assert f"B: a subset: {count} of {whole} samples (--limit-trajectories)" in ranking.notes
    assert ranking.runs[1].subset is not None


def test_unlike_runs_have_no_rank(runs: Path, tmp_path: Path) -> None:
    make_official_folder(tmp_path / "data", domains=("swe",), trajectories=5)
    evaluate(
        "baseline/nearest",
        output=tmp_path / "other",
        data=str(tmp_path / "data"),
        context_policy="drop-oldest",
    )
    paths = [runs / "true", runs / "copying", tmp_path / "other"]
    with pytest.raises(ConfigError, match=r"not alike: .*other: the context policies"):
        rank_runs(paths)
    ranking = rank_runs(paths, force=True)
    odd = f"{tmp_path / 'other'}: the context policies (error and drop-oldest)"
    assert ranking.unlike == (odd,)
    assert {(one.rank, one.unranked) for one in rules(ranking).standings} == {
        (None, "the runs are not alike")
    }


def test_the_command(runs: Path, awb: HereAwb) -> None:
    done = awb("compare", "copying", "failing", "true", "true")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "3 runs by rules"
    assert lines[3].split()[:2] == ["C", "1"]
    assert "true is the directory of true and stands once." in done.out
    at = lines.index("Every two by rules")
    assert lines[at + 3].startswith("C − ")
    assert "+" in lines[at + 3]
    assert "A: baseline/copy-last (copying)." in done.out
    assert "B: no rank, coverage below 99 %" in done.out
    assert "| Run | Rank | Model |" in awb("compare", "copying", "failing", "true", "-f", "md").out
    found = Ranking.model_validate_json(awb("compare", "copying", "failing", "true", "-f", "json").out)
    assert found == rank_runs([Path(name) for name in ("copying", "failing", "true")])
    assert (found.schema_version, found.kind) == (1, "several")


def test_letters() -> None:
    assert [letter(n) for n in (0, 25, 26)] == ["A", "Z", "27"]
