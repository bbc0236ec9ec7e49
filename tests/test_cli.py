"""Tests of the command line as users meet it: one clear line for each mistake, and pinned help.

Refusals are data (`REFUSED`, `NOT_REACHED`). The help texts are golden files in `tests/cases/cli`,
compared by their words, so that another terminal library may draw other frames.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer import rich_utils

from agentworldbench.run import evaluate
from agentworldbench.version import __version__
from tests.helpers.awb_command import HereAwb, clean_environment, run_awb, run_awb_in_turn

GOLDEN = Path(__file__).parent / "cases" / "cli"
COPY = ("run", "--model", "baseline/copy-last", "--limit", "1")
ROOT = Path(__file__).resolve().parents[1]
HEAVY = frozenset(
    [
        "litellm",
        "openai",
        "pandas",
        "numpy",
        "datasets",
        "torch",
        "pydantic",
        "huggingface_hub",
        "aiohttp",
        "rich",
        "yaml",
        "httpx",
    ]
)
NO_SOCKETS = """
import socket
def refuse(*words, **more):
    raise AssertionError(f"the network was asked: {words}")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
"""

REFUSED = {
    # name: (words after awb, a part of the one line)
    "no model": ("run", "awb: --model is missing"),
    "unknown domain": (
        "run --model baseline/empty --tasks termnal",
        "unknown domain 'termnal'; did you mean 'terminal'? (known: mcp, search,",
    ),
    "unknown baseline": (
        "run --model baseline/copylast",
        "unknown baseline; did you mean 'copy-last'? (known: baseline/copy-last,",
    ),
    "scheme without name": ("run --model baseline/", "a name must follow 'baseline/', for example baseline/copy-last"),
    "replay of nothing": ("run --model replay/", "a name must follow 'replay/'"),
    "replay of no run": ("run --model replay/runs/none", "no run directory or file at runs/none"),
    "replay of a folder that is no run": ("run --model replay/.", "no run.json there"),
    "replay of a file of something else": ("run --model replay/bad.yaml", "bad.yaml:1: not a JSON object"),
    "unknown provider": ("run --model nosuch/model", "model 'nosuch/model': not a provider that LiteLLM knows"),
    "no provider": ("run --model gpt-oss-9000", "hf/REPO or vllm/REPO for an engine in this process"),
    "server without address": ("run --model openai-api/x", "--base-url is missing"),
    "address without scheme": ("run --model openai-api/x --base-url 127.0.0.1:8000", "must begin with http://"),
    "address for a baseline": ("run --model baseline/empty --base-url http://127.0.0.1:1", "takes no --base-url"),
    "baseline as judge": (
        "run --model baseline/empty --judge baseline/reference",
        "a judge must be a model that can be asked",
    ),
    "a judge twice": (
        "run --model baseline/empty --judge openai-api/x --judge openai-api/x --judge-base-url http://127.0.0.1:1",
        "the same judge is given twice",
    ),
    "unknown option": ("run --limti 3", "No such option: --limti"),
    "option of another command": ("infer --judge x/y", "No such option: --judge"),
    "option without value": ("run --model", "'--model'"),
    "unknown command": ("rnu", "No such command 'rnu'"),
    "unknown command of a group": ("tasks lst", "No such command 'lst'"),
    "missing argument": ("judge --judge x/y", "Missing argument 'RUN'"),
    "too many arguments": ("data info mini more", "unexpected extra argument"),
    "judge without a judge": ("judge done", "--judge is missing"),
    "judge of data that moved elsewhere": (
        "judge done --judge openai-api/x --judge-base-url http://127.0.0.1:1 --data nowhere",
        "--data nowhere: no such folder",
    ),
    "judge of other data": (
        "judge done --judge openai-api/x --judge-base-url http://127.0.0.1:1 --data rows",
        "rows/swe_test.jsonl:2: field 'id': is missing",
    ),
    "one judge at two addresses": (
        "run --model baseline/empty --judge openai-api/x --judge openai-api/x --judge-base-url http://127.0.0.1:1 "
        "--judge-base-url http://127.0.0.1:2",
        "the same judge is given twice",
    ),
    "judge of no run": ("judge nowhere --judge openai/gpt-4o", "nowhere: no run.json there"),
    "score of no run": ("score nowhere", "nowhere: no run.json there"),
    "data that is missing": ("data info nowhere", "--data nowhere: no such folder"),
    "malformed row": ("run --model baseline/empty --data rows", "rows/swe_test.jsonl:2: field 'id': is missing"),
    "malformed row in info": ("data info rows", "rows/swe_test.jsonl:2: field 'id': is missing"),
    "wrong key in a configuration": ("run --config bad.yaml", "bad.yaml:1: unknown key 'modle'; did you mean 'model'?"),
    "missing configuration": ("run -C none.yaml", "none.yaml: cannot be read"),
    "wrong key in a task": ("tasks validate wrong_key", "task.yaml:2: unknown key 'versoin'; did you mean 'version'?"),
    "missing key in a task": ("run --model baseline/empty -t missing_key", "task.yaml:1: required key 'domain' is missing"),
    "unknown sample": ("run --model baseline/empty --sample-id swe/1/1", "--sample-id swe/1/1: no such sample"),
    "empty selection": ("run --model baseline/empty --limit 900-901", "holds no sample"),
    "wrong sampling value": (
        "run --model baseline/empty --gen-kwargs temperature=hot",
        "--gen-kwargs: Input should be a valid number",
    ),
    "no leaderboard folder": ("leaderboard show nowhere", "nowhere: no such folder"),
    "unknown format": ("leaderboard show --format yaml", "'yaml' is not one of 'table', 'md', 'csv', 'json', 'latex', 'html'"),
}  # fmt: skip

NOT_REACHED = {
    "no key": ("--model openai/gpt-4o", "no credentials; set OPENAI_API_KEY in the environment or in .env"),
    "no key for the judge": (
        "--model baseline/empty --judge anthropic/claude-opus-4-6",
        "model 'anthropic/claude-opus-4-6': no credentials; set ANTHROPIC_API_KEY",
    ),
    "server is down": ("--model openai-api/x --base-url http://127.0.0.1:PORT/v1", "127.0.0.1:PORT/v1: cannot be reached"),
    "judge is down": (
        "--model baseline/empty --judge openai-api/x --judge-base-url http://127.0.0.1:PORT/v1",
        "127.0.0.1:PORT/v1: cannot be reached",
    ),
}  # fmt: skip


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a finished run and files that are wrong in one way each; no test writes there."""
    tmp_path = tmp_path_factory.mktemp("scene")
    evaluate("baseline/copy-last", limit="1", output=tmp_path / "done")
    mini = (ROOT / "agentworldbench/data/mini/swe_test.jsonl").read_bytes().split(b"\n")[0]
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "swe_test.jsonl").write_bytes(mini + b'\n{"task": "swe"}\n')
    (tmp_path / "bad.yaml").write_text("modle: x\n")
    web = (ROOT / "tasks/web.yaml").read_text(encoding="utf-8").partition("\n")[2]
    for name, old, new in (("wrong_key", "version: 1", "versoin: 1"), ("missing_key", "domain: web\n", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.yaml").write_text(web.replace(old, new), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_a_mistake_is_one_line_and_nothing_is_written(
    scene: Path, awb: HereAwb, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    words, message = REFUSED[name]
    monkeypatch.chdir(scene)
    before = sorted(scene.rglob("*"))
    done = awb(*words.split())
    assert done.code == 2
    assert message in done.only_complaint
    assert len(done.err) < 500
    assert sorted(scene.rglob("*")) == before


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("name", NOT_REACHED)
def test_an_endpoint_that_cannot_be_used_is_one_line(
    tmp_path: Path, awb: HereAwb, closed_port: int, name: str
) -> None:
    words, message = (text.replace("PORT", str(closed_port)) for text in NOT_REACHED[name])
    asked = ("run", "--limit", "1", "--max-retries", "0", *words.split(), "-o", "out")
    # One of them as a process of its own: nothing that a library does on its way out is added to the line.
    done = run_awb(*asked, cwd=tmp_path) if name == "server is down" else awb(*asked)
    assert (done.code, done.out) == (2, "")
    assert message in done.complaint
    assert "0/0" not in done.err
    # What needs no endpoint (baseline/empty before a judge) is made only once every endpoint has answered.
    assert not (tmp_path / "out").exists(), "an address or a key that does not work leaves no trace"
    assert awb(*COPY, "-o", "out").code == 0, "and bars nobody from the directory"


def test_a_judge_that_cannot_be_reached_leaves_a_finished_run_as_it_was(
    tmp_path: Path, awb: HereAwb, closed_port: int
) -> None:
    assert awb(*COPY, "-o", "out").code == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    url = f"http://127.0.0.1:{closed_port}/v1"
    done = awb("judge", "out", "--judge", "openai-api/x", "--judge-base-url", url, "--max-retries", "0")
    assert (done.code, "cannot be reached" in done.complaint) == (2, True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_the_home_directory_in_a_configuration_file(
    tmp_path: Path, awb: HereAwb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "run.yaml").write_text("output: ~/out\nmodel: baseline/empty\nlimit: 1\n")
    assert awb("run", "--config", "run.yaml").code == 0
    assert (tmp_path / "home" / "out" / "run.json").is_file()


def test_too_many_failures_are_exit_code_3(tmp_path: Path, awb: HereAwb) -> None:
    (tmp_path / "answers.jsonl").write_text('{"sample_id": "none", "text": "x"}\n')
    words = ("run", "--model", "replay/answers.jsonl", "--limit", "1", "-o", "out")
    done = awb(*words, "--fail-on-error", "0.5")
    assert done.code == 3
    assert "100.0% of the samples have no score, more than --fail-on-error 0.5" in done.complaint
    assert awb(*words, "--fail-on-error", "1").code == 0
    assert awb(*words).code == 0


def test_tables_are_on_standard_output_alone(tmp_path: Path) -> None:
    done = run_awb(*COPY, cwd=tmp_path)
    assert done.code == 0
    assert done.out.startswith("Scores of baseline/copy-last")
    assert "\x1b" not in done.out + done.err
    assert max(map(len, done.out.splitlines())) <= 120


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agentworldbench", "leaderboard", "show", "--format", "json"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.stderr.read(), process.wait(60)) == (b"", 0)


def words_of(text: str) -> list[str]:
    """The words of a help text, without frames and line breaks."""
    return re.sub(r"[│╭╮╰╯─]", " ", text).split()


@pytest.mark.parametrize(
    "words",
    [
        "",
        "run",
        "infer",
        "judge",
        "score",
        "estimate",
        "compare",
        "export official",
        "export lm-eval",
        "export inspect",
        "export eee",
        "export parquet",
        "tasks",
        "data info",
        "data show",
        "leaderboard show",
        "report",
        "leaderboard add",
        "leaderboard build",
        "leaderboard check",
        "runs list",
        "runs merge",
        "runs conflicts",
        "submit",
        "verify",
        "view",
    ],
)
def test_help_is_pinned(awb: HereAwb, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(rich_utils, "MAX_WIDTH", 100)  # TERMINAL_WIDTH, which is read at import
    done = awb(*words.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert max(map(len, done.out.splitlines())) <= 100
    golden = GOLDEN / f"help_{words.replace(' ', '_') or 'awb'}.txt"
    assert words_of(done.out) == words_of(golden.read_text(encoding="utf-8")), (
        f"when the change is wanted: COLUMNS=100 TERMINAL_WIDTH=100 awb {words} --help > {golden}"
    )


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "agentworldbench", "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env=clean_environment(), capture_output=True, encoding="utf-8", timeout=60
    )
    assert done.returncode == 0
    found = re.findall(r"^import time:.*\|\s+(\S+)$", done.stderr, re.MULTILINE)
    imported = {name.partition(".")[0] for name in found}
    assert "typer" in imported, "the probe works"
    assert imported & HEAVY == set()


def test_no_network_is_asked(tmp_path: Path) -> None:
    """All in one process, which has imported nothing before: what a command imports is asked for there."""
    words = ("--help", "--version", "run --help", "tasks list", "leaderboard show", "data info")
    for done in run_awb_in_turn(*(some.split() for some in words), cwd=tmp_path, before=NO_SOCKETS):
        assert (done.code, done.err) == (0, "")
        assert done.out


def test_version(tmp_path: Path) -> None:
    assert run_awb("--version", cwd=tmp_path).out == f"awb {__version__}\n"


@pytest.mark.parametrize("words", ["", "tasks", "data", "leaderboard"])
def test_a_group_without_a_command_shows_its_help(tmp_path: Path, awb: HereAwb, words: str) -> None:
    done = awb(*words.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.lstrip().startswith(f"Usage: awb {words}".rstrip())
    assert "Commands" in done.err
