"""The order of work: whole trajectories, turns ascending, domains interleaved.

In: the chosen samples and a seed. Out: trajectories one after another. A trajectory's turns are
asked one at a time in ascending order, so that each prompt extends the one before it and prefix
caches hit; domains are mixed evenly, so that a run stopped at any point is a balanced sample.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentworldbench.records import SampleRef
from agentworldbench.selection import rank


def in_order(refs: Sequence[SampleRef], seed: int | None) -> list[tuple[SampleRef, ...]]:
    """Trajectories in seeded order: the k-th of n of a domain comes at (k + 1/2) / n of the run."""
    trajectories: dict[tuple[str, str], list[SampleRef]] = {}
    for ref in refs:
        trajectories.setdefault((ref.domain, ref.cluster), []).append(ref)
    domains: dict[str, list[tuple[SampleRef, ...]]] = {}
    for (domain, _), some in trajectories.items():
        domains.setdefault(domain, []).append(tuple(sorted(some, key=lambda ref: (ref.turn_idx, ref.line))))
    placed: list[tuple[float, bytes, tuple[SampleRef, ...]]] = []
    for some_trajectories in domains.values():
        shuffled = sorted(some_trajectories, key=lambda turns: rank(seed, turns[0].cluster))
        for position, turns in enumerate(shuffled):
            placed.append(((position + 0.5) / len(shuffled), rank(seed, turns[0].id), turns))
    return [turns for _, _, turns in sorted(placed, key=lambda item: item[:2])]
