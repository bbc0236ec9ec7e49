"""Keeps a run below `--max-cost`: nothing is begun whose likely cost does not fit any more.

In: prices, what earlier sessions of the run directory have spent, each record as it is made. Out: leave to
begin a sample (`admit`). A prediction reserves its likely cost and that of its verdicts, so that what is
predicted can be judged; what it really cost takes the reservation's place. Where a sample does not fit
beside what is under way, it waits for that to end; where it does not fit then either, nothing new begins.
Likely costs err on the dear side: a high assumption until some answers have come, then mean and twice the
deviation. And were all answers under way as long as they may be, the limit would be exceeded by 5 % at
most: only a single sample that is alone, and further attempts after failures, can go beyond that.
"""

from __future__ import annotations

import asyncio
import math
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

from agentworldbench.config import RunConfig
from agentworldbench.engine.accounts import Account, Job, Key
from agentworldbench.engine.expected import LONGEST_REFERENCE, prediction_tokens, verdict_tokens
from agentworldbench.engine.fitting import smaller
from agentworldbench.engine.steps import Predictor
from agentworldbench.errors import ConfigError
from agentworldbench.journal import is_unfinished
from agentworldbench.models import Model
from agentworldbench.prices import Price, dollars, plain_name
from agentworldbench.records import Asked, SampleRef
from agentworldbench.scoring.judge import Judge
from agentworldbench.stats.costs import charge
from agentworldbench.store import Store
from agentworldbench.texts import count_text
from agentworldbench.yamlfile import did_you_mean

SLACK: Final = 0.05
"""Part of the limit by which the longest answers of all that is under way may exceed it."""


class Ledger:
    """What a run has spent and may still spend, in USD. Without a limit everything is admitted.

    `accounts` are by judge digest, the model's under the empty string. `stopped` tells that something was
    refused, `left` takes what is not done then. `unpriced` counts records of earlier sessions whose cost
    can be neither known nor assumed.
    """

    def __init__(self, limit: float | None = None, accounts: Mapping[str, Account] | None = None) -> None:
        self.limit = limit
        self.spent = 0.0
        self.assumed = 0.0
        self.unpriced = 0
        self.stopped = False
        self.left: list[Job] = []
        self._accounts = dict(accounts or {})
        self._reserved: dict[Key, float] = {}
        self._worst: dict[Key, float] = {}
        self._refused = 0.0
        self._waiting: list[tuple[int, int]] = []
        self._tickets = count()
        self._changed = asyncio.Event()

    def _account(self, key: Key) -> Account:
        return self._accounts[key[2]]

    def recall(self, job: Job, record: Asked, price: Price | None) -> None:
        """Count a record of an earlier session."""
        account = self._accounts.get(job.key[2])
        if account is not None:
            self._charge(account, job, record)
            return
        cost = charge(record, price)
        self.spent += cost.usd
        self.unpriced += cost.unknown > 0

    async def admit(self, jobs: Sequence[Job], place: int = 0) -> bool:
        """Wait until the likely cost of `jobs` fits, and reserve it; False: it does not fit any more.

        The lowest `place` comes first, whoever waits longer: what is done stays a beginning of the order
        of work.
        """
        if self.limit is None or not jobs:
            return True
        ticket = (place, next(self._tickets))
        insort(self._waiting, ticket)
        try:
            while not self.stopped and not (ticket == self._waiting[0] and self._fits(jobs)):
                if ticket == self._waiting[0] and not self._reserved:
                    self.stopped, self._refused = True, self._dear(jobs)
                    break
                await self._changed.wait()
            if self.stopped:
                return False
            self._reserved |= {job.key: self._account(job.key).dear(job) for job in jobs}
            self._worst |= {job.key: self._account(job.key).worst(job) for job in jobs}
            return True
        finally:
            self._waiting.remove(ticket)
            self._wake()

    def _fits(self, jobs: Iterable[Job]) -> bool:
        """Likely costs within the limit; with the longest answers, not much beyond it: what has been answered
        first is short, and says little of those that are still being written."""
        limit = self.limit or 0.0
        if self.spent + sum(self._reserved.values()) + self._dear(jobs) > limit:
            return False
        worst = sum(self._worst.values()) + sum(self._account(job.key).worst(job) for job in jobs)
        return not self._reserved or self.spent + worst <= (1 + SLACK) * limit

    def _dear(self, jobs: Iterable[Job]) -> float:
        return sum(self._account(job.key).dear(job) for job in jobs)

    def _wake(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def settle(self, job: Job, record: Asked) -> None:
        """A record has been made: what it cost takes the place of what was reserved for it."""
        if self.limit is not None:
            self._charge(self._account(job.key), job, record)
            self.release(job)

    def release(self, job: Job) -> None:
        """Give back what was reserved for a record that is not needed, if anything was."""
        self._worst.pop(job.key, None)
        if self._reserved.pop(job.key, None) is not None:
            self._wake()

    def _charge(self, account: Account, job: Job, record: Asked) -> None:
        cost = charge(record, account.price)
        assumed = cost.unknown * account.one_request(job) if cost.unknown else 0.0
        self.spent += cost.usd + assumed
        self.assumed += assumed
        if not is_unfinished(record):
            account.learn(job, record)

    def told(self) -> str:
        """What is spent, of which limit, for people."""
        words = f"{dollars(self.spent)} of {dollars(self.limit or 0.0)} USD spent (--max-cost)"
        if self.assumed:
            words += f", of it {dollars(self.assumed)} assumed for requests whose cost is unknown"
        if self.unpriced:
            words += (
                f", without {count_text(self.unpriced, 'earlier record')} of a model whose price is unknown"
            )
        return words

    def closing(self) -> str:
        """One line for people where the money was not enough for what is `left`."""
        kinds = ["verdicts" if job.key[2] else "predictions" for job in self.left]
        counts = " and ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        rest = sum(self._account(job.key).mean(job) for job in self.left)
        wanted = max(self.spent + 1.1 * rest, 1.05 * (self.limit or 0.0))
        assumed = (
            "" if self.spent else " (as long as no answer has come; --output-tokens LOW-HIGH narrows it)"
        )
        return (
            f"budget reached: {self.told()}, the next sample may cost {dollars(self._refused)}{assumed}; {counts} are "
            f"left, for about {dollars(rest)} USD. The same command with --max-cost {_rounded_up(wanted):g} goes on"
        )


def _rounded_up(amount: float) -> float:
    """To two significant digits, upwards."""
    unit = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return math.ceil(round(amount / unit, 6)) * unit


def open_ledger(
    config: RunConfig,
    predictor: Predictor | None,
    judges: Sequence[Judge],
    store: Store,
    refs: Iterable[SampleRef],
    earlier: Mapping[str, Price | None],
) -> Ledger:
    """The ledger of a session, with what is stored already counted.

    `earlier` are the prices by judge digest (empty: the model) for those that this session does not ask.
    Raises ConfigError where --max-cost is given and a price is not known.
    """
    if config.max_cost is None:
        return Ledger()
    known = {ref.id: ref for ref in refs}
    accounts = {judge.digest(): _judge_account(config, judge) for judge in judges}
    if predictor is not None:
        accounts[""] = _model_account(config, predictor, known.values())
    ledger = Ledger(config.max_cost, accounts)
    for prediction in store.predictions.every_line():
        if ref := known.get(prediction.sample_id):
            ledger.recall(Job.of(ref, prediction.epoch), prediction, earlier.get(""))
    for verdict in store.verdicts.every_line():
        if ref := known.get(verdict.sample_id):
            job = Job.of(ref, verdict.epoch, verdict.judge, verdict.repeat)
            ledger.recall(job, verdict, earlier.get(verdict.judge))
    return ledger


def _model_account(config: RunConfig, predictor: Predictor, refs: Iterable[SampleRef]) -> Account:
    model = predictor.model
    one_a_domain = {ref.domain: ref for ref in refs}.values()
    longest = [predictor.sampling(ref, 1).max_tokens for ref in one_a_domain]
    most = smaller(max(filter(None, longest), default=None), model.limits.max_output)
    high = prediction_tokens(config, LONGEST_REFERENCE, most)[1]
    return Account(known_price(model), high, most=most)


def _judge_account(config: RunConfig, judge: Judge) -> Account:
    most = smaller(judge.sampling.max_tokens, judge.model.limits.max_output)
    return Account(known_price(judge.model), verdict_tokens(config, most)[1], judge.attempts, most)


def known_price(model: Model) -> Price:
    """A model's price, for --max-cost. Raises ConfigError where there is none."""
    price = model.price()
    if price is None:
        raise ConfigError(
            f"--max-cost: the price of '{model.name}' is not known; give it in USD per million tokens: "
            f"--price {model.name}=IN,OUT[,CACHED]"
        )
    return price


def check_prices(config: RunConfig, asked: Sequence[Model], known: Iterable[str] = ()) -> None:
    """Refuse a --price for a model that the run has not (`known` are further names of its), and --max-cost
    where the price of a model that is asked is not known. Raises ConfigError."""
    models = {*(one.name for one in asked), *known}
    names = models | {plain_name(model) for model in models}
    for name in config.prices.keys() - names:
        hint = did_you_mean(name, names) or f"; it has {', '.join(sorted(models))}"
        raise ConfigError(f"--price {name}: no model or judge of this run{hint}")
    if config.max_cost is not None:
        for model in asked:
            known_price(model)
