"""Scores many stored predictions in several processes, in order, with the same results as in one.

In: a `Job`, its `Item`s, how many processes. Out: `SampleMetrics` in the order of the items. A worker is a
plain child process that runs `scoring/worker.py`, not one of `multiprocessing`: those import the caller's main
module again (spawn, forkserver), so that a script without a guard would begin another evaluation in each
of them, or copy a process with threads (fork). Chunks are answered one after the other by whoever is free, and
no more of them are under way than workers can be kept busy with, so memory does not grow with the data.

An error is raised where its sample stands in the order, so it is the same however many processes there are.
Workers have a process group of their own: Ctrl-C reaches this process alone, which ends them at once. When this
process dies, their input ends, and so do they.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final

from agentworldbench.errors import AwbError, ScoringError
from agentworldbench.records import SampleMetrics
from agentworldbench.scoring.worker import READY, Answer, Bug, Item, Job, Scorer

CHUNK: Final = 8
"""Samples that a worker is given at a time."""
WORTH: Final = 12_000_000
"""Bytes of rows that are worth a further process: scoring them takes about as long as two starts of one."""
QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux says how much time of the cores a container has."""
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from agentworldbench.scoring.worker import main; main()"
)
Told = Callable[[int, int], None]
"""Called with the numbers of samples done and of all."""


def score_all(job: Job, items: Sequence[Item], processes: int | None, told: Told) -> Generator[SampleMetrics]:
    """Score all items; `processes` None: as many as there are cores and as the work is worth.

    To be closed when it is left early (`contextlib.closing`). Raises what `Scorer.score` raises, and
    ScoringError when a worker dies.
    """
    told(0, len(items))
    workers = _started(job, _number(processes, items))
    with closing(_by_workers(workers, items) if workers else _here(job, items)) as answers:
        for done, (item, answer) in enumerate(zip(items, answers, strict=True), start=1):
            yield _checked(item, answer)
            told(done, len(items))


def cores() -> int:
    """Cores that this process may use: its affinity, and where a container has one, its share of time."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text(encoding="ascii").split()
        count = min(count, max(1, math.ceil(int(quota) / int(period))))  # ValueError: "max"
    return count


def _number(processes: int | None, items: Sequence[Item]) -> int:
    if not sys.executable or getattr(sys, "frozen", False):
        return 1  # no interpreter that a worker could be
    if processes is None:
        return min(cores(), sum(item.ref.length for item in items) // WORTH)
    return min(processes, math.ceil(len(items) / CHUNK))


def _here(job: Job, items: Sequence[Item]) -> Generator[Answer]:
    scorer = Scorer(job)
    yield from map(scorer.score, items)


def _checked(item: Item, answer: Answer) -> SampleMetrics:
    if isinstance(answer, AwbError):
        raise answer
    if isinstance(answer, Bug):
        raise RuntimeError(f"while {item.ref.id} was scored:\n{answer.text}")
    return answer


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        path = json.dumps([str(entry) for entry in sys.path])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OMP_NUM_THREADS": "1"} | os.environ,
            process_group=0,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._to: IO[bytes] = self._process.stdin
        self._from: IO[bytes] = self._process.stdout

    def ready(self, job: Job) -> bool:
        """Tell it the job, and wait until it has begun; False when it could not. Raises TaskError for a user's
        own metrics."""
        try:
            self._send(job)
            answer = pickle.load(self._from)
        except (EOFError, OSError, pickle.UnpicklingError):
            return False
        if isinstance(answer, AwbError):
            raise answer
        return bool(answer == READY)

    def score(self, items: Sequence[Item]) -> list[Answer]:
        """The answers to some items; the last one is a ScoringError when the process dies meanwhile."""
        answers: list[Answer] = []
        try:
            self._send(items)
            for _ in items:
                answers.append(pickle.load(self._from))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            answers.append(ScoringError(f"{items[len(answers)].ref.id}: {self._how_it_ended()}"))
        return answers

    def kill(self) -> None:
        """End it at once, with what users' metrics may have started; whoever waits for an answer gets none."""
        with suppress(OSError):
            if self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kill it if it still runs, and let go of it; nobody may wait for an answer any more."""
        self.kill()
        for stream in (self._to, self._from):
            with suppress(OSError):
                stream.close()
        self._process.wait()

    def _send(self, what: object) -> None:
        pickle.dump(what, self._to)
        self._to.flush()

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        how = f"exit code {code}"
        if code < 0:
            how = f"signal {-code}, {signal.strsignal(-code) or 'unknown'}"
        memory = "; the system does that when memory runs out" if code == -signal.SIGKILL else ""
        return (
            f"the process that scored it ended ({how}{memory}); the results that were there stay, and "
            "`awb score RUN --processes 1` scores in one process"
        )


def _started(job: Job, number: int) -> list[_Worker]:
    """As many workers as could be started, none for `number` below 2: then this process does it."""
    workers: list[_Worker] = []
    try:
        if number > 1:
            with suppress(OSError):  # no more processes to be had
                workers.extend(_Worker() for _ in range(number))
        begun = [worker for worker in workers if worker.ready(job)]
    except BaseException:
        for worker in workers:
            worker.close()
        raise
    for worker in workers:
        if worker not in begun:
            worker.close()
    return begun


def _by_workers(workers: Sequence[_Worker], items: Sequence[Item]) -> Generator[Answer]:
    free: SimpleQueue[_Worker] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def ask(chunk: Sequence[Item]) -> list[Answer]:
        worker = free.get()
        answers = worker.score(chunk)
        free.put(worker)
        return answers

    due: deque[Future[list[Answer]]] = deque()
    pool = ThreadPoolExecutor(len(workers), thread_name_prefix="awb-score")
    try:
        for start in range(0, len(items), CHUNK):
            due.append(pool.submit(ask, items[start : start + CHUNK]))
            if len(due) >= 4 * len(workers):
                yield from due.popleft().result()
        while due:
            yield from due.popleft().result()
    finally:
        for worker in workers:
            worker.kill()
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            worker.close()
