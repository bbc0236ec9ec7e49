"""The ledger by itself: who waits for whom, what is reserved, what is learned, and what it says at the end."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.engine.accounts import DENSEST, ENOUGH, Account, Job
from agentworldbench.engine.spending import SLACK, Ledger
from agentworldbench.prices import Price
from agentworldbench.records import Attempt, FailureKind, Prediction, Usage

PRICE = Price(prompt=1e-4, completion=1e-3, source="--price")
"""0.01 USD for 100 prompt tokens, 0.1 for 100 of completion."""


def job(number: int = 1, domain: str = "swe", judge: str = "", tokens: int = 100) -> Job:
    return Job((f"{domain}/{number}/1", 1, judge, 1), domain, tokens)


def record(prompt: int | None = 100, completion: int | None = 10, **fields: object) -> Prediction:
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
    return Prediction.model_validate(
        {"sample_id": "swe/1/1", "row_hash": "", "usage": usage, "cost_usd": PRICE.cost(usage)} | fields
    )


def ledger(limit: float | None = 1.0, output: int = 100, requests: int = 1) -> Ledger:
    return Ledger(
        limit, {"": Account(PRICE, output, 1, output), "j": Account(PRICE, output, requests, output)}
    )


ASSUMED = DENSEST * 0.01 + 0.1
"""USD of a job before any answer has come."""


def test_without_a_limit_everything_is_admitted() -> None:
    free = ledger(None)
    assert asyncio.run(free.admit([job(n) for n in range(1000)]))
    free.settle(job(), record())
    assert (free.spent, free.stopped) == (0.0, False)


def test_at_first_a_dear_answer_is_assumed_and_later_what_was_seen() -> None:
    account = Account(PRICE, 100)
    assert account.dear(job()) == pytest.approx(ASSUMED)
    for _ in range(ENOUGH - 1):
        account.learn(job(), record())
    assert account.dear(job()) == pytest.approx(ASSUMED), "a few cheap ones do not make it cheap"
    account.learn(job(), record())
    assert account.dear(job()) == pytest.approx(0.02)
    assert account.dear(job(domain="mcp")) == pytest.approx(ASSUMED), "each domain learns for itself"
    for _ in range(ENOUGH):
        account.learn(job(), record())
    assert account.dear(job(domain="mcp")) == pytest.approx(0.015 + 0.02), (
        "with many others: twice what is dear there"
    )
    assert account.mean(job(domain="mcp")) == pytest.approx(0.02)


def test_a_few_dear_answers_make_it_dear_at_once() -> None:
    account = Account(PRICE, 100)
    account.learn(job(), record(completion=900))
    assert account.dear(job()) >= 0.9


def test_a_judge_may_need_all_its_attempts_until_it_has_shown_otherwise() -> None:
    account = Account(PRICE, 100, requests=3)
    assert account.dear(job()) == pytest.approx(3 * ASSUMED)
    for _ in range(ENOUGH):
        account.learn(job(), record())
    assert account.dear(job()) == pytest.approx(0.02)


def test_what_is_billed_beside_the_price_is_learned() -> None:
    account = Account(PRICE, 100)
    for number in range(ENOUGH):
        account.learn(job(), record(cost_usd=0.2 if number % 2 else 0.22))
    assert account.mean(job()) == pytest.approx(0.212)
    assert account.dear(job()) == pytest.approx(0.212 + 2 * 0.0098, abs=1e-4)
    assert account.dear(job(domain="mcp")) == pytest.approx(ASSUMED + 0.192 + 2 * 0.0098, abs=1e-4)
    assert account.worst(job()) > ASSUMED + 0.19


def test_what_a_cache_saves_makes_the_mean_cheaper_and_no_reservation() -> None:
    account = Account(PRICE, 100)
    for _ in range(ENOUGH):
        account.learn(job(), record(cost_usd=0.012))
    assert account.mean(job()) == pytest.approx(0.012)
    assert account.dear(job()) == pytest.approx(0.02)


@given(st.lists(st.integers(1, 5000), min_size=ENOUGH, max_size=60))
def test_likely_costs_lie_above_the_mean_and_within_reason(lengths: list[int]) -> None:
    account = Account(PRICE, 100)
    for length in lengths:
        account.learn(job(), record(completion=length))
    mean = 0.01 + sum(lengths) / len(lengths) * 1e-3
    likely = account.dear(job())
    assert mean - 1e-9 <= likely <= 0.01 + 2 * max(lengths) * 1e-3
    assert account.mean(job()) == pytest.approx(mean)


def test_answers_without_counts_teach_nothing() -> None:
    account = Account(PRICE, 100)
    for _ in range(9):
        account.learn(job(), record(None, None))
    assert account.dear(job()) == pytest.approx(ASSUMED)


def test_what_does_not_fit_waits_for_what_is_under_way() -> None:
    async def work() -> list[str]:
        told, book = [], ledger(2.5 * ASSUMED)

        async def begin(number: int) -> None:
            assert await book.admit([job(number)], number)
            told.append(f"begun {number}")

        begun = [asyncio.create_task(begin(number)) for number in (1, 2, 3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        told.append("two fit")
        book.settle(job(1), record())
        await asyncio.gather(*begun)
        return told

    assert asyncio.run(work()) == ["begun 1", "begun 2", "two fit", "begun 3"]


def test_the_earliest_place_is_served_first() -> None:
    async def work() -> list[int]:
        served, book = [], ledger(1.9 * ASSUMED)
        assert await book.admit([job(0)], 0)

        async def begin(place: int) -> None:
            assert await book.admit([job(place)], place)
            served.append(place)
            book.settle(job(place), record())

        waiting = [asyncio.create_task(begin(place)) for place in (7, 3, 5)]
        await asyncio.sleep(0)
        book.settle(job(0), record())
        await asyncio.gather(*waiting)
        return served

    assert asyncio.run(work()) == [3, 5, 7]


def test_nothing_begins_any_more_once_something_did_not_fit() -> None:
    async def work() -> tuple[bool, ...]:
        book = ledger(1.5 * ASSUMED)
        dear = [job(1), job(2)]
        return (await book.admit(dear), await book.admit([job(3)]), await book.admit([]), book.stopped)

    assert asyncio.run(work()) == (False, False, True, True), "what costs nothing is always admitted"


def test_verdicts_are_reserved_with_their_prediction_and_given_back() -> None:
    async def work() -> None:
        book = ledger(2.2 * ASSUMED)
        assert await book.admit([job(1), job(1, judge="j")])
        book.settle(job(1), record())
        waiting = asyncio.create_task(book.admit([job(2), job(2, judge="j")], 2))
        await asyncio.sleep(0)
        assert not waiting.done()
        book.release(job(1, judge="j"))  # the prediction failed: there is nothing to judge
        assert await waiting

    asyncio.run(work())


def test_the_longest_answers_of_all_under_way_hardly_exceed_the_limit() -> None:
    async def work() -> None:
        book = Ledger(1.0, {"": Account(PRICE, 10, 1, 600)})
        assert await book.admit([job(1)])
        waiting = asyncio.create_task(book.admit([job(2)], 2))
        await asyncio.sleep(0)
        assert not waiting.done(), "two answers of 600 tokens would cost 1.2 USD"
        book.settle(job(1), record())
        assert await waiting, "one of them fits"

    asyncio.run(work())


def test_a_request_of_unknown_cost_counts_as_a_likely_one() -> None:
    book = ledger()
    lost = Attempt(outcome=FailureKind.TIMEOUT, seconds=1.0)
    good = Attempt(
        outcome="ok", seconds=1.0, usage=Usage(prompt_tokens=100, completion_tokens=10), cost_usd=0.02
    )
    book.settle(job(), record(cost_usd=None, attempts=(lost, good)))
    assert book.spent == pytest.approx(0.02 + ASSUMED)
    assert book.assumed == pytest.approx(ASSUMED)
    assert book.told() == (
        "0.14 of 1.00 USD spent (--max-cost), of it 0.12 assumed for requests whose cost is unknown"
    )


def test_tokens_of_unknown_cost_are_priced() -> None:
    book = ledger()
    book.settle(job(), record(cost_usd=None))
    assert (book.spent, book.assumed) == (pytest.approx(0.02), 0.0)


def test_earlier_verdicts_of_another_judge_count_as_far_as_they_are_known() -> None:
    book = ledger()
    book.recall(job(1, judge="gone"), record(cost_usd=0.25), None)
    book.recall(job(2, judge="gone"), record(cost_usd=None), PRICE)
    book.recall(job(3, judge="gone"), record(cost_usd=None), None)
    assert book.spent == pytest.approx(0.27)
    assert "without 1 earlier record of a model whose price is unknown" in book.told()


def test_the_last_line_says_what_to_type() -> None:
    book = ledger(1.0)
    for _ in range(ENOUGH):
        book.settle(job(), record(completion=190))
    book.left = [job(number) for number in range(10)]
    assert not asyncio.run(book.admit(book.left[:1]))
    assert book.closing() == (
        "budget reached: 1.00 of 1.00 USD spent (--max-cost), the next sample may cost 0.20; 10 predictions are left, for about 2.00 USD. The same "
        "command with --max-cost 3.2 goes on"
    )


class Clock:
    """Virtual seconds: the earliest of all that wait goes on when nobody else can."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []

    async def wait(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + seconds, id(woken), woken))
        await woken

    async def run(self, tasks: list[asyncio.Task[None]]) -> None:
        while not all(task.done() for task in tasks):
            for _ in range(6):
                await asyncio.sleep(0)
            if self._waiting:
                self.now, _, woken = heapq.heappop(self._waiting)
                woken.set_result(None)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("workers", [4, 32, 256])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_many_at_once_with_answers_of_very_different_length(share: float, workers: int, seed: int) -> None:
    """Short answers come first, so what is learned from them says too little of the long ones under way."""
    random, longest = Random(seed), 32768
    domains = ["mcp", "swe", "os"]
    lengths = [min(int(random.lognormvariate(8, 1.3)), longest) for _ in range(600)]
    costs = [PRICE.usd(100, length) for length in lengths]
    limit = share * sum(costs)
    book = Ledger(limit, {"": Account(PRICE, 8000, most=longest)})
    clock, spent, done = Clock(), [], Counter[str]()
    order = iter(range(600))

    async def worker() -> None:
        for number in order:
            mine = job(number, domains[number % 3])
            if await book.admit([mine], number):
                await clock.wait(lengths[number] / 60)
                spent.append(costs[number])
                done[mine.domain] += 1
                book.settle(mine, record(completion=lengths[number]))

    async def work() -> None:
        await clock.run([asyncio.create_task(worker()) for _ in range(workers)])

    asyncio.run(work())
    assert book.stopped
    assert sum(spent) == pytest.approx(book.spent)
    assert sum(spent) <= (1 + SLACK) * limit
    assert sum(spent) >= limit - max(costs)
    assert max(done.values()) - min(done.values()) <= 1, "a beginning of the order of work"
