"""The progress of a run as people see it: which lines a log gets and when, what a block holds at any size, how long
it still takes. Time is a number that the tests move."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from agentworldbench.cli.display import LONGEST_SECONDS, LogLines, is_live
from agentworldbench.engine import progress as progress_module
from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.pace import WINDOW, Speed
from agentworldbench.engine.progress import Progress
from agentworldbench.records import OFFICIAL_DOMAINS, Failure, FailureKind, Usage
from agentworldbench.render import progress as words
from agentworldbench.render.progress import live_lines, status, waiting

LIMITED = Failure(kind=FailureKind.RATE_LIMIT, message="too many\x1b[31m\rrequests")
FILTERED = Failure(kind=FailureKind.CONTENT_FILTER, message="filtered")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time on the monotonic clock, to be moved by the test."""
    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(progress_module, "time", clock)
    monkeypatch.setattr(words, "time", clock)
    return now


def begun(predictions: int, verdicts: int, domains: tuple[str, ...] = OFFICIAL_DOMAINS) -> Progress:
    """A session that asks for so many records in each domain."""
    progress = Progress()
    for domain in domains:
        progress.predictions.totals[domain] = predictions
        progress.verdicts.totals[domain] = verdicts
    progress.begin(predictions * len(domains), verdicts * len(domains))
    return progress


# --- a log ------------------------------------------------------------------------------------


def test_a_log_gets_lines_ever_more_rarely_also_while_nothing_changes(at: list[float]) -> None:
    told: list[str] = []
    log = LogLines(told.append, lambda: at[0])
    progress = begun(10, 0)
    log.heed(progress)
    assert told == ["Asking for 70 predictions and 0 verdicts."]
    moments: list[float] = []
    for second in range(10 * 3600):
        at[0] = 100.0 + second
        log.tick()
        if len(told) > len(moments) + 1:
            moments.append(second)
    assert moments[:3] == [10, 20, 30]
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert gaps == sorted(gaps)
    assert max(gaps) == LONGEST_SECONDS
    assert len(moments) < 200
    log.close()
    assert told[-1] == "predictions 0/70 · 10.0 h"


def test_a_log_tells_each_notice_once_and_holds_no_control_character(at: list[float]) -> None:
    told: list[str] = []
    log = LogLines(told.append, lambda: at[0])
    progress = begun(1, 1)
    progress.notices.append("first")
    log.heed(progress)
    progress.notices.append("second")
    with progress.waiting(LIMITED, 12.0):
        progress.last_retry += "\x1b[2J\r"
        at[0] += 10
        log.heed(progress)
    log.heed(progress)
    assert told[0] == "first\nAsking for 7 predictions and 7 verdicts."
    assert told[1] == "second"
    assert "waiting 1 for a rate limit, next in 2 s · retries 1 (rate_limit 1)" in told[2]
    assert len(told) == 3
    assert all(line.isprintable() for line in told[1:])


def test_nothing_is_said_of_a_run_that_never_could_begin(at: list[float]) -> None:
    told: list[str] = []
    log = LogLines(told.append, lambda: at[0])
    log.close()
    progress = Progress()
    progress.begin(3, 0)
    log.heed(progress)
    log.close()
    assert told == ["Asking for 3 predictions and 0 verdicts."]


@pytest.mark.parametrize(
    ("mode", "variables", "terminal", "live"),
    [
        ("auto", {"TERM": "xterm-256color"}, True, True),
        ("auto", {"TERM": "xterm-256color"}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {}, True, False),
        ("auto", {"TERM": "xterm", "CI": "true"}, True, False),
        ("auto", {"TERM": "xterm", "CI": "false"}, True, True),
        ("auto", {"TERM": "xterm", "NO_COLOR": "1"}, True, True),
        ("live", {"TERM": "xterm", "CI": "true"}, True, True),
        ("live", {"TERM": "xterm"}, False, False),
        ("live", {"TERM": "dumb"}, True, False),
        ("plain", {"TERM": "xterm"}, True, False),
    ],
)
def test_where_lines_are_drawn_over(
    mode: str, variables: dict[str, str], terminal: bool, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TERM", "CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: terminal))
    assert is_live(mode) is live


# --- a block ----------------------------------------------------------------------------------


def busy(at: list[float]) -> Progress:
    """A session with everything that can be told."""
    progress = begun(310, 310)
    limiter = Limiter(12)
    progress.limiters = [limiter]
    progress.purse = SimpleNamespace(limit=25.0, spent=3.5)
    for number in range(40):
        at[0] += 0.5
        failure = FILTERED if number % 8 == 0 else None
        domain = OFFICIAL_DOMAINS[number % 7]
        progress.predictions.add(domain, Usage(prompt_tokens=9000, completion_tokens=400), 0.01, failure)
        if number % 2:
            progress.verdicts.add(domain, Usage(prompt_tokens=900, completion_tokens=40), None, failure)
    progress.predictions.recalled = 2
    return progress


def test_a_block_of_everything(at: list[float]) -> None:
    progress = busy(at)
    with progress.waiting(LIMITED, 7.0):
        lines = live_lines(progress, 80, 24)
    assert lines == [
        "  predictions  ░░░░░░░░░░░░░░░░░░░░░░░░    40/2170    1 %     2.0/s",
        "  verdicts     ░░░░░░░░░░░░░░░░░░░░░░░░    20/2170    0 %     1.0/s",
        "                 MCP  Search  Terminal    SWE  Android    Web     OS",
        "  predictions  6/310   6/310     6/310  6/310    6/310  5/310  5/310",
        "  verdicts     3/310   3/310     3/310  3/310    3/310  3/310  2/310",
        "  failed       predictions 5 (content_filter 5)",
        "  from cache   predictions 2, verdicts 0",
        "  requests     0/12 in flight",
        "  waiting      1 for a rate limit, next in 7 s",
        "  retries      1 (rate_limit 1)",
        "  last failed  rate_limit: too many�[31m�requests (again in 7.0 s)",
        "  tokens       378k in, 17k out",
        "  cost         at least 0.40 USD; 3.50 of 25.00 USD of --max-cost",
        "  time         20 s, about 36 min left",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("height", [3, 6, 10, 24, 60])
def test_a_block_fits_any_terminal_and_is_no_wider_for_a_wide_one(
    width: int, height: int, at: list[float]
) -> None:
    progress = busy(at)
    with progress.waiting(LIMITED, 7.0):
        lines = live_lines(progress, width, height)
    assert len(lines) <= max(3, height - 1)
    assert max(map(cell_len, lines)) <= max(20, min(width - 1, 79))
    assert all(line.isprintable() for line in lines)
    assert "40/2170" in lines[0]


def test_domains_that_do_not_fit_are_left_out_and_wide_letters_are_measured(at: list[float]) -> None:
    many = begun(3, 0, tuple(f"domain{number}" for number in range(20)))
    assert not any("Domain3" in line for line in live_lines(many))
    progress = begun(3, 0, ("环境", "swe"))
    head, counts = live_lines(progress)[1:3]
    assert [cell_len(line) for line in (head, counts)] == [cell_len(counts)] * 2


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize(
    "message", ["模型错误" * 60, "\N{FAMILY}é " * 60, "e" + "\N{COMBINING ACUTE ACCENT}" * 200, "x" * 500]
)
def test_no_line_is_wider_than_it_looks_whatever_a_server_says(
    message: str, width: int, encoding: str, at: list[float]
) -> None:
    progress = busy(at)
    with progress.waiting(Failure(kind=FailureKind.TIMEOUT, message=message), 7.0):
        lines = live_lines(progress, width, 60, encoding)
    assert max(map(cell_len, lines)) <= max(20, min(width - 1, 79))
    assert all(line.encode(encoding) for line in lines), "so that nothing is spelled after it was measured"
    assert width < 40 or any("last failed" in line for line in lines)


def test_millions_of_tokens_are_told_as_such(at: list[float]) -> None:
    progress = begun(1, 0)
    progress.predictions.usage = Usage(prompt_tokens=43_260_000, completion_tokens=9_999_400)
    assert "43.3M tokens in, 9999k out" in status(progress)


def test_while_results_are_made_of_metrics_nothing_is_said_to_be_too_early(at: list[float]) -> None:
    progress = Progress()
    assert live_lines(progress) == ["  time         0 s"]
    progress.scoring(0, 8)
    assert live_lines(progress)[-1].endswith("too early to say how long it takes")
    progress.scoring(8, 8)
    at[0] += 3
    bar, time = live_lines(progress)
    assert re.fullmatch(r"  metrics      █{24}  8/8  100 %", bar)
    assert time == "  time         3 s"


def test_before_the_endpoints_have_answered_no_bar_is_full(at: list[float]) -> None:
    progress = Progress()
    progress.begin(5, 5)
    assert live_lines(progress)[0].startswith("  starting ")


# --- waits ------------------------------------------------------------------------------------


def test_what_is_waited_for(at: list[float]) -> None:
    progress = begun(1, 0)
    assert waiting(progress) == ""
    timeout = Failure(kind=FailureKind.TIMEOUT, message="late")
    with progress.waiting(LIMITED, 12.0), progress.waiting(LIMITED, 9.0), progress.waiting(timeout, 30.0):
        assert waiting(progress) == "waiting 2 for a rate limit, 1 after timeout, next in 9 s"
        at[0] += 8.5
        assert waiting(progress).endswith("next at once")
    assert progress.waits == []
    assert (progress.retries, progress.retried) == (3, {"rate_limit": 2, "timeout": 1})


# --- how long it still takes ------------------------------------------------------------------


def test_nothing_is_said_of_the_time_before_each_stage_has_a_pace(at: list[float]) -> None:
    progress = begun(10, 10)
    assert progress.seconds_left is None
    for _ in range(10):
        at[0] += 1
        progress.predictions.add("swe", Usage(), 0.0, None)
    assert progress.seconds_left is None, "not one verdict yet"
    for _ in range(3):
        progress.verdicts.add("swe", Usage(), 0.0, None)
    assert progress.seconds_left == pytest.approx(67 / (3 / 10))
    assert live_lines(begun(10, 10))[-1].endswith("too early to say how long it takes")


def test_the_slower_stage_says_how_long(at: list[float]) -> None:
    progress = begun(100, 100, ("swe",))
    for second in range(90):
        at[0] += 1
        progress.predictions.add("swe", Usage(), 0.0, None)
        if second % 3 == 0:
            progress.verdicts.add("swe", Usage(), 0.0, None)
    assert progress.seconds_left == pytest.approx(70 / (30 / 90))


def test_the_pace_is_that_of_late(at: list[float]) -> None:
    progress = begun(2000, 0, ("swe",))
    for _ in range(1000):
        at[0] += 0.1
        progress.predictions.add("swe", Usage(), 0.0, None)
    for _ in range(int(2 * WINDOW)):
        at[0] += 1
        progress.predictions.add("swe", Usage(), 0.0, None)
    assert progress.seconds_left == pytest.approx(2000 - 1000 - 2 * WINDOW, rel=0.02)


def test_records_of_earlier_sessions_are_no_work_and_no_pace(at: list[float]) -> None:
    progress = begun(100, 0, ("swe",))
    progress.predictions.due = 10
    assert progress.predictions.left == 10
    for _ in range(90):
        progress.predictions.reuse("swe", None)
    assert (progress.predictions.left, progress.seconds_left) == (10, None)
    for _ in range(10):
        at[0] += 1
        progress.predictions.add("swe", Usage(), 0.0, None)
    assert (progress.predictions.left, progress.seconds_left) == (0, 0.0)


@settings(max_examples=30)
@given(st.lists(st.floats(0, 30), max_size=50), st.floats(0.5, 10))
def test_after_a_window_of_a_steady_pace_it_is_the_pace_whatever_came_before(
    gaps: list[float], steady: float
) -> None:
    speed, now = Speed(), 0.0
    speed.begin(0.0)
    for gap in [*gaps, *[steady] * (int(WINDOW / steady) + 3)]:
        now += gap
        speed.note(now)
    rate = speed.rate(now)
    assert rate == pytest.approx(1 / steady, rel=0.2)
    paused = speed.rate(now + WINDOW)
    assert rate is not None
    assert paused is not None
    assert paused < 0.6 * rate


def test_status_never_holds_a_control_character_or_a_second_line(at: list[float]) -> None:
    progress = busy(at)
    with progress.waiting(LIMITED, 0.3):
        line = status(progress)
    assert line.isprintable()
    assert re.fullmatch(r"predictions 40/2170 .* · verdicts 20/2170 · .* left", line)
