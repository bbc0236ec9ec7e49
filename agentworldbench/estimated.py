"""What a plan will ask and cost as a record, and as people read it.

In: what `estimate.py` has counted. Out: an `Estimate`; a table for each stage, what all cost together, and the few lines
of it before a run: for `awb estimate`, `awb run`, `awb verify --audit` and notebooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from agentworldbench.prices import Price, dollars
from agentworldbench.records import Record
from agentworldbench.render.cells import cell_html
from agentworldbench.render.cost import estimate_table, price_note
from agentworldbench.render.table import Table
from agentworldbench.stats.costs import Amount
from agentworldbench.texts import count_text


class StageEstimate(Record):
    """One model in one stage. `tokens_from` says how prompts were measured (None: no text is read)."""

    stage: Literal["predict", "judge"]
    model: str
    local: bool
    price: Price | None
    tokens_from: str | None
    domains: dict[str, Amount] = Field(default_factory=dict)

    @property
    def total(self) -> Amount:
        """All domains together."""
        nothing = Amount(usd_low=0.0, usd_high=0.0)
        return sum(self.domains.values(), nothing)


class Estimate(Record):
    """All stages of a plan. `usd_low` and `usd_high` leave out the stages in `unpriced`."""

    schema_version: Literal[1] = 1
    stages: tuple[StageEstimate, ...]
    stored_predictions: int = 0
    usd_low: float = 0.0
    usd_high: float = 0.0
    unpriced: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """Below a notebook's cell: what `awb estimate` prints."""
        return cell_html(estimate_tables(self), closing_lines(self))


def estimate_tables(made: Estimate) -> list[Table]:
    """A table for each stage."""
    return [_table(stage) for stage in made.stages]


def brief_lines(made: Estimate) -> Iterator[str]:
    """A line for each stage that asks a server, before a run."""
    for stage in made.stages:
        total = stage.total
        if stage.local or not total.requests:
            continue
        cached = f" ({total.cacheable_tokens:,} of them cacheable)" if total.cacheable_tokens else ""
        if total.usd_low is None or total.usd_high is None:
            cost = "no price known"
        else:
            cost = f"{dollars(total.usd_low)} to {dollars(total.usd_high)} USD"
        yield (
            f"Estimate, {stage.stage} with {stage.model}: {count_text(total.requests, 'request')}, about {total.prompt_tokens:,} "
            f"prompt tokens{cached}, {cost}"
        )


def closing_lines(made: Estimate) -> Iterator[str]:
    """What all stages cost together, and what is not in that."""
    if made.stored_predictions:
        yield f"{count_text(made.stored_predictions, 'prediction is', 'predictions are')} stored already and not in these numbers."
    if made.unpriced:
        yield f"Unknown: what {', '.join(made.unpriced)} costs (--price MODEL=IN,OUT[,CACHED] gives a price)."
    if made.usd_high or not made.unpriced:
        rest = "The rest" if made.unpriced else "Together"
        yield f"{rest}: {dollars(made.usd_low)} to {dollars(made.usd_high)} USD."


def _table(stage: StageEstimate) -> Table:
    notes = [price_note(stage.price, stage.local)]
    if stage.tokens_from:
        notes.insert(0, f"Prompt tokens: {stage.tokens_from}.")
        notes.append(
            "Cacheable: what an earlier turn of the same trajectory has sent. Low: all of it cached, short answers. "
            "High: nothing cached, long answers."
        )
        flag = "--output-tokens" if stage.stage == "predict" else "--judge-output-tokens"
        notes.append(f"Lengths of answers are assumed, reasoning included; {flag} LOW-HIGH sets them.")
    title = "Predictions by" if stage.stage == "predict" else "Verdicts by"
    return estimate_table(f"{title} {stage.model}", stage.domains, stage.total, tuple(notes))
