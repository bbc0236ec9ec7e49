"""What tables call things: domains as people write them, and what a run's numbers are about."""

from __future__ import annotations

from collections.abc import Collection
from string import ascii_uppercase

from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.stats.results import Results

_NAMES = {"mcp": "MCP", "swe": "SWE", "os": "OS"}


def domain_name(domain: str) -> str:
    """A domain as people write it."""
    return _NAMES.get(domain, domain.capitalize())


def partial_domains(domains: Collection[str]) -> str | None:
    """Which domains, where they are not exactly those of the benchmark: `1 of 7 domains: Terminal`."""
    official = [name for name in OFFICIAL_DOMAINS if name in domains]
    own = sorted(set(domains) - set(OFFICIAL_DOMAINS))
    if len(official) == len(OFFICIAL_DOMAINS) and not own:
        return None
    words = [f"{len(official)} of {len(OFFICIAL_DOMAINS)} domains"]
    if 0 < len(official) < len(OFFICIAL_DOMAINS):
        words[0] += f": {', '.join(map(domain_name, official))}"
    if own:
        words.append(f"and others: {', '.join(map(domain_name, own))}")
    return " ".join(words)


def letters(count: int) -> list[str]:
    """What tells the judges of a run apart in tables; a single one needs nothing."""
    if count == 1:
        return [""]
    return [ascii_uppercase[n] if n < len(ascii_uppercase) else str(n + 1) for n in range(count)]


def scope(results: Results) -> str:
    """What the numbers are about, where that is less than the whole benchmark."""
    data = results.predict.data
    words = [f"data {data.name}"]
    if simulated := [domain for domain in data.simulated if domain in results.predictions.samples]:
        words.append(f"{' and '.join(map(domain_name, simulated))} simulated")
    count = len(results.predictions.samples)
    if set(results.predictions.samples) < set(OFFICIAL_DOMAINS):
        words.append(f"{count} of {len(OFFICIAL_DOMAINS)} domains")
    if results.subset:
        words.append(results.subset)
    if results.selection.shard:
        parts, _, whole = results.selection.shard.partition("/")
        words.append(f"SHARD {parts} of {whole}: a part of a run")
    if not results.complete:
        words.append("PARTIAL: not all samples have been asked")
    return ", ".join(words)
