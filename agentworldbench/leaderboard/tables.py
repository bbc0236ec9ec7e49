"""Leaderboard tables: one a group, under a heading that names data, protocol and judge."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from agentworldbench.leaderboard.entries import Entry, Group, RuleScores, grouped, ranks
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import interval_notes, score_cell, share_cell
from agentworldbench.render.table import DASH, Table, points


def leaderboard_tables(entries: Sequence[Entry]) -> list[Table]:
    """One table for each group of entries."""
    return [group_table(group, some) for group, some in grouped(entries)]


def group_table(group: Group, entries: list[Entry]) -> Table:
    """The table of one group, best first; rule scores stand at its end and order nothing."""
    domains = [domain for domain in OFFICIAL_DOMAINS if any(domain in entry.scores for entry in entries)]
    domains += sorted({domain for entry in entries for domain in entry.scores} - set(domains))
    beside = _beside(group, entries)
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
                *(cell(entry.rules) for cell in beside.values()),
            )
        )
    return Table(
        title=_heading(group),
        columns=("Rank", "Model", "Status", "Overall", "Computed", *map(domain_name, domains), *beside),
        rows=tuple(rows),
        left=("Model", "Status"),
        notes=_notes(entries, beside),
    )


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


def _notes(entries: Sequence[Entry], beside: Collection[str]) -> tuple[str, ...]:
    notes = [f"* {entry.model}: {entry.note}" for entry in entries if entry.note]
    if any(not entry.rankable for entry in entries):
        notes.append(
            "No rank where coverage is not disclosed or below 99 % in a domain; ordered by overall score."
        )
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


def _heading(group: Group) -> str:
    digest = f" ({group.judge_digest[:8]})" if group.judge_digest else ""
    what = f"judge {group.judge}{digest}" if group.score == "judge" else "rule checks, no judge"
    # What a publication calls accuracy is not the mean of our metrics; only measured groups know their files.
    rules = "Rule scores" if group.data_sha256 else "Rule accuracy"
    kind = "Judge scores" if group.score == "judge" else rules
    revision = f" at {group.data_revision[:8]}" if group.data_revision else ""
    files = f" (files {group.data_sha256[:8]})" if group.data_sha256 else ""
    return f"{kind} — data {group.data}{revision}{files} · protocol {group.protocol} · {what}"
