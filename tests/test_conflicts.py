"""Conflicts of judge and rules: which samples are one, how often, and the page on which they are read.

Sides are data (`cases/conflicts/sides.yaml`). Whole runs have two judges, the strict one of the protocol builtin
and one of the protocol official, failures of both stages, and predictions that would break a page.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.config import make_config
from agentworldbench.conflicts import RunConflicts, find_conflicts
from agentworldbench.records import DIMENSIONS, SampleMetrics
from agentworldbench.render.conflicts import CANARY, MOST_BYTES, conflicts_page
from agentworldbench.render.diff import visible
from agentworldbench.run import Run, evaluate, judge_run
from agentworldbench.stats.conflicts import DECISIVE, Compared, Conflict, compare, rate
from agentworldbench.task import METRIC_NAMES
from tests.helpers.awb_command import HereAwb
from tests.helpers.chromium import CHROMIUM, Chromium
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_prompts import use_prompts
from tests.helpers.report_pages import AXE, Page, axe
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, hash_scores, verdict_text
from tests.helpers.whole_runs import kind_of_call, options
from tests.test_metrics import made

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "conflicts" / "sides.yaml").read_text("utf-8"))
HOSTILE = (
    "</pre></article><script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">\n"
    "{{ 7 * 7 }} {% for x in y %} &lt;b&gt; \x00\x1b[31m \u202egnp.exe \"'`\n"
)


def metrics_of(values: dict[str, float]) -> SampleMetrics:
    return SampleMetrics(sample_id="swe/1/1", applicable=tuple(values), values=values)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_sides(case: dict[str, Any]) -> None:
    ref = made("swe", "x").ref
    compared = compare(ref, case["factuality"], metrics_of(case["values"]), ["line_f1", "exit_code_match"])
    if case["side"] == "out":
        assert compared is None
        return
    assert compared is not None
    if case["side"] is None:
        assert compared.conflict is None
        return
    assert compared.conflict is not None
    assert compared.conflict.side == case["side"]
    assert list(compared.conflict.wrong) == case["wrong"]
    assert compared.conflict.gap == pytest.approx(case["gap"], abs=1e-12)


def test_decisive_metrics_are_metrics() -> None:
    assert set(DECISIVE) <= set(METRIC_NAMES)


def compared(cluster: str, hit: bool, domain: str = "swe") -> Compared:
    conflict = Conflict(
        sample_id="s", domain=domain, side="kinder", factuality=5, rule_score=0, wrong=(), gap=1
    )
    return Compared(domain=domain, cluster=cluster, conflict=conflict if hit else None)


def test_shares_and_their_intervals() -> None:
    """Two clusters of two: all hits in one. s.e. of the clustered mean = sqrt(2/1 * (1 + 1)) / 4 = 1/2, as exact as one
    independent sample; t with one degree of freedom is 12.706."""
    t = 12.706204736174694
    found = rate([[compared("a", True), compared("a", True), compared("b", False), compared("b", False)]])
    assert (found.samples, found.clusters, found.kinder, found.stricter, found.share) == (4, 2, 2, 0, 0.5)
    reach = t * sqrt(0.25 + t * t / 4) / (1 + t * t)
    assert found.low == pytest.approx(0.5 - reach, abs=1e-6)
    assert found.high == pytest.approx(0.5 + reach, abs=1e-6)
    nothing = rate([[compared(str(n % 3), False) for n in range(9)]])
    t = 4.302652729696142  # two degrees of freedom: three trajectories, each of which counts once
    assert (nothing.low, nothing.share) == (0, 0)
    assert nothing.high == pytest.approx(t * t / (3 + t * t), abs=1e-6)
    single = rate([[compared("a", True), compared("a", False)]])
    assert (single.share, single.low, single.high) == (0.5, None, None)
    assert rate([[], []]).share is None


# --- whole runs ----------------------------------------------------------------------------------


def script(call: ChatCall) -> Reply:
    """The world answers what would break a page, cuts some answers off, and some judges fail."""
    kind = kind_of_call(call)
    if call.model == "world":
        text = HOSTILE + "x" * (MOST_BYTES + 5 if kind == 5 else 0)
        return Reply(content=f"<predicted_observation>{text}</predicted_observation>" if kind else None)
    if kind == 1:
        return Reply(content="no verdict")
    scores: dict[str, object] = dict(hash_scores(call.last_user))
    if kind == 2:
        del scores["factuality"]  # the strict rules refuse it, the official ones go without
    return Reply(content=verdict_text(scores) + HOSTILE)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("conflicts")
    data = make_official_folder(
        folder / "data", domains=("terminal", "web", "search"), trajectories=3, special=False
    ).folder
    with ScriptedServer(script) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-for-tests-0123456789")
        use_prompts(patch)
        opts = options(server, folder / "run", data, judge_attempts=1, display="none")
        first = evaluate(**opts)
        opts = {name: value for name, value in opts.items() if name.startswith("judge")}
        yield judge_run(first.path, make_config({**opts, "protocol": "official"}))


@pytest.fixture(scope="module")
def found(run: Run) -> RunConflicts:
    return find_conflicts(run.path)


def test_every_judge_by_its_own_reading(run: Run, found: RunConflicts) -> None:
    """Against the run's own frame (strict) and results: which samples are compared, and which are conflicts."""
    assert run.results is not None
    strict, official = found.judges
    assert [one.protocol for one in found.judges] == ["builtin", "official"]
    frame = run.frame()
    factuality = frame[f"{strict.digest}.factuality"]
    assert strict.judged == factuality.notna().sum() == run.results.judges[0].micro.scored
    decisive = frame[[name for name in DECISIVE if name in frame]]
    at_hand = factuality.notna() & decisive.notna().any(axis=1)
    kinder = at_hand & (factuality >= 4) & (decisive == 0).any(axis=1)
    assert strict.overall.samples == at_hand.sum() > 0
    expected = {key[0] for key in frame.index[kinder]}
    assert {one.sample_id for one in strict.conflicts if one.side == "kinder"} == expected != set()
    assert strict.overall.kinder == kinder.sum()
    gaps = [abs(one.gap) for one in strict.conflicts]
    assert gaps == sorted(gaps, reverse=True)
    # A verdict without factuality counts officially, but says nothing here.
    assert 0 < official.judged < run.results.judges[1].micro.scored
    assert strict.domains["search"].samples == 0 and strict.domains["search"].share is None
    assert sum(one.samples for one in official.domains.values()) == official.overall.samples


def test_the_texts_of_a_conflict_are_what_the_judge_saw(found: RunConflicts) -> None:
    strict, official = found.judges
    for one, shown in ((strict, HOSTILE.rstrip("\n")), (official, HOSTILE.strip())):
        evidence = found.evidence(one, 3)
        assert [some.conflict for some in evidence] == list(one.conflicts[:3])
        for some in evidence:
            assert some.prediction.removesuffix("x" * (MOST_BYTES + 5)).rstrip("\n") == shown
            assert some.reference and some.action
            assert set(some.scores) <= set(DIMENSIONS)
            assert some.scores["factuality"] == some.conflict.factuality
            assert ("weakness", "one value differs") in some.said
            assert some.reply is not None and some.reply.endswith(HOSTILE)


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def test_all_forms_say_the_same(awb: HereAwb, run: Run, found: RunConflicts) -> None:
    listed = [(one, conflict) for one in found.judges for conflict in one.conflicts]
    loaded = json.loads(awb("runs", "conflicts", run.path, "--format", "json").out)
    assert loaded["schema_version"] == 1
    assert loaded["judges"] == [one.model_dump(mode="json") for one in found.judges]
    rows = list(csv.DictReader(io.StringIO(awb("runs", "conflicts", run.path, "-f", "csv").out)))
    assert [(row["judge_digest"], row["sample_id"], row["side"]) for row in rows] == [
        (one.digest, conflict.sample_id, conflict.side) for one, conflict in listed
    ]
    assert [float(row["gap"]) for row in rows] == [conflict.gap for _, conflict in listed]
    for form, mark in (("table", "Samples on which they disagree most"), ("md", "| Sample | Judge |")):
        done = awb("runs", "conflicts", run.path, "--format", form)
        assert (done.code, done.out.count(mark)) == (0, 2)
    official = found.judges[1]
    done = awb("runs", "conflicts", run.path, "--judge", official.digest, "-f", "csv", "--limit", "1")
    assert [row.split(",")[1] for row in done.out.splitlines()] == ["judge_digest", official.digest]


def test_refused(awb: HereAwb, run: Run, tmp_path: Path) -> None:
    path = evaluate(model="baseline/empty", limit=1, tasks="swe", output=tmp_path / "unjudged").path
    assert awb("runs", "conflicts", path).only_complaint == (
        f"awb: {path}: has no judge; `awb judge {path} --judge MODEL` asks one"
    )
    (known,) = {judge.model for judge in run.record.judges}
    assert known in awb("runs", "conflicts", run.path, "--judge", "another").only_complaint
    done = awb("runs", "conflicts", run.path, "--html", tmp_path / "no" / "page.html")
    assert (done.code, "page.html: cannot be written" in done.complaint) == (1, True)
    results = run.path / "results.json"
    kept = results.read_bytes()
    results.unlink()
    done = awb("runs", "conflicts", run.path)
    results.write_bytes(kept)
    assert done.only_complaint == f"awb: {run.path}: has no results yet; `awb score {run.path}` makes them"


# --- the page ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def page(found: RunConflicts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    judges = [(one, found.evidence(one, 4)) for one in found.judges]
    path = tmp_path_factory.mktemp("page") / "conflicts.html"
    path.write_text(conflicts_page("openai-api/world", "folder", judges), encoding="utf-8")
    return path


def test_what_models_wrote_stays_text(page: Path) -> None:
    """The page is one of the shell's: two scripts and a style, named by hash, and nothing else may load."""
    parsed, text = Page(page), page.read_text(encoding="utf-8")
    assert [len(parsed.all(tag)) for tag in ("script", "style", "img", "iframe")] == [2, 1, 0, 0]
    meta = {one.get("http-equiv") or one.get("name"): str(one.get("content")) for one in parsed.all("meta")}
    assert meta["robots"] == "noindex, nofollow, noarchive" and meta["canary"] == CANARY in parsed.text
    policy = meta["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and policy.count("sha256-") == 3
    assert "unsafe" not in policy
    for _, attributes in parsed.elements:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    links = {str(one["href"]) for one in parsed.all("a")} - {"#main"}
    anchors = [str(one["id"]) for _, one in parsed.elements if "id" in one]
    assert links and links <= {f"#{name}" for name in anchors}
    assert len(anchors) == len(set(anchors))
    for line in visible(HOSTILE).rstrip("\n").split("\n"):
        assert line in parsed.text
    assert not any(ord(char) < 32 and char not in "\n\t" for char in text)
    assert "\u202e" not in text


def test_a_long_text_is_cut_and_says_so(found: RunConflicts) -> None:
    one = found.judges[0]
    (evidence, *_) = found.evidence(one, 1)
    long = replace(
        evidence,
        prediction="y" * 5_000_000,
        reference="same\n  \nonly here",
        action="```\ngo\n```",
        reply="z" * 21_234,
    )
    text = conflicts_page("m", "d", [(one, [long])])
    assert "1,234 more characters are not shown" in text
    assert "more characters of the prediction and 0 of what came" in text
    assert ">go</pre>" in text, "the fence around an action is no part of it"
    assert len(text) < 100_000


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_in_a_browser_it_fits_and_runs_nothing(page: Path, colours: str) -> None:
    with Chromium(dark=colours == "dark") as browser:
        for width in (320, 375, 1280):
            browser.resize(width)
            browser.open(page.as_uri())
            assert browser.value("document.documentElement.scrollWidth <= innerWidth")
            assert browser.value("document.title") == "Conflicts of judge and rules: openai-api/world"
            assert browser.value("[document.images.length, document.scripts.length]") == [0, 2]
            if AXE.exists():
                assert axe(browser) == []
        assert browser.console == []
        assert set(browser.requests) == {page.as_uri()}
