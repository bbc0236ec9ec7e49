"""The shape of `results.json`: what a run's scores are, with every count they rest on.

Scores are 0-100, rule metrics [0, 1], None where a number is not available. Both failure policies
and both averages always stand side by side: `exclude` leaves failed samples out, `floor` counts
them 0; macro is the plain mean of the domain means, micro the mean over samples. A domain without
any scored sample makes macro not available. Intervals stand beside totals and rule scores, in their units.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import Field

from agentworldbench.records import Record, Usage
from agentworldbench.run_record import (
    Grown,
    JudgeRecord,
    PanelRule,
    PredictSection,
    SelectionRecord,
    judge_names,
)
from agentworldbench.stats.agreement import Agreement
from agentworldbench.stats.checks import Checks
from agentworldbench.stats.costs import Spending
from agentworldbench.stats.intervals import Intervals
from agentworldbench.texts import count_text

SUBSET: Final = ("limit", "limit_trajectories", "sample_id")
"""Fields of a selection that leave samples of a domain out."""
Scores = dict[str, float | None]
"""`total` and the five dimensions, 0-100."""


class Block(Grown):
    """Scores of one domain, or of all, for one judge. `asked` leaves out samples still to be asked;
    `intervals` are those of the total, `dimension_intervals` those of the five dimensions, `rerun` those of the total
    when the same samples are answered and judged again.

    With several epochs or repeats `coverage` is the share of predictions that have a score.
    """

    LATER: ClassVar = ("rerun", "dimension_intervals")

    samples: int
    asked: int
    scored: int
    clusters: int
    coverage: float
    exclude: Scores
    floor: Scores
    intervals: Intervals = Intervals()
    rerun: Intervals = Intervals()
    dimension_intervals: dict[str, Intervals] = Field(default_factory=dict)


class Reading(Grown):
    """One judge's scores when all stored replies are read by one set of rules.

    `failures` counts by domain and class what kept a sample from a score: `prediction`, `judge`, and
    under `pending` the samples not asked yet. With several epochs or repeats it counts predictions; one with a
    valid verdict among its repeats has not failed.
    """

    LATER: ClassVar = ("macro_rerun", "macro_dimension_intervals")

    domains: dict[str, Block]
    failures: dict[str, dict[str, dict[str, int]]]
    micro: Block
    macro_exclude: Scores
    macro_floor: Scores
    macro_intervals: Intervals = Intervals()
    macro_rerun: Intervals = Intervals()
    macro_dimension_intervals: dict[str, Intervals] = Field(default_factory=dict)


class FromCache(Record):
    """Answers that a run did not ask for but took from a response cache, and what they took when they were
    asked for (USD None: unknown). None of it is part of what the run spent."""

    answers: int = 0
    usage: Usage = Usage()
    cost_usd: float | None = 0.0

    def __add__(self, other: FromCache) -> FromCache:
        """Both together; a cost that is unknown on one side is unknown."""
        known = None not in (self.cost_usd, other.cost_usd)
        return FromCache(
            answers=self.answers + other.answers,
            usage=self.usage + other.usage,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )


class JudgeResults(Record):
    """One judge's scores, read both ways from the same replies.

    The properties are those of the reading that the judge's protocol is headed by. `differing` counts
    the samples that the two readings do not score alike, `checks` has the headline's intervals two more ways, `less_room` the verdicts asked for with fewer
    tokens than the judge's settings say; `examples` holds one message of each class of failure, `notes`
    counts what was noted on verdicts.
    """

    judge: JudgeRecord
    served: tuple[str, ...]
    strict: Reading
    official: Reading
    differing: int
    less_room: int = 0
    examples: dict[str, str]
    notes: dict[str, int]
    spent: Spending
    spent_by_domain: dict[str, Spending] = Field(default_factory=dict)
    from_cache: FromCache = FromCache()
    checks: Checks | None = None

    @property
    def headline(self) -> Reading:
        """The reading of the judge's own protocol."""
        return self.official if self.judge.parse == "official" else self.strict

    @property
    def domains(self) -> dict[str, Block]:
        """Blocks by domain."""
        return self.headline.domains

    @property
    def failures(self) -> dict[str, dict[str, dict[str, int]]]:
        """Failures by domain, stage and class."""
        return self.headline.failures

    @property
    def micro(self) -> Block:
        """All samples together."""
        return self.headline.micro

    @property
    def macro_exclude(self) -> Scores:
        """Plain mean of the domains, failed samples left out."""
        return self.headline.macro_exclude

    @property
    def macro_floor(self) -> Scores:
        """Plain mean of the domains, failed samples counted 0."""
        return self.headline.macro_floor

    @property
    def macro_intervals(self) -> Intervals:
        """The intervals of the two."""
        return self.headline.macro_intervals


class PanelCounts(Record):
    """What became of predictions: `scored` by enough judges (`short`: though a verdict failed), `failed`
    themselves, `too_few` valid judges, `pending`; and of the verdicts on them."""

    predictions: int = 0
    scored: int = 0
    short: int = 0
    failed: int = 0
    too_few: int = 0
    pending: int = 0
    verdicts: int = 0
    verdicts_failed: int = 0

    def __add__(self, other: PanelCounts) -> PanelCounts:
        """Sum field by field."""
        mine, others = self.model_dump(), other.model_dump()
        return PanelCounts(**{name: mine[name] + others[name] for name in mine})


class PanelResults(Grown):
    """Scores of all judges together. `judges` are their digests, `least` how many of them must have a valid verdict.

    `digest` stands for the judges and the rule, whatever their order. `reading` is the one of the judges'
    `protocol`; where too few judges were valid its failures say `too_few_judges`. `counts` are by domain, `checks` the headline's
    intervals two more ways.
    """

    LATER: ClassVar = ("checks",)

    combine: Literal["median", "mean"]
    least: int
    judges: tuple[str, ...]
    protocol: str
    digest: str
    reading: Reading
    counts: dict[str, PanelCounts]
    checks: Checks | None = None

    @property
    def rule(self) -> str:
        """The rule in words."""
        return PanelRule(combine=self.combine, least=self.least).words(len(self.judges))

    @property
    def all_counts(self) -> PanelCounts:
        """Those of all domains together."""
        return sum(self.counts.values(), PanelCounts())


class JudgesAgreement(Record):
    """How far judges agree (`between`), or the repeats of one judge (`within`). `judges` are digests; `columns` hold
    the total and the five dimensions."""

    kind: Literal["between", "within"]
    judges: tuple[str, ...]
    columns: dict[str, Agreement]


class MetricMean(Record):
    """Mean of one metric over the samples it applies to; `n` counts them all, `scored` without failures,
    `unparsed` those whose prediction the metric could not read and counted 0."""

    n: int
    scored: int
    exclude: float | None
    floor: float | None
    unparsed: int = 0


class Unread(Record):
    """Predictions of one domain that at least one metric could not read, of all that were scored; `reason` is
    the most frequent one."""

    predictions: int
    unread: int
    reason: str


class Skill(Record):
    """(x - b) / (1 - b): rule score x against that of copying the observation before, b, on the same samples.

    Copying has 0, the reference 1; None where it is not available. Over all domains it is the mean of
    theirs, which has no b of its own.
    """

    exclude: float | None = None
    floor: float | None = None
    baseline_exclude: float | None = None
    baseline_floor: float | None = None
    intervals: Intervals = Intervals()


class RuleResults(Grown):
    """Rule metrics by domain, and the rule score (mean of a sample's applicable primary metrics).

    `macro` is the plain mean of the domains and `micro` the mean over samples, for every metric and
    under the name `rule_score` for the score; macro runs over the domains that have the metric. `unread`
    holds the domains with predictions that could not be read. `intervals` are those of the rule scores, `rerun`
    those of the same samples answered again, `checks` the headline's intervals two more ways.
    """

    LATER: ClassVar = ("rerun", "macro_rerun", "micro_rerun", "checks")

    metrics: dict[str, dict[str, MetricMean]]
    score: dict[str, MetricMean]
    macro: dict[str, MetricMean]
    micro: dict[str, MetricMean]
    unread: dict[str, Unread] = Field(default_factory=dict)
    intervals: dict[str, Intervals] = Field(default_factory=dict)
    macro_intervals: Intervals = Intervals()
    micro_intervals: Intervals = Intervals()
    skill: dict[str, Skill] = Field(default_factory=dict)
    overall_skill: Skill = Skill()
    rerun: dict[str, Intervals] = Field(default_factory=dict)
    macro_rerun: Intervals = Intervals()
    micro_rerun: Intervals = Intervals()
    checks: Checks | None = None


class PredictionResults(Record):
    """How the asking went: counts by domain (each sample once an epoch), failures by domain and class (with an
    example of each), notes, spending. `shortened` counts the samples whose history lost its oldest turns, `less_room`
    the answers asked for with fewer tokens than the run asks for."""

    samples: dict[str, int]
    predicted: dict[str, int]
    shortened: int = 0
    less_room: int = 0
    failures: dict[str, dict[str, int]]
    served: tuple[str, ...]
    examples: dict[str, str]
    notes: dict[str, int]
    spent: Spending
    spent_by_domain: dict[str, Spending] = Field(default_factory=dict)
    from_cache: FromCache = FromCache()


class Results(Grown):
    """All numbers of a run. `complete` is False while selected samples have not been asked.

    `warnings` say what may have changed the numbers unseen: a server that changed, cut answers. `task_files`
    holds the hash of each task file, `own_metrics` those of the Python files with metrics of a user's own.
    `data_samples` counts what the data have in the domains of the run, selected or not. `panel` is there where the
    run has one, `agreement` where it has several judges or repeats: all judges first, then each pair of more than
    two, then the repeats of each judge.
    """

    LATER: ClassVar = ("epochs", "repeats", "data_samples", "panel", "agreement")

    schema_version: Literal[1] = 1
    protocol: str
    policy: Literal["exclude", "floor"]
    predict: PredictSection
    selection: SelectionRecord
    task_files: dict[str, str]
    own_metrics: dict[str, dict[str, str]] = Field(default_factory=dict)
    complete: bool
    predictions: PredictionResults
    rules: RuleResults
    judges: tuple[JudgeResults, ...]
    made_by: str
    made_at: str
    warnings: tuple[str, ...] = ()
    epochs: int = 1
    repeats: dict[str, int] = Field(default_factory=dict)
    data_samples: dict[str, int] = Field(default_factory=dict)
    panel: PanelResults | None = None
    agreement: tuple[JudgesAgreement, ...] = ()

    @property
    def subset(self) -> str | None:
        """Which part of the samples of its domains the run is about; None where it is all of them.

        A shard is a part of a run and not a subset of its own.
        """
        chosen = [name for name in SUBSET if getattr(self.selection, name)]
        if not chosen:
            return None
        how = f"({', '.join('--' + name.replace('_', '-') for name in chosen)})"
        count, total = sum(self.selection.samples.values()), sum(self.data_samples.values())
        if self.selection.shard or not total:
            return f"a subset {how}"
        return None if count == total else f"a subset: {count:,} of {count_text(total, 'sample')} {how}"

    @property
    def model(self) -> str:
        """The model string as the user wrote it."""
        return str(self.predict.model["model"])

    @property
    def judge_names(self) -> dict[str, str]:
        """What each judge is called in headings, by digest."""
        return judge_names(one.judge for one in self.judges)
