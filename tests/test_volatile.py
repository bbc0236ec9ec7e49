"""Masks of volatile text: what is masked, what must stay, and what was seen before.

Cases stand in `cases/metrics/masks.yaml`, by task. How masks enter a score is tested in `test_metrics.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.scoring.metrics.volatile import PATTERNS, Seen, mask
from agentworldbench.task import VolatileClass, load_tasks

TASKS = load_tasks()
MASKS = yaml.safe_load(
    (Path(__file__).parent / "cases" / "metrics" / "masks.yaml").read_text(encoding="utf-8")
)
CASES = [
    (domain, case["text"], case.get("masked", case["text"])) for domain in MASKS for case in MASKS[domain]
]
CHANGED = [case for case in CASES if case[1] != case[2]]


@pytest.mark.parametrize(("domain", "text", "masked"), CASES, ids=[case[1][:40] for case in CASES])
def test_masks(domain: str, text: str, masked: str) -> None:
    assert mask(text, TASKS[domain].volatile, Seen("")) == masked


@pytest.mark.parametrize(("domain", "text", "masked"), CHANGED, ids=[case[1][:40] for case in CHANGED])
def test_what_was_seen_is_not_masked(domain: str, text: str, masked: str) -> None:
    assert mask(text, TASKS[domain].volatile, Seen(f"before\n{text}\nafter")) == text


def test_every_class_has_one_pattern_and_a_case() -> None:
    assert set(PATTERNS) == set(get_args(VolatileClass))
    shown = "".join(masked for _, _, masked in CASES)
    assert {name for name in PATTERNS if f"<{name.upper()}>" in shown} == set(PATTERNS)


@pytest.mark.parametrize(
    ("seen", "text", "held"),
    [
        ("took 10.2s", "0.2s", False),
        ("took 0.2s", "0.2s", True),
        ("at 19:14", "9:14", False),
        ("at 9:14:05", "9:14", True),
        ("pid 1234", "234", False),
        ("pid 1234", "123", False),
        ("x1234", "1234", True),
        ("29T18:01", "18:01", True),
        ("next=%2F%3Fproxy%3Dab-1", "ab-1", True),
        ("next=%2F%3Fproxy=ab-1", "b-1", False),
        ("(1234)", "1234", True),
        ("1234", "1234", True),
        ("12:34:5", "12:34:56", False),
        ("34:56", "12:34:56", False),
        ("", "1", False),
        ("?proxy=--", "--", True),
        ("", "..", False),
        ("Mar  3", "Mar  3", True),
        ("Mar 3", "Mar  3", False),
        ("12-34 12-35", "12-35", True),
        (r'{"text": "a\nJan 5"}', "Jan 5", True),
        (r'{"text": "a\\nJan 5\\tb"}', "Jan 5", True),
    ],
)
def test_seen_in_whole_words(seen: str, text: str, held: bool) -> None:
    assert Seen(seen).holds(text) is held


@pytest.mark.parametrize("before", [0, 100, 300], ids=["few", "some", "many"])
@settings(deadline=None)
@given(
    seen=st.text("12:. s-"),
    text=st.text("12:. s-", min_size=1).filter(lambda text: re.search(r"\w", text)),
)
def test_seen_equals_a_plain_search(before: int, seen: str, text: str) -> None:
    """Also where so many texts are asked for that they are looked up in an index."""
    glue = {"d": r"\d", "w": r"[^\W\d]", "": "(?!)"}
    kinds = ["d" if char.isdigit() else "w" if char.isalpha() else "" for char in (text[0], text[-1])]
    plain = rf"(?<!{glue[kinds[0]]}){re.escape(text)}(?!{glue[kinds[1]]})"
    for shown in (seen, f"{seen}{text}", f"{seen} {text} {seen}"):
        known = Seen(shown)
        assert not any(known.holds(f"other {n}") for n in range(before))
        assert known.holds(text) == bool(re.search(plain, shown))


@settings(deadline=None)
@given(st.text(), st.sampled_from(sorted(TASKS)))
def test_labels_written_by_a_model_stay_apart_from_masks(text: str, domain: str) -> None:
    classes = TASKS[domain].volatile
    written = text + "".join(f" <{name.upper()}>" for name in classes)
    masked = mask(written, classes, Seen(written))
    assert not any(f"<{name.upper()}>" in masked for name in classes)


HOSTILE = {
    "digits": "1" * 300_000,
    "hexadecimal": "0a" * 150_000,
    "colons": "12:" * 100_000,
    "clocks on one line": 'text="12:34"' * 30_000,
    "tabs and months": ("\tFeb 1" + " " * 50) * 5_000,
    "months": "Mar" * 100_000,
    "backslashes": "\\" * 300_000,
    "temporary folders": "/tmp/" * 60_000,
    "times, all different": "\n".join(
        f"{n % 24:02d}:{n % 60:02d}:{n // 60 % 60:02d}.{n}" for n in range(20_000)
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_masked_in_time(name: str) -> None:
    """No pattern may take time that grows with the square of a line; the timeout is generous."""
    seen = Seen("\n".join(f"{n % 24:02d}:{n % 60:02d}:{n // 60 % 60:02d}.{n + 7}" for n in range(20_000)))
    masked = mask(HOSTILE[name], get_args(VolatileClass), seen)
    assert len(masked) <= 2 * len(HOSTILE[name])
