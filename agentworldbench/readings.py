"""The same stored replies read by two sets of rules: one judge, sample by sample.

In: a run's predictions and verdicts, a judge's record, the samples by domain. Out: for each sample what
the strict and the official rules make of it (values, or the failure that kept it from a score), the two
`Reading`s made of that, and the samples on which they differ, with the reason.

The judge saw one reading of a prediction, that of its protocol. A reply that is a failure by the strict
rules has a verdict only under the official protocol; there the strict reading counts it as failed all
the same. A strict judge was never asked about it, so the official reading of its run leaves it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product

from agentworldbench.records import DIMENSIONS, Failure, FailureKind, Prediction, SampleRef, Verdict
from agentworldbench.render.table import Table, points
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.official_verdict import OfficialVerdict, read_official
from agentworldbench.stats.aggregate import (
    block,
    macro,
    macro_dimension_intervals,
    macro_intervals,
    official_values,
    score_of,
    strict_values,
)
from agentworldbench.stats.epochs import (
    SampleEpochs,
    SampleScore,
    epochs_block,
    macro_rerun,
    sample_epochs,
)
from agentworldbench.stats.intervals import Intervals
from agentworldbench.stats.panel import Judged, Panel
from agentworldbench.stats.results import Reading
from agentworldbench.store import Store

NOT_RUN = FailureKind.NOT_RUN.value
LARGEST = 10**300
"""Official values have no lower bound; near this one the official script's means end in an error."""
Groups = Mapping[str, Sequence[SampleRef]]


@dataclass(frozen=True)
class Outcome:
    """One sample by one set of rules: values (1-5 by column), or stage and class of its failure, with a message."""

    values: Mapping[str, float] | None
    stage: str = ""
    kind: str = ""
    message: str = ""

    @property
    def said(self) -> str:
        """As a table shows it: the score of its total, 0-100, or the failure."""
        if self.values is None:
            return f"{self.stage}: {self.kind}"
        score = score_of([self.values["total"]]) if "total" in self.values else None
        return "no value" if score is None else points(score)


@dataclass(frozen=True)
class BothReadings:
    """A sample's two outcomes, with what they were read from."""

    ref: SampleRef
    strict: Outcome
    official: Outcome
    prediction: Prediction | None
    verdict: Verdict | None
    epoch: int = 1
    repeat: int = 1

    @property
    def differ(self) -> bool:
        """Whether the sample counts differently."""
        return self.strict.values != self.official.values

    @property
    def why(self) -> str:
        """Why it does, in one sentence."""
        return _why(self)


def both_readings(
    store: Store, groups: Groups, judge: JudgeRecord, epochs: int = 1, repeats: int = 1
) -> Iterator[BothReadings]:
    """Every sample in order; within it epoch after epoch, and in each the repeats of the judge."""
    for domain, refs in groups.items():
        system = judge.system_prompts.get(domain)
        for ref in refs:
            for epoch, repeat in product(range(1, epochs + 1), range(1, repeats + 1)):
                prediction = store.predictions.get((ref.id, epoch))
                verdict = None
                if prediction is not None and domain in judge.system_prompts:
                    verdict = store.verdict_on(prediction, judge.digest, judge.parse, system, repeat)
                strict, official = _strict(prediction, verdict), _official(prediction, verdict, judge)
                yield BothReadings(ref, strict, official, prediction, verdict, epoch, repeat)


def _strict(prediction: Prediction | None, verdict: Verdict | None) -> Outcome:
    if prediction is not None and prediction.failure is not None:
        return _failed("prediction", prediction.failure)
    if verdict is None:
        return Outcome(None, "pending", NOT_RUN)
    if verdict.failure is not None:
        return _failed("judge", verdict.failure)
    assert verdict.scores is not None, "a verdict has scores or a failure"
    return Outcome(strict_values(verdict.scores))


def _official(prediction: Prediction | None, verdict: Verdict | None, judge: JudgeRecord) -> Outcome:
    if verdict is not None:
        read = officially_read(verdict)
        if read is not None and read.success and min(read.scores.values()) > -LARGEST:
            return Outcome(official_values(read.scores, read.total))
        reason = read.reason if read and read.reason else "a value too large for a mean"
        return _failed("judge", verdict.failure or Failure(kind=FailureKind.JUDGE_UNPARSED, message=reason))
    never_asked = prediction is not None and (prediction.official_sha256 is None or judge.parse == "strict")
    if prediction is not None and never_asked and prediction.failure is not None:
        return _failed("prediction", prediction.failure)
    return Outcome(None, "pending", NOT_RUN)


def officially_read(verdict: Verdict) -> OfficialVerdict | None:
    """A verdict by the official rules: its reply, read again; None where no reply came.

    Where another program stored scores without the reply, those count as they are.
    """
    if verdict.reply is not None:
        return read_official(verdict.reply)
    if verdict.scores is None:
        return None
    counted = [score for score in verdict.scores.values() if score > 0]
    return OfficialVerdict(True, verdict.scores, sum(counted) / len(counted) if counted else 0.0)


def _failed(stage: str, failure: Failure) -> Outcome:
    return Outcome(None, stage, failure.kind.value, failure.message)


def reading(groups: Groups, outcomes: Mapping[str, Outcome]) -> Reading:
    """All numbers of one set of rules from its outcomes by sample id."""
    values = {name: one.values for name, one in outcomes.items() if one.values is not None}
    pending = {name for name, one in outcomes.items() if one.stage == "pending"}
    blocks = {domain: block(refs, values, pending) for domain, refs in groups.items()}
    return Reading(
        domains=blocks,
        failures={domain: _failures(outcomes[ref.id] for ref in refs) for domain, refs in groups.items()},
        micro=block([ref for refs in groups.values() for ref in refs], values, pending),
        macro_exclude=macro(one.exclude for one in blocks.values()),
        macro_floor=macro(one.floor for one in blocks.values()),
        macro_intervals=macro_intervals(blocks.values()),
        macro_dimension_intervals=macro_dimension_intervals(blocks.values()),
    )


Outcomes = Mapping[str, Sequence[Sequence[Outcome]]]
"""By sample id, epoch and repeat (both from 0)."""


def reading_of_all(groups: Groups, outcomes: Outcomes) -> Reading:
    """All numbers of one set of rules, repeats of the judge and then epochs averaged in each sample."""
    if all(len(epochs) == len(epochs[0]) == 1 for epochs in outcomes.values()):
        return reading(groups, {name: epochs[0][0] for name, epochs in outcomes.items()})
    samples = {name: epochs_of(epochs) for name, epochs in outcomes.items()}
    made = {name: [of_prediction(repeats) for repeats in epochs] for name, epochs in outcomes.items()}
    return reading_of_samples(groups, samples, made)


def reading_of_samples(
    groups: Groups, samples: Mapping[str, SampleEpochs], made: Mapping[str, Sequence[Outcome]]
) -> Reading:
    """All numbers from each sample's score; `made` is what became of its predictions, for the failures."""
    blocks = {domain: epochs_block(refs, samples) for domain, refs in groups.items()}
    exclude = macro(one.exclude for one in blocks.values())
    floor = macro(one.floor for one in blocks.values())
    return Reading(
        domains=blocks,
        failures={
            domain: _failures(one for ref in refs for one in made[ref.id]) for domain, refs in groups.items()
        },
        micro=epochs_block([ref for refs in groups.values() for ref in refs], samples),
        macro_exclude=exclude,
        macro_floor=floor,
        macro_intervals=macro_intervals(blocks.values()),
        macro_dimension_intervals=macro_dimension_intervals(blocks.values()),
        macro_rerun=Intervals(
            exclude=macro_rerun(exclude["total"], [one.rerun.exclude for one in blocks.values()]),
            floor=macro_rerun(floor["total"], [one.rerun.floor for one in blocks.values()]),
        ),
    )


def epochs_of(outcomes: Sequence[Sequence[Outcome]]) -> SampleEpochs:
    """A sample's score from its outcomes by epoch and repeat."""
    alone = Panel(("",), 1, {"": max(map(len, outcomes))})
    return sample_epochs(alone, [judged({"": repeats}) for repeats in outcomes])


def judged(outcomes: Mapping[str, Sequence[Outcome]]) -> Judged:
    """One prediction as its judges' outcomes, by judge and repeat, tell of it."""
    return Judged(
        {
            (judge, repeat): one.values
            for judge, repeats in outcomes.items()
            for repeat, one in enumerate(repeats, start=1)
            if one.stage not in ("pending", "prediction")
        },
        failed=any(one.stage == "prediction" for repeats in outcomes.values() for one in repeats),
    )


def sample_score(outcomes: Sequence[Sequence[Outcome]], policy: str) -> SampleScore | None:
    """What a sample counts from its outcomes by epoch and repeat; None while it has not been judged."""
    flat = (one for repeats in outcomes for one in repeats)
    return score_of_sample(epochs_of(outcomes), flat, policy)


def score_of_sample(sample: SampleEpochs, outcomes: Iterable[Outcome], policy: str) -> SampleScore | None:
    """What a sample counts; where it failed, in the class of the first failure among `outcomes`."""
    counts = sample.score.counts
    if counts.scored:
        value = getattr(sample.score, policy)["total"]
        return SampleScore(value, scored=counts.scored / counts.predictions)
    failed = next((one.kind for one in outcomes if one.stage not in ("", "pending")), None)
    return None if failed is None else SampleScore(None, failed, scored=0.0)


def judge_scores(
    store: Store, groups: Groups, judge: JudgeRecord, policy: str, epochs: int = 1, repeats: int = 1
) -> Iterator[tuple[str, SampleScore]]:
    """The score of each sample that the judge was asked about, read as its protocol reads."""
    for name, outcomes in judge_outcomes(store, groups, judge, epochs, repeats):
        score = sample_score(outcomes, policy)
        if score is not None:
            yield name, score


def judge_outcomes(
    store: Store, groups: Groups, judge: JudgeRecord, epochs: int = 1, repeats: int = 1
) -> Iterator[tuple[str, list[list[Outcome]]]]:
    """What a judge made of each sample, read as its protocol reads, by epoch and repeat."""
    every = both_readings(store, groups, judge, epochs, repeats)
    for name, some in groupby(every, lambda both: both.ref.id):
        outcomes: list[list[Outcome]] = []
        for both in some:
            outcomes += [[]] if both.repeat == 1 else []
            outcomes[-1].append(both.official if judge.parse == "official" else both.strict)
        yield name, outcomes


def of_prediction(repeats: Sequence[Outcome]) -> Outcome:
    """What became of one prediction: pending while a verdict is, else a value where any repeat has one."""
    for some in (
        [one for one in repeats if one.stage in ("prediction", "pending")],
        [one for one in repeats if one.values is not None],
    ):
        if some:
            return some[0]
    return repeats[0]


def differences_table(judge: str, readings: Iterable[BothReadings]) -> Table:
    """The samples that count differently, with the reason; below them how often each kind of effect occurs."""
    rows: list[tuple[str, str, str, str]] = []
    pairs: list[tuple[Outcome, Outcome]] = []
    empty = 0
    for both in readings:  # one after the other: each holds the texts of its sample
        pairs.append((both.strict, both.official))
        empty += both.prediction is not None and both.prediction.official_sha256 is None
        if both.differ:
            rows.append((_place(both), both.official.said, both.strict.said, both.why))
    lifted = sum(strict.values is None and official.values is not None for strict, official in pairs)
    left_out = sum(strict.values is not None and official.values is None for strict, official in pairs)
    return Table(
        title=f"Where the two readings differ, by {judge}",
        columns=("Sample", "Official", "Strict", "Why"),
        rows=tuple(rows),
        left=("Sample", "Official", "Strict", "Why"),
        fold=("Official", "Strict", "Why"),
        notes=(
            f"Samples that differ: {len(rows)}; scored by the official rules alone: {lifted}, by the strict ones "
            f"alone: {left_out}.",
            *_opposite_effects(pairs, empty),
        ),
    )


def _place(both: BothReadings) -> str:
    """The sample, and which epoch and repeat of it unless the first."""
    more = [f"{name} {n}" for name, n in (("epoch", both.epoch), ("repeat", both.repeat)) if n > 1]
    return f"{both.ref.id} ({', '.join(more)})" if more else both.ref.id


def _opposite_effects(pairs: Iterable[tuple[Outcome, Outcome]], empty: int) -> tuple[str, str]:
    """What the `empty` replies do to the official mean, and what failed ones with content do (micro, exclude)."""
    scored = [(strict.stage == "prediction", one.values) for strict, one in pairs if one.values is not None]
    totals = [(failed, values["total"]) for failed, values in scored if "total" in values]
    mean = score_of([total for _, total in totals])
    floored = None if mean is None else mean * (len(totals) / (len(totals) + empty))
    without = score_of([total for failed, total in totals if not failed])
    return (
        f"Replies without content: {empty}. The official rules leave them out, which raises the mean: {points(mean)} "
        f"without them, {points(floored)} with 0 for each.",
        f"Failed replies with content (blank, thinking alone, cut, filtered): {sum(failed for failed, _ in scored)}. They "
        f"are judged by what is left of them, mostly low: {points(mean)} with them, {points(without)} without.",
    )


def _failures(outcomes: Iterable[Outcome]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {"prediction": Counter(), "judge": Counter(), "pending": Counter()}
    for one in outcomes:
        if one.values is None:
            counts[one.stage][one.kind] += 1
    return {stage: dict(sorted(some.items())) for stage, some in counts.items()}


def _why(both: BothReadings) -> str:
    prediction, verdict = both.prediction, both.verdict
    if prediction is not None and prediction.failure is not None:
        kind = prediction.failure.kind.value
        if both.official.values is None:
            return f"the reply is {kind}"
        return (
            f"the reply is {kind}, which the official rules read as text: they let the judge score "
            "what is left of it"
        )
    if both.strict.values is None and both.official.values is not None:
        told = verdict.failure.message if verdict is not None and verdict.failure else "no verdict"
        return f"the judge's reply holds no valid verdict ({told}); the official rules repair or guess one"
    if both.official.values is None:
        return "the official rules find no verdict in the judge's reply; the strict ones do"
    assert both.strict.values is not None
    missing = [name for name in DIMENSIONS if name in both.strict.values and name not in both.official.values]
    if missing:
        what = "it out of its mean" if len(missing) == 1 else "them out of their means"
        return f"the official rules take {', '.join(missing)} for 0 and leave {what}"
    return "the two rules take other objects of the judge's reply for its verdict, or other values"
