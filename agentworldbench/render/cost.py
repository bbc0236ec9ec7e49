"""Tables of money and tokens: what a run has cost, and what one may cost.

In: `Results`, or the stages of an estimate as plain rows. Out: tables. An unknown cost is said to be
unknown, or is a least amount; it never counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentworldbench.prices import Price, dollars
from agentworldbench.records import Usage
from agentworldbench.render.names import domain_name
from agentworldbench.render.table import DASH, Table
from agentworldbench.stats.costs import Amount, Spending
from agentworldbench.stats.results import Results
from agentworldbench.texts import count_text

SPENT_COLUMNS = (
    "Domain", "Records", "Prompt", "Cached", "Completion", "Reasoning", "USD", "Saved USD", "Unknown",
)  # fmt: skip
ESTIMATE_COLUMNS = (
    "Domain", "Requests", "Prompt", "Cacheable", "Fresh", "Output low", "Output high", "USD low", "USD high",
)  # fmt: skip


def cost_tables(results: Results) -> list[Table]:
    """What the model and each judge have cost, by domain; nothing for what no provider was asked."""
    stages = [
        (f"predictions by {results.model}", results.predictions.spent, results.predictions.spent_by_domain)
    ]
    for judge in results.judges:
        name = f"verdicts by {results.judge_names[judge.judge.digest]}"
        stages.append((name, judge.spent, judge.spent_by_domain))
    paid = [stage for stage in stages if _asked_somebody(stage[1])]
    order = list(results.predictions.samples)
    tables = [_spent_table(name, spent, domains, order) for name, spent, domains in paid]
    known = sum(spent.known_usd for _, spent, _ in paid)
    if len(paid) > 1 and known:
        least = "at least " if any(spent.unknown for _, spent, _ in paid) else ""
        together = f"All stages together: {least}{dollars(known)} USD."
        tables[-1] = replace(tables[-1], notes=(*tables[-1].notes, together))
    return tables


def _asked_somebody(spent: Spending) -> bool:
    return spent.usage != Usage() or spent.unknown > 0 or spent.known_usd > 0


def _spent_table(name: str, spent: Spending, domains: Mapping[str, Spending], order: Sequence[str]) -> Table:
    rows = [_spent_row(domain_name(domain), domains[domain]) for domain in order if domain in domains]
    rows.append(_spent_row("All", spent))
    notes = [
        "All attempts count, also those of records that were made again. Tokens as the provider counted them."
    ]
    if spent.saved_usd:
        notes.append("Saved: what the provider's prompt cache saved against the price of fresh prompts.")
    if spent.unknown:
        notes.append(
            f"{count_text(spent.unknown, 'record has', 'records have')} a part whose cost is unknown (no price, or a request that ended without "
            "an answer); --price MODEL=IN,OUT[,CACHED] prices counted tokens."
        )
    return Table(
        title=f"Cost of {name}",
        columns=SPENT_COLUMNS,
        together=(("Prompt", "Cached"), ("Completion", "Reasoning"), ("USD", "Saved USD", "Unknown")),
        rows=tuple(rows),
        left=("Domain",),
        strong=(len(rows) - 1,),
        notes=tuple(notes),
    )


def _spent_row(name: str, spent: Spending) -> tuple[str, ...]:
    usage = spent.usage
    counts = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens)
    if spent.unknown:
        cost = f"≥ {dollars(spent.known_usd)}" if spent.known_usd else DASH
    else:
        cost = dollars(spent.known_usd)
    saved = DASH if spent.saved_usd is None else dollars(spent.saved_usd)
    return (name, f"{spent.records:,}", *map(tokens, counts), cost, saved, str(spent.unknown))


def estimate_table(title: str, domains: Mapping[str, Amount], total: Amount, notes: tuple[str, ...]) -> Table:
    """One stage of an estimate, by domain and together."""
    rows = [_amount_row(domain_name(domain), amount) for domain, amount in domains.items()]
    return Table(
        title=title,
        columns=ESTIMATE_COLUMNS,
        together=(("Prompt", "Cacheable", "Fresh"), ("Output low", "Output high"), ("USD low", "USD high")),
        rows=(*rows, _amount_row("All", total)),
        left=("Domain",),
        strong=(len(rows),),
        notes=notes,
    )


def _amount_row(name: str, amount: Amount) -> tuple[str, ...]:
    prompt, cacheable = amount.prompt_tokens, amount.cacheable_tokens
    counts = (prompt, cacheable, prompt - cacheable, amount.output_low, amount.output_high)
    money = [DASH if usd is None else dollars(usd) for usd in (amount.usd_low, amount.usd_high)]
    return (name, f"{amount.requests:,}", *map(tokens, counts), *money)


def tokens(count: int | None) -> str:
    """A count of tokens, or a dash where nobody told it."""
    return DASH if count is None else f"{count:,}"


def price_note(price: Price | None, local: bool) -> str:
    """The price in a sentence."""
    if local:
        return "A local model: no cost."
    if price is None:
        return "No price is known, so the cost is unknown; --price MODEL=IN,OUT[,CACHED] gives one."
    return f"Price: {price.described()}."
