"""Public reports TX-…: odd text in rows, replies, reasons, names and refusals, through a whole run.

`cases/text/odd.yaml` holds the texts. One run has each of them as system text, history, action and
observation of a row; its model answers with the row's observation, its judge quotes all of them. What is
stored, read again, exported and printed is looked at afterwards.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.models.streaming import lines_of, read_stream
from agentworldbench.records import Prediction, SampleMetrics
from agentworldbench.run import Run, evaluate, load_run, score_run
from agentworldbench.texts import scrub
from tests.helpers.awb_command import HereAwb, clean_environment
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, hash_scores, verdict_text
from tests.helpers.whole_runs import options

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "text" / "odd.yaml").read_text(encoding="utf-8"))
TEXTS: list[str] = [case["text"] * case.get("times", 1) for case in CASES]
STORED: list[str] = [case.get("stored", case["text"]) * case.get("times", 1) for case in CASES]
NAMES: list[str] = [case["name"] for case in CASES]
SHORT = [text for text in TEXTS if len(text) < 1000]
QUOTED = [scrub(text) for text in SHORT]
# The HTTP library's advice for servers; a client that waits for a model does not mind a millisecond.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
MARKER = "**Environment Observation:**\n"


def row(number: int, text: str) -> dict[str, Any]:
    """The second turn of a trajectory in which everything is `text`."""
    turns = [f"### Turn {turn}\n\n**Action:**\n```\n{text}\n```" for turn in (1, 2)]
    return {
        "task": "terminal", "id": number, "prompt": turns, "response": [MARKER + text, MARKER + text],
        "current_prompt": turns[-1], "system_str": f"{number}: {text}", "turn_idx": 2, "total_turns": 2,
    }  # fmt: skip


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    text = "".join(json.dumps(one) + "\n" for one in rows)
    (folder / "terminal_test.jsonl").write_text(text, encoding="utf-8")
    return folder


def script(call: ChatCall) -> Reply:
    if call.model == "judge":
        told = json.loads(
            verdict_text(hash_scores(call.last_user)).partition("json\n")[2].partition("\n```")[0]
        )
        told |= {"strengths": SHORT, "weaknesses": SHORT[::-1]}
        content = f"<final_evaluation>\n```json\n{json.dumps(told)}\n```\n</final_evaluation>"
        return Reply(content=content, model="judge \x1b[31m\ud835")
    text = TEXTS[int(call.system.partition(":")[0])]
    answer = f"<predicted_observation>\n{text}\n</predicted_observation>"
    return Reply(content=answer, reasoning_content=f"I think {text}", model="world\u202e\x1b[31m\0")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, ScriptedServer]]:
    folder = tmp_path_factory.mktemp("odd")
    data = write_rows(folder / "data", [row(number, text) for number, text in enumerate(TEXTS)])
    with ScriptedServer(script) as server:
        yield evaluate(**options(server, folder / "run", data)), server


@pytest.fixture(scope="module")
def stored(odd: tuple[Run, ScriptedServer]) -> Mapping[str, tuple[Prediction, SampleMetrics]]:
    """What the run's files hold, by sample id."""
    metrics = {one.sample_id: one for one in odd[0].metrics()}
    return {one.sample_id: (one, metrics[one.sample_id]) for one in odd[0].predictions()}


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("number", range(len(TEXTS)), ids=NAMES)
def test_a_text_arrives_and_is_stored_as_it_is(
    number: int,
    odd: tuple[Run, ScriptedServer],
    stored: Mapping[str, tuple[Prediction, SampleMetrics]],
) -> None:
    server, text = odd[1], STORED[number]
    (call,) = [one for one in server.calls if one.model == "world" and one.system.startswith(f"{number}:")]
    assert call.system == f"{number}: {text}"
    assert [message["content"] for message in call.messages][2] == MARKER + text
    prediction, metrics = stored[f"terminal/{number}/2"]
    assert (prediction.failure, prediction.observation) == (None, text)
    assert prediction.reasoning == f"I think {text}"
    changed = text != TEXTS[number]
    assert ("lone_surrogates_replaced" in prediction.notes) is changed
    assert ("lone surrogates replaced" in prediction.notes) is changed
    assert metrics.values["exact_match"] == 1.0
    assert all(value == 1.0 for value in metrics.values.values())
    assert any(one.model == "judge" and f"\n{text}\n" in one.last_user for one in server.calls)


def test_the_judges_words_are_stored_as_they_are(odd: tuple[Run, ScriptedServer]) -> None:
    verdicts = list(odd[0].verdicts())
    assert len(verdicts) == len(TEXTS)
    for verdict in verdicts:
        assert verdict.failure is None
        assert list(verdict.strengths) == QUOTED
        assert list(verdict.weaknesses) == QUOTED[::-1]
        assert verdict.model_served == "judge \x1b[31m\ufffd"


def test_files_are_what_every_reader_takes(odd: tuple[Run, ScriptedServer]) -> None:
    """One strict JSON value a line, lines end in a line feed alone."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    path = odd[0].path
    for name, count in (
        ("predictions.jsonl", len(TEXTS)),
        ("verdicts.jsonl", len(TEXTS)),
        ("metrics.jsonl", len(TEXTS)),
    ):
        lines = (path / name).read_bytes().removesuffix(b"\n").split(b"\n")
        assert len(lines) == count
        for line in lines:
            json.loads(line.decode("utf-8"), parse_constant=refuse)
            assert b"\0" not in line, "no raw control character ends a line or a cell"
    for name in ("run.json", "results.json"):
        json.loads((path / name).read_text(encoding="utf-8"), parse_constant=refuse)


def test_scoring_again_changes_nothing(odd: tuple[Run, ScriptedServer]) -> None:
    before = load_run(odd[0].path).results
    again = score_run(odd[0].path).results
    assert before is not None
    assert again is not None
    assert again.model_copy(update={"made_at": before.made_at}) == before


@pytest.mark.parametrize(
    "words",
    ["score RUN", "score RUN --explain", "runs list RUN", "runs list RUN --json", "data info DATA",
     "data show DATA --limit 1.0", "data show DATA --limit 1.0 --full", "estimate --model openai-api/\x1b[31mx --base-url "
     "http://127.0.0.1:9/v1 --data DATA", "doctor --model openai-api/\x1b[31mx\u202e --base-url http://127.0.0.1:9/v1"],
)  # fmt: skip
def test_nothing_that_is_printed_moves_a_terminal(
    words: str, odd: tuple[Run, ScriptedServer], awb: HereAwb
) -> None:
    run = odd[0].path
    done = awb(
        *(
            word.replace("RUN", str(run)).replace("DATA", str(run.parent / "data"))
            for word in words.split(" ")
        )
    )
    assert done.code == (2 if words.startswith("doctor") else 0), done.err
    unfit = {char for char in done.out + done.err if not char.isprintable() and char not in "\n\t"}
    assert unfit == set()


def test_an_export_holds_every_text(odd: tuple[Run, ScriptedServer], awb: HereAwb, tmp_path: Path) -> None:
    assert awb("export", "official", odd[0].path, "-o", tmp_path / "files").code == 0
    for name in ("predictions.jsonl", "judged.jsonl"):
        lines = (tmp_path / "files" / name).read_bytes().removesuffix(b"\n").split(b"\n")
        rows = [json.loads(line) for line in lines]
        assert [one["id"] for one in rows] == list(range(len(TEXTS)))
        for one, stored in zip(rows, STORED, strict=True):
            assert f"<predicted_observation>\n{stored}\n</predicted_observation>" in one.values()


@pytest.mark.parametrize(
    "text", SHORT, ids=[name for name, text in zip(NAMES, TEXTS, strict=True) if text in SHORT]
)
def test_a_refusal_in_odd_words_is_one_printable_line(text: str, tmp_path: Path, awb: HereAwb) -> None:
    """The message of one sample's refusal; the others go on."""
    data = write_rows(tmp_path / "data", [row(number, "ok") for number in range(3)])

    def refuse_one(call: ChatCall) -> Reply:
        if call.system.startswith("1:"):
            return Reply(status=400, error={"message": f"no {text}", "code": "content_filter"})
        return Reply(content="<predicted_observation>ok</predicted_observation>")

    with ScriptedServer(refuse_one) as server:
        done = awb(
            "run", "--model", "openai-api/m", "--base-url", server.base_url, "--data", data, "-o", "run"
        )
    assert done.code == 0
    assert {char for char in done.out + done.err if not char.isprintable()} <= {"\n"}
    by_id = {one.sample_id: one for one in load_run(tmp_path / "run").predictions()}
    failure = by_id["terminal/1/2"].failure
    assert failure is not None
    assert (failure.kind, failure.message.isprintable()) == ("content_filter", True)
    assert by_id["terminal/0/2"].observation == by_id["terminal/2/2"].observation == "ok"


def test_ids_that_other_readers_take_for_one_stay_apart(tmp_path: Path, awb: HereAwb) -> None:
    """TX-08: beyond 2^53 neighbours are equal as floats; 7 and "007" are not, and "7" is another."""
    ids: list[int | str] = [9007199254740993, 9007199254740992, "007", 7, "7"]
    data = write_rows(tmp_path / "data", [row(0, f"answer {n}") | {"id": one} for n, one in enumerate(ids)])
    run = evaluate("baseline/reference", data=str(data), output=tmp_path / "run")
    names = [
        "terminal/9007199254740993/2",
        "terminal/9007199254740992/2",
        'terminal/"007"/2',
        "terminal/7/2",
        'terminal/"7"/2',
    ]
    assert {one.sample_id for one in run.predictions()} == set(names)
    assert [one.sample_id for one in run.metrics()] == names
    assert awb("export", "official", tmp_path / "run", "-o", tmp_path / "files").code == 0
    lines = (tmp_path / "files" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ids


# --- consoles and streams ----------------------------------------------------------------------

CONSOLES = {
    "C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""},
    "ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"},
    "Windows in the West": {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"},
    "Windows in China": {"PYTHONUTF8": "0", "PYTHONIOENCODING": "gbk"},
}

CONSOLE_MARKS = {
    name: pytest.mark.slow if name in ("ASCII", "Windows in the West") else () for name in CONSOLES
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks) for name, marks in CONSOLE_MARKS.items()])
def test_files_do_not_depend_on_the_console(name: str, tmp_path: Path) -> None:
    """TX-07: and a table with box characters is printed where there are none."""
    rows = [row(number, text) for number, text in enumerate(("目录 naïve 🙂", "─│┌"))]
    data = write_rows(tmp_path / "data", rows)
    words = ["run", "--model", "baseline/copy-last", "--data", str(data), "--output", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-m", "agentworldbench", *words],
        cwd=tmp_path,
        env=clean_environment(CONSOLES[name]),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    encoding = CONSOLES[name]["PYTHONIOENCODING"] or "utf-8"
    told = done.stdout.decode("utf-8" if encoding == "ascii" else encoding)
    assert told.startswith("Scores of baseline/copy-last")
    here = evaluate("baseline/copy-last", data=str(data), output=tmp_path / "here")
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == (here.path / "metrics.jsonl").read_bytes()
    there = load_run(tmp_path / "run")
    assert [one.observation for one in there.predictions()] == [one.observation for one in here.predictions()]


def pieces(raw: bytes, size: int) -> AsyncIterator[bytes]:
    async def made() -> AsyncIterator[bytes]:
        for start in range(0, len(raw), size):
            yield raw[start : start + size]

    return made()


@settings(max_examples=50)
@given(
    st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4),
    st.integers(1, 9),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["data: ", "data:"]),
)
def test_a_streamed_text_is_the_text_however_it_is_cut(
    texts: list[str], size: int, end: str, field: str
) -> None:
    """TX-04: separators of Unicode inside a text end no line, and a character may come in two pieces."""
    events: list[Any] = [{"choices": [{"delta": {"content": scrub(text)}}]} for text in texts]
    events.append({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    lines = [field + json.dumps(event, ensure_ascii=False) for event in events]
    raw = ("\ufeff: hello" + end * 2 + (end * 2).join([*lines, f"{field}[DONE]"]) + end * 2).encode()
    reply = asyncio.run(read_stream(lines_of(pieces(raw, size))))
    assert isinstance(reply, dict)
    assert reply["choices"][0]["message"]["content"] == "".join(map(scrub, texts))
