"""A server inside the process that carries so many requests at once (or a minute), on a virtual clock.

`drive` sends a number of requests through the engine's own limiter and retry layer and says what came
of it. Latencies are drawn from a seeded generator, so a result is a function of its arguments.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from agentworldbench.engine.limiter import MOST, START, Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.rates import Ceilings
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.models.base import LocalAnswers
from agentworldbench.records import CallFailure, Completion, Failure, FailureKind, Request, Usage

from .asking import make_request
from .virtual_loop import run_virtual


@dataclass
class Load(LocalAnswers):
    """A `Model`: `allowed` requests at once, each for `shortest` to `longest` seconds.

    Beyond that it refuses after `refuses_after` seconds with `kind`, asking to wait `retry_after`
    seconds. `a_minute` refuses what exceeds so many starts in a calendar minute. `faults` says by
    arrival number which class a request ends with instead. `queues`: it refuses nothing, all beyond
    `allowed` wait.
    """

    allowed: int = 10**9
    shortest: float = 0.2
    longest: float = 0.2
    refuses_after: float = 0.01
    kind: str = "rate_limit"
    retry_after: float | None = None
    a_minute: int = 10**9
    faults: Callable[[int], str | None] = lambda number: None
    queues: bool = False
    seed: int = 0
    arrivals: int = 0
    refusals: int = 0
    busy: int = 0
    most_busy: int = 0
    starts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("loaded")
        self.local = False
        self.endpoint = "loaded"
        self._random = random.Random(self.seed)
        self._minutes: dict[int, int] = {}
        self._places = asyncio.Semaphore(self.allowed)

    def identity(self) -> dict[str, object]:
        """The name."""
        return {"backend": "loaded"}

    async def generate(self, request: Request) -> Completion | CallFailure:
        """One request."""
        now = asyncio.get_running_loop().time()
        self.arrivals += 1
        self.starts.append(now)
        minute = int(now // 60)
        fault = self.faults(self.arrivals)
        full = self.busy >= self.allowed and not self.queues
        if full or self._minutes.get(minute, 0) >= self.a_minute or fault:
            self.refusals += 1
            await asyncio.sleep(self.refuses_after)
            failure = Failure(kind=FailureKind(fault or self.kind), message="scripted", status=429)
            return CallFailure(failure=failure, retry_after=self.retry_after, cost_usd=0.0)
        self._minutes[minute] = self._minutes.get(minute, 0) + 1
        self.busy += 1
        self.most_busy = max(self.most_busy, self.busy)
        try:
            async with self._places:
                await asyncio.sleep(self._random.uniform(self.shortest, self.longest))
        finally:
            self.busy -= 1
        return Completion(text="ok", usage=Usage(prompt_tokens=900, completion_tokens=100))


@dataclass
class Result:
    """What came of `requests` requests, in virtual seconds."""

    requests: int
    seconds: float
    refused: int
    unanswered: int
    limiter: Limiter
    model: Load

    @property
    def wasted(self) -> float:
        """Refused requests as a share of those that were to be asked."""
        return self.refused / self.requests

    def throughput(self, allowed: int) -> float:
        """As a share of what `allowed` connections would have got if they had always been used."""
        mean = (self.model.shortest + self.model.longest) / 2
        return self.requests * mean / allowed / self.seconds


def drive(
    model: Load,
    requests: int = 2000,
    connections: int | None = None,
    retries: int = 6,
    ceilings: Ceilings | None = None,
    watch: Callable[[Limiter], None] = lambda limiter: None,
) -> Result:
    """Ask `requests` times with `connections` as given to --max-connections (None: the default)."""
    random.seed(0)
    limiter = Limiter(connections or START, connections or MOST, ceilings)
    question, left, answers = make_request(), iter(range(requests)), list[Answer]()

    async def worker() -> None:
        for place in left:
            answers.append(await ask(model, question, limiter.slot(place), retries, Progress()))
            watch(limiter)

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(worker() for _ in range(limiter.most)))
        return loop.time() - began

    seconds = run_virtual(run())
    unanswered = sum(isinstance(answer.outcome, Failure) for answer in answers)
    return Result(requests, seconds, model.refusals, unanswered, limiter, model)
