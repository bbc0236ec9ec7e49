"""Shows the progress of a run: a live block on a terminal, plain lines in a log, or nothing.

Reads `Progress` from the engine's thread; never slows it. Everything goes to standard error, so
that tables on standard output stay clean.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress, Stage
from agentworldbench.prices import dollars
from agentworldbench.records import Usage
from agentworldbench.render.table import printable
from agentworldbench.run import Watcher

PLAIN_SECONDS: Final = 10.0


@contextmanager
def display(mode: str) -> Iterator[Watcher]:
    """A watcher to hand to `run.execute`; `mode` is auto, live, plain or none."""
    if mode == "auto":
        mode = "live" if sys.stderr.isatty() else "plain"
    if mode == "none":
        yield lambda progress: None
    elif mode == "plain":
        yield from _plain()
    else:
        yield from _live()


def _plain() -> Iterator[Watcher]:
    last = time.monotonic()
    latest: list[Progress] = []
    told: list[str] = []
    lock = threading.Lock()

    def watch(progress: Progress) -> None:
        nonlocal last
        with lock:
            if not latest:
                if progress.begun:
                    _say(opening(progress))
                latest.append(progress)
                told.extend(progress.notices)
            for line in new_notices(progress, told):
                _say(line)
            tells = progress.begun or progress.is_scoring
            if tells and time.monotonic() - last >= PLAIN_SECONDS:
                last = time.monotonic()
                _say(status(progress))

    try:
        yield watch
    finally:
        if latest and _began(latest[0]):
            _say(status(latest[0]))


def _live() -> Iterator[Watcher]:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    latest: list[Progress] = []
    told: list[str] = []

    def block() -> Text:
        if not latest:
            return Text("starting …")
        return Text("\n".join(live_lines(latest[0])))

    console = Console(stderr=True)

    def watch(progress: Progress) -> None:
        if not latest:
            if progress.begun:
                console.print(Text(opening(progress)))
            latest.append(progress)
            told.extend(progress.notices)
        for line in new_notices(progress, told):
            console.print(Text(printable(line)))

    try:
        with Live(get_renderable=block, console=console, refresh_per_second=4, transient=True):
            yield watch
    finally:
        if latest and _began(latest[0]):
            console.print(Text(status(latest[0])))


def opening(progress: Progress) -> str:
    """What this session is about to ask, and what it takes from earlier ones."""
    predictions, verdicts = progress.due
    lines = [*progress.notices, f"Asking for {predictions} predictions and {verdicts} verdicts."]
    if not predictions and not verdicts:
        lines[-1] = "Nothing to ask: every prediction and verdict of this run is already stored."
    return "\n".join(lines)


def new_notices(progress: Progress, told: list[str]) -> list[str]:
    """Lines for the user that came since `told`, which takes them over."""
    new = progress.notices[len(told) :]
    told += new
    return new


def status(progress: Progress) -> str:
    """One line: counts, failures by class, tokens, cost, time."""
    parts = [_stage("predictions", progress.predictions)] if progress.begun else []
    if progress.verdicts.total:
        parts.append(_stage("verdicts", progress.verdicts))
    if progress.is_scoring:
        parts.append("metrics {}/{}".format(*progress.scored))
    parts += _spending(progress)
    if progress.retries:
        parts.append(f"{progress.retries} retries")
    if any(stage.finished < stage.total for stage in (progress.predictions, progress.verdicts)):
        parts += [limiter.why for limiter in progress.limiters if limiter.why]
    parts.append(duration(progress.elapsed))
    left = progress.seconds_left
    if left and (progress.in_flight or progress.is_scoring):
        parts.append(f"about {duration(left)} left")
    return " · ".join(parts)


def live_lines(progress: Progress) -> list[str]:
    """The block on a terminal: a bar a stage, then money and time, then the last retry."""
    lines = [_bar("predictions", progress.predictions)] if progress.begun else []
    if progress.verdicts.total:
        lines.append(_bar("verdicts", progress.verdicts))
    if progress.is_scoring:
        lines.append(_filled("metrics", *progress.scored))
    left = progress.seconds_left
    tail = [*map(connections, progress.limiters), *_spending(progress), duration(progress.elapsed)]
    lines.append("  " + " · ".join([*tail, f"about {duration(left)} left"] if left else tail))
    if progress.retries:
        lines.append(printable(f"  {progress.retries} retries, last {progress.last_retry}")[:150])
    return lines


def connections(limiter: Limiter) -> str:
    """How many requests are in flight at an endpoint, of how many that may be, and what keeps them few."""
    use = f"{limiter.in_flight}/{limiter.limit} in flight"
    return f"{use} ({limiter.why})" if limiter.why else use


def _began(progress: Progress) -> bool:
    """Whether there are counts to tell: something was due, and the endpoints could be used."""
    return sum(progress.due) > 0 and progress.predictions.total + progress.verdicts.total > 0


def _stage(name: str, stage: Stage) -> str:
    return f"{name} {stage.finished}/{stage.total}{_recalled(stage)}{_failed(stage)}"


def _bar(name: str, stage: Stage) -> str:
    return _filled(name, stage.finished, stage.total) + _recalled(stage) + _failed(stage)


def _filled(name: str, done: int, total: int) -> str:
    filled = round(24 * done / total) if total else 24
    return f"  {name:<12}{'█' * filled}{'░' * (24 - filled)} {done}/{total}"


def _recalled(stage: Stage) -> str:
    return f" ({stage.recalled} from the cache)" if stage.recalled else ""


def _failed(stage: Stage) -> str:
    if not stage.failures:
        return ""
    kinds = ", ".join(f"{kind} {count}" for kind, count in stage.failures.most_common())
    return f" ({stage.failures.total()} failed: {kinds})"


def _spending(progress: Progress) -> list[str]:
    """Tokens and cost; nothing where no server was asked."""
    usage = progress.predictions.usage + progress.verdicts.usage
    if usage == Usage():
        return []
    cached = f" ({_count(usage.cached_tokens)} cached)" if usage.cached_tokens else ""
    tokens = f"{_count(usage.prompt_tokens)} tokens in{cached}, {_count(usage.completion_tokens)} out"
    stages = (progress.predictions, progress.verdicts)
    known = all(stage.cost_known for stage in stages)
    return [tokens, cost_text(sum(stage.cost_usd for stage in stages), known)]


def _count(tokens: int | None) -> str:
    if tokens is None:
        return "?"
    return str(tokens) if tokens < 10_000 else f"{tokens / 1000:.0f}k"


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


def _say(line: str) -> None:
    sys.stderr.write("".join(printable(part) + "\n" for part in line.split("\n")))
    sys.stderr.flush()
