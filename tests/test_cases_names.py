"""Public reports RM-10 and others: odd names of models, folders and files, on the command line as users type them.

Whatever a model is called, it is asked for by that name, and its run lies in one folder with a plain
name below the working directory. A name that no file can have is one line, whichever flag holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.run import evaluate, load_run
from tests.helpers.awb_command import HereAwb
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.whole_runs import good

LONG = "n" * 300


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(folder, domains=("swe",), trajectories=1, observation_chars=60, special=False)


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    (tmp_path / "work").mkdir()
    return HereAwb(tmp_path / "work", monkeypatch, capsys)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(good) as running:
        yield running


def unfit(text: str) -> set[str]:
    """Characters that would do something to a terminal."""
    return {char for char in text if not char.isprintable() and char != "\n"}


MODELS = {
    "a path": "org/model:q4", "blanks": "a b", "only blanks": "   ", "up": "..", "up and away": "../../x",
    "dots at the end": "x..", "hidden": ".hidden", "Chinese": "模型/Ü", "300 characters": LONG,
    "90 characters of four bytes": "😀" * 90, "a line break": "a\nb", "an escape": "a\x1b[31mb",
    "right to left": "a\u202eb", "like a flag": "-x", "a device": "con", "Markdown": "a|b`c*", "formats": "%s{0}$x",
    "a query": "a#b?c", "quotes": '"q"', "backslash": "x\\y", "from the root": "/etc/passwd", "two slashes": "a//b",
    "decomposed": "e\u0301", "nobody's home": "~nosuchuser/x",
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_asked_for_by_its_name_and_kept_under_a_plain_one(
    name: str, server: ScriptedServer, data: Manifest, awb: HereAwb, tmp_path: Path
) -> None:
    words = ("--model", f"openai-api/{MODELS[name]}", "--base-url", server.base_url, "--data", data.folder)
    since = len(server.calls)
    done = awb("run", *words, "--limit", "1")
    assert done.code == 0, done.err
    assert [call.model for call in server.calls[since:]] == [MODELS[name]]
    assert unfit(done.out + done.err) == set()
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
    (run,) = (tmp_path / "work" / "runs").iterdir()
    assert re.fullmatch(r"openai-api[A-Za-z0-9.-]*-[0-9a-f]{8}", run.name)
    assert load_run(run).record.predict.model["name"] == MODELS[name]
    assert awb("run", *words, "--limit", "1").code == 0
    assert len(server.calls) == since + 1, "the same command finds its run again"
    listed = awb("runs", "list", "runs")
    assert listed.code == 0
    assert unfit(listed.out) == set()


def test_names_that_give_one_plain_name_have_runs_of_their_own(
    server: ScriptedServer, data: Manifest, awb: HereAwb, tmp_path: Path
) -> None:
    for name in ("a/b", "a b", "a//b", "A/b", "模", "型"):
        words = ("--model", f"openai-api/{name}", "--base-url", server.base_url, "--data", data.folder)
        assert awb("run", *words, "--limit", "1").code == 0
    assert len(list((tmp_path / "work" / "runs").iterdir())) == 6


FOLDERS = (
    "a b",
    "-x",
    "--",
    "模型",
    "a\nb",
    "a\x1b[31mb",
    "%s{0}",
    "a:b",
    "x.",
    "*",
    "[a]",
    "a\u202eb",
    "d/e/f",
    "$HOME",
)


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_may_have_any_name(name: str, awb: HereAwb, tmp_path: Path) -> None:
    rows = tmp_path / "work" / "rows" / name
    make_official_folder(rows, domains=("swe",), trajectories=1, observation_chars=60, special=False)
    done = awb("run", "--model", "baseline/copy-last", f"--data=rows/{name}", f"--output=runs/{name}")
    assert done.code == 0, done.err
    assert unfit(done.out + done.err) == set()
    run = tmp_path / "work" / "runs" / name
    assert load_run(run).results is not None
    assert awb("score", f"runs/{name}").code == 0


REFUSED = {
    # flags: (exit code, said); {long} is a name that no file can have
    "run --model baseline/empty --output {long}": (2, "--output {long}: cannot be a run directory (File name too long)"),
    "run --model baseline/empty --output ~nosuchuser/x": (2, "--output: ~nosuchuser/x: no home directory is known"),
    "run --model baseline/empty --output /dev/null": (2, "/dev/null: cannot be a run directory"),
    "run --model baseline/empty --output /proc/x": (2, "/proc/x: cannot be a run directory"),
    "run --model baseline/empty --output ..": (2, "..: not empty and not a run directory"),
    "run --model baseline/empty --data {long}": (2, "--data {long}: no such folder"),
    "run --model baseline/empty --data /dev/full": (2, "--data /dev/full: no such folder"),
    "estimate --model baseline/empty --output {long}": (2, "--output {long}: cannot be a run directory"),
    "score {long}": (2, "{long}: File name too long"),
    "judge {long} --judge openai-api/x --judge-base-url http://127.0.0.1:9/v1": (2, "{long}: File name too long"),
    "run --model baseline/empty -C {long}": (2, "{long}: File name too long"),
    "run --model baseline/empty --tasks {long}": (2, "{long}: File name too long"),
    "run --model replay/{long}": (2, "{long}: File name too long"),
    "run --model hf/{long}": (2, "{long}: File name too long"),
    "tasks show {long}": (2, "{long}: File name too long"),
    "runs merge {long} -o x": (2, "{long}"),
    "export official {long}": (2, "{long}: cannot be a run directory"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_a_name_that_cannot_be_is_one_line(words: str, awb: HereAwb, tmp_path: Path) -> None:
    code, said = REFUSED[words]
    (tmp_path / "work" / "thesis.tex").write_text("x")
    done = awb(*words.replace("{long}", LONG).split())
    assert said.replace("{long}", LONG) in done.complaint
    assert done.code == code
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("field", ["output", "data", "model", "cache"])
def test_bytes_that_are_no_text_are_refused(field: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": "baseline/empty", "output": tmp_path / "run"} | {
        field: str(tmp_path / "a\udcffb")
    }
    if field in ("output", "cache"):
        given[field] = Path(str(given[field]))
    with pytest.raises(ConfigError, match=rf"--{field}: not valid text"):
        evaluate(**given)
    assert list(tmp_path.iterdir()) == []
