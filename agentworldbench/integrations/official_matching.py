"""Which line of an official script's file belongs to which sample.

In: the checked lines of the file as `Place`s, and the data. Out: a `Matching`. The script writes whole rows,
so a line belongs to the sample that has all its texts; ids are not needed for that, and android ids collide.
A shortened file may lack the texts: then domain, id and turn decide, and among samples that share these the
order, if the file has a line for each. No sample is given away twice. Lines without sample are kept by
reason, so that they can be told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agentworldbench.dataset import Dataset, Row, lines_of, sample_id
from agentworldbench.integrations.official_script import read_line
from agentworldbench.records import Sample, SampleRef
from agentworldbench.task import Task
from agentworldbench.texts import count_text, digest

NO_SAMPLE: Final = "the data have no sample of that domain, id and turn"
OTHER_TEXTS: Final = "the sample of that id and turn has other texts"
TAKEN: Final = "an earlier line belongs to the same sample"
UNCLEAR: Final = "several samples share their id and turn, and the file has not one line for each"


@dataclass(frozen=True)
class Place:
    """A line of the file: where it is, the sample id without ordinal, and the hash of its texts, if any."""

    line: int
    offset: int
    length: int
    domain: str
    name: str
    texts: str | None
    judged: bool


@dataclass
class Matching:
    """Lines with their samples in the order of the file; `left` are line numbers by reason.

    `shared` counts the matched lines whose domain, id and turn several samples have, `without` the samples
    that have no line.
    """

    pairs: list[tuple[Place, SampleRef]] = field(default_factory=list)
    left: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    shared: int = 0
    without: int = 0

    def told(self, name: str) -> Iterator[str]:
        """What the user is to know of it."""
        if self.shared:
            yield (
                f"{name}: {count_text(self.shared, 'line shares', 'lines share')} domain, id and turn with others; told apart by their texts, or by "
                "their order where they have none"
            )
        for reason, lines in self.left.items():
            yield f"{name}: {count_text(len(lines), 'line')} left out: {reason} (line {some(lines)})"
        if self.without:
            yield f"{name}: no line for {count_text(self.without, 'sample')} of the data, counted as not_in_replay"


def places_of(file: Path, tasks: dict[str, Task]) -> Iterator[Place]:
    """Every line of the file, checked. Raises DataError with file:line and field."""
    for number, offset, raw in lines_of(file):
        line = read_line(raw, file, number, tasks)
        texts = None if line.row is None else _row_digest(line.domain, line.row)
        yield Place(number, offset, len(raw), line.domain, line.name, texts, line.judged is not None)


def match(places: Sequence[Place], dataset: Dataset) -> Matching:
    """Find each line's sample."""
    by_name: dict[str, list[SampleRef]] = defaultdict(list)
    by_texts: dict[str, list[SampleRef]] = defaultdict(list)
    whole = any(place.texts for place in places)
    for ref in dataset.refs:
        by_name[sample_id(ref.domain, ref.row_id, ref.turn_idx)].append(ref)
        if whole:
            by_texts[_sample_digest(dataset.load(ref))].append(ref)
    bare = Counter(place.name for place in places if place.texts is None)
    free = {ref.id for ref in dataset.refs}
    found = Matching()
    for place in places:
        same = by_name.get(place.name, [])
        if place.texts is not None:
            candidates, reason = by_texts.get(place.texts, []), OTHER_TEXTS if same else NO_SAMPLE
        elif len(same) > 1 and bare[place.name] != len(same):
            candidates, reason = [], UNCLEAR
        else:
            candidates, reason = same, NO_SAMPLE
        chosen = next((one for one in candidates if one.id in free), None)
        if chosen is None:
            found.left[TAKEN if candidates else reason].append(place.line)
            continue
        free.remove(chosen.id)
        found.pairs.append((place, chosen))
        found.shared += len(same) > 1
    found.without = len(free)
    return found


def some(lines: Sequence[int]) -> str:
    """The first line numbers of a list."""
    return ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")


def _row_digest(domain: str, row: Row) -> str:
    turns = row.turn_idx
    texts = [row.system_str, row.prompt[:turns], row.response[:turns], row.turn_texts()[-1]]
    return digest([domain, row.id, turns, *texts])


def _sample_digest(sample: Sample) -> str:
    ref = sample.ref
    texts = [sample.system, sample.prompts, sample.responses, sample.action]
    return digest([ref.domain, ref.row_id, ref.turn_idx, *texts])
