"""Which samples of a data set a run is about.

In: sample references and the selection fields of the configuration. Out: the chosen references in
file order. Draws are seeded and nested: the samples of `--limit 10` are among those of `--limit 20`
under the same seed, so a run can grow. Limits count per domain. A shard divides what the rest selects.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Final

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError
from agentworldbench.option_values import shard_parts
from agentworldbench.records import SampleRef
from agentworldbench.yamlfile import did_you_mean

ANSWER_CHARS: Final = 10_000
"""What a sample weighs beside its prompt where work is divided: its answer, and the judging of it."""


def rank(seed: int | None, name: str) -> bytes:
    """Seeded pseudo-random sort key of a name; the same on every machine."""
    return hashlib.sha256(f"{seed or 0}/{name}".encode()).digest()


def select(refs: Sequence[SampleRef], config: RunConfig) -> tuple[SampleRef, ...]:
    """Apply --sample-id, --limit-trajectories, --limit and --shard, in this order. Raises ConfigError."""
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
    if config.shard is not None:
        parts, whole = shard_parts(config.shard)
        belongs = shards(chosen, whole)
        chosen = [ref for ref in chosen if belongs[ref.id] in parts]
        if not chosen:
            raise ConfigError(
                f"--shard {config.shard}: this part is empty; there are fewer trajectories than parts"
            )
    return tuple(chosen)


def shards(refs: Iterable[SampleRef], whole: int) -> dict[str, int]:
    """Which of `whole` parts, counted from 1, each sample belongs to, by id: trajectories stay in one piece.

    In each domain the part with the shortest prompts so far gets the next trajectory, the longest ones
    first. A domain is divided without a look at the others, so that a run may grow by domains; which
    part begins differs by domain, so that no part gets all that is left over.
    """
    domains: dict[str, dict[str, list[SampleRef]]] = {}
    for ref in refs:
        domains.setdefault(ref.domain, {}).setdefault(ref.cluster, []).append(ref)
    found: dict[str, int] = {}
    for domain, clusters in domains.items():
        sizes = {
            name: sum(ref.context_chars + ANSWER_CHARS for ref in some) for name, some in clusters.items()
        }
        first = int.from_bytes(rank(0, domain)[:4], "big") % whole
        loads = [(0, place) for place in range(whole)]
        for name in sorted(clusters, key=lambda name: (-sizes[name], name)):
            load, place = heapq.heappop(loads)
            heapq.heappush(loads, (load + sizes[name], place))
            found |= dict.fromkeys((ref.id for ref in clusters[name]), (first + place) % whole + 1)
    return found


def united_shards(parts: Iterable[str | None]) -> str | None:
    """What several shards are together: a shard of several parts, or None for the whole or for parts of
    different divisions."""
    known = [None if text is None else shard_parts(text) for text in parts]
    wholes = {one[1] for one in known if one is not None}
    united = {part for one in known if one is not None for part in one[0]}
    if None in known or len(wholes) != 1 or len(united) == max(wholes):
        return None
    return f"{','.join(map(str, sorted(united)))}/{max(wholes)}"


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
