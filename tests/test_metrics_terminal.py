"""The reader of terminal screens and its metrics: each shape of screen, errors, every bundled row, odd texts.

Values computed by hand stand in `cases/metrics/terminal.yaml` (run by `test_metrics.py`), what the reader makes of
each screen in `cases/metrics/terminal_screens.yaml`, lines with errors in `cases/metrics/error_kinds.yaml`.
"""

from __future__ import annotations

import json
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.dataset import open_dataset
from agentworldbench.records import Sample
from agentworldbench.resources import mini_folder
from agentworldbench.scoring.metrics import score_observation
from agentworldbench.scoring.metrics.base import Unparsable
from agentworldbench.scoring.metrics.error_kinds import error_kinds, exit_code_kind
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.scoring.metrics.keystrokes import Typed, typed
from agentworldbench.scoring.metrics.prompts import place
from agentworldbench.scoring.metrics.screen import FILLER, ScreenReader, display
from agentworldbench.scoring.metrics.screen_state import state_of
from agentworldbench.scoring.metrics.terminal import METRICS
from agentworldbench.task import load_tasks
from tests.test_metrics import made

TASK = load_tasks()["terminal"]
CASES = Path(__file__).parent / "cases" / "metrics"
SCREENS: dict[str, dict[str, Any]] = yaml.safe_load(
    (CASES / "terminal_screens.yaml").read_text(encoding="utf-8")
)
ERRORS: dict[str, list[str]] = yaml.safe_load((CASES / "error_kinds.yaml").read_text(encoding="utf-8"))


@cache
def mini() -> list[Sample]:
    dataset = open_dataset({"terminal": mini_folder() / TASK.data_file}, {"terminal": TASK})
    return [dataset.load(ref) for ref in dataset.refs]


def sample_of(case: dict[str, Any]) -> Sample:
    return made("terminal", case["text"], case.get("previous"), case["action"])


def scored(facts: Facts, prediction: str) -> dict[str, float]:
    """Values of this family's applicable metrics."""
    text = normalise(prediction)
    found = {name: metric.score(facts, text) for name, metric in METRICS.items() if metric.applies(facts)}
    return {name: 0.0 if isinstance(value, Unparsable) else value for name, value in found.items()}


@pytest.mark.parametrize("name", SCREENS)
def test_what_the_reader_makes_of_a_screen(name: str) -> None:
    case = SCREENS[name]
    facts = Facts(sample_of(case), TASK)
    keys = typed(facts.action)
    before = display(facts.previous or "").split("\n")[-1]
    shown = display(facts.reference)
    screen = ScreenReader(keys, before)(shown)
    assert [screen.echoes[index] for index in sorted(screen.echoes)] == case["echoes"]
    assert [line for index in screen.output() if (line := screen.lines[index]) != FILLER] == case["output"]
    assert state_of(screen, keys.lines, keys.pending) == case["state"]
    assert error_kinds([screen.lines[index] for index in screen.output()]) == set(case.get("kinds", ()))
    if screen.prompt is None:
        assert "prompt" not in case
    else:
        named = [part for part in place(facts.mask(screen.prompt[1])) if part]
        assert named + ([] if screen.waits else ["and no longer"]) == case["prompt"]


@pytest.mark.parametrize("name", SCREENS)
def test_the_reference_is_right_in_every_shape(name: str) -> None:
    sample = sample_of(SCREENS[name])
    result = score_observation(sample, TASK, SCREENS[name]["text"])
    assert set(result.values.values()) == {1.0}
    assert result.reasons == {}
    assert {"status_class", "output_line_f1"} <= set(result.applicable)


@pytest.mark.parametrize(
    ("kind", "line"),
    [(kind, line) for kind, lines in ERRORS.items() for line in lines],
    ids=lambda value: value[:40],
)
def test_kinds_of_error(kind: str, line: str) -> None:
    assert error_kinds(["before", line, "after"]) == ({kind} if kind else set())


@pytest.mark.parametrize(
    ("command", "lines", "failed"),
    [
        ("echo $?", ["0"], False),
        ("echo $?", ["127"], True),
        ("ls; echo code: $?", ["a 3", "code: 0"], False),
        ("ls; echo $?", [], False),
        ("ls", ["3"], False),
    ],
)
def test_a_printed_exit_code(command: str, lines: list[str], failed: bool) -> None:
    assert bool(exit_code_kind(command, lines)) is failed


@pytest.mark.parametrize(
    ("action", "lines", "pending"),
    [
        ('["ls -l\\n"]', ["ls -l"], ""),
        ('```\n["ls", "Enter"]\n```', ["ls"], ""),
        ('["a\\nb\\n", "c"]', ["a", "b", "c"], "c"),
        ('["Escape", ":wq", "Enter", "C-x", "Up"]', [":wq"], ""),
        ('["q", "ls\\n"]', ["qls", "ls"], ""),
        ('["\\u0003", "ls\\n"]', ["^C", "ls"], ""),
        ('["abc\\u0003"]', ["abc", "^C"], ""),
        ('["C-d"]', ["^D"], ""),
        ('[{"keystrokes": "ls\\n", "duration": 1.0}]', ["ls"], ""),
        ('{"commands": [{"keystrokes": "ls\\n"}]}', ["ls"], ""),
        ("[]", [], ""),
        ("```\nls [a-z]*\n```", ["ls [a-z]*"], ""),
        ("[1, null, [2]]", [], ""),
        ("[" * 100_000 + "]", ["[" * 100_000 + "]"], ""),
        ("", [], ""),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_an_action_types(action: str, lines: list[str], pending: str) -> None:
    assert typed(action) == Typed(tuple(lines), pending)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("\x1b]0;title\x07$ ls", "$ ls"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("10 %\r20 %\r100 %", "100 %"),
        ("long line\rab", "abng line"),
        ("abc\b\bx", "axc"),
        ("bell\x07 and \x00", "bell and"),
        ("\x1b(B\x1b=x\x1b", "x"),
        ("a" * 80 + " \rb", "a" * 80 + "b"),
        ("a" * 79 + " \rb", "b" + "a" * 78),
        ("^Cx\n ^Cx ^C", "^C\nx\n ^Cx ^C"),
        ("a\tb", "a\tb"),
    ],
)
def test_what_a_screen_shows(text: str, shown: str) -> None:
    assert display(text) == shown


words = st.lists(st.sampled_from(["ls", "-la", "grep", "x.txt", "'a b'", "|", ">", "$HOME", "*"]), min_size=1)
outputs = st.lists(
    st.sampled_from(["total 3", "a b", "3", "done.", "  indented", "# comment", "> quoted"]), max_size=3
)


@settings(deadline=None, max_examples=60)
@given(
    turns=st.lists(st.tuples(words.map(" ".join), outputs), min_size=1, max_size=4),
    prompt=st.sampled_from(
        ["ana@loom:~/x$", "root@0d5f0c2e9b71:/#", "bash-5.2$", "$", ">>>", "db=#", "loom>"]
    ),
    width=st.sampled_from([40, 80, 10_000]),
)
def test_a_screen_that_was_put_together_is_taken_apart(
    turns: list[tuple[str, list[str]]], prompt: str, width: int
) -> None:
    lines: list[str] = []
    for command, output in turns:
        echoed = f"{prompt} {command}"
        pieces = [echoed[start : start + width].rstrip() for start in range(0, len(echoed), width)]
        lines += [*(piece for piece in pieces if piece), *output]
    commands = [command for command, _ in turns]
    keys = typed(json.dumps([f"{command}\n" for command in commands]))
    screen = ScreenReader(keys)("\n".join([*lines, prompt]))
    assert keys.lines == tuple(commands)
    assert [screen.echoes[index] for index in sorted(screen.echoes)] == commands
    assert [screen.lines[index] for index in screen.output()] == [
        line for _, output in turns for line in output
    ]
    assert screen.waits and screen.prompt == (len(lines), prompt)


odd = st.text(st.sampled_from("a1 $#>~:@/\n\r\b\x1b[]()^C.-\x00\ud800文"), max_size=60)


@settings(deadline=None, max_examples=100)
@given(prediction=odd, case=st.sampled_from(sorted(SCREENS)))
def test_odd_texts_are_scored(prediction: str, case: str) -> None:
    facts = Facts(sample_of(SCREENS[case]), TASK)
    applicable = set(scored(facts, SCREENS[case]["text"]))
    for text in (prediction, SCREENS[case]["text"] + prediction):
        values = scored(facts, text)
        assert set(values) == applicable
        assert all(0.0 <= value <= 1.0 for value in values.values())


@settings(deadline=None, max_examples=100)
@given(odd)
def test_odd_references_are_right_and_nothing_invisible_is_shown(text: str) -> None:
    facts = Facts(made("terminal", text, None, '["ls\\n", "C-c"]'), TASK)
    assert set(scored(facts, text).values()) <= {1.0}
    shown = display(normalise(text))
    assert not set(shown) & {"\r", "\b", "\x00", "\x1b"}
    assert display(shown) == shown or "^C" in shown


def test_the_reference_is_right_on_every_bundled_row() -> None:
    counts = dict.fromkeys(METRICS, 0)
    for sample in mini():
        result = score_observation(sample, TASK, sample.responses[-1].partition("\n")[2])
        assert set(result.values.values()) == {1.0}, sample.id
        assert result.reasons == {}
        for name in METRICS:
            counts[name] += name in result.applicable
    assert counts == {
        "prompt_match": 36,
        "echo_match": 34,
        "status_class": 40,
        "output_line_f1": 40,
        "output_rouge_l": 37,
        "interactive_state": 16,
    }


@pytest.mark.shared
def test_the_reference_is_right_on_real_rows() -> None:
    rows = (Path(os.environ["AWB_SHARED"]) / "real_rows" / "ground_truths.jsonl").read_text(encoding="utf-8")
    texts = [
        row["ground_truth"]
        for line in rows.split("\n")
        if line and (row := json.loads(line))["task"] == "terminal"
    ]
    assert texts
    for text in texts:
        result = score_observation(made("terminal", text.partition("\n")[2]), TASK, text.partition("\n")[2])
        assert set(result.values.values()) == {1.0}
        assert "prompt_match" in result.values


@pytest.mark.slow
@pytest.mark.parametrize("line", ["a", "$ ls -la", "^Cx\r"])
def test_a_megabyte_is_read_in_time(line: str) -> None:
    keys = typed(json.dumps(["ls -la\n", *(f"line {n} of a file\n" for n in range(200))]))
    start = time.process_time()
    screen = ScreenReader(keys)(display(f"{line}\n" * (1_000_000 // (len(line) + 1))))
    error_kinds([screen.lines[index] for index in screen.output()])
    state_of(screen, keys.lines, keys.pending)
    assert time.process_time() - start < 2  # the law says 1; the rest is for slow machines
