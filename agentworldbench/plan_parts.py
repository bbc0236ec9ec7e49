"""Parts of what a plan selects, as designs and as bills.

In: a `Plan`. Out: parts of its selection, each with the flags that select it; the `Design` of a part's domains
(`stats/variance.py`); and what answering a part costs, any number of times and with any number of verdicts, from an
estimate of two of each as if nothing were stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from statistics import fmean, pstdev
from tempfile import TemporaryDirectory
from typing import Final

from agentworldbench.config import RunConfig
from agentworldbench.estimate import KINDS, Kind, estimate_by_kind
from agentworldbench.estimated import Estimate
from agentworldbench.plan import Plan
from agentworldbench.records import SampleRef
from agentworldbench.selection import select
from agentworldbench.stats.variance import Design

PARTS: Final = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(1))


def design_of(refs: Sequence[SampleRef], epochs: int, repeats: int, scored: float = 1.0) -> Design:
    """The design of one domain's samples, of which a share `scored` gets a score."""
    sizes: dict[str, int] = {}
    for ref in refs:
        sizes[ref.cluster] = sizes.get(ref.cluster, 0) + 1
    turns = fmean(sizes.values())
    return Design(
        trajectories=len(sizes),
        turns=max(1.0, turns * scored),
        epochs=epochs,
        repeats=repeats,
        unevenness=pstdev(sizes.values()) / turns,
    )


def parts_of(plan: Plan) -> Iterator[tuple[str, tuple[SampleRef, ...]]]:
    """Parts of what a plan selects, as flags and samples, smallest first: what `awb run` with those flags takes. No flags
    stand for all of the data, or for samples named one by one."""
    before = 0
    for part in PARTS:
        flags = _flags(plan.config, part) if part < 1 else {}
        if flags is None:
            continue
        config = plan.config.model_copy(update=flags)
        refs = select(plan.samples.dataset.refs, config) if flags else plan.samples.refs
        if len(refs) > before and (part == 1 or len(refs) < len(plan.samples.refs)):
            before = len(refs)
            yield _words(config), refs


def _words(config: RunConfig) -> str:
    """The flags that select samples, as they are typed."""
    flags = {name: getattr(config, name) for name in ("limit_trajectories", "limit", "shard", "seed")}
    return " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in flags.items() if value is not None
    )


def _flags(config: RunConfig, part: Fraction) -> dict[str, object] | None:
    """The flags that select a part of what `config` does; None where samples are named one by one."""
    limit = config.limit
    if config.sample_id:
        return None
    if limit is None and config.limit_trajectories is not None:
        return {"limit_trajectories": math.ceil(part * config.limit_trajectories)}
    if limit is not None and "-" in limit:
        first, last = map(int, limit.split("-"))
        return {"limit": f"{first}-{first + math.ceil(part * (last - first + 1)) - 1}"}
    if limit is not None and "." not in limit:
        return {"limit": str(math.ceil(part * int(limit)))}
    return {"limit": f"{float(part * Fraction(limit or 1)):.9f}".rstrip("0")}


@dataclass(frozen=True)
class PartCosts:
    """What two answers to each sample of a part cost, and two verdicts on each, by what each request adds."""

    kinds: dict[Kind, Estimate]

    @property
    def unpriced(self) -> tuple[str, ...]:
        """Models of unknown price."""
        return self.kinds["first"].unpriced

    def numbers(self, epochs: int, repeats: int) -> list[float]:
        """Requests, tokens low and high, USD low and high. Each further answer costs as much as the second, each further
        verdict as much as the second."""
        first, answer, verdict = (_numbers(self.kinds[kind]) for kind in KINDS)
        rows = zip(first, answer, verdict, strict=True)
        return [a + (epochs - 1) * b + epochs * (repeats - 1) * c / 2 for a, b, c in rows]


def _numbers(one: Estimate) -> list[float]:
    totals = [stage.total for stage in one.stages]
    low = sum(total.prompt_tokens + total.output_low for total in totals)
    high = sum(total.prompt_tokens + total.output_high for total in totals)
    return [sum(total.requests for total in totals), low, high, one.usd_low, one.usd_high]


def part_costs(plan: Plan, refs: Sequence[SampleRef]) -> PartCosts:
    """What answering these samples of a plan costs. Raises DataError where a row cannot be read."""
    with TemporaryDirectory() as empty:  # nothing is stored there, so all is due
        twice = plan.config.model_copy(update={"epochs": 2, "judge_repeats": 2})
        samples = replace(plan.samples, refs=tuple(refs))
        return PartCosts(estimate_by_kind(replace(plan, path=Path(empty), samples=samples, config=twice)))
