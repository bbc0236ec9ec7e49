"""What a report says, as frozen records: the overview, a line of the browser, the page of a sample.

The builder (`site.py`) fills them from a run directory, the templates in `reports/templates/` write them as HTML. Texts
in them are as they came; those that are shown are cut (`Text`), and templates escape all of them. `Line` and
`Manifest` are written to disk, the others live as long as their page is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentworldbench.records import Record
from agentworldbench.render.diff import Difference
from agentworldbench.render.nodes import NodeRow
from agentworldbench.render.plots import Plot
from agentworldbench.render.table import Table
from agentworldbench.stats.conflicts import Side


class Line(Record):
    """One prediction in the list of samples: of one sample and epoch. Scores are 0-100, metrics [0, 1].

    `scores`, `judge_failures` and `sides` have a place for each judge; `characters` is the length of the prompt.
    """

    page: str
    sample_id: str
    domain: str
    cluster: str
    epoch: int
    turn: int
    turns: int
    characters: int
    failure: str | None
    scores: tuple[float | None, ...]
    judge_failures: tuple[str | None, ...]
    sides: tuple[Side | None, ...]
    rule: float | None
    metrics: dict[str, float]
    unread: tuple[str, ...] = ()


class Reported(Record):
    """What a report holds of one run: the folder its pages stand in, and how many."""

    folder: str
    run: str
    model: str
    results_made_at: str
    pages: int
    trajectories: int
    plots: tuple[str, ...]


class Manifest(Record):
    """`report.json`: by it a folder is known to be a report, which another one may replace."""

    schema_version: Literal[1] = 1
    made_by: str
    made_at: str
    reports: tuple[Reported, ...]


@dataclass(frozen=True)
class File:
    """A file with a whole text: its name in the folder `texts`, and its bytes."""

    name: str
    size: int


@dataclass(frozen=True)
class Text:
    """As much of a text as its page holds, made visible, and how many characters of it are left out."""

    text: str
    left: int
    json: bool = False
    """Whether the whole is a JSON object or list, which the page can fold."""
    ansi: bool = False
    """Whether it holds escape sequences of terminals, which the page can show as colours."""
    file: File | None = None
    """Where the whole stands, when something is left out."""


@dataclass(frozen=True)
class VerdictView:
    """One verdict: values as they count (None: none), sentences as (strength | weakness, text), the whole reply."""

    judge: str
    protocol: str
    repeat: int
    score: float | None
    values: tuple[tuple[str, float | None], ...]
    failure: str | None
    other_reading: str | None
    """What the other rules make of the same reply, where that differs."""
    said: tuple[tuple[str, str], ...]
    side: Side | None
    reply: Text | None
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MetricView:
    """One metric of the prediction: [0, 1], beside it what copying scores; `stands` says how a decisive one came out."""

    name: str
    value: float | None
    baseline: float | None
    primary: bool
    stands: Literal["right", "wrong", "between", "other"]
    reason: str


@dataclass(frozen=True)
class HistoryView:
    """Where the turns before stand: the file of the trajectory, and the places in it of these turns."""

    file: str
    key: str
    turns: tuple[int, ...]


@dataclass(frozen=True)
class Neighbour:
    """Another page: its name, and what it is called in a link."""

    page: str
    name: str


@dataclass(frozen=True)
class SampleView:
    """The page of one prediction."""

    sample_id: str
    page: str
    domain: str
    turn: int
    turns: int
    epoch: int
    score: tuple[tuple[str, str], ...]
    """What stands at the top: a name and a number or failure, each."""
    failure: tuple[str, str] | None
    action: Text
    history: HistoryView | None
    difference: Difference | None
    taken_apart: bool
    """Whether both texts are JSON and are compared value by value."""
    whole: tuple[tuple[str, File], ...]
    """Files of the compared texts that are not shown whole, with what each is called."""
    ansi: bool
    reading: str
    """By which rules the prediction that is shown was read."""
    real: Text | None
    """What really came, where there is no prediction to compare it with."""
    nodes: tuple[NodeRow, ...]
    nodes_left: int
    """Elements that the page does not show."""
    verdicts: tuple[VerdictView, ...]
    metrics: tuple[MetricView, ...]
    raw: tuple[tuple[str, Text], ...]
    facts: tuple[tuple[str, str], ...]
    before: Neighbour | None
    after: Neighbour | None
    same_trajectory: tuple[Neighbour, ...]
    epochs: tuple[Neighbour, ...]
    files: dict[str, str]
    """Texts that stand beside the page, by name of file."""


@dataclass(frozen=True)
class Headline:
    """A judge's headline, or that of the rules: the number, its interval, and what it rests on."""

    name: str
    number: str
    interval: str
    rests_on: str


@dataclass(frozen=True)
class Overview:
    """The first page; `plots` are None while they are still to be drawn."""

    model: str
    scope: str
    headlines: tuple[Headline, ...]
    warnings: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    plots: tuple[Plot, ...] | None
    scores: tuple[Table, ...]
    details: tuple[Table, ...]
    samples: int


@dataclass(frozen=True)
class RunLine:
    """One run in a table of several, numbers as they are shown."""

    folder: str
    model: str
    overall: str
    domains: tuple[str, ...]
    coverage: str


@dataclass(frozen=True)
class RunGroup:
    """Runs that may stand side by side: by one judge or panel, or by rules. `notes` are about their intervals.

    `apart` says what keeps them from an earlier table, `ranks` are the tables of ranks and of every two, `unranked` says why
    there are none."""

    title: str
    what: str
    scope: str
    domains: tuple[str, ...]
    lines: tuple[RunLine, ...]
    plot: Plot | None
    notes: tuple[str, ...]
    apart: str | None
    ranks: tuple[Table, ...]
    unranked: str | None
