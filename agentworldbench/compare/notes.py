"""What is said beside every comparison of runs: answers that are one, runs of one model, samples that are left out.

In: `Side`s and the samples that they share. Out: sentences without their full stop. Runs are called A, B, C … in their
order, as in the tables; what is true of several stands once and names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agentworldbench.compare.sides import OneAnswer, Shared, Side, same_directory
from agentworldbench.render.names import domain_name
from agentworldbench.render.ranking import letter
from agentworldbench.texts import count_text

ONE_MODEL: Final = (
    "asked one model in one way, by their records: what differs are draws of its answers, not models"
)


def called(runs: Sequence[int]) -> str:
    """Runs by their places: `A`, `A and B`, `A, B and C`."""
    names = [letter(run) for run in runs]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def named_once(notes: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Notes with whom they are about: equal ones stand once, with all whom they are about."""
    about: dict[str, list[str]] = {}
    for who, note in notes:
        about.setdefault(note, []).append(who)
    for note, everybody in about.items():
        yield f"{'; '.join(everybody)}: {note}"


def one_answer_notes(first: Side, second: Side, same: OneAnswer) -> Iterator[str]:
    """Why two runs differ by nothing, in all samples or in some."""
    if same_directory(first, second):
        yield "Both are one directory: nothing can differ"
        return
    one_draw = "each is one draw and differs by 0, whatever judges said of it twice"
    if same.cached:
        yield (
            f"What was answered to {count_text(same.cached, 'sample')} is the same in both, taken from a response cache: {one_draw}"
        )
    if same.copied:
        yield (
            f"What was answered to {count_text(same.copied, 'sample')} stands in both as one record, or is replayed (a copied "
            f"directory, perhaps resumed): {one_draw}"
        )


def left_out_notes(sides: Sequence[Side], shared: Shared) -> Iterator[str]:
    """How many samples of each run are not compared, and what part of its data a run is about."""
    found: dict[str, list[int]] = {}
    for run, side in enumerate(sides):
        for note in _left_out(side, shared, "both" if len(sides) == 2 else "all"):
            found.setdefault(note, []).append(run)
    for note, runs in found.items():
        yield f"{called(runs)}: {note}"


def _left_out(side: Side, shared: Shared, which: str) -> Iterator[str]:
    alone = sum(map(len, side.groups.values())) - sum(map(len, shared.values()))
    if alone:
        some = count_text(alone, "of its samples is", "of its samples are")
        yield f"{some} not asked in {which} runs and left out"
    if side.results.subset:
        yield side.results.subset
    missing = [domain_name(domain) for domain in side.groups if domain not in shared]
    if missing:
        yield f"{', '.join(missing)} not compared: no sample is asked in {which} runs"
