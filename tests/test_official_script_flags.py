"""`awb infer`, `judge`, `score` with the official script's flags, and `awb export official`.

Model and judge stand on a scripted server that answers the official script and the harness alike, so what our
commands leave is compared with the files that the script itself wrote (`cases/official_script`). The prompts
are a look-alike of the official repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agentworldbench import evaluate, load_run
from agentworldbench.integrations.official_script import script_results
from agentworldbench.pull import prompts_for_run
from tests.helpers.awb_command import HereAwb
from tests.helpers.loopback_repository import look_alike, write_checkout
from tests.helpers.official_folder import make_official_folder
from tests.helpers.official_script_world import script
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import all_text, asked
from tests.test_official_script import JUDGED, PREDICTIONS, PRINTED, printed, rows_of, without, write_rows

MADE = look_alike()
MODEL_KEY, JUDGE_KEY = "mk-2f6b0c9d41", "jk-93ae57d802"
BOTH = {
    # name: (words after awb, a part of the one line)
    "model": ("infer --model x/y --model-name y", "--model-name and --model are the same; give one of them"),
    "data": ("infer --data mini --data-dir data", "--data-dir and --data are the same"),
    "output": ("infer --output a --output-dir b", "--output-dir and --output are the same"),
    "run": ("judge RUN --predictions RUN", "--predictions and RUN are the same"),
    "judge": ("judge RUN --judge x/y --judge-model y", "--judge-model and --judge are the same"),
    "temperature": ("judge RUN --temperature 1 --judge-temperature 1", "--temperature and --judge-temperature are"),
    "tokens": ("judge RUN --max-tokens 9 --judge-max-tokens 9", "--max-tokens and --judge-max-tokens are the same"),
    "moved data": ("judge RUN --data mini --data-dir data", "--data-dir and --data are the same"),
    "score": ("score RUN --predictions RUN", "--predictions and RUN are the same"),
    "score's data": ("score RUN --data mini --data-dir data", "--data-dir and --data are the same"),
    "nothing to score": ("score", "Missing argument 'RUN': name a run directory, or a file with --predictions"),
    "no server": ("infer --model-name y", "openai-api/y: --base-url is missing"),
    "no judge's server": ("judge RUN --judge-model y --protocol builtin", "--judge-base-url is missing"),
    "no such file": ("score --predictions none.jsonl", "--predictions none.jsonl: no such file or run directory"),
    "a journal alone": ("score --predictions journal.jsonl", "a journal of a run, but its run.json is not beside it"),
    "a run elsewhere": ("score --predictions RUN --output-dir b", "--output-dir b: the run in RUN keeps all that is"),
    "a flag of another command": ("run --model-name y", "No such option: --model-name"),
    "a judge's flag at infer": ("infer --judge-model y", "No such option: --judge-model"),
    "a file of something else": ("score --predictions notes.txt", "notes.txt:1: not a JSON object"),
}  # fmt: skip


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    monkeypatch.setattr(
        "agentworldbench.plan.prompts_for_run", partial(prompts_for_run, manifest=MADE.manifest)
    )
    for name in ("AWB_API_KEY", "AWB_JUDGE_API_KEY"):
        monkeypatch.setenv(name, "")  # so that what a command sets there goes with the test
    write_checkout(tmp_path / "repository", MADE.files)
    make_official_folder(
        tmp_path / "data",
        seed=4,
        domains=("terminal", "android"),
        trajectories=1,
        turns=3,
        observation_chars=60,
    )
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(script) as running:
        yield running


def infer(server: ScriptedServer, *more: str) -> tuple[str, ...]:
    words = ("infer", "--data-dir", "data", "--model-base-url", server.base_url, "--model-name", "world")
    return (*words, "--model-api-key", MODEL_KEY, "--output-dir", "results", *more)


def judge(server: ScriptedServer, predictions: Path | str, *more: str) -> tuple[str, ...]:
    words = ("judge", "--predictions", str(predictions), "--judge-base-url", server.base_url)
    words += ("--judge-model", "judge", "--judge-api-key", JUDGE_KEY, "--prompts", "repository")
    return (*words, *more)


def shorten(journal: Path, records: int) -> None:
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:records]))


def test_the_three_commands_of_the_script(tmp_path: Path, awb: HereAwb, server: ScriptedServer) -> None:
    first = awb(*infer(server))
    second = awb(*judge(server, "results/predictions.jsonl", "--output-dir", "results"))
    third = awb("score", "--predictions", "results/judged.jsonl")
    assert [done.code for done in (first, second, third)] == [0, 0, 0], first.err + second.err + third.err
    assert printed(tmp_path / "results") == PRINTED
    assert load_run(tmp_path / "results").record.protocol == "official"
    assert first.err.count("its protocol applies") == second.err.count("its protocol applies") == 1
    # What the script wrote with the same server, but for the words of failures.
    for ours, theirs in zip(rows_of(tmp_path / "results" / "judged.jsonl"), rows_of(JUDGED), strict=True):
        assert without(ours, "error_message") == without(theirs, "error_message")
    exported = awb("export", "official", "results", "--output", "theirs")
    assert exported.out == "theirs/predictions.jsonl: 26 lines\ntheirs/judged.jsonl: 26 lines\n"
    assert (tmp_path / "theirs" / "predictions.jsonl").read_bytes() == PREDICTIONS.read_bytes()
    # Both keys were used, and stand nowhere.
    keys = {call.model: call.headers["authorization"] for call in server.calls}
    assert keys == {"world": f"Bearer {MODEL_KEY}", "judge": f"Bearer {JUDGE_KEY}"}
    everything = "".join(done.out + done.err for done in (first, second, third, exported))
    everything += all_text(tmp_path)
    assert MODEL_KEY not in everything
    assert JUDGE_KEY not in everything
    assert first.err.count("Warning: --model-api-key: others on this machine can see a key") == 1
    assert second.err.count("Warning: --judge-api-key: others on this machine can see a key") == 1


def test_a_file_of_the_script_is_judged_here(tmp_path: Path, awb: HereAwb, server: ScriptedServer) -> None:
    (tmp_path / "results").mkdir()
    file = tmp_path / "results" / "predictions.jsonl"
    file.write_bytes(PREDICTIONS.read_bytes())
    done = awb(*judge(server, "results/predictions.jsonl", "--output-dir", "results"))
    assert done.code == 0, done.err
    assert "results/predictions.jsonl is imported; run directory: results/awb" in done.err
    assert file.read_bytes() == PREDICTIONS.read_bytes(), "the script's own file stays as it is"
    assert printed(tmp_path / "results" / "awb") == PRINTED
    assert asked(server)["world"] == 0
    before = len(server.calls)
    again = awb(*judge(server, "results/predictions.jsonl", "--output-dir", "results"))
    assert (again.code, len(server.calls)) == (0, before), "nothing is asked twice"


def test_a_judged_file_is_scored_and_judged_again(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer
) -> None:
    file = write_rows(tmp_path / "judged.jsonl", rows_of(JUDGED))
    done = awb("score", "--predictions", "judged.jsonl", "--data-dir", "data", "--output-dir", "run")
    assert done.code == 0, done.err
    assert printed(tmp_path / "run") == PRINTED
    own, _, ours = done.out.partition("\n\n")
    assert own.startswith("judged.jsonl as the official script sums it up")
    shown = {line.split()[0].lower(): line.split()[2] for line in own.splitlines() if "/13" in line}
    assert shown == {name: f"{block['total_score']:.2f}" for name, block in PRINTED["domains"].items()}
    assert f"Overall, micro  18/26  {PRINTED['overall']:.2f}" in own
    assert ours.startswith("Scores of replay/run/imported/answers.jsonl")
    assert "\nJudge scores of replay/run/imported/answers.jsonl by unknown (judged.jsonl)" in ours
    second = awb(*judge(server, file, "--data-dir", "data", "--output-dir", "run"))
    assert second.code == 0, second.err
    judges = load_run(tmp_path / "run").record.judges
    assert [one.model for one in judges] == ["unknown (judged.jsonl)", "openai-api/judge"]
    several = awb("export", "official", "run")
    assert several.code == 2
    assert (
        "run: has several judges; name one with --judge, by its digest if need be: unknown (" in several.err
    )
    one = awb("export", "official", "run", "--judge", judges[0].digest, "-o", "theirs")
    assert one.code == 0
    assert script_results(tmp_path / "theirs" / "judged.jsonl") == script_results(JUDGED)


@pytest.mark.parametrize("name", BOTH)
def test_what_is_given_twice_or_not_at_all(tmp_path: Path, awb: HereAwb, name: str) -> None:
    words, message = BOTH[name]
    (tmp_path / "notes.txt").write_text("Some notes.\n")
    if "RUN" in words:
        assert awb("run", "--model", "baseline/empty", "--limit", "1", "-o", "RUN").code == 0
    (tmp_path / "journal.jsonl").write_text('{"schema_version": 1}\n')
    before = sorted(tmp_path.rglob("*"))
    done = awb(*words.split())
    assert done.code == 2
    assert message in done.complaint
    assert sorted(tmp_path.rglob("*")) == before


PROTOCOLS = {
    "our flags": ("--data data --output run", "builtin"),
    "a flag of the script": ("--data-dir data --output run", "official"),
    "another": ("--data data --output-dir run", "official"),
    "a choice": ("--data-dir data --output-dir run --protocol builtin", "builtin"),
    "a choice in the file": ("--data-dir data --output-dir run -C own.yaml", "builtin"),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_which_protocol_applies(tmp_path: Path, awb: HereAwb, name: str) -> None:
    words, protocol = PROTOCOLS[name]
    (tmp_path / "own.yaml").write_text("protocol: builtin\n")
    done = awb("infer", "--model", "baseline/copy-last", *words.split())
    assert done.code == 0, done.err
    assert load_run("run").record.protocol == protocol
    assert done.err.count("Flags of the official script: its protocol applies") == (protocol == "official")


def test_attempts_may_be_told_apart_from_retries(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer
) -> None:
    words = ("--judge-attempts", "1", "--max-retries", "2", "--output-dir", "run", "--display", "none")
    assert awb(*judge(server, PREDICTIONS, *words)).code == 0
    (record,) = load_run("run").record.judges
    assert record.attempts == 1


def test_what_the_judge_is_sent(tmp_path: Path, awb: HereAwb, server: ScriptedServer) -> None:
    words = ("--temperature", "0.25", "--max-tokens", "777", "--max-retries", "2", "--output-dir", "run")
    assert awb(*judge(server, PREDICTIONS, *words)).code == 0
    first = [call.body for call in server.calls if call.attempt == 1]
    assert {(body["temperature"], body["max_tokens"]) for body in first} == {(0.25, 777)}
    (record,) = load_run("run").record.judges
    assert (record.protocol, record.attempts) == ("official", 2)
    unread = [one for one in load_run("run").verdicts() if one.reply == "Both are alike, more or less."]
    assert unread
    assert all(len(one.attempts) == 2 for one in unread), "the script counts its attempts in all"


@pytest.mark.parametrize("word", ["official", "mini"])
def test_a_data_folder_is_a_folder_whatever_it_is_called(tmp_path: Path, awb: HereAwb, word: str) -> None:
    (tmp_path / "data").rename(tmp_path / word)
    done = awb("infer", "--model", "baseline/copy-last", "--data-dir", word, "--output-dir", "run")
    assert done.code == 0, done.err
    assert load_run("run").record.predict.data.name == f"folder {word}"


def test_a_refused_key_is_not_shown(tmp_path: Path, awb: HereAwb) -> None:
    def refuse(call: ChatCall) -> Reply:
        told = call.headers["authorization"]
        return Reply(status=401, error={"message": f"Incorrect key: {told}", "code": "invalid_api_key"})

    with ScriptedServer(refuse) as server:
        done = awb(*infer(server), "--data", "mini")
        assert "--data-dir and --data are the same" in done.complaint
        done = awb(*infer(server))
    assert done.code == 2
    assert "Incorrect key: Bearer ***" in done.complaint
    assert MODEL_KEY not in done.out + done.err + all_text(tmp_path)


def test_an_export_leaves_out_what_was_not_asked(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer
) -> None:
    assert awb(*infer(server, "--display", "none")).code == 0
    assert awb("export", "official", "results").out == "results/official/predictions.jsonl: 26 lines\n"
    shorten(tmp_path / "results" / "predictions.jsonl", 10)
    done = awb("export", "official", "results")
    assert done.code == 0, done.err
    assert done.out == "results/official/predictions.jsonl: 10 lines; 16 samples left out, not asked yet\n"
    again = awb("export", "official", "results", "--judge", "x")
    assert (again.code, again.complaint) == (2, "awb: --judge x: results has no judge")


def test_an_export_leaves_out_what_was_not_judged(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer
) -> None:
    assert awb(*judge(server, PREDICTIONS, "--output-dir", "run")).code == 0
    shorten(tmp_path / "run" / "verdicts.jsonl", 5)
    done = awb("export", "official", "run")
    # Five have a verdict; four have no reply, so that the script would not have judged them either.
    assert "run/official/judged.jsonl: 9 lines; 17 samples left out, not asked yet\n" in done.out


def test_a_file_of_the_script_may_lie_in_a_run_directory(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer
) -> None:
    assert awb(*infer(server, "--limit", "1", "--display", "none")).code == 0
    write_rows(tmp_path / "results" / "theirs.jsonl", rows_of(JUDGED))
    done = awb("score", "--predictions", "results/theirs.jsonl", "--output-dir", "run")
    assert done.code == 0, done.err
    assert printed(tmp_path / "run") == PRINTED


def test_an_export_never_replaces_what_it_did_not_write(tmp_path: Path, awb: HereAwb) -> None:
    assert (
        awb("infer", "--model", "baseline/copy-last", "--data-dir", "data", "--output-dir", "run").code == 0
    )
    before = all_text(tmp_path / "run")
    refused = awb("export", "official", "run", "-o", "run")
    assert (refused.code, "a run directory" in refused.complaint) == (2, True)
    assert all_text(tmp_path / "run") == before
    (tmp_path / "theirs").mkdir()
    write_rows(tmp_path / "theirs" / "predictions.jsonl", [{"gen": "paid for"}])
    refused = awb("export", "official", "run", "-o", "theirs")
    assert (refused.code, "exists with other contents" in refused.complaint) == (2, True)
    assert rows_of(tmp_path / "theirs" / "predictions.jsonl") == [{"gen": "paid for"}]
    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["predictions.jsonl"]
    for _ in range(2):
        assert awb("export", "official", "run", "-o", "new").code == 0
    for row, ours in zip(rows_of(PREDICTIONS), rows_of(tmp_path / "new" / "predictions.jsonl"), strict=True):
        assert without(row, "gen") == without(ours, "gen")
        assert ours["gen"], "a baseline's observation stands for its reply"


@pytest.mark.parametrize("protocol", ["builtin", "official"])
def test_an_export_says_what_our_official_reading_says(
    tmp_path: Path, awb: HereAwb, server: ScriptedServer, protocol: str
) -> None:
    run = evaluate(
        model="openai-api/world",
        base_url=server.base_url,
        judge="openai-api/judge",
        judge_base_url=server.base_url,
        data="data",
        output=Path("run"),
        protocol=protocol,
        prompts=Path("repository") if protocol == "official" else None,
    )
    assert run.results is not None
    reading = run.results.judges[0].official
    assert awb("export", "official", "run").code == 0
    theirs = script_results(tmp_path / "run" / "official" / "judged.jsonl")
    assert reading.micro.scored, "the two have something to agree on"
    assert theirs.overall == pytest.approx(reading.micro.exclude["total"])
    assert theirs.macro == pytest.approx(reading.macro_exclude["total"])
    for one in theirs.domains:
        block = reading.domains[one.domain]
        assert (one.rows, one.valid) == (block.samples, block.scored)
        assert one.scores is not None
        for name, score in one.scores.items():
            mean = block.exclude["total" if name == "total_score" else name]
            assert score == pytest.approx(-25.0 if mean is None else mean)


def test_our_own_files_are_known_by_their_version(tmp_path: Path, awb: HereAwb) -> None:
    assert (
        awb("infer", "--model", "baseline/copy-last", "--data-dir", "data", "--output-dir", "run").code == 0
    )
    for file in ("predictions.jsonl", "metrics.jsonl"):
        assert json.loads((tmp_path / "run" / file).read_bytes().split(b"\n")[0])["schema_version"] == 1
    before = sorted(tmp_path.rglob("*"))
    done = awb("score", "--predictions", "run/predictions.jsonl", "--output-dir", "run")
    assert done.code == 0, done.err
    assert done.out.startswith("Scores of baseline/copy-last")
    assert sorted(tmp_path.rglob("*")) == before, "nothing was imported"
