"""What records cost: tokens and USD by stage and domain, and what is not known of it.

In: predictions or verdicts, and their model's price where there is one. Out: `Spending`; `Amount` is the
same of what is still to come. A record holds
its cost where the provider or a price told it; else its tokens are priced here, so that a `--price` given
later prices what came before. All attempts count, those of superseded records too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import fsum
from operator import add

from agentworldbench.prices import Price
from agentworldbench.records import Asked, Record, Usage


class Spending(Record):
    """Tokens and USD of all records of one model, stage and perhaps domain.

    `cost_usd` is None where a part of it is unknown: then `known_usd` is the rest, and `unknown` counts
    the records with such a part. `saved_usd` is what the provider's prompt cache saved against the price
    of fresh prompts; None where price or cached tokens are not known.
    """

    usage: Usage
    cost_usd: float | None
    known_usd: float = 0.0
    records: int = 0
    unknown: int = 0
    saved_usd: float | None = None


def together(parts: Sequence[Spending]) -> Spending:
    """The spending of several models as one; what is unknown of a part is unknown of the whole."""
    costs = [one.cost_usd for one in parts if one.cost_usd is not None]
    saved = [one.saved_usd for one in parts if one.saved_usd is not None]
    return Spending(
        usage=reduce(add, (one.usage for one in parts), Usage()),
        cost_usd=fsum(costs) if len(costs) == len(parts) else None,
        known_usd=fsum(one.known_usd for one in parts),
        records=sum(one.records for one in parts),
        unknown=sum(one.unknown for one in parts),
        saved_usd=fsum(saved) if len(saved) == len(parts) else None,
    )


class Amount(Record):
    """Requests, tokens, and USD low to high (None: no price known)."""

    requests: int = 0
    prompt_tokens: int = 0
    cacheable_tokens: int = 0
    output_low: int = 0
    output_high: int = 0
    usd_low: float | None = None
    usd_high: float | None = None

    def __add__(self, other: Amount) -> Amount:
        """Both together; unknown where one of them is."""
        mine, theirs = self.model_dump(), other.model_dump()
        names = (name for name in mine if mine[name] is not None and theirs[name] is not None)
        return Amount(**{name: mine[name] + theirs[name] for name in names})


@dataclass(frozen=True)
class Charge:
    """USD of one record as far as they are known, and how many of its requests cost nobody knows what."""

    usd: float
    unknown: int


def charge(record: Asked, price: Price | None) -> Charge:
    """What one record cost, with all its attempts."""
    if record.cost_usd is not None:
        return Charge(record.cost_usd, 0)
    requests = [(one.cost_usd, one.usage) for one in record.attempts] or [(None, record.usage)]
    costs = [price.cost(usage) if cost is None and price is not None else cost for cost, usage in requests]
    return Charge(sum(cost for cost in costs if cost is not None), costs.count(None))


@dataclass
class _Sum:
    usage: Usage = field(default_factory=Usage)
    usd: list[float] = field(default_factory=list)
    records: int = 0
    unknown: int = 0

    def add(self, record: Asked, price: Price | None) -> None:
        cost = charge(record, price)
        self.usage = self.usage + record.usage
        self.usd.append(cost.usd)
        self.records += 1
        self.unknown += cost.unknown > 0

    def spending(self, price: Price | None) -> Spending:
        cached = self.usage.cached_tokens
        known = fsum(self.usd)  # the same in whatever order records were written
        return Spending(
            usage=self.usage,
            cost_usd=None if self.unknown else known,
            known_usd=known,
            records=self.records,
            unknown=self.unknown,
            saved_usd=None if price is None or cached is None else price.saved(self.usage),
        )


def spending_by_domain(records: Iterable[Asked], price: Price | None) -> tuple[Spending, dict[str, Spending]]:
    """The spending of all records together, and by domain."""
    whole, domains = _Sum(), dict[str, _Sum]()
    for record in records:
        whole.add(record, price)
        domains.setdefault(record.sample_id.partition("/")[0], _Sum()).add(record, price)
    return whole.spending(price), {domain: one.spending(price) for domain, one in domains.items()}
