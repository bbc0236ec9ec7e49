"""What one answer cost, and what LiteLLM's shipped table says of a model's prices.

In: an entry of the table, or a reply's usage. Out: a `Price`, or USD. What the provider itself reports
(OpenRouter does) wins over `--price`, that wins over the table: the table is somebody's copy of a price
list, and may be older than the bill. Where nothing is known the cost is unknown, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from agentworldbench.prices import Price, Rates
from agentworldbench.records import Usage

TABLE: Final = "LiteLLM's table"
MOST_USD: Final = 10_000.0
"""No single answer costs so much, whatever a server says."""
_ABOVE = re.compile(r"(?:input|output)_cost_per_token_above_(\d{1,5})k_tokens")


def table_price(entry: Mapping[str, Any]) -> Price | None:
    """The price in an entry of LiteLLM's table; None where it has none, or zeros: they stand for unknown."""
    limits = {int(match[1]) for name in entry if (match := _ABOVE.fullmatch(name))}
    tiers = [(tier["range"][0], tier) for tier in entry.get("tiered_pricing") or () if tier.get("range")]
    first = min(tiers, key=lambda tier: tier[0])[1] if tiers else entry
    base = _rates(first, "")
    if base is None or not (base.prompt or base.completion):
        return None
    longer = {1000 * limit: _rates(entry, f"_above_{limit}k_tokens") or base for limit in limits}
    longer |= {int(start): _rates(tier, "") or base for start, tier in tiers if start}
    return Price(**base.model_dump(), source=TABLE, longer=dict(sorted(longer.items())))


def _rates(entry: Mapping[str, Any], suffix: str) -> Rates | None:
    """The rates whose names end in `suffix`; what a tier does not name is as in the entry itself."""

    def number(name: str) -> float | None:
        value = entry.get(f"{name}{suffix}", entry.get(name))
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None

    prompt, completion = number("input_cost_per_token"), number("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    cached = number("cache_read_input_token_cost")
    return Rates(
        prompt=prompt,
        completion=max(completion, number("output_cost_per_reasoning_token") or 0.0),
        cached=number("input_cost_per_token_cache_hit") if cached is None else cached,
        written=number("cache_creation_input_token_cost") or None,
    )


def reported_cost(usage: Any) -> float | None:
    """USD that the provider's own usage names; None where it names none."""
    cost = usage.get("cost") if isinstance(usage, Mapping) else None
    if isinstance(cost, bool) or not isinstance(cost, (int, float)):
        return None
    return float(cost) if 0 < cost < MOST_USD else None


def cost_of(
    raw_usage: Any, usage: Usage, given: Price | None, calculated: float | None = None
) -> float | None:
    """USD of one answer: as reported, else by the price that was given, else as `calculated`."""
    told = reported_cost(raw_usage)
    if told is not None:
        return told
    return calculated if given is None else given.cost(usage)
