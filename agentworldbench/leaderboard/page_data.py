"""What the page's script draws the view of a model from: compact JSON, numbers rounded to what is shown.

In: a group with its entries, or one entry. Out: dictionaries for `page_files/board.js`, which names their keys. What all
entries of a group share (files, prompts, judges' settings) stands once, with the group.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentworldbench.leaderboard.entries import Entry, Group
from agentworldbench.leaderboard.provenance import Costs
from agentworldbench.leaderboard.tables import domains_of, kind_name, simulated_domains, why_unranked
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.names import domain_name, partial_domains
from agentworldbench.render.numbers import Shown, in_points
from agentworldbench.render.sample import shown
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.intervals import Interval, Intervals
from agentworldbench.stats.results import Reading

HASH = 12
"""Digits of a hash that the page shows; the whole stands in the entry's file."""


def group_data(group: Group, entries: Sequence[Entry]) -> dict[str, Any]:
    """What tells the group from others, and what its entries share."""
    part = partial_domains(group.about)
    facts = [
        ("Data", _with(group.data, _signs(("at ", group.data_revision), ("files ", group.data_sha256)))),
        *([("Domains", part)] if part else []),
        ("Protocol", _with(group.protocol, _signs(("prompts ", group.prompts_sha256)))),
        ("Judge", _with(group.judge or "none: rule checks alone", _signs(("", group.judge_digest)))),
        *(("Not ranked", text) for text in group.departures),
    ]
    if simulated := simulated_domains(entries):
        facts.append(("Simulated", ", ".join(simulated)))
    run = next((entry for entry in entries if entry.provenance), None)
    return {
        "kind": kind_name(group),
        "facts": [(name, shown(text)) for name, text in facts],
        "score": group.score,
        "domains": [shown(domain_name(domain)) for domain in domains_of(entries)],
        "dimensions": DIMENSIONS,
        "shared": [] if run is None else _shared(group, run),
    }


def _shared(group: Group, entry: Entry) -> list[tuple[str, str]]:
    assert entry.provenance is not None
    data = entry.provenance.predict.data
    found = [
        ("Data set", _with(data.repository or data.name, data.revision)),
        ("Data files, SHA-256", _hashes(data.files)),
        ("All prompts, digest", group.prompts_sha256 or ""),
        ("Tasks, digests", _hashes(entry.provenance.predict.tasks)),
    ]
    for one in entry.judges:
        judge = one.judge
        settings = {
            "protocol": f"{judge.protocol} {judge.protocol_version}",
            "parse": judge.parse,
            "attempts": judge.attempts,
            **judge.sampling,
        }
        found += [
            (f"Judge {judge.model}", _settings(settings)),
            ("Judge's prompts, SHA-256", _hashes({**judge.prompts, **judge.system_prompts})),
        ]
    return [(name, shown(text)) for name, text in found if text]


def pooled(entries: Mapping[str, dict[str, Any]]) -> list[str]:
    """Texts that many runs have alike, once each; in the entries their places stand for them."""
    texts: dict[str, int] = {}
    for run in (entry["run"] for entry in entries.values() if "run" in entry):
        for name in ("harness", "sampling"):
            run[name] = texts.setdefault(run[name], len(texts))
        run["served"] = [texts.setdefault(name, len(texts)) for name in run.get("served", ())]
    return list(texts)


def entry_data(entry: Entry, group: int, rank: int | None, domains: Sequence[str]) -> dict[str, Any]:
    """One entry; fields that it does not have are missing. Lists have a value for each of the group's domains."""
    reading = entry.readings.get(entry.parse) if entry.parse else None
    coverage = entry.coverage or {}
    found: dict[str, Any] = {
        "g": group,
        "name": entry.model,
        "status": entry.status,
        "rank": rank,
        "why": why_unranked(entry),
        "overall": _short(entry.overall),
        "computed": _short(entry.computed_overall) if entry.stated_overall is not None else None,
        "interval": _bounds(in_points(entry.overall_interval)),
        "policy": entry.policy,
        "parse": entry.parse,
        "scores": [_short(entry.scores.get(domain)) for domain in domains],
        "intervals": [_bounds(in_points(entry.intervals.get(domain))) for domain in domains]
        if entry.intervals
        else None,
        "coverage": [_short(coverage.get(domain), 4) for domain in domains]
        if coverage and not reading
        else None,
        "readings": {parse: _reading(one, domains) for parse, one in sorted(entry.readings.items())},
        "dimensions": _dimensions(reading, entry.policy, domains) if reading and entry.policy else None,
        "counts": _counts(reading, domains) if reading else None,
        "failures": _failures(reading) if reading else None,
        "rules": _rules(entry, domains),
        "costs": _costs(entry.costs) if entry.costs else None,
        "run": _run(entry),
        "submitter": entry.submitter.model_dump(exclude_none=True) if entry.submitter else None,
        "bundle": entry.bundle.model_dump(exclude_none=True) if entry.bundle else None,
        "verified": entry.verification.words if entry.verification else None,
        "note": entry.note,
        "source": entry.source.model_dump() if entry.source else None,
    }
    return {name: _visible(value) for name, value in found.items() if value not in (None, {}, [])}


def _visible(value: Any) -> Any:
    """A value whose texts have no character that is not seen, or that turns the line around."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {name: _visible(one) for name, one in value.items()}
    return [_visible(one) for one in value] if isinstance(value, list | tuple) else value


def _reading(reading: Reading, domains: Sequence[str]) -> dict[str, list[float | None]]:
    """Totals by failure policy: macro, micro, then the domains. Where nothing failed, `floor` is `exclude` and missing."""
    found = {
        policy: [
            _short(getattr(reading, f"macro_{policy}")["total"]),
            _short(getattr(reading.micro, policy)["total"]),
            *(
                _short(getattr(reading.domains[name], policy)["total"]) if name in reading.domains else None
                for name in domains
            ),
        ]
        for policy in ("exclude", "floor")
    }
    return {"exclude": found["exclude"]} if found["floor"] == found["exclude"] else found


def _dimensions(reading: Reading, policy: str, domains: Sequence[str]) -> list[list[float | None]]:
    """The five dimensions of the macro mean, then of each domain: score and half of its interval in turn."""
    nothing: dict[str, Intervals] = {}
    known = {name: (getattr(one, policy), one.dimension_intervals) for name, one in reading.domains.items()}
    rows = [(getattr(reading, f"macro_{policy}"), reading.macro_dimension_intervals)]
    rows += [known.get(name, ({}, nothing)) for name in domains]
    return [
        [
            number
            for name in DIMENSIONS
            for number in (
                _short(scores.get(name), 1),
                _half(getattr(intervals.get(name, Intervals()), policy)),
            )
        ]
        for scores, intervals in rows
    ]


def _half(interval: Interval | None) -> float | None:
    shown = in_points(interval)
    return _short(shown.half, 1) if shown else None


def _counts(reading: Reading, domains: Sequence[str]) -> list[tuple[int, int, int] | None]:
    """Scored, all samples, trajectories."""
    blocks = (reading.domains.get(name) for name in domains)
    return [None if one is None else (one.scored, one.samples, one.clusters) for one in blocks]


def _failures(reading: Reading) -> list[str]:
    """How often what went wrong, by domain."""
    return [
        f"{domain_name(domain)}: "
        + ", ".join(
            f"{count} {kind.replace('_', ' ')} ({stage})"
            for stage, some in stages.items()
            for kind, count in some.items()
        )
        for domain, stages in reading.failures.items()
        if any(stages.values())
    ]


def _rules(entry: Entry, domains: Sequence[str]) -> dict[str, Any] | None:
    rules = entry.rules
    if rules is None:
        return None
    return {
        "overall": [_short(rules.overall), _bounds(in_points(rules.interval))],
        "skill": [_short(rules.overall_skill, 3), _bounds(rules.skill_interval, 3)],
        "scores": [_short(rules.scores.get(domain)) for domain in domains],
        "skills": [_short(rules.skill.get(domain), 3) for domain in domains],
        "definition": rules.definition[:HASH],
    }


def _costs(costs: Costs) -> dict[str, Any]:
    stages = [("Predictions", costs.predictions), ("Verdicts", costs.verdicts)]
    cached = costs.predictions_from_cache.answers + costs.verdicts_from_cache.answers
    return {
        "stages": [(name, *_spent(one)) for name, one in stages if one is not None],
        "thousand": _short(costs.usd_per_thousand, 4),
        "cached": cached,
    }


def _spent(one: Spending) -> tuple[float | int | None, ...]:
    """Tokens of prompts, of them cached, of answers, of them reasoning; USD, and how many records have no price."""
    usage = one.usage
    tokens = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.reasoning_tokens)
    return (*tokens, _short(one.cost_usd, 4), one.unknown)


def _run(entry: Entry) -> dict[str, Any] | None:
    run = entry.provenance
    if run is None:
        return None
    sampling = list(run.predict.sampling.items())
    alike = all(some == sampling[0][1] for _, some in sampling)
    told = (
        _settings(sampling[0][1])
        if sampling and alike
        else "; ".join(f"{name}: {_settings(some)}" for name, some in sampling)
    )
    commit = run.git_commit[:HASH] + (" with changes" if run.git_dirty else "") if run.git_commit else None
    found = {
        "date": run.date,
        "harness": _with(run.harness, commit),
        "scored": None if run.scored_by == run.harness else run.scored_by,
        "model": str(run.predict.model.get("model", "")),
        "sampling": told,
        "epochs": None if run.epochs == 1 else run.epochs,
        "repeats": [one.repeats for one in entry.judges if one.repeats > 1],
        "served": [name for one in entry.judges for name in one.served],
        "samples": sum(run.samples.values()),
    }
    return {name: value for name, value in found.items() if value not in (None, [])}


def _settings(values: Mapping[str, Any]) -> str:
    """What was set; parameters that were left to the server are not named."""
    known = {name: value for name, value in values.items() if value not in (None, {}, [], "server default")}
    told = [
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in known.items()
    ]
    return ", ".join(told) or "server defaults"


def _hashes(hashes: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name} {value[:HASH]}" for name, value in hashes.items() if value)


def _signs(*hashes: tuple[str, str | None]) -> str:
    """The first digits of what is known of them, each with its word before it."""
    return ", ".join(f"{word}{value[:8]}" for word, value in hashes if value)


def _with(text: str, more: str | None) -> str:
    return f"{text} ({more})" if more else text


def _bounds(interval: Interval | Shown | None, decimals: int = 2) -> list[float] | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    return [round(interval.low, decimals), round(interval.high, decimals)]


def _short(value: float | None, decimals: int = 2) -> float | None:
    return None if value is None else round(value, decimals)
