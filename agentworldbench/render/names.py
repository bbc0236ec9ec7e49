"""What tables call things: domains as people write them, and what a run's numbers are about."""

from __future__ import annotations

from string import ascii_uppercase

from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.stats.results import Results

_NAMES = {"mcp": "MCP", "swe": "SWE", "os": "OS"}


def domain_name(domain: str) -> str:
    """A domain as people write it."""
    return _NAMES.get(domain, domain.capitalize())


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
    chosen = [
        name for name in ("limit", "limit_trajectories", "sample_id") if getattr(results.selection, name)
    ]
    if chosen:
        words.append(f"a subset ({', '.join(chosen)})")
    if results.selection.shard:
        parts, _, whole = results.selection.shard.partition("/")
        words.append(f"SHARD {parts} of {whole}: a part of a run")
    if not results.complete:
        words.append("PARTIAL: not all samples have been asked")
    return ", ".join(words)
