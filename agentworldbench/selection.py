"""Which samples of a data set a run is about.

In: sample references and the selection fields of the configuration. Out: the chosen references in
file order. Draws are seeded and nested: the samples of `--limit 10` are among those of `--limit 20`
under the same seed, so a run can grow. Limits count per domain.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError
from agentworldbench.records import SampleRef
from agentworldbench.yamlfile import did_you_mean


def rank(seed: int | None, name: str) -> bytes:
    """Seeded pseudo-random sort key of a name; the same on every machine."""
    return hashlib.sha256(f"{seed or 0}/{name}".encode()).digest()


def select(refs: Sequence[SampleRef], config: RunConfig) -> tuple[SampleRef, ...]:
    """Apply --sample-id, --limit-trajectories and --limit, in this order. Raises ConfigError."""
    chosen = list(refs)
    if config.sample_id:
        known = {ref.id for ref in refs}
        for wanted in config.sample_id:
            if wanted not in known:
                raise ConfigError(
                    f"--sample-id {wanted}: no such sample in this data{did_you_mean(wanted, known)}"
                )
        chosen = [ref for ref in chosen if ref.id in config.sample_id]
    if config.limit_trajectories is not None:
        count = config.limit_trajectories
        chosen = _per_domain(chosen, lambda some: _draw_clusters(some, count, config.seed))
    if config.limit is not None:
        limit = config.limit
        chosen = _per_domain(chosen, lambda some: _limited(some, limit, config.seed))
    if not chosen:
        raise ConfigError("this selection holds no sample")
    return tuple(chosen)


def _per_domain(
    refs: Sequence[SampleRef], keep: Callable[[list[SampleRef]], Iterable[SampleRef]]
) -> list[SampleRef]:
    domains: dict[str, list[SampleRef]] = {}
    for ref in refs:
        domains.setdefault(ref.domain, []).append(ref)
    kept = {ref.id for some in domains.values() for ref in keep(some)}
    return [ref for ref in refs if ref.id in kept]


def _draw_clusters(refs: list[SampleRef], count: int, seed: int | None) -> list[SampleRef]:
    names = sorted({ref.cluster for ref in refs}, key=lambda name: rank(seed, name))[:count]
    return [ref for ref in refs if ref.cluster in names]


def _limited(refs: list[SampleRef], limit: str, seed: int | None) -> list[SampleRef]:
    if "-" in limit:
        first, last = (int(part) for part in limit.split("-"))
        return refs[first - 1 : last]
    # Exact: as a float, 0.07 of 100 rows would round up to 8.
    count = math.ceil(Fraction(limit) * len(refs)) if "." in limit else int(limit)
    return sorted(refs, key=lambda ref: rank(seed, ref.id))[:count]
