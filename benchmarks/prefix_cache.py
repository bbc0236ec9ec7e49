"""How much of the prompts a prefix cache can serve: our order beside file order, shuffled order and the best.

The order is not modelled: the real pipeline runs in virtual time over generated rows (`prefix_rows.py`), 64
requests in flight of 2 seconds each, and each request's begin and end are written down. A cache of 16-token
blocks is then played through them: it holds 5 % of all prompt tokens and forgets what was used longest ago
(of a prompt the end first). Two kinds: what a request brings is there when it ends, as hosted providers say,
or when it begins, as in an engine that fills its cache while it reads. The best possible is an unlimited cache
and one request after another: each block misses once. Ends with an error where our order serves less than
95 % of that. From the repository root: `python -m benchmarks.prefix_cache` (5 minutes, 1 GB). With `--server`
a real llama-server answers instead (`prefix_server.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Final
from unittest import mock

from agentworldbench.engine import pipeline
from agentworldbench.engine.fitting import Room
from agentworldbench.engine.order import Trajectory, Work
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.steps import Predictor
from agentworldbench.records import Completion, Request, Sample, SampleRef, Sampling
from agentworldbench.store import Store, locked_store
from benchmarks.prefix_rows import BLOCK, Blocks, Part, Row, generate
from tests.helpers.asking import TASKS
from tests.helpers.engine_work import judge_of, verdict, world
from tests.helpers.fake_model import FakeModel

IN_FLIGHT: Final = 64
SERVICE: Final = 2.0
CAPACITY: Final = 0.05
WANTED: Final = 0.95

Prompt = Callable[[Row], tuple[Part, ...]]
Order = Callable[[Sequence[SampleRef], int | None], list[Trajectory]]
Event = tuple[bool, str]
"""Whether a request begins (or ends), and its sample."""


def in_file_order(refs: Sequence[SampleRef], seed: int | None) -> list[Trajectory]:
    """Sample after sample as the files have them."""
    return [(ref,) for ref in refs]


def shuffled(refs: Sequence[SampleRef], seed: int | None) -> list[Trajectory]:
    """Single samples in a random order."""
    return in_file_order(Random(seed).sample(refs, len(refs)), seed)


@contextmanager
def ordered_by(order: Order | None) -> Iterator[None]:
    """Let the pipeline work in another order, in which no sample waits for another; None: in its own."""
    if order is None:
        yield
        return
    with (
        mock.patch.object(pipeline, "in_order", order),
        mock.patch.object(pipeline, "Work", lambda trajectories, apart: Work(trajectories, True)),
    ):
        yield


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer when nothing else is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if scheduled and not ready:
            self._now = max(self._now, scheduled[0]._when)
        super()._run_once()  # type: ignore[misc]


def traced(answer: Callable[[Request, int], Completion], events: list[Event]) -> FakeModel:
    """A model that takes `SERVICE` seconds for each answer and writes down when it was asked."""

    async def generate(request: Request, number: int) -> Completion:
        events.append((True, request.sample.id))
        await asyncio.sleep(SERVICE)
        events.append((False, request.sample.id))
        return answer(request, number)

    return FakeModel(generate, name=answer.__name__, endpoint=answer.__name__)


def trace(
    rows: Mapping[str, Row],
    store: Store,
    order: Order | None = None,
    predict: bool = True,
    temperature: float = 0.0,
    epochs: int = 1,
) -> tuple[list[Event], list[Event]]:
    """What the pipeline asks of a model and of a judge, in time; without `predict` of the judge alone."""
    asked, judged = list[Event](), list[Event]()
    predictor = Predictor(traced(world, asked), TASKS, lambda ref, epoch: Sampling(max_tokens=64), Room(16))
    one = Pipeline(
        SimpleNamespace(load=_sample),  # type: ignore[arg-type]
        store,
        predictor if predict else None,
        [replace(judge_of(traced(verdict, judged)), sampling=Sampling(temperature=temperature))],
        Patience(max_connections=IN_FLIGHT),
        Progress(),
        epochs=epochs,
    )
    with ordered_by(order), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(one.run([row.ref for row in rows.values()], 0))
    return asked, judged


def _sample(ref: SampleRef) -> Sample:
    return Sample(ref=ref, system="s", prompts=("p",), responses=("r",), action="p")


class Cache:
    """Blocks by their last use; `capacity` None is unlimited."""

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def serve(self, prompt: Sequence[int]) -> int:
        """How many of a prompt's first blocks are here; they count as used now."""
        found = next((index for index, block in enumerate(prompt) if block not in self._blocks), len(prompt))
        for block in reversed(prompt[:found]):
            self._blocks.move_to_end(block)
        return found

    def keep(self, prompt: Sequence[int]) -> None:
        """Take in a prompt, its end as the first to be forgotten."""
        for block in reversed(prompt):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while self._capacity is not None and len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)


def served(
    events: Iterable[Event], rows: Mapping[str, Row], prompt: Prompt, size: int, at_once: bool
) -> float:
    """Share of all prompt tokens that a cache of `size` tokens serves."""
    cache, blocks, hits, total = Cache(size // BLOCK), Blocks(), 0, 0
    for begins, name in events:
        parts = prompt(rows[name])
        asked = blocks.of(parts)
        if begins:
            hits += cache.serve(asked)
            total += sum(tokens for _, tokens in parts)
        if begins is at_once:
            cache.keep(asked)
    return hits * BLOCK / total


def best(rows: Iterable[Row], prompt: Prompt, times: int = 1) -> tuple[float, int]:
    """(share that an unlimited cache serves to one request after another, tokens of all prompts)."""
    blocks, seen, asked, total = Blocks(), set[int](), 0, 0
    for row in rows:
        parts = prompt(row)
        numbers = blocks.of(parts)
        seen.update(numbers)
        asked += times * len(numbers)
        total += times * sum(tokens for _, tokens in parts)
    return (asked - len(seen)) * BLOCK / total, total


@dataclass(frozen=True)
class Case:
    """One line of the table: what is asked, in which orders (the first is ours), how often each prompt."""

    name: str
    rows: Mapping[str, Row]
    prompt: Prompt
    orders: Mapping[str, Sequence[Event]]
    times: int = 1


def cases() -> Iterator[Case]:
    """All measurements. The traces do not depend on what the prompts share."""
    shared, own = ({row.ref.id: row for row in generate(0, systems)} for systems in (False, True))
    asked, judged = dict[str, list[Event]](), dict[str, list[Event]]()
    orders: dict[str, Order | None] = {"ours": None, "file": in_file_order, "shuffled": shuffled}
    for name, order in orders.items():
        with _store() as store:
            asked[name], judged[name] = trace(shared, store, order)
            if order is None:  # a further judge, of the same model, is asked when all predictions are there
                _, after = trace(shared, store, predict=False, temperature=1.0)
    yield Case("predictions; two system texts a domain", shared, lambda row: row.asked, asked)
    yield Case("predictions; a system text for each task", own, lambda row: row.asked, asked)
    yield Case("verdicts, while predictions are made", shared, lambda row: row.judged, judged)
    yield Case("verdicts, afterwards", shared, lambda row: row.judged, {"ours": after})
    with _store() as store:
        epochs, _ = trace(shared, store, epochs=3)
    yield Case("predictions, 3 epochs", shared, lambda row: row.asked, {"ours": epochs}, 3)


@contextmanager
def _store() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as folder, locked_store(Path(folder) / "run") as store:
        yield store


def simulate() -> list[str]:
    """Print the table; returns what falls short."""
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}; share of all prompt tokens, in % (and of the best possible)\n")
    print("| asked | million tokens | best possible | cache filled | ours | file order | shuffled |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: |")
    short = []
    for case in cases():
        most, total = best(case.rows.values(), case.prompt, case.times)
        for at_once in (False, True):
            shares = {
                name: served(events, case.rows, case.prompt, round(CAPACITY * total / case.times), at_once)
                for name, events in case.orders.items()
            }
            cells = [_cell(shares.get(name), most) for name in ("ours", "file", "shuffled")]
            filled = "when a request begins" if at_once else "when it ends"
            print(
                f"| {case.name} | {total / 1e6:.1f} | {100 * most:.1f} | {filled} | {' | '.join(cells)} |",
                flush=True,
            )
            if shares["ours"] < WANTED * most:
                short.append(f"{case.name}, {filled}: {shares['ours'] / most:.1%} of the best possible")
    return short


def _cell(share: float | None, most: float) -> str:
    return "" if share is None else f"{100 * share:.1f} ({100 * share / most:.1f})"


def main() -> None:
    """Simulate, or ask a server."""
    parser = argparse.ArgumentParser(description="How much of the prompts a prefix cache can serve.")
    parser.add_argument("--server", action="store_true", help="measure a real llama-server instead")
    parser.add_argument("--folder", type=Path, help="where server and model are installed; default: .demo")
    arguments = parser.parse_args()
    if arguments.server:
        from benchmarks.prefix_server import measure

        measure(arguments.folder)
    elif short := simulate():
        sys.exit("our order falls short: " + "; ".join(short))


if __name__ == "__main__":
    main()
