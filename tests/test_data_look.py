"""`awb data info` and `awb data show`: what they print of the bundled set and of a folder of one's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.render.decoded import DEEPEST, decoded
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
    assert f"… {20 - FOLDED} more lines (--full shows all)" in text
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


def test_unknown_samples_are_named_as_they_were_typed(folder: Path, awb: HereAwb) -> None:
    done = awb("data", "show", folder, "web/5/7")
    assert done.code == 2
    assert done.only_complaint.startswith("awb: web/5/7: no such sample in this data; did you mean 'web/5/")
    limit = awb("data", "show", folder, "--limit", "x")
    assert limit.only_complaint.startswith("awb: --limit: expected")


def test_counts_for_programs(folder: Path, awb: HereAwb) -> None:
    (folder / "provenance.json").write_text(
        json.dumps(
            {"domains": {"web": {"kind": "simulated", "recorded": "2026-01-02", "licence": "CC0-1.0"}}}
        )
    )
    done = awb("data", "info", folder, "--json")
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    web = found["domains"].pop("web")
    assert found == {
        "schema_version": 1,
        "data": f"folder {folder.name}",
        "repository": None,
        "revision": None,
        "domains": {},
        "flags": {},
    }
    content = (folder / "web_test.jsonl").read_bytes()
    whole = [
        len(ROW["system_str"])
        + sum(map(len, ROW["prompt"][:turn]))
        + sum(map(len, ROW["response"][: turn - 1]))
        for turn in (1, 2)
    ]
    assert web.pop("origin")["licence"] == "CC0-1.0"
    assert web.pop("prompt_tokens_estimated")["total"] > sum(whole) / 5
    assert web == {
        "rows": 2,
        "trajectories": 1,
        "tasks": 1,
        "turns": {"least": 3, "most": 3},
        "prompt_chars": {"total": sum(whole), "longest": max(whole)},
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "simulated": True,
    }
    assert "Data mini" in awb("data", "info", "mini", "-t", "web").out


def test_flagged_rows_are_told_to_programs(tmp_path: Path, awb: HereAwb) -> None:
    text = json.dumps({**ROW, "system_str": "\ud800"})
    (tmp_path / "web_test.jsonl").write_text(text + "\n", encoding="utf-8")
    found = json.loads(awb("data", "info", tmp_path, "--json").out)
    assert found["flags"] == {"web/5/2": ["lone_surrogates_replaced"]}


# --- prose and JSON ------------------------------------------------------------------------------


def shown_with(folder: Path, width: int | None = None, **changes: Any) -> str:
    (folder / "web_test.jsonl").write_text(json.dumps({**ROW, **changes}) + "\n", encoding="utf-8")
    source = resolve_source(str(folder))
    dataset = open_dataset(source.files, source.tasks)
    return sample_text(dataset.load(dataset.refs[0]), source.tasks["web"], None, True, width)


def test_prose_is_wrapped_and_nothing_else(folder: Path) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    system = f"{words}\n  - {words}\n{'x' * 90}"
    observed = [f"**Environment Observation:**\n{words}", f"**Environment Observation:**\n{words}"]
    text = shown_with(folder, 50, system_str=system, response=observed)
    prose, _, rest = text.partition("── Task")
    lines = prose.splitlines()[2:]
    assert max(len(line) for line in lines if "x" * 90 not in line) <= 50
    assert "    " + "x" * 90 in lines, "a word longer than the line is not cut"
    assert lines[-2].startswith("        word"), "a point of a list goes on below its text"
    assert " ".join(" ".join(lines).split()) == " ".join(system.split())
    assert rest.count(f"    {words}\n") == 2, "observations stand as they are"
    assert f"    {words}\n" in shown_with(folder, None, system_str=system, response=observed)


NESTED = {
    "type": "text",
    "text": json.dumps(
        {"content": [{"text": json.dumps({"a": [1, "1"]})}, "two\nlines\n"], "isError": False}
    ),
    "annotations": None,
    "meta": "null",
    "empty": {},
    "nothing": "",
}
APART = """\
    type: text
    text:
      content:
        - text:
            a:
              - 1
              - "1"
        -
          two
          lines
      isError: false
    annotations: null
    meta: "null"
    empty: {}
    nothing: ""
"""


def test_json_in_json_is_taken_apart(folder: Path) -> None:
    observed = f"**Environment Observation:**\n{json.dumps(NESTED)}"
    text = shown_with(folder, response=[observed, observed])
    assert text.count(APART) == 2
    assert "── Turn 1: observation, JSON taken apart\n" in text
    assert text.endswith(
        f"── Turn 2: what came, {len(json.dumps(NESTED))} characters, JSON taken apart\n{APART}"
    )


@pytest.mark.parametrize(
    "text", ["", "3", '"a"', "{}", "[]", "{'a': 1}", '{"a": 1} and more', "[" * 9000, "a: b"]
)
def test_what_is_no_json_object_stays_as_it_is(text: str) -> None:
    assert decoded(text) is None


def test_json_nested_beyond_sense_is_shown_in_bounds() -> None:
    lines = decoded("[" * 500 + "1" + "]" * 500)
    assert lines is not None
    assert len(lines) == 1
    assert lines[0].count("- ") == DEEPEST + 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=5), VALUES, min_size=1, max_size=4))
def test_every_text_of_an_object_is_shown(value: dict[str, Any]) -> None:
    lines = decoded(json.dumps(value))
    assert lines is not None
    shown_text = "\n".join(line.strip(" ") for line in lines)

    def texts(one: Any) -> Iterator[str]:
        if isinstance(one, dict):
            for key, inner in one.items():
                yield from (key, *texts(inner))
        elif isinstance(one, list):
            for inner in one:
                yield from texts(inner)
        elif isinstance(one, str) and not one.lstrip().startswith(("{", "[")):
            yield one

    for text in texts(value):
        for line in text.split("\n"):
            assert line.strip(" ") in shown_text or json.dumps(line, ensure_ascii=False)[1:-1] in shown_text


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
