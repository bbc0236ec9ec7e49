"""The panel of a run: whether its judges can be one, and what they say together.

In: a `PanelRule`, the judges of a run, what each of them made of every sample by the reading of its protocol. Out:
`PanelResults`. A panel asks for nothing: it combines the verdicts that the run's judges give, all of them. Judges
of different protocols read and are told different things, so they are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError
from agentworldbench.readings import (
    Groups,
    Outcome,
    Outcomes,
    judge_outcomes,
    judged,
    reading_of_samples,
    score_of_sample,
)
from agentworldbench.run_record import JudgeRecord, PanelRule, RunRecord, judge_names
from agentworldbench.stats.epochs import SampleEpochs, SampleScore, sample_epochs
from agentworldbench.stats.panel import Panel, panel_values
from agentworldbench.stats.results import PanelCounts, PanelResults
from agentworldbench.store import Store
from agentworldbench.texts import count_text, digest

TOO_FEW = "too_few_judges"
"""The class of failure of a prediction that fewer judges have a valid verdict on than the panel needs."""
_DROP = "--panel none drops the panel"


def panel_asked(
    config: RunConfig, stored: PanelRule | None, judges: Sequence[JudgeRecord]
) -> PanelRule | None:
    """The panel of a run with these `judges` after a session: as --panel says, else the one that the run has.

    A session that judges nothing leaves it alone. Raises ConfigError for a minimum without a panel, and where the
    judges cannot be it; a run that has no judge yet keeps its panel for those to come.
    """
    if config.no_judge:
        return stored
    if config.min_judges is not None and config.panel in (None, "none"):
        raise ConfigError(
            f"--min-judges {config.min_judges}: belongs to a panel; give it together with --panel median or --panel mean"
        )
    if config.panel is None:
        rule = stored
    else:
        rule = None if config.panel == "none" else PanelRule(combine=config.panel, least=config.min_judges)
    if judges or rule is not stored:
        check_panel(rule, judges)
    return rule


def panel_notices(before: RunRecord | None, after: RunRecord) -> Iterator[str]:
    """A line where a session changes the panel that a run had."""
    if before is None or before.panel is None or not before.judges:
        return
    was = before.panel.words(len(before.judges))
    if after.panel is None:
        yield f"Panel ({was}): dropped; the judges' own verdicts stay"
    elif (now := after.panel.words(len(after.judges))) != was:
        yield f"Panel: was {was}, is now {now}; a prediction has a score of it once all of them have been asked"


def check_panel(rule: PanelRule | None, judges: Sequence[JudgeRecord]) -> None:
    """Raises ConfigError where the judges of a run cannot be such a panel."""
    if rule is None:
        return
    names = ", ".join(judge_names(judges).values()) or "none"
    if len(judges) < 2:
        raise ConfigError(
            f"--panel {rule.combine}: a panel needs at least two judges, this run has {len(judges)} ({names}); give "
            f"each one as --judge, or add another with `awb judge RUN --judge MODEL`; {_DROP}"
        )
    if rule.needed(len(judges)) > len(judges):
        raise ConfigError(
            f"--min-judges {rule.least}: this run has {count_text(len(judges), 'judge')} ({names}); ask for at most so many, or "
            f"give the others as --judge too; {_DROP}"
        )
    first, *others = judges
    for other in others:
        if _way(other) != _way(first):
            raise ConfigError(
                f"--panel {rule.combine}: {first.model} judges by protocol {_way(first)}, {other.model} by {_way(other)}; "
                f"judges of different protocols are no panel, `awb score` shows each by itself; {_DROP}"
            )


def _way(judge: JudgeRecord) -> str:
    """How a judge is told to judge, in words."""
    words = f"{judge.protocol} {judge.protocol_version}"
    return f"{words} with GUI diagnostics" if "diagnostics" in judge.prompts else words


def panel_results(run: RunRecord, groups: Groups, outcomes: Mapping[str, Outcomes]) -> PanelResults | None:
    """The panel's scores; `outcomes` are each judge's by the reading of its protocol. None where there is no panel, or
    none of its judges yet."""
    if run.panel is None or not run.judges:
        return None
    check_panel(run.panel, run.judges)
    panel = panel_of(run, run.panel)
    every = {ref.id: _of_sample(panel, ref.id, outcomes) for refs in groups.values() for ref in refs}
    samples = {name: score for name, (score, _) in every.items()}
    made = {name: some for name, (_, some) in every.items()}
    known = {"combine": panel.combine, "least": panel.least, "judges": sorted(panel.judges)}
    return PanelResults(
        combine=panel.combine,
        least=panel.least,
        judges=panel.judges,
        protocol=run.judges[0].protocol,
        digest=digest(known)[:16],
        reading=reading_of_samples(groups, samples, made),
        counts={
            domain: sum((samples[ref.id].score.counts for ref in refs), PanelCounts())
            for domain, refs in groups.items()
        },
    )


def panel_scores(
    store: Store, groups: Groups, run: RunRecord, rule: PanelRule, policy: str
) -> Iterator[tuple[str, SampleScore]]:
    """The panel's score of each sample that was asked about; `rule` is the one that the run has."""
    panel = panel_of(run, rule)
    outcomes = {
        judge.digest: dict(judge_outcomes(store, groups, judge, run.epochs, panel.repeats[judge.digest]))
        for judge in run.judges
    }
    yield from scores_of(panel, groups, outcomes, policy)


def scores_of(
    panel: Panel, groups: Groups, outcomes: Mapping[str, Outcomes], policy: str
) -> Iterator[tuple[str, SampleScore]]:
    """The panel's score of each sample that was asked about; `outcomes` are each judge's."""
    for refs in groups.values():
        for ref in refs:
            score = score_of_sample(*_of_sample(panel, ref.id, outcomes), policy)
            if score is not None:
                yield ref.id, score


def panel_of(run: RunRecord, rule: PanelRule) -> Panel:
    """The panel of all judges of a run by a rule."""
    judges = tuple(judge.digest for judge in run.judges)
    repeats = {name: run.repeats.get(name, 1) for name in judges}
    return Panel(judges, rule.needed(len(judges)), repeats, rule.combine)


def _of_sample(
    panel: Panel, name: str, outcomes: Mapping[str, Outcomes]
) -> tuple[SampleEpochs, list[Outcome]]:
    """One sample's score, and what became of each of its predictions."""
    of_judges = zip(*(outcomes[judge][name] for judge in panel.judges), strict=True)
    epochs = [dict(zip(panel.judges, some, strict=True)) for some in of_judges]
    return sample_epochs(panel, [judged(one) for one in epochs]), [_together(panel, one) for one in epochs]


def _together(panel: Panel, outcomes: Mapping[str, Sequence[Outcome]]) -> Outcome:
    """What became of one prediction: its own failure, or that it waits for a verdict, or the panel's values."""
    for stage in ("prediction", "pending"):
        for repeats in outcomes.values():
            for one in repeats:
                if one.stage == stage:
                    return one
    values = panel_values(panel, judged(outcomes).verdicts)
    if values is not None:
        return Outcome(values)
    return Outcome(
        None,
        "judge",
        TOO_FEW,
        f"fewer than {count_text(panel.least, 'judge has', 'judges have')} a valid verdict",
    )
