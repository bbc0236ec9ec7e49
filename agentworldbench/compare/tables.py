"""From the records of a comparison to its tables: titles, notes, and the places of replies.

In: a `Comparison`, a `Ranking` or an `AgainstEntry`. Out: tables, which `awb compare` prints and the page of several
runs shows.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from agentworldbench.compare.reported import AgainstEntry
from agentworldbench.compare.several import Ranking, Standings
from agentworldbench.compare.two import Comparison, Measure, Regression, Reply
from agentworldbench.protocol import Policy
from agentworldbench.render.against import against_table
from agentworldbench.render.comparison import (
    FORCED,
    differences_table,
    regression_cells,
    regressions_table,
)
from agentworldbench.render.ranking import PairRow, RankedRow, letter, pairs_table, ranking_table
from agentworldbench.render.table import DASH, Table
from agentworldbench.texts import count_text


def two_tables(found: Comparison) -> list[Table]:
    """Of each measure the differences, then the samples that got worse."""
    return [table for measure in found.measures for table in _measure_tables(found, measure)]


def _measure_tables(found: Comparison, measure: Measure) -> Iterator[Table]:
    by = _by(measure)
    forced = _forced(found.unlike)
    notes = [
        f"A: {found.first.model} ({found.first.path}). B: {found.second.model} ({found.second.path}). "
        f"{count_text(found.shared, 'sample')} of both, data {found.first.data}, 0-100; {_policy(measure.policy)}",
        *_sentences(found.notes),
        *(f"Unlike: {what}." for what in found.unlike),
    ]
    scored = {domain: (one.samples, one.scored) for domain, one in measure.coverage.items()}
    yield differences_table(f"B − A by {by}{forced}", measure.differences, measure.by_task, scored, notes)
    rows = [
        regression_cells(
            one.sample_id,
            one.first,
            one.second,
            (one.first_failure, one.second_failure),
            (_place(one.first_replies), _place(one.second_replies)),
        )
        for one in measure.regressions
    ]
    commands = _commands(measure.regressions, found.first.data_argument)
    notes = [_LOOK] if commands else []
    lost = regressions_table(f"Worse in B by {by}{forced}", rows, notes, commands)
    if lost:
        yield lost


def _place(replies: Sequence[Reply]) -> str:
    """File and line of the first epoch's reply."""
    return f"{replies[0].file}:{replies[0].line}" if replies else DASH


_LOOK = (
    "Replies stand at FILE:LINE, with their sample and epoch (JSON, -f json, has the places of all epochs). Both replies to "
    "the first of the list, and what really came:"
)


def _commands(regressions: Sequence[Regression], data: str) -> list[str]:
    """Commands to copy that print both replies to the first sample of the list, and the sample."""
    first = next((one for one in regressions if one.first_replies and one.second_replies), None)
    if first is None:
        return []
    replies = (first.first_replies[0], first.second_replies[0])
    return [
        *(f"sed -n {one.line}p {shlex.quote(one.file)} | python3 -m json.tool" for one in replies),
        f"awb data show {shlex.quote(data)} {shlex.quote(first.sample_id)}",
    ]


def several_tables(found: Ranking) -> list[Table]:
    """Of each measure the runs with their ranks, then every pair."""
    return [table for measure in found.measures for table in ranking_tables(found, measure)]


def ranking_tables(found: Ranking, measure: Standings) -> Iterator[Table]:
    """One measure: the runs with their ranks, then every pair."""
    by = _by(measure)
    forced = _forced(found.unlike)
    runs = ". ".join(f"{letter(number)}: {one.model} ({one.path})" for number, one in enumerate(found.runs))
    notes = [
        f"{runs}.",
        f"{count_text(found.shared, 'sample')} of all runs, data {found.runs[0].data}, 0-100; {_policy(measure.policy)}",
        *_sentences((*found.left_out, *found.notes)),
        *(f"Unlike: {what}." for what in found.unlike),
    ]
    rows = [
        RankedRow(
            one.run,
            found.runs[one.run].model,
            one.rank,
            one.unranked,
            (one.overall.value, one.overall.interval),
            {
                domain: (score.value, score.interval, one.coverage[domain])
                for domain, score in one.domains.items()
            },
        )
        for one in measure.standings
    ]
    yield ranking_table(f"{len(rows)} runs by {by}{forced}", rows, notes)
    pairs = [PairRow(one.first, one.second, one.macro, one.macro_by_task) for one in measure.pairs]
    yield pairs_table(f"Every two by {by}{forced}", pairs, [one.run for one in measure.standings])


def entry_tables(found: AgainstEntry) -> list[Table]:
    """The run beside the entry."""
    entry, group = found.entry, found.entry.group
    notes = [
        f"Run: {found.run.model} ({found.run.path}), data {found.run.data}, judge {found.judge}. Published: {entry.model} ({entry.slug}, "
        f"{entry.status}), data {group.data}, judge {group.judge}. 0-100; {_policy(found.policy)}",
        *_sentences(found.notes),
        *(f"Unlike: {what}." for what in found.unlike),
    ]
    title = f"{found.run.model} against {entry.model}, {entry.status}{_forced(found.unlike)}"
    return [against_table(title, found.domains, found.overall, found.coverage, notes)]


def _by(measure: Measure | Standings) -> str:
    words = {"judge": f"judge {measure.name}", "panel": f"the panel, {measure.name}", "rules": "rules"}
    return words[measure.kind]


def _forced(unlike: Sequence[str]) -> str:
    return f" — {FORCED}" if unlike else ""


def _policy(policy: Policy) -> str:
    return f"{policy}: {'a failed sample counts 0' if policy == 'floor' else 'samples that failed are left out'}."


def _sentences(notes: Sequence[str]) -> list[str]:
    """Each note as a sentence, once."""
    return [f"{note}." for note in dict.fromkeys(notes)]
