"""The progress of a run in words: one line for a log, a block for a terminal or a notebook.

In: `Progress` of the engine, and the room there is. Out: lines of printable text without colour; what does not fit in
height is left out from the least important on, and in width a line is continued below. The longest line has 79
columns however wide the terminal is, so that a window made narrower breaks no line of a block that is drawn over.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from rich.cells import cell_len

from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress, Stage
from agentworldbench.prices import dollars
from agentworldbench.records import Usage
from agentworldbench.render.encoding import in_encoding
from agentworldbench.render.names import domain_name
from agentworldbench.render.table import printable, wrapped
from agentworldbench.texts import count_text

WIDEST: Final = 79
LABEL: Final = 13
"""Columns before what is told, in a block; a terminal too narrow for them has less."""
LONGEST_MESSAGE: Final = 150
"""Characters of the last failure that is followed by another attempt; records hold the whole."""
_CAUSES: Final = {"rate_limit": "for a rate limit", "overloaded": "for a busy server"}


class Room(NamedTuple):
    """What lines are fitted into: columns of the terminal, and the characters that it has (None: all)."""

    columns: int
    encoding: str | None = None


def opening(progress: Progress) -> str:
    """What this session is about to ask, and what it takes from earlier ones."""
    predictions, verdicts = progress.due
    lines = [
        *progress.notices,
        f"Asking for {count_text(predictions, 'prediction')} and {count_text(verdicts, 'verdict')}.",
    ]
    if not predictions and not verdicts:
        lines[-1] = "Nothing to ask: every prediction and verdict of this run is already stored."
    return "\n".join(lines)


def new_notices(progress: Progress, told: list[str]) -> list[str]:
    """Lines for the user that came since `told`, which takes them over."""
    new = progress.notices[len(told) :]
    told += new
    return new


def has_counts(progress: Progress) -> bool:
    """Whether there are counts to tell: something was due, and the endpoints could be used."""
    return sum(progress.due) > 0 and progress.predictions.total + progress.verdicts.total > 0


def status(progress: Progress) -> str:
    """One line: counts, failures by class, tokens, cost, what is waited for, time."""
    parts = [_counts("predictions", progress.predictions)] if progress.begun else []
    if progress.verdicts.total:
        parts.append(_counts("verdicts", progress.verdicts))
    if progress.is_scoring:
        parts.append("metrics {}/{}".format(*progress.scored))
    under_way = bool(progress.in_flight or progress.waits or _is_held(progress))
    if under_way:
        parts += map(connections, progress.limiters)
    parts += filter(None, (waiting(progress), tokens(progress), *_money(progress)))
    if progress.retries:
        parts.append(f"retries {progress.retries} ({by_class(progress.retried)})")
    parts.append(duration(progress.elapsed))
    left = progress.seconds_left
    if left and (under_way or progress.is_scoring):
        parts.append(f"about {duration(left)} left")
    return printable(" · ".join(parts))


def _is_held(progress: Progress) -> bool:
    """Whether work is left that a limiter keeps back."""
    stages = (progress.predictions, progress.verdicts)
    return any(one.finished < one.total for one in stages) and any(one.why for one in progress.limiters)


def live_lines(
    progress: Progress, width: int = 80, height: int = 24, encoding: str | None = None
) -> list[str]:
    """A block of fewer than `height` lines, each narrower than `width`, at most 79 columns wide, and in characters that
    `encoding` has: a line that the terminal breaks is never drawn over, but added again with each drawing."""
    room = Room(max(20, min(width - 1, WIDEST)), encoding)
    fixed, optional = _bars(progress, room), list(_facts(progress, room))
    grid = _by_domain(progress, room)
    kept: set[int] = set()
    space = max(1, height - 1) - len(fixed)
    for _, number in sorted((importance, number) for number, (importance, _) in enumerate(optional)):
        if len(optional[number][1]) <= space:
            space -= len(optional[number][1])
            kept.add(number)
    lines = fixed + (grid if len(grid) <= space else [])
    lines += [line for number in sorted(kept) for line in optional[number][1]]
    return [in_encoding(line, encoding) for line in lines]


def _bars(progress: Progress, room: Room) -> list[str]:
    if progress.begun and not progress.predictions.total:
        return _fact("starting", "the endpoints are asked whether they can be used", room)
    stages = [("predictions", progress.predictions)] if progress.begun else []
    if progress.verdicts.total:
        stages.append(("verdicts", progress.verdicts))
    lines = [
        _bar(name, stage.finished, stage.total, room.columns, _pace(stage) if stage.left else "")
        for name, stage in stages
    ]
    if progress.scored[1]:
        lines.append(_bar("metrics", *progress.scored, room.columns))
    return lines


def _bar(name: str, done: int, total: int, room: int, pace: str = "") -> str:
    """`predictions  ████░░░░  20/70   28 %  2.0/s`; a stage of which anything is left is never at 100 %."""
    told = f"{done:>{len(str(total))}}/{total}  {100 * done // total if total else 100:>3} %"
    told += f"  {pace:>8}" if pace else ""
    size = min(24, room - LABEL - 4 - len(told))
    if size < 5:
        line = f"  {name} {' '.join(told.split())}"
        counts = f"{done}/{total}"
        return line if len(line) <= room else f"{name[: room - 1 - len(counts)]} {counts}"
    filled = size * done // total if total else size
    return f"  {name:<{LABEL - 2}}  {'█' * filled}{'░' * (size - filled)}  {told}"


def _pace(stage: Stage) -> str:
    rate = stage.speed.rate(time.monotonic())
    if not rate:
        return ""
    return f"{rate:.1f}/s" if rate >= 0.95 else f"{60 * rate:.1f}/min"


def _by_domain(progress: Progress, room: Room) -> list[str]:
    """A column a domain; nothing where they do not fit, or where there is one alone."""
    domains = [name for name, total in progress.predictions.totals.items() if total]
    if len(domains) < 2:
        return []
    shown = [("predictions", progress.predictions)] if progress.begun else []
    if progress.verdicts.total:
        shown.append(("verdicts", progress.verdicts))
    cells = [["", *(in_encoding(printable(domain_name(domain)), room.encoding) for domain in domains)]]
    cells += [
        [name, *(f"{stage.finished_in[domain]}/{stage.totals[domain]}" for domain in domains)]
        for name, stage in shown
    ]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = [
        f"  {row[0]:<{LABEL - 2}}  "
        + "  ".join(
            " " * (width - cell_len(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True)
        )
        for row in cells
    ]
    return lines if max(map(cell_len, lines)) <= room.columns else []


def _facts(progress: Progress, room: Room) -> Iterator[tuple[int, list[str]]]:
    """Importance (0: most) and lines of everything that is told below the bars."""
    for name, stage in (("predictions", progress.predictions), ("verdicts", progress.verdicts)):
        if stage.failures:
            told = f"{name} {stage.failures.total()} ({by_class(stage.failures)})"
            yield 1, _fact("failed", told, room)
    if any(stage.recalled for stage in (progress.predictions, progress.verdicts)):
        told = f"predictions {progress.predictions.recalled}, verdicts {progress.verdicts.recalled}"
        yield 3, _fact("from cache", told, room)
    if told := "; ".join(map(connections, progress.limiters)):
        yield 1, _fact("requests", told, room)
    if told := waiting(progress):
        yield 0, _fact("waiting", told.removeprefix("waiting "), room)
    if progress.retries:
        last = printable(progress.last_retry)[:LONGEST_MESSAGE]
        yield 2, _fact("retries", f"{progress.retries} ({by_class(progress.retried)})", room)
        yield 4, _fact("last failed", last, room)
    if told := tokens(progress):
        yield 3, _fact("tokens", told.replace(" tokens", ""), room)
    if money := _money(progress):
        yield 1, _fact("cost", "; ".join(money).removeprefix("cost "), room)
    yield 0, _fact("time", time_text(progress), room)


def _fact(label: str, told: str, room: Room) -> list[str]:
    """`label  told`, further lines below what is told; in little room they stand below the label."""
    text = in_encoding(told, room.encoding)
    if room.columns < 50:
        first, *more = wrapped(f"{label}: {text}", room.columns - 4)
        return [f"  {first}", *(f"    {line}" for line in more)]
    lines = wrapped(text, room.columns - LABEL - 2)
    return [f"  {label if not number else '':<{LABEL - 2}}  {line}" for number, line in enumerate(lines)]


def time_text(progress: Progress) -> str:
    """Time since the beginning, and how much is left where that is known."""
    left = progress.seconds_left
    if left is None and (progress.begun or progress.is_scoring):
        return f"{duration(progress.elapsed)}; too early to say how long it takes"
    return duration(progress.elapsed) + (f", about {duration(left)} left" if left else "")


def connections(limiter: Limiter) -> str:
    """How many requests are in flight at an endpoint, of how many that may be, and what keeps them few."""
    use = f"{limiter.in_flight}/{limiter.limit} in flight"
    return f"{use} ({limiter.why})" if limiter.why else use


def waiting(progress: Progress) -> str:
    """How many requests wait for their next attempt, for what, and when the first of them is sent; else nothing."""
    waits = progress.waits
    if not waits:
        return ""
    causes = Counter(wait.kind.value for wait in waits)
    told = ", ".join(f"{count} {_CAUSES.get(kind, f'after {kind}')}" for kind, count in causes.most_common())
    soonest = min(wait.until for wait in waits) - time.monotonic()
    return f"waiting {told}, next {f'in {duration(soonest)}' if soonest >= 1 else 'at once'}"


def by_class(counts: Mapping[str, int]) -> str:
    """`rate_limit 3, timeout 1`: classes of failures, the most frequent first."""
    return ", ".join(f"{kind} {count}" for kind, count in Counter(counts).most_common())


def tokens(progress: Progress) -> str:
    """Tokens of this session; nothing where no server was asked."""
    usage = progress.predictions.usage + progress.verdicts.usage
    if usage == Usage():
        return ""
    cached = f" ({_count(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
    return f"{_count(usage.prompt_tokens)} tokens in{cached}, {_count(usage.completion_tokens)} out"


def _money(progress: Progress) -> list[str]:
    """Cost of this session, then what of --max-cost is spent in all sessions."""
    told = []
    if tokens(progress):
        stages = (progress.predictions, progress.verdicts)
        known = all(stage.cost_known for stage in stages)
        told.append(cost_text(sum(stage.cost_usd for stage in stages), known))
    purse = progress.purse
    if purse is not None and purse.limit is not None and progress.predictions.total:
        told.append(f"{dollars(purse.spent)} of {dollars(purse.limit)} USD of --max-cost")
    return told


def cost_text(usd: float, known: bool) -> str:
    """A cost, or that it is not known; never 0 for an unknown one."""
    if known:
        return f"{dollars(usd)} USD"
    return f"cost at least {dollars(usd)} USD" if usd else "cost unknown"


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _counts(name: str, stage: Stage) -> str:
    recalled = f" ({stage.recalled} from the cache)" if stage.recalled else ""
    failed = f" ({stage.failures.total()} failed: {by_class(stage.failures)})" if stage.failures else ""
    return f"{name} {stage.finished}/{stage.total}{recalled}{failed}"


def _count(number: int | None) -> str:
    if number is None:
        return "?"
    if number < 10_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 9_999_500 else f"{number / 1_000_000:.1f}M"
