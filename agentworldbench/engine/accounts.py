"""What a record may cost: assumed before any answer has come, then learned from the answers, by domain.

In: a model's price, and each record with what it used. Out: USD of a `Job` (a prediction or a verdict to be
made): as a mean, on the dear side, and at worst. Prompt and answer are learned apart, with all requests that
went into a record; prompts as tokens for each one that the row's length suggests. So is what was billed
beside the price of fresh tokens: providers report costs of their own, and writing a prompt cache costs extra.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from agentworldbench.prices import Price
from agentworldbench.records import Asked, SampleRef

ENOUGH: Final = 5
"""Answers of one model in one domain before what they show replaces the assumption."""
DEVIATIONS: Final = 2.0
"""How far above the mean a likely answer is taken to lie."""
DENSEST: Final = 1.5
"""Tokens for each one estimated, on the high side, before the provider has counted any."""
BYTES_PER_TOKEN: Final = 4
UNBOUNDED: Final = 4
"""How many times the likely longest answer one may be that nobody bounds."""
JUDGE_PROMPT: Final = 2500
"""Tokens of a judge's own prompt."""

Key = tuple[str, int, str, int]
"""Sample id, epoch, judge digest (empty: the prediction), repeat."""


@dataclass(frozen=True)
class Job:
    """One record to be paid for; `prompt_tokens` is estimated from the row's length in its file."""

    key: Key
    domain: str
    prompt_tokens: int

    @classmethod
    def of(cls, ref: SampleRef, epoch: int, judge: str = "", repeat: int = 1) -> Job:
        """The prediction of a sample in an epoch, or with `judge` a verdict on it."""
        tokens = ref.length // BYTES_PER_TOKEN + (JUDGE_PROMPT if judge else 0)
        return cls((ref.id, epoch, judge, repeat), ref.domain, tokens)


@dataclass
class _Seen:
    """Mean and deviation of a number, as values come."""

    count: int = 0
    mean: float = 0.0
    most: float = 0.0
    _squares: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        away = value - self.mean
        self.mean += away / self.count
        self._squares += away * (value - self.mean)
        self.most = max(self.most, value)

    def above(self, deviations: float) -> float:
        """So many deviations above the mean (0 before any value has come)."""
        return self.mean + deviations * math.sqrt(self._squares / max(self.count, 1))


@dataclass
class _Usual:
    """What is usual of one number, by domain and over all of them; `assumed` before any value has come."""

    assumed: float
    _domains: dict[str, _Seen] = field(default_factory=dict)
    _all: _Seen = field(default_factory=_Seen)

    def add(self, domain: str, value: float) -> None:
        self._all.add(value)
        self._domains.setdefault(domain, _Seen()).add(value)

    def enough(self, domain: str) -> bool:
        """Whether a domain's own values count alone."""
        return domain in self._domains and self._domains[domain].count >= ENOUGH

    def mean(self, domain: str) -> float:
        """The mean of the domain, or of all where it has none."""
        seen = self._domains.get(domain, self._all)
        return seen.mean if seen.count else self.assumed

    def seen(self, domain: str) -> float:
        """What few values exceed by those that have come: of the domain where they are enough, else of all."""
        return (self._domains[domain] if self.enough(domain) else self._all).above(DEVIATIONS)

    def dear(self, domain: str) -> float:
        """What few values exceed. With too few of the domain what was assumed, or twice what is dear in others
        where that is less; never less than its dearest so far."""
        own = self._domains.get(domain, _Seen())
        if own.count >= ENOUGH:
            return own.above(DEVIATIONS)
        others = 2 * self._all.above(DEVIATIONS) if self._all.count >= 2 * ENOUGH else self.assumed
        return max(own.most, min(self.assumed, others))


class Account:
    """One model in one stage: its price, and what its records have used so far.

    `output` is the longest answer that is likely before any has come, `requests` how many may go into
    one record then, `most` the longest answer that is asked for (None: nobody says).
    """

    def __init__(self, price: Price, output: int, requests: int = 1, most: int | None = None) -> None:
        self.price = price
        self._requests = requests
        self._most = (most or UNBOUNDED * output) * requests
        self._prompts = _Usual(DENSEST * requests)
        self._outputs = _Usual(float(output * requests))
        self._beside = _Usual(0.0)

    def dear(self, job: Job) -> float:
        """USD that a record may cost, all its requests together, on the dear side."""
        priced = self._usd(job, self._prompts.dear(job.domain), self._outputs.dear(job.domain))
        return priced + max(0.0, self._beside.seen(job.domain))

    def mean(self, job: Job) -> float:
        """USD that a record will cost, as the mean of others."""
        priced = self._usd(job, self._prompts.mean(job.domain), self._outputs.mean(job.domain))
        return max(0.0, priced + self._beside.mean(job.domain))

    def worst(self, job: Job) -> float:
        """USD that a record costs with answers as long as they may be."""
        priced = self._usd(job, DENSEST * self._requests, self._most)
        return priced + max(0.0, self._beside.seen(job.domain))

    def one_request(self, job: Job) -> float:
        """USD assumed for a request whose cost nobody told."""
        return self.dear(job) / (1 if self._outputs.enough(job.domain) else self._requests)

    def learn(self, job: Job, record: Asked) -> None:
        """Take in what a record used and cost; nothing where the provider did not count."""
        used = record.usage
        if not used.prompt_tokens or used.completion_tokens is None:
            return
        self._prompts.add(job.domain, used.prompt_tokens / max(job.prompt_tokens, 1))
        self._outputs.add(job.domain, used.completion_tokens)
        if record.cost_usd is not None:
            fresh = self.price.rates(used.prompt_tokens).usd(used.prompt_tokens, used.completion_tokens)
            self._beside.add(job.domain, record.cost_usd - fresh)

    def _usd(self, job: Job, density: float, output: float) -> float:
        rates = self.price.rates(DENSEST * job.prompt_tokens)
        return rates.usd(job.prompt_tokens * density, output)
