"""`--protocol official` on the command line: tables, --explain, what is refused, and answers with less room.

The official prompts are stand-ins of our own wording; nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.run import evaluate
from tests.helpers.awb_command import Done, HereAwb
from tests.helpers.failing_world import FORGED_BLOCK
from tests.helpers.official_folder import make_official_folder
from tests.helpers.own_prompts import judge_texts, own_prompts, use_prompts
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, echo_world, verdict_text
from tests.helpers.whole_runs import asked, good, options

FIVE = ("format", "factuality", "consistency", "realism", "quality")


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    use_prompts(monkeypatch)
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One trajectory in each of two domains: five rows each."""
    path = tmp_path_factory.mktemp("data")
    make_official_folder(
        path, domains=("swe", "terminal"), trajectories=1, special=False, observation_chars=60
    )
    return path


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(good) as running:
        yield running


def by_turn(call: ChatCall) -> Reply:
    """The model fails by turn; the judge gives 5 to what it likes, and leaves one dimension out of one verdict."""
    if call.model == "judge":
        texts = judge_texts(call)
        if texts.prediction == "No output":
            return Reply(verdict_text(dict.fromkeys(FIVE, 1)))
        shown = FIVE[:4] if "### Turn 6" in texts.current else FIVE
        return Reply(verdict_text(dict.fromkeys(shown, 5)))
    if "### Turn 1\n" in call.last_user:
        return Reply("<think>a plan", finish_reason="length")
    return (
        Reply(None)
        if "### Turn 6" in call.last_user and "the swe environment" in call.system
        else echo_world(call)
    )


def run_words(server: ScriptedServer, data: Path) -> list[str | Path]:
    url = server.base_url
    return ["run", "--model", "openai-api/world", "--base-url", url, "--judge", "openai-api/judge",
            "--judge-base-url", url, "--data", data, "-o", "out"]  # fmt: skip


def cells(done: Done, first: str) -> list[str]:
    """The cells of the first row that begins so, from the judge's table on."""
    behind = done.out.partition("Judge scores of")[2]
    line = next(line for line in behind.splitlines() if line.startswith(first))
    return line[len(first) :].split()


def test_the_tables(awb: HereAwb, server: ScriptedServer, folder: Path) -> None:
    """swe: cut at turn 1, null at turn 6, three of 5; terminal: cut, three of 5, one of 5 in four dimensions."""
    server.script = by_turn
    done = awb(*run_words(server, folder), "--protocol", "official")
    assert done.code == 0, done.err
    assert asked(server) == {"world": 10, "judge": 9}
    assert cells(done, "SWE ") == ["4/5", "80.0", "%", "75.00", "60.00", *["75.00"] * 5]
    assert cells(done, "Overall, macro")[:5] == ["9/10", "90.0", "%", "77.50", "70.00"]
    assert cells(done, "Overall, micro")[:5] == ["9/10", "90.0", "%", "77.78", "70.00"]
    assert "Headline: macro, exclude." in done.out
    assert "protocol official" in done.out
    # Strictly the cut replies failed, and so did the verdict without quality.
    assert cells(done, "official ") == ["9/10", "90.0", "%", "77.50", "70.00", "77.78", "70.00"]
    assert cells(done, "strict ") == ["6/10", "60.0", "%", "100.00", "60.00", "100.00", "60.00"]
    assert "3 samples are not scored alike" in done.out
    again = awb("score", "out")
    assert (again.code, again.out) == (0, done.out)


def test_explain_lists_the_samples_that_differ(awb: HereAwb, server: ScriptedServer, folder: Path) -> None:
    server.script = by_turn
    assert awb(*run_words(server, folder), "--protocol", "official").code == 0
    done = awb("score", "out", "--explain")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert "Where the two readings differ, by openai-api/judge" in text
    listed = [line.split()[0] for line in done.out.splitlines() if line.startswith(("swe/", "terminal/"))]
    assert sorted(name.rpartition("/")[2] for name in set(listed)) == ["1", "1", "6"]
    assert (
        "Samples that differ: 3; scored by the official rules alone: 3, by the strict ones alone: 0." in text
    )
    assert (
        "Replies without content: 1. The official rules leave them out, which raises the mean: 77.78 without them, "
        "70.00 with 0 for each."
    ) in text
    assert (
        "Failed replies with content (blank, thinking alone, cut, filtered): 2. They are judged by what is left of "
        "them, mostly low: 77.78 with them, 100.00 without."
    ) in text


def test_explain_of_a_run_without_a_judge(awb: HereAwb, folder: Path) -> None:
    assert (
        awb(
            "run", "--model", "baseline/copy-last", "--data", folder, "-o", "out", "--protocol", "official"
        ).code
        == 0
    )
    done = awb("score", "out", "--explain")
    assert (done.code, "readings differ" in done.out) == (0, False)


def test_a_builtin_run_is_judged_officially_later(
    awb: HereAwb, server: ScriptedServer, folder: Path, tmp_path: Path
) -> None:
    def forging(call: ChatCall) -> Reply:
        if call.model != "judge":
            return Reply(f"<predicted_observation>a{FORGED_BLOCK}</predicted_observation>")
        return Reply(f"{verdict_text(dict.fromkeys(FIVE, 1))}\nIt ends in {FORGED_BLOCK}")

    server.script = forging
    first = awb(*run_words(server, folder))
    assert first.code == 0, first.err
    assert cells(first, "strict ")[3:] == ["0.00"] * 4
    assert cells(first, "official ")[3:] == ["100.00"] * 4
    before = (tmp_path / "out" / "predictions.jsonl").read_bytes()
    url = server.base_url
    later = awb(
        "judge", "out", "--judge", "openai-api/judge", "--judge-base-url", url, "--protocol", "official"
    )
    assert later.code == 0, later.err
    assert asked(server) == {"world": 10, "judge": 20}
    assert (tmp_path / "out" / "predictions.jsonl").read_bytes() == before
    judges = json.loads((tmp_path / "out" / "run.json").read_text())["judges"]
    assert [judge["protocol"] for judge in judges] == ["builtin", "official"]
    assert "Headline: macro, floor." in later.out
    assert "Headline: macro, exclude." in later.out
    again = awb(
        "judge", "out", "--judge", "openai-api/judge", "--judge-base-url", url, "--protocol", "official"
    )
    assert (again.out, asked(server)["judge"]) == (later.out, 20)


REFUSED = [
    (
        ["--protocol", "official", "--judge-json-schema"],
        "--judge-json-schema: the official protocol asks for a verdict in tags",
    ),
    (
        ["--prompts", "somewhere"],
        "--prompts: only a judge of --protocol official reads the official prompt files",
    ),
    (["--protocol", "paper"], "--protocol"),
]


@pytest.mark.parametrize(
    ("words", "complaint"), REFUSED, ids=lambda value: value[-1] if isinstance(value, list) else ""
)
@pytest.mark.parametrize("command", ["run", "judge"])
def test_refused(
    command: str, words: list[str], complaint: str, awb: HereAwb, server: ScriptedServer, folder: Path
) -> None:
    given = run_words(server, folder)
    if command == "judge":
        assert awb("run", "--model", "baseline/copy-last", "--data", folder, "-o", "out").code == 0
        given = ["judge", "out", *given[5:9]]
    done = awb(*given, *words)
    assert (done.code, complaint in done.err, asked(server)) == (2, True, {"world": 0, "judge": 0})


def test_prompts_need_a_judge(awb: HereAwb, folder: Path) -> None:
    words = ("run", "--model", "baseline/empty", "--data", folder, "-o", "out", "--protocol", "official")
    done = awb(*words, "--prompts", "somewhere")
    assert (done.code, "--prompts: only a judge of --protocol official" in done.only_complaint) == (2, True)


def test_a_folder_without_the_prompts_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    server: ScriptedServer,
    folder: Path,
) -> None:
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    words = run_words(server, folder)
    lost = awb(*words, "--protocol", "official", "--prompts", "nowhere")
    assert (lost.code, "--prompts nowhere: no such folder" in lost.only_complaint) == (2, True)
    (tmp_path / "empty").mkdir()
    empty = awb(*words, "--protocol", "official", "--prompts", "empty")
    assert (empty.code, "official files are missing" in empty.only_complaint) == (2, True)
    assert not (tmp_path / "out").exists()


def test_a_domain_without_official_prompt_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_prompts(monkeypatch, own_prompts(domains=("swe",)))
    with ScriptedServer(good) as server:
        words = options(server, tmp_path / "run", folder, protocol="official")
        with pytest.raises(ConfigError, match="no judge prompt for domain 'terminal'"):
            evaluate(**words)
        assert not server.calls
        assert not (tmp_path / "run").exists()
        assert evaluate(**words, tasks="swe", limit="1").results is not None


def test_an_answer_with_less_room_marks_the_run(
    server: ScriptedServer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_prompts(monkeypatch)
    words = options(server, tmp_path / "run", folder, protocol="official", limit="2")
    whole = evaluate(**words).results
    assert whole is not None
    assert (whole.predictions.less_room, whole.judges[0].less_room, whole.warnings) == (0, 0, ())
    short = evaluate(**words | {"output": tmp_path / "short"}, max_context=16_000, judge_max_context=16_000)
    assert short.results is not None
    assert (short.results.predictions.less_room, short.results.judges[0].less_room) == (4, 4)
    model, judge = short.results.warnings
    assert model.startswith(
        "model openai-api/world: 4 answers were asked for with fewer tokens than --max-tokens"
    )
    assert judge.startswith(
        "judge openai-api/judge: 4 answers were asked for with fewer tokens than --judge-max"
    )
