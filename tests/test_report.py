"""A report as files: which there are, what they say, that texts stay texts, and what is refused.

One run of two bundled domains with failures of both stages and a hostile prediction of 400 KB; a small one with epochs
and repeats. The pages in a browser are tested in `test_report_browser.py`.
"""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.render.conflicts import CANARY
from agentworldbench.render.diff import visible
from agentworldbench.render.plots import Plot
from agentworldbench.render.table import points
from agentworldbench.report import site
from agentworldbench.report.build import build_report
from agentworldbench.report.contents import Manifest
from agentworldbench.report.gather import open_run
from agentworldbench.report.history import assigned
from agentworldbench.report.names import page_name
from agentworldbench.report.overview import overview
from agentworldbench.run import Run, evaluate, load_run, score_run
from agentworldbench.store import open_store
from tests.helpers.awb_command import HereAwb
from tests.helpers.report_pages import HOSTILE, HOSTILE_ID, Page, assigned_json, played_run
from tests.helpers.scripted_server import Reply, ScriptedServer
from tests.helpers.whole_runs import options
from tools.damage import scenes

POLICY = "default-src 'none'; style-src 'self' file:; script-src 'self' file:; img-src data:; base-uri 'none'; form-action 'none'"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return played_run(tmp_path_factory.mktemp("played"), tasks=("terminal", "web"))


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    return build_report([run.path], run.path.parent / "report").index.parent


def pages(report: Path) -> Iterator[tuple[Path, Page]]:
    for path in (report / "index.html", report / "samples.html", *sorted((report / "samples").iterdir())):
        yield path, Page(path)


def test_every_prediction_has_a_page_at_its_permalink(run: Run, report: Path) -> None:
    ids = [record.sample_id for record in run.predictions()]
    assert {path.stem for path in (report / "samples").iterdir()} == {page_name(one) for one in ids}
    manifest = Manifest.model_validate_json((report / "report.json").read_text())
    (made,) = manifest.reports
    assert (made.pages, made.run, made.model, made.folder) == (len(ids), "run", "openai-api/world", ".")
    assert made.trajectories == len(list((report / "trajectories").iterdir()))
    for kind in ("svg", "png"):
        assert [path.stem for path in sorted((report / "plots").glob(f"*.{kind}"))] == sorted(made.plots)
    assert {"domains", "profile", "turns", "lengths", "distribution", "rules-and-judge", "tokens"} == set(
        made.plots
    )


def test_no_page_may_do_anything_but_show_itself(report: Path) -> None:
    for path, page in pages(report):
        policies = [
            one["content"] for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policies == [POLICY]
        named = {one.get("name"): one.get("content") for one in page.all("meta")}
        assert named["robots"] == "noindex, nofollow, noarchive" and named["canary"] == CANARY
        assert named["referrer"] == "no-referrer" and CANARY in page.text
        assert all(set(one) == {"src"} for one in page.all("script")), "nothing inline runs"
        assert not page.all("style") and not page.all("img") and not page.all("iframe")
        for _, attributes in page.elements:
            assert not any(name.startswith("on") or name == "style" for name in attributes)
        for one in (*page.all("a"), *page.all("link"), *page.all("script")):
            address = str(one.get("href") or one.get("src"))
            if address not in ("#main", "data:,"):
                assert (path.parent / address).is_file(), "what a page names lies beside it"


def test_hostile_texts_are_shown_as_text(run: Run, report: Path) -> None:
    path = report / "samples" / f"{page_name(HOSTILE_ID)}.html"
    page = Page(path)
    for line in visible(HOSTILE).rstrip("\n").split("\n"):
        assert line in page.text
    assert "\u202e" not in page.text and "\x1b" not in page.text and "{{ 7 * 7 }}" in page.text
    assert "more characters of the prediction" in page.text
    assert "Terminal colours" in page.text
    for one in report.glob("*.js"):
        assert "<script" not in one.read_text() or one.name == "script.js"
    found = assigned_json(report / "search-terminal.js", "search")
    assert "document.title='broken'" in found[page_name(HOSTILE_ID)]
    assert len(found[page_name(HOSTILE_ID)]) < 5_000


def test_pages_stay_small(report: Path) -> None:
    assert max(path.stat().st_size for path in (report / "samples").iterdir()) < 300_000
    assert (report / "index.html").stat().st_size < 200_000


def test_numbers_are_those_of_the_results(run: Run, report: Path) -> None:
    results = run.results
    assert results is not None
    page = Page(report / "index.html")
    judge = results.judges[0]
    for number in (judge.macro_floor["total"], 100 * (results.rules.macro["rule_score"].floor or 0)):
        assert points(number) in page.text
    for warning in results.warnings:
        assert visible(warning) in page.text
    assert f"{judge.micro.scored} of {judge.micro.samples} samples scored" in page.text
    for kinds in results.predictions.failures.values():
        assert all(kind.replace("_", " ") in page.text for kind in kinds)
    held = assigned_json(report / "list.js", "list")
    scores = {line[0]: line[7][0] for line in held["lines"]}
    verdicts = {one.sample_id: one for one in run.verdicts()}
    for sample_id, one in verdicts.items():
        expected = None if one.scores is None else round((sum(one.scores.values()) / 5 - 1) / 4 * 100, 1)
        assert scores[page_name(sample_id)] == expected
    rule = {record.sample_id: record for record in run.metrics()}
    assert [line[6] for line in held["lines"]] == [
        None if rule[name].failed is None else str(rule[name].failed)
        for name in (one["id"] for one in _ordered(held))
    ]


def _ordered(held: dict[str, list[list[str]]]) -> list[dict[str, str]]:
    return [{"id": line[1]} for line in held["lines"]]


def test_a_page_holds_what_is_known_of_its_prediction(run: Run, report: Path) -> None:
    store = open_store(run.path)
    shown = 0
    for verdict in store.verdicts:
        prediction = store.predictions.get((verdict.sample_id, 1))
        assert prediction is not None
        page = Page(report / "samples" / f"{page_name(verdict.sample_id)}.html")
        assert verdict.sample_id in page.text and str(prediction.prompt_sha256) in page.text
        for text in (*verdict.strengths, *verdict.weaknesses):
            assert text in page.text
        if verdict.failure is not None:
            assert verdict.failure.kind.value.replace("_", " ") in page.text
            shown += 1
        assert "prompt " in page.text and str(prediction.model_served) in page.text
    assert shown > 0, "a judge failed"
    failed = [one for one in store.predictions if one.failure]
    assert {one.failure.kind.value for one in failed if one.failure} >= {"empty"}
    for one in failed:
        page = Page(report / "samples" / f"{page_name(one.sample_id)}.html")
        assert one.failure is not None and one.failure.message in page.text
        assert ("shown is what the official rules read" in page.text) == (one.official_sha256 is not None)


def test_the_history_stands_once_for_a_trajectory(report: Path) -> None:
    known = {scene.sample.id: scene.sample for some in scenes().values() for scene in some}
    deep = 0
    for line in assigned_json(report / "list.js", "list")["lines"]:
        page = Page(report / "samples" / f"{line[0]}.html")
        (box,) = [one for one in page.all("details") if one.get("id") == "history"]
        held = assigned_json(report / "samples" / str(box["data-file"]), "history")
        turns = [held["turns"][int(at)] for at in str(box["data-turns"]).split(",") if at]
        sample = known[line[1]]
        assert held["system"] == visible(sample.system)
        assert len(turns) == len(sample.prompts) - 1
        for (said, observed), prompt, response in zip(turns, sample.prompts, sample.responses, strict=False):
            assert said in visible(prompt) and visible(response).endswith(observed)
        deep += len(turns)
    assert deep > 50


def test_a_report_takes_the_place_of_an_older_one_and_of_nothing_else(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "report"
    build_report([run.path], target)
    (target / "samples" / "stale.html").write_text("old")
    build_report([run.path], target)
    assert not (target / "samples" / "stale.html").exists()
    assert not [one for one in (*tmp_path.iterdir(), *target.iterdir()) if one.name.startswith(".")], (
        "nothing is left"
    )
    left = tmp_path / "left"
    (left / ".making-1" / "samples").mkdir(parents=True)
    build_report([run.path], left)
    assert sorted(one.name for one in left.iterdir()) == sorted(one.name for one in target.iterdir())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("precious")
    with pytest.raises(ConfigError, match=r"mine: holds files but no report"):
        build_report([run.path], tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "precious"
    with pytest.raises(ConfigError, match="is a file"):
        build_report([run.path], tmp_path / "mine" / "thesis.tex")


def test_a_report_that_cannot_be_finished_leaves_the_older_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(plot: Plot) -> str:
        raise OSError(errno.ENOSPC, "No space left on device", "x.svg")

    target = tmp_path / "report"
    build_report([run.path], target)
    before = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    monkeypatch.setattr(site, "svg_file", full)
    (tmp_path / "empty").mkdir()
    for place in (target, tmp_path / "new", tmp_path / "empty"):
        with pytest.raises(StoreError, match=r"x.svg: cannot be written \(No space left on device\)"):
            build_report([run.path], place)
    assert {path: path.read_bytes() for path in target.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()
    assert list((tmp_path / "empty").iterdir()) == [], "an empty folder of the user's stays"


def test_epochs_repeats_and_judges_have_pages_and_verdicts_of_their_own(tmp_path: Path) -> None:
    judges = ("openai-api/judge", "openai-api/judge-b")
    run = played_run(
        tmp_path, tasks=("search",), limit_trajectories=1, epochs=2, judge_repeats=2, judge=judges
    )
    built = build_report([run.path], tmp_path / "report")
    report = built.index.parent
    assert {"profile-1", "profile-2", "rules-and-judge-2"} < set(built.reports[0].plots)
    assert "Judge A: openai-api/judge, Judge B: openai-api/judge-b" in Page(built.index).text
    names = sorted(path.stem for path in (report / "samples").iterdir())
    ids = {record.sample_id for record in run.predictions()}
    assert names == sorted(page_name(one, epoch) for one in ids for epoch in (1, 2))
    text = Page(report / "samples" / f"{names[0]}.html").text
    assert "Same sample:" in text
    judged = {(one.sample_id, one.epoch) for one in run.verdicts() if one.failure is None}
    some = next(key for key in judged)
    text = Page(report / "samples" / f"{page_name(*some)}.html").text
    assert "Verdict of openai-api/judge-b, repeat 2" in text


def test_a_run_that_is_not_finished_shows_what_is_missing(run: Run, tmp_path: Path) -> None:
    part = tmp_path / "part"
    shutil.copytree(run.path, part)
    lines = (part / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    (part / "predictions.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    score_run(part)
    report = build_report([part], tmp_path / "report").index.parent
    held = assigned_json(report / "list.js", "list")["lines"]
    missing = [line for line in held if line[6] == "not_run"]
    assert len(missing) == len(lines) - len(lines) // 2
    assert "PARTIAL" in Page(report / "index.html").text
    page = Page(report / "samples" / f"{missing[0][0]}.html")
    assert "has not been asked about this sample yet" in page.text and "What came" in page.text


def test_where_nothing_was_predicted_no_empty_plot_is_shown(tmp_path: Path) -> None:
    with ScriptedServer(lambda call: Reply(content="")) as server:
        run = evaluate(**options(server, tmp_path / "run", "mini", tasks=("web",), limit="3", display="none"))
    built = build_report([run.path], tmp_path / "report")
    assert built.reports[0].plots == ("tokens",)
    text = Page(built.index).text
    assert "3 empty" in text and "0/3" in text
    assert "copying leaves less" not in text, "not why there is no skill"


def test_the_summary_is_the_overview_in_markdown(run: Run, report: Path) -> None:
    text = (report / "summary.md").read_text()
    assert run.results is not None
    judge = run.results.judges[0]
    assert text.startswith("## openai-api/world\n")
    assert f"| Judge openai-api/judge | **{points(judge.macro_floor['total'])}** |" in text
    assert text.count("\n| ") == (1 + 2) + (1 + 2 + 2), "judge and rules; two domains, two averages"
    assert "not the benchmark" in text and text.rstrip().endswith("</details>")
    assert len(text.splitlines()) < 60


# --- names, scripts, the command -----------------------------------------------------------------


@settings(max_examples=50)
@given(st.lists(st.text(alphabet='aA-/#~. é"漢1', min_size=1, max_size=12), unique=True, max_size=12))
def test_no_two_ids_share_a_page(ids: list[str]) -> None:
    names = [page_name(f"mcp/{one}/1", epoch) for one in ids for epoch in (1, 2)]
    assert len({name.lower() for name in names}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_.~-]{1,90}", name) for name in names)


def test_names_can_be_read() -> None:
    assert page_name("terminal/770028/3") == "terminal-770028-3"
    assert page_name("terminal/770028/3#2", 2) == "terminal-770028-3~2.e2"
    assert page_name("my-own/1/2") != page_name("my/own-1/2")


@settings(max_examples=30)
@given(st.text())
def test_a_script_file_holds_json_alone(text: str) -> None:
    made = assigned("x", {"a": [text], "</script><!--": None})
    assert "<" not in made and "\u2028" not in made
    assert json.loads(made.partition(" = ")[2].removesuffix(";\n")) == {"a": [text], "</script><!--": None}


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def test_a_time_that_is_none_is_shown_as_it_is(run: Run, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    record = json.loads((tmp_path / "run/run.json").read_bytes())
    record["sessions"][0]["started_at"] = "yesterday"
    (tmp_path / "run/run.json").write_text(json.dumps(record), encoding="utf-8")
    view = overview(open_run(tmp_path / "run", None).numbers, 0, ())
    assert dict(view.facts)["Time"] == "1 session from yesterday"


def test_the_command(awb: HereAwb, run: Run, tmp_path: Path) -> None:
    done = awb("report", run.path, "-o", tmp_path / "out")
    assert (done.code, done.out) == (0, f"{tmp_path / 'out' / 'index.html'}\n")
    count = len(list((tmp_path / "out" / "samples").iterdir()))
    assert done.err.startswith(f"{count} pages of samples, 7 plots as SVG and PNG\n")
    size = sum(path.stat().st_size for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert done.err.endswith(f"{size / 1e6:,.1f} MB\n")
    done = awb("report", run.path, tmp_path)
    assert done.code == 2 and "--output is missing" in done.only_complaint
    for words in ((tmp_path / "nothing",), (tmp_path / "nothing", "-o", tmp_path / "a" / "b")):
        done = awb("report", *words)
        assert done.code == 2 and "no run.json there" in done.only_complaint
    assert not {"nothing", "a"} & {one.name for one in tmp_path.iterdir()}
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("run.json", "predictions.jsonl"):
        (bare / name).write_bytes((run.path / name).read_bytes())
    done = awb("report", bare)
    assert done.code == 2 and f"`awb score {bare}` makes them" in done.only_complaint
    assert load_run(bare).results is None and not (bare / "report").exists()
