"""Leaderboard tables: one a group, under a heading that names data, protocol and judge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from agentworldbench.leaderboard.entries import (
    RANK_COVERAGE,
    Entry,
    Group,
    RuleScores,
    grouped,
    in_order,
    ranks,
)
from agentworldbench.render.names import domain_name, partial_domains
from agentworldbench.render.numbers import interval_notes, score_cell, share_cell
from agentworldbench.render.table import DASH, Table, percent, points


def leaderboard_tables(entries: Sequence[Entry]) -> list[Table]:
    """One table for each group of entries."""
    return [group_table(group, some) for group, some in grouped(entries)]


def group_table(group: Group, entries: list[Entry]) -> Table:
    """The table of one group, best first; rule scores stand at its end and order nothing."""
    domains, beside = domains_of(entries), _beside(group, entries)
    covered = ("Coverage",) if any(entry.coverage for entry in entries) else ()
    rows = []
    for rank, entry in zip(ranks(entries), entries, strict=True):
        computed = score_cell(entry.computed_overall, entry.overall_interval)
        stated = computed if entry.stated_overall is None else points(entry.stated_overall)
        rows.append(
            (
                DASH if rank is None else str(rank),
                entry.model + ("*" if entry.note else ""),
                entry.status,
                stated,
                points(entry.computed_overall),
                *(score_cell(entry.scores.get(domain), entry.intervals.get(domain)) for domain in domains),
                *(percent(entry.least_coverage) for _ in covered),
                *(cell(entry.rules) for cell in beside.values()),
            )
        )
    return Table(
        title=f"{kind_name(group)} — {' · '.join(group_facts(group))}",
        columns=(
            "Rank",
            "Model",
            "Status",
            "Overall",
            "Computed",
            *map(domain_name, domains),
            *covered,
            *beside,
        ),
        rows=tuple(rows),
        left=("Model", "Status"),
        notes=group_notes(group, entries),
    )


def domains_of(entries: Sequence[Entry]) -> list[str]:
    """Every domain that an entry has a score of, in the paper's order, users' own behind."""
    return list(in_order(domain for entry in entries for domain in entry.scores))


def _beside(group: Group, entries: Sequence[Entry]) -> dict[str, Callable[[RuleScores | None], str]]:
    """The columns of what the rules say, where an entry has it; in a group of rule scores that is skill alone."""
    if not any(entry.rules for entry in entries):
        return {}
    score = {"Rule score": _rule_score} if group.score == "judge" else {}
    return {**score, "Skill": _skill}


def _rule_score(rules: RuleScores | None) -> str:
    return DASH if rules is None else score_cell(rules.overall, rules.interval)


def _skill(rules: RuleScores | None) -> str:
    return DASH if rules is None else share_cell(rules.overall_skill, rules.skill_interval)


def simulated_domains(entries: Sequence[Entry]) -> list[str]:
    """The domains of a group's data in which no real environment answered, as people write them."""
    runs = [entry.provenance.predict.data.simulated for entry in entries if entry.provenance]
    return [domain_name(domain) for domain in dict.fromkeys(name for some in runs for name in some)]


def why_unranked(entry: Entry) -> str | None:
    """Why an entry has no rank; None where it has one."""
    if entry.rankable:
        return None
    if entry.group.departures:
        return "; ".join(entry.group.departures)
    if entry.anchor:
        return "an anchor to compare with, not a model"
    if entry.coverage is None:
        return "coverage is not disclosed"
    short = [domain_name(name) for name in entry.scores if entry.coverage.get(name, 0) < RANK_COVERAGE]
    return f"coverage below 99 % in {', '.join(short)}"


def group_notes(group: Group, entries: Sequence[Entry]) -> tuple[str, ...]:
    """What must be said below a group's table."""
    return _notes(group, entries, _beside(group, entries))


def _notes(group: Group, entries: Sequence[Entry], beside: Collection[str]) -> tuple[str, ...]:
    notes = [f"* {entry.model}: {entry.note}" for entry in entries if entry.note]
    notes += [
        f"{entry.model}: verified by {entry.verification.words}." for entry in entries if entry.verification
    ]
    if simulated := simulated_domains(entries):
        notes.append(f"Simulated, not recorded from a real environment: {', '.join(simulated)}.")
    if part := partial_domains(group.about):
        notes.append(f"Overall is about {part}. It compares with no overall score of other domains.")
    departures = group.departures
    if departures:
        notes.append(f"No ranks: {'; '.join(departures)}. Ordered by overall score.")
    elif any(not entry.rankable and not entry.anchor for entry in entries):
        notes.append(
            "No rank where coverage is not disclosed or below 99 % in a domain; ordered by overall score."
        )
    if not departures and any(entry.anchor for entry in entries):
        notes.append("Baselines of the harness are anchors to compare with and have no rank.")
    if any(entry.coverage for entry in entries):
        notes.append("Coverage: scored of all samples, in the domain that has the least.")
    if beside:
        notes.append(
            f"{' and '.join(beside)}: of the same predictions, by rules alone; they order nothing here."
        )
    if len({entry.rules.definition for entry in entries if entry.rules}) > 1:
        notes.append("The rule scores were computed by unlike task files and do not compare.")
    shown = [(entry.model, entry.overall_interval) for entry in entries]
    shown += [(entry.model, one) for entry in entries for one in entry.intervals.values()]
    if beside:
        rules = [(entry.model, entry.rules) for entry in entries if entry.rules]
        shown += [(model, one) for model, rule in rules for one in (rule.interval, rule.skill_interval)]
    notes += interval_notes(shown)
    sources = dict.fromkeys(
        f"{e.source.title}, {e.source.location} ({e.source.identifier})" for e in entries if e.source
    )
    return (*notes, *(f"Source: {source}" for source in sources))


def kind_name(group: Group) -> str:
    """What the numbers of a group are."""
    if group.score == "judge":
        return "Judge scores"
    # What a publication calls accuracy is not the mean of our metrics; only measured groups know their files.
    return "Rule scores" if group.data_sha256 else "Rule accuracy"


def group_facts(group: Group) -> tuple[str, ...]:
    """What tells a group from every other: data, domains where they are not all, protocol, judge, and what sets it
    apart. Hashes by 8 digits."""
    revision = f" at {group.data_revision[:8]}" if group.data_revision else ""
    files = f" (files {group.data_sha256[:8]})" if group.data_sha256 else ""
    prompts = f" (prompts {group.prompts_sha256[:8]})" if group.prompts_sha256 else ""
    digest = f" ({group.judge_digest[:8]})" if group.judge_digest else ""
    part = partial_domains(group.about)
    return (
        f"data {group.data}{revision}{files}",
        *([part] if part else []),
        f"protocol {group.protocol}{prompts}",
        f"judge {group.judge}{digest}" if group.score == "judge" else "rule checks, no judge",
        *group.departures,
    )
