"""What is said beside every comparison of runs: answers that are one, runs of one model, samples that are left out.

In: `Side`s and the samples that they share. Out: sentences without their full stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentworldbench.compare.sides import OneAnswer, Shared, Side, same_directory
from agentworldbench.render.names import domain_name

ONE_MODEL: Final = (
    "asked one model in one way, by their records: what differs are draws of its answers, not models"
)


def one_answer_notes(first: Side, second: Side, same: OneAnswer) -> Iterator[str]:
    """Why two runs differ by nothing, in all samples or in some."""
    if same_directory(first, second):
        yield "Both are one directory: nothing can differ"
        return
    one_draw = "each is one draw and differs by 0, whatever judges said of it twice"
    if same.cached:
        yield (
            f"What was answered to {same.cached} samples is the same in both, taken from a response cache: {one_draw}"
        )
    if same.copied:
        yield (
            f"What was answered to {same.copied} samples stands in both as one record, or is replayed (a copied "
            f"directory, perhaps resumed): {one_draw}"
        )


def left_out_notes(sides: Sequence[Side], shared: Shared) -> Iterator[str]:
    """How many samples of each run are not compared, and what part of its data a run is about."""
    which = "both" if len(sides) == 2 else "all"
    for side in sides:
        alone = sum(map(len, side.groups.values())) - sum(map(len, shared.values()))
        if alone:
            yield f"{side.run.path}: {alone} of its samples are not asked in {which} runs and are left out"
        if side.results.subset:
            yield f"{side.run.path}: {side.results.subset}"
        missing = [domain_name(domain) for domain in side.groups if domain not in shared]
        if missing:
            yield f"{side.run.path}: {', '.join(missing)} not compared: no sample is asked in {which} runs"
