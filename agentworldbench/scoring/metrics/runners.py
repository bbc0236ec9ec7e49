"""The summaries that test runners print: how many tests passed, failed, were skipped.

In: the text of an observation. Out: one line of plain text for each summary, without durations, such as
`pytest failed=1 passed=4`. Known: pytest, unittest, jest, vitest, mocha, node, bun, go test, cargo, maven,
gradle, dotnet, ctest, phpunit, rspec, nextest, minitest, sympy, Playwright. Colours do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

_SHORTEST: Final = 6
_LONGEST: Final = 500
"""Characters of a line that may be a summary."""
_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
_DIGIT = re.compile(r"\d")
_FIELD = re.compile(r"(\d{1,9}) ([a-z]{2,12})")
_SINGULAR: Final = {"errors": "error", "warnings": "warning", "examples": "example", "failures": "failure"}

_PYTEST = re.compile(
    r"=* ?((?:\d{1,9} (?:subtests )?[a-z]{4,12}, ){0,10}\d{1,9} (?:subtests )?[a-z]{4,12}|no tests ran) in \d{1,6}(?:\.\d{1,6})?s(?: \([\d:]{1,12}\))? ?=*"
)
_UNITTEST = re.compile(r"Ran (\d{1,9}) tests? in .{1,20}")
_UNITTEST_END = re.compile(r"(OK|FAILED|NO TESTS RAN)(?: \(([a-z =,\d]{1,120})\))?")
_JAVASCRIPT = re.compile(
    r" *(Test Suites|Test Files|Tests):? +((?:\d{1,9} [a-z]{2,12}(?:, | \| | )?){1,8}) ?(?:\((\d{1,9})\))?"
)
_ALONE = re.compile(r"(?:ℹ|#)? *(\d{1,9} (?:passing|failing|pending|pass|fail|skip)|(?:tests|pass|fail|skipped|todo|cancelled) \d{1,9}|\d{1,9} passed(?= \())(?: \([\d.]{1,10} ?(?:m?s|m)\))?")  # fmt: skip
_GO_TEST = re.compile(r" *--- (PASS|FAIL|SKIP): ")
_GO_PACKAGE = re.compile(
    r"(ok|FAIL|\?)(?: {0,4}\t| {3,8})(\S{1,200})"
    r"(?:(?:\t| {2,8})(?:\(cached\)|[\d.]{1,12}s|\[no test).{0,200}| \[(?:build|setup) failed\])?"
)
_CARGO = re.compile(r"test result: (ok|FAILED)\. ((?:\d{1,9} [a-z ]{4,12}(?:; )?){1,6}).{0,60}")
_PLAIN: Final[dict[str, re.Pattern[str]]] = {
    "pytest": re.compile(r"=* ?((?:\d{1,9}/)?\d{1,9} tests? collected(?: \(\d{1,9} deselected\))?(?:, \d{1,9} errors?)?|no tests collected(?: \(\d{1,9} deselected\))?) in [\d.]{1,10}s ?=*"),
    "nextest": re.compile(r" *Summary \[.{1,20}\] (\d{1,9} tests? run: \d{1,9} passed(?: \([^)]{1,40}\))?(?:, \d{1,9} [a-z ]{4,12}){0,4})"),
    "sympy": re.compile(r"=* ?tests finished: ((?:\d{1,9} [a-z ]{4,20}, ){1,8})in [\d.]{1,10} seconds ?=*"),
    "minitest": re.compile(r"(\d{1,9} runs, \d{1,9} assertions, \d{1,9} failures, \d{1,9} errors, \d{1,9} skips)"),
    "maven": re.compile(r"(?:\[\w{1,8}\] )?(Tests run: \d{1,9}, Failures: \d{1,9}, Errors: \d{1,9}, Skipped: \d{1,9})(?:, .{0,200})?"),
    "gradle": re.compile(r"(\d{1,9} tests? completed(?:, \d{1,9} [a-z]{4,12}){0,4})"),
    "dotnet": re.compile(r" *(?:Passed|Failed|Skipped)! +- (Failed: +\d{1,9}, Passed: +\d{1,9}, Skipped: +\d{1,9}, Total: +\d{1,9}).{0,200}"),
    "ctest": re.compile(r"\d{1,3}% tests passed, (\d{1,9} tests? failed out of \d{1,9})"),
    "phpunit": re.compile(r"(OK \(\d{1,9} tests?, \d{1,9} assertions?\)|Tests: \d{1,9}, Assertions: \d{1,9}(?:, [A-Z]\w{1,20}: \d{1,9}){0,6}\.?)"),
    "rspec": re.compile(r"(\d{1,9} examples?, \d{1,9} failures?(?:, \d{1,9} [a-z]{4,12}){0,3})"),
}  # fmt: skip


def summaries(text: str) -> Counter[str]:
    """The multiset of test summaries in a text."""
    found: Counter[str] = Counter()
    went: Counter[str] = Counter()
    ran: str | None = None
    if "\x1b[" in text:
        text = _COLOUR.sub("", text)
    for line in text.split("\n"):
        if ran and (end := _UNITTEST_END.fullmatch(line)):
            found[f"{ran} {end[1]} {end[2] or ''}"] += 1
            ran = None
        if not _SHORTEST <= len(line) <= _LONGEST:
            continue
        line = line.removeprefix("Output: ")
        if test := _GO_TEST.match(line):
            went[test[1].lower()] += 1
        elif start := _UNITTEST.fullmatch(line):
            ran = f"unittest ran={start[1]}"
        elif summary := _summary(line):
            found[summary] += 1
    if went:
        found["go " + _joined(went.items())] += 1
    return found


def _summary(line: str) -> str | None:
    return next((summary for read in _READERS if (summary := read(line))), None)


def _joined(counts: Iterable[tuple[str, int | str]]) -> str:
    return " ".join(f"{name}={count}" for name, count in sorted(counts))


def _fields(text: str) -> str:
    return _joined((_SINGULAR.get(name, name), count) for count, name in _FIELD.findall(text))


def _pytest(line: str) -> str | None:
    found = _PYTEST.fullmatch(line) if " in " in line else None
    return f"pytest {_fields(found[1]) or found[1]}" if found else None


def _javascript(line: str) -> str | None:
    found = _JAVASCRIPT.fullmatch(line) if "Test" in line else None
    return f"{found[1].lower()} {_fields(found[2])} {found[3] or ''}".rstrip() if found else None


def _alone(line: str) -> str | None:
    found = _ALONE.fullmatch(line)
    return f"counted {' '.join(sorted(found[1].split()))}" if found else None


def _go_package(line: str) -> str | None:
    found = _GO_PACKAGE.fullmatch(line) if line.startswith(("ok", "FAIL", "?")) else None
    return f"go {found[1]} {found[2]}" if found else None


def _cargo(line: str) -> str | None:
    found = _CARGO.fullmatch(line) if line.startswith("test result") else None
    return f"cargo {found[1]} {_fields(found[2])}" if found else None


def _plain(line: str) -> str | None:
    if not _DIGIT.search(line):
        return None
    for name, pattern in _PLAIN.items():
        if found := pattern.fullmatch(line):
            return f"{name} {' '.join(found[1].split())}"
    return None


_READERS: Final[tuple[Callable[[str], str | None], ...]] = (
    _pytest,
    _javascript,
    _alone,
    _go_package,
    _cargo,
    _plain,
)
