"""A run against a published number: the bounds by hand, what is refused, what is forced and labelled, what never is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from agentworldbench.compare.reported import AgainstEntry, against_entry, find_entry
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.leaderboard.entries import Entry, load_entries
from agentworldbench.leaderboard.measured import measured_entries
from agentworldbench.run import evaluate, load_run
from agentworldbench.stats.against import against
from agentworldbench.stats.intervals import Interval
from agentworldbench.stats.results import Results
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import DOMAINS, make_official_folder
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, hash_verdict
from tests.helpers.whole_runs import good, options

SLUG = "reported-judge-qwen3-5-397b-a17b"
JUDGE = "gpt-5.2-2025-12-11"


def answer(call: ChatCall) -> Reply:
    return hash_verdict(call) if call.model == JUDGE else good(call)


def called_official(one: dict[str, Any]) -> None:
    one["predict"]["data"].update(name="official")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`run`: seven domains under protocol official by the entry's judge, its data called official afterwards;
    `two`: two domains of it. `mini`: a baseline on the bundled data, without a judge."""
    folder = tmp_path_factory.mktemp("against")
    make_official_folder(folder / "data", trajectories=3, special=False, turns=3)
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(answer) as server:
        set_key(patch)
        use_prompts(patch)
        asked = {"judge": f"openai-api/{JUDGE}", "protocol": "official"}
        evaluate(**options(server, folder / "made", folder / "data") | asked)
        evaluate(**options(server, folder / "two", folder / "data", tasks=["swe", "os"]) | asked)
    for name in ("made", "two"):
        change(folder / name, called_official)
    (folder / "made").rename(folder / "run")
    evaluate("baseline/copy-last", output=folder / "mini", limit=1)
    yield folder


@pytest.fixture
def awb(runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(runs, monkeypatch, capsys)


def change(run: Path, how: Callable[[dict[str, Any]], None]) -> Path:
    file = run / "results.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    how(content)
    file.write_text(json.dumps(content), encoding="utf-8")
    return run


def changed(source: Path, target: Path, how: Callable[[dict[str, Any]], None]) -> Path:
    shutil.copytree(source, target)
    return change(target, how)


def entry(slug: str = SLUG) -> Entry:
    found = find_entry(slug)
    assert found is not None
    return found


def results_of(run: Path) -> Results:
    results = load_run(run).results
    assert results is not None
    return results


def interval(se: float, df: float) -> Interval:
    half = float(stats.t.ppf(0.975, df)) * se
    return Interval(
        method="clustered", low=50 - half, high=50 + half, half=half, se=se, df=df, clusters=int(df) + 1
    )


def test_bounds_by_hand() -> None:
    """Standard error 2 with 20 degrees of freedom, difference 5: both ends, and where 5 is t standard errors."""
    found = against(50.0, interval(2.0, 20.0), 45.0)
    t, alone = stats.t.ppf(0.975, 40), stats.t.ppf(0.975, 20)
    assert found.assumed
    assert found.difference == 5
    assert found.correlated == (5, 5)
    assert found.independent == pytest.approx((5 - t * sqrt(8), 5 + t * sqrt(8)))
    assert found.fixed == pytest.approx((5 - 2 * alone, 5 + 2 * alone))
    assert found.told_from == pytest.approx(1 - (5 / t) ** 2 / 8)
    assert t * sqrt(8 * (1 - (found.told_from or 0))) == pytest.approx(5)


def test_a_large_difference_is_told_at_any_correlation_and_none_never() -> None:
    assert against(50.0, interval(2.0, 20.0), 30.0).told_from == 0
    assert against(50.0, interval(2.0, 20.0), 50.0).told_from is None


def test_an_entry_with_its_own_interval_needs_no_assumption() -> None:
    found = against(50.0, interval(2.0, 20.0), 45.0, interval(1.0, 30.0))
    t = stats.t.ppf(0.975, 25 / (16 / 20 + 1 / 30))
    assert not found.assumed
    assert found.independent == pytest.approx((5 - t * sqrt(5), 5 + t * sqrt(5)))
    assert found.correlated == pytest.approx((5 - t, 5 + t))


def test_what_is_not_known_has_no_bounds() -> None:
    for found in (
        against(None, None, 45.0),
        against(50.0, None, 45.0),
        against(50.0, Interval(method="clustered", clusters=1, flags=("one_cluster",)), 45.0),
        against(50.0, interval(2.0, 20.0), None),
    ):
        assert (found.independent, found.correlated, found.fixed, found.told_from) == (None,) * 4


def test_a_run_beside_an_entry(runs: Path) -> None:
    found, judge = against_entry(runs / "run", entry()), results_of(runs / "run").judges[0]
    assert (found.unlike, found.judge, found.policy) == ((), f"openai-api/{JUDGE}", "exclude")
    assert list(found.domains) == list(DOMAINS)
    for domain, one in found.domains.items():
        block = judge.domains[domain]
        assert (one.run, one.interval) == (block.exclude["total"], block.intervals.exclude)
        assert one.published == entry().scores[domain]
        assert found.coverage[domain] == block.coverage
    assert found.overall.run == judge.macro_exclude["total"]
    assert found.overall.published == 54.74
    assert found.overall.independent is not None
    assert found.notes == (
        "The entry's coverage is not published",
        "Source: Qwen-AgentWorld paper, Table 5 (arXiv 2606.24597)",
    )


def test_fewer_domains_have_no_overall_difference(runs: Path) -> None:
    found = against_entry(runs / "two", entry())
    assert set(found.domains) == {"swe", "os"}
    assert (found.overall.run, found.overall.difference, found.overall.independent) == (None, None, None)
    assert "No overall difference: the run has no MCP, Search, Terminal, Android, Web" in found.notes


UNLIKE: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "data": (lambda one: one["predict"]["data"].update(name="folder data"), "the data (folder data and official)"),
    "protocol": (
        lambda one: one["judges"][0]["judge"].update(protocol="builtin"), "the protocols (builtin and paper)",
    ),
    "judge": (
        lambda one: (one["judges"][0]["judge"].update(model="openai/gpt-4"), one["judges"][0].update(served=[])),
        f"the judges (openai/gpt-4 and {JUDGE})",
    ),
    "temperature": (
        lambda one: one["judges"][0]["judge"]["sampling"].update(temperature=0.0),
        "the judge's settings (temperature 0.0, max_tokens 32768)",
    ),
    "diagnostics": (
        lambda one: one["judges"][0]["judge"]["prompts"].update(diagnostics="x"),
        "the judge's prompts (with GUI diagnostics)",
    ),
    "shortened": (lambda one: one["predictions"].update(shortened=2), "the context policy"),
    "chosen samples": (
        lambda one: (one["selection"].update(limit="1-2"), one["data_samples"].update(os=9999)),
        "the samples (a subset: ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_is_refused_or_labelled(name: str, runs: Path, tmp_path: Path) -> None:
    how, words = UNLIKE[name]
    other = changed(runs / "run", tmp_path / "other", how)
    with pytest.raises(ConfigError, match="are not alike") as refused:
        against_entry(other, entry())
    assert words in str(refused.value)
    assert "--force" in str(refused.value)
    assert any(words in one for one in against_entry(other, entry(), force=True).unlike)


def test_a_name_served_is_enough(runs: Path, tmp_path: Path) -> None:
    other = changed(
        runs / "run",
        tmp_path / "other",
        lambda one: (one["judges"][0]["judge"].update(model="openai/gpt-5.2"), one["judges"][0].update(served=[JUDGE])),
    )  # fmt: skip
    assert against_entry(other, entry()).unlike == ()


def test_a_drawn_subset_is_compared_and_said(runs: Path, tmp_path: Path) -> None:
    other = changed(
        runs / "run",
        tmp_path / "other",
        lambda one: (one["selection"].update(limit="18"), one["data_samples"].update(os=1000)),
    )
    (note,) = [note for note in against_entry(other, entry()).notes if "subset" in note]
    assert note.startswith("The run is a subset: ")


NEVER = {
    "the bundled data": ("mini", SLUG, "the bundled data set mini is not the benchmark"),
    "rule scores": ("run", "reported-rules-qwen3-5-397b-a17b", "holds rule scores"),
}


@pytest.mark.parametrize("name", NEVER)
@pytest.mark.parametrize("force", [False, True])
def test_what_even_force_does_not_compare(name: str, force: bool, runs: Path) -> None:
    run, slug, words = NEVER[name]
    with pytest.raises(ConfigError, match=words) as refused:
        against_entry(runs / run, entry(slug), force=force)
    assert "--force does not change that" in str(refused.value)


def test_the_bundled_data_under_another_name_are_known(runs: Path, tmp_path: Path) -> None:
    other = changed(runs / "mini", tmp_path / "other", called_official)
    with pytest.raises(ConfigError, match="the bundled data set mini"):
        against_entry(other, entry(), force=True)


def test_a_run_without_a_judge_has_nothing_to_compare(runs: Path, tmp_path: Path) -> None:
    other = changed(runs / "run", tmp_path / "other", lambda one: one.update(judges=[]))
    with pytest.raises(ConfigError, match="the run has no judge"):
        against_entry(other, entry())
    with pytest.raises(ConfigError, match="--judge nobody: no judge of the run"):
        against_entry(runs / "run", entry(), judge="nobody")


def test_entries_by_slug_file_and_model(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(entry().model_dump_json(), encoding="utf-8")
    assert entry(SLUG) == entry(str(file)) == entry("qwen3.5-397b-a17b")
    for one in load_entries():
        if one.group.score == "judge":
            assert find_entry(one.model) == one
    assert find_entry("nobody") is None
    file.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="not a leaderboard entry"):
        find_entry(str(file))


def test_the_command(runs: Path, awb: HereAwb) -> None:
    done = awb("compare", "run", "Qwen3.5-397B-A17B")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "openai-api/world against Qwen3.5-397B-A17B, reported"
    assert "Told from 0 if r ≥" in done.out
    assert "cannot be known without its score of each sample, so there is no p here." in " ".join(
        done.out.split()
    )
    assert awb("compare", SLUG, "run").out == awb("compare", "run", SLUG).out
    found = AgainstEntry.model_validate_json(awb("compare", "run", SLUG, "-f", "json").out)
    assert found == against_entry(Path("run"), entry())
    assert (found.schema_version, found.kind) == (1, "entry")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["run"], "give two run directories or more, or a run and a leaderboard entry"),
        (["run", "two", SLUG], "an entry compares with one run at a time"),
        ([SLUG, "reported-judge-gpt-5-4"], "two entries hold no samples"),
        (["run", SLUG[:-1]], f"no leaderboard entry of this name; did you mean '{SLUG}'?"),
        (["mini", SLUG, "--force"], "the bundled data set mini is not the benchmark"),
    ],
)
def test_the_command_refuses(words: list[str], complaint: str, awb: HereAwb) -> None:
    done = awb("compare", *words)
    assert done.code == 2
    assert complaint in done.only_complaint


def test_an_entry_over_some_domains_says_so(runs: Path) -> None:
    (two,) = measured_entries(results_of(runs / "two"))
    alike = against_entry(runs / "two", two)
    assert (alike.unlike, "The entry is about 2 of 7 domains: SWE, OS" in alike.notes) == ((), True)
    with pytest.raises(ConfigError, match=r"the domains \(MCP, Search, .*, OS and SWE, OS\)"):
        against_entry(runs / "run", two)
    forced = against_entry(runs / "run", two, force=True)
    assert forced.overall.difference is None, "other domains have no overall difference"
    assert "The entry is about 2 of 7 domains: SWE, OS" in forced.notes
