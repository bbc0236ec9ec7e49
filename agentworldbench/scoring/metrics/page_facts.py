"""The facts that a text states: links, dates, times, codes, numbers with their units, names.

In: any text, English or Chinese. Out: a multiset of facts in one spelling each, so that `26 April 2025`,
`Apr 26, 2025`, `2025-04-26` and `2025年4月26日` are one fact. One kind is read after the other and blotted out, so
that no digit counts twice. Names are capitalised words, titles in 《》, quoted terms and the Chinese cells
of tables; a single capitalised word that begins a sentence says nothing. Numbers are in `quantities.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final

from agentworldbench.scoring.metrics.quantities import NUMBER, START, arabic, narrow, quantity
from agentworldbench.scoring.metrics.urls import address

_BLOT: Final = "\0"

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH: Final = (
    "(Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    "|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_YEAR: Final = "([12](?<![0-9A-Za-z_][12])[0-9]{3})"
_YEAR_BEHIND: Final = "([12][0-9]{3})(?![0-9])"
_TH: Final = "(?:st|nd|rd|th)?"
_CAPITAL: Final = "[A-ZÀ-ÖØ-Þ]"
_LETTERS: Final = "[A-Za-zÀ-ÖØ-öø-ÿ'’&-]{0,40}"
_OPENING: Final = re.compile(r"(?:^|\n|[.!?:;][ \"“])[ \t]*\Z")
_POSSESSIVE: Final = re.compile("['’]s$")
_NO_NAMES: Final = frozenset(
    word
    for line in (
        "a an the this that these those and or but if since so as when while where then there here some every",
        "at by for from in on of to with who what which how i he she it we they you his her its our my your their",
        "is are was were one no not",
    )
    for word in line.split()
)
_HALVES: Final = {"上午": "a", "早上": "a", "凌晨": "a", "下午": "p", "晚上": "p"}
_ROW: Final = re.compile(r"^[ \t]*\|[^\n]*", re.MULTILINE)
_CELL: Final = re.compile(r"[^|\n]+")
_CHINESE: Final = re.compile("[\u3400-\u9fff]")
_LONGEST_CELL: Final = 40

Reader = Callable[[str, re.Match[str]], str | None]
"""From the text before blotting and a match to the fact; None leaves the match to the kinds behind."""


def page_facts(text: str) -> Counter[str]:
    """The multiset of facts."""
    found: Counter[str] = Counter()
    plain = arabic(narrow(text.replace(_BLOT, " ")))
    left = plain
    for pattern, read in _KINDS:
        left = pattern.sub(partial(_note, found, plain, read), left)
    for row in _ROW.finditer(plain):
        for cell in _CELL.finditer(plain, row.start(), row.end()):
            name = _same(cell[0])
            if len(name) <= _LONGEST_CELL and len(_CHINESE.findall(left, cell.start(), cell.end())) > 1:
                found[f"name {name}"] += 1
    return found


def _note(found: Counter[str], plain: str, read: Reader, match: re.Match[str]) -> str:
    """Counts the fact of a match and blots it out in its own length."""
    fact = read(plain, match)
    if fact is None:
        return match[0]
    found[fact] += 1
    return _BLOT * len(match[0])


def _link(plain: str, match: re.Match[str]) -> str:
    url = match[0].rstrip(".,:;!?*_")
    return f"link {address(url if '(' in url else url.rstrip(')]')).url}"


def _date(year: str | None, month: str, day: str | None) -> str | None:
    """As ISO 8601 writes it, `-` for a year that is not told; None for what is no date."""
    if not 1 <= int(month) <= 12 or not 1 <= int(day or 1) <= 31:
        return None
    return f"date {year or '-'}-{int(month):02d}" + (f"-{int(day):02d}" if day else "")


def _numeric_date(plain: str, match: re.Match[str]) -> str | None:
    return _date(match[1], match[3], match[4])


def _chinese_date(plain: str, match: re.Match[str]) -> str | None:
    return _date(match[1], match[2], match[3])


def _chinese_day(plain: str, match: re.Match[str]) -> str | None:
    return _date(None, match[1], match[2])


def _day_first(plain: str, match: re.Match[str]) -> str | None:
    return _date(match[3], str(_MONTHS.index(match[2][:3]) + 1), match[1])


def _month_first(plain: str, match: re.Match[str]) -> str | None:
    if plain[max(match.start() - 1, 0) : match.start()].isalpha():
        return None
    return _date(match[3] or match[4], str(_MONTHS.index(match[1][:3]) + 1), match[2])


def _time(plain: str, match: re.Match[str]) -> str | None:
    hour, minute, second, *halves = match.groups("")
    return _clock(int(hour), "".join(halves).lower(), (minute or "00") + (f":{second}" if second else ""))


def _chinese_time(plain: str, match: re.Match[str]) -> str | None:
    half = _HALVES.get(plain[max(match.start() - 2, 0) : match.start()], "")
    return _clock(int(match[1]), half, "30" if match[2] == "半" else (match[3] or "0").zfill(2))


def _clock(hour: int, half: str, rest: str) -> str | None:
    """In 24 hours; None for what is no time."""
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"time {hour:02d}:{rest}" if hour <= 24 else None


def _code(plain: str, match: re.Match[str]) -> str:
    return f"code {match[0].lower()}"


def _quoted(plain: str, match: re.Match[str]) -> str:
    start, end = match.span(match.lastindex or 0)
    return f"name {_same(plain[start:end])}"


def _name(plain: str, match: re.Match[str]) -> str | None:
    words = [_POSSESSIVE.sub("", word).strip("-'’&") for word in match[0].split(" ")]
    start = match.start()
    single = len(words) == 1 and not words[0].isupper()
    if words[0].lower() in _NO_NAMES or (single and _OPENING.search(plain, max(start - 4, 0), start)):
        del words[0]
    name = " ".join(words).lower()
    return f"name {name}" if len(name) > 1 else None


def _same(text: str) -> str:
    return " ".join(text.split()).lower()


_KINDS: Final[tuple[tuple[re.Pattern[str], Reader], ...]] = (
    (
        re.compile(
            r"[hH][tT]{2}[pP][sS]?://[^\s<>\"'`|\\^{}\0\u2018-\u201d\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+"
        ),
        _link,
    ),
    (re.compile(rf"{_YEAR}([-/.])([0-9]{{1,2}})\2([0-9]{{1,2}})(?![0-9])"), _numeric_date),
    (re.compile(rf"{_YEAR} ?年 ?([0-9]{{1,2}}) ?月(?: ?([0-9]{{1,2}}) ?[日号])?"), _chinese_date),
    (re.compile(rf"({START}[0-9]?) ?月(?: ?([0-9]{{1,2}}) ?[日号])?"), _chinese_day),
    (
        re.compile(rf"({START}[0-9]?){_TH},? (?:of )?{_MONTH}(?![A-Za-z])\.?(?:,? {_YEAR_BEHIND})?"),
        _day_first,
    ),
    (
        re.compile(
            rf"{_MONTH}\.?,? (?:([0-9]{{1,2}}){_TH}(?![0-9A-Za-z:])(?:,? {_YEAR_BEHIND})?|{_YEAR_BEHIND})"
        ),
        _month_first,
    ),
    # A time of ISO 8601 stands behind a T.
    (
        re.compile(
            r"([0-9](?<![0-9A-SU-Za-z_][0-9])[0-9]?)(?::([0-5][0-9])(?::([0-5][0-9]))?(?![0-9])"
            r"(?: ?([AaPp])\.?[Mm]\b)?| ?([AaPp])\.?[Mm]\b)"
        ),
        _time,
    ),
    (re.compile(rf"({START}[0-9]?) ?[时點点](半|整|([0-5]?[0-9]) ?分)?"), _chinese_time),
    (
        re.compile(
            r"[A-Za-z](?<![0-9A-Za-z_][A-Za-z])[A-Za-z]{0,19}-?[0-9][0-9A-Za-z]{0,30}(?:[.-][0-9A-Za-z]{1,30}){0,4}"
        ),
        _code,
    ),
    (NUMBER, quantity),
    (
        re.compile(
            "《([^《》\n]{1,80})》|“([^“”\n]{1,80})”|「([^「」\n]{1,80})」|『([^『』\n]{1,80})』"
            "|\"(?=\\w)([^\"\n]{1,80})(?<=\\w)\"|'(?<!\\w')(?=\\w)([^'\n]{1,80})(?<=\\w)'(?!\\w)"
        ),
        _quoted,
    ),
    (
        re.compile(
            rf"{_CAPITAL}(?<![0-9A-Za-zÀ-ÿ_]{_CAPITAL}){_LETTERS}(?: (?:of |de |van |von )?{_CAPITAL}{_LETTERS}){{0,7}}"
        ),
        _name,
    ),
)
"""The kinds in the order in which they are read. Patterns begin with a set of characters, which is searched fast."""
