"""`awb data info` and `awb data show`: what they print of the bundled set and of a folder of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentworldbench.dataset import open_dataset
from agentworldbench.render.sample import FOLDED, LONGEST, sample_text, shown
from agentworldbench.sources import resolve_source
from tests.helpers.awb_command import HereAwb

SCREEN = "### Screen\n- button 'Save'"
ROW = {
    "task": "web",
    "id": 5,
    "prompt": [
        f"### Turn 1\n**Task Instruction:**\nSave it.\n\n**Current State:**\n{SCREEN}\n\n"
        '**Action:**\n```\nclick("Save")\n```',
        '### Turn 2\n**Action:**\n```\nclick("Close")\n```\n\nAnswer now.',
    ],
    "response": [
        "**Environment Observation:**\n" + "\n".join(f"line {number}" for number in range(20)),
        "**Environment Observation:**\nclosed\t\x1b[31mred\x1b[0m \u202eabc",
    ],
    "current_prompt": '### Turn 2\n**Action:**\n```\nclick("Close")\n```',
    "system_str": "You are a browser.\n" + "x" * 900,
    "turn_idx": 2,
    "total_turns": 3,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {**ROW, "turn_idx": 1, "prompt": ROW["prompt"][:1], "current_prompt": ROW["prompt"][0],
         "response": ROW["response"][:1]},
        ROW,
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "web_test.jsonl").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def awb(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(folder, monkeypatch, capsys)


def text_of(folder: Path, turn: int, full: bool = False) -> str:
    source = resolve_source(str(folder))
    dataset = open_dataset(source.files, source.tasks)
    sample = dataset.load(dataset.refs[turn - 1])
    return sample_text(sample, source.tasks["web"], source.origins.get("web"), full)


def test_a_sample_is_folded_but_for_what_is_to_be_predicted(folder: Path) -> None:
    text = text_of(folder, 2)
    assert f"… {20 - FOLDED} more lines (--full shows them)" in text
    assert f"{'x' * LONGEST}… ({900 - LONGEST} more characters)" in text
    assert "line 19" not in text and "Save it." in text
    assert text.endswith("    closed\t␛[31mred␛[0m \\u202eabc\n")


def test_full_folds_nothing(folder: Path) -> None:
    text = text_of(folder, 2, full=True)
    assert "line 19\n" in text and "x" * 900 in text and "more" not in text


def test_the_first_turn_shows_the_screen_before(folder: Path) -> None:
    text = text_of(folder, 1)
    assert "── Screen before\n    ### Screen\n    - button 'Save'\n" in text
    assert text.count("Save it.") == 1
    assert "line 19" in text


@pytest.mark.parametrize(
    ("char", "picture"),
    [("\x00", "␀"), ("\x7f", "\\u007f"), ("\u2028", "\\u2028"), ("\U000e0001", "\\U000e0001")],
)
def test_control_characters_become_visible(char: str, picture: str) -> None:
    assert shown(f"a\t{char}b") == f"a\t{picture}b"


def test_command_shows_what_was_asked_for(folder: Path, awb: HereAwb) -> None:
    done = awb("data", "show", folder, "web/5/2", "--json")
    assert (done.code, json.loads(done.out)) == (0, ROW)
    one = awb("data", "show", folder)
    assert one.out.count("━━ web/5/") == 1
    both = awb("data", "show", folder, "--limit", "2")
    assert both.out.index("━━ web/5/1 · turn 1 of 3") < both.out.index("━━ web/5/2 · turn 2 of 3")


def test_unknown_samples_are_named(folder: Path, awb: HereAwb) -> None:
    done = awb("data", "show", folder, "web/5/7")
    assert done.code == 2
    assert done.complaint.startswith("awb: --sample-id web/5/7: no such sample in this data; did you mean")


def test_folders_may_say_where_they_come_from(folder: Path, awb: HereAwb) -> None:
    origin = {
        "kind": "simulated",
        "recorded": "2026-01-02",
        "licence": "CC0-1.0",
        "programs": {"toy": "toy 1.2"},
    }
    (folder / "provenance.json").write_text(json.dumps({"domains": {"web": origin}, "more": 1}))
    info = awb("data", "info", folder).out
    assert "web (simulated)" in info and "toy 1.2" in info and "toy toy" not in info
    assert "· simulated, recorded 2026-01-02" in text_of(folder, 1)
    run = awb("run", "--model", "baseline/empty", "--data", folder)
    assert "Web simulated" in run.out, run.err


@pytest.mark.parametrize("text", ["[]", "{", '{"domains": {"web": {"kind": "odd"}}}', '{"domains": []}'])
def test_another_programs_provenance_tells_nothing(folder: Path, text: str) -> None:
    (folder / "provenance.json").write_text(text)
    assert resolve_source(str(folder)).origins == {}
