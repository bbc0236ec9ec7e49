"""Tokens of ROUGE-L beside the `rouge-score` package's own, with letters whose small form is special; its speed.

Values computed by hand stand in `cases/metrics/values.yaml` (run by `test_metrics.py`).
"""

from __future__ import annotations

import re
import sys
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.scoring.metrics.text import rouge_of, tokens

CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002fa1f]")
CASED = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).lower() != chr(code)]
"""Every character that `lower` changes: the Kelvin sign becomes an ASCII letter, I with a dot two characters."""


def theirs(text: str) -> list[str]:
    from rouge_score.tokenize import tokenize

    found: list[str] = tokenize(text, None)
    return found


def test_every_character_alone_and_between_letters() -> None:
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        special = char.lower() != char or code < 0x3000 or unicodedata.category(char)[0] in "NZ"
        if special and not CJK.match(char):
            text = f"{char} a{char}b1 {char}{char}Σ"
            assert tokens(text) == theirs(text), hex(code)


@settings(deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text(st.sampled_from([*"aZ09_ .\n\r\t\x1c\x85\u2028\ud800ßſéΣ", "\u212a", "İ", "\u0307"])),
        st.lists(st.one_of(st.sampled_from(CASED), st.sampled_from("aΣ1 "))).map("".join),
    )
)
def test_tokens_equal_those_of_the_package(text: str) -> None:
    text = CJK.sub(" ", text)
    assert tokens(text) == theirs(text)


@settings(deadline=None)
@given(st.text(st.sampled_from("ab1 文字かカ한,İΣ")))
def test_a_character_of_chinese_japanese_or_korean_is_a_token(text: str) -> None:
    """As if each stood alone between other text."""
    expected = []
    for part in re.split(f"({CJK.pattern})", text):
        expected += [part] if CJK.fullmatch(part) else theirs(part)
    assert tokens(text) == expected


def test_rouge_of_nothing() -> None:
    assert rouge_of([], []) == rouge_of(["a"], []) == rouge_of([], ["a"]) == 0.0
    assert rouge_of(["a"], ["a"]) == 1.0


@pytest.mark.timeout(60)
def test_two_long_texts_are_compared_in_milliseconds() -> None:
    """The package takes seconds for these; a hundredth of that is left as a wide margin."""
    one = " ".join(f"w{n % 97} line {n}" for n in range(1_500))
    other = " ".join(f"w{n % 89} line {n + n % 3}" for n in range(1_500))
    assert len(one) < 22_000 > len(other)
    rouge_of(["a"], ["a"])  # what is imported at first use
    begun = time.process_time()
    value = rouge_of(tokens(one), tokens(other))
    assert 0.5 < value < 1
    assert time.process_time() - begun < 0.05
