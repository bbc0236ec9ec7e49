"""The checks of a run's headline intervals: from outcomes and metrics of samples to what each sample counts.

In: what a judge's reading made of every sample, or the metrics of every sample. Out: `Checks` of the number that
heads the tables, under the failure policy of its protocol. `stats/checks.py` computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentworldbench.panels import panel_of, scores_of
from agentworldbench.protocol import PROTOCOLS, Policy
from agentworldbench.readings import Groups, Outcomes, sample_score
from agentworldbench.records import SampleMetrics
from agentworldbench.run_record import JudgeRecord, RunRecord
from agentworldbench.stats.checks import Checks, interval_checks
from agentworldbench.stats.epochs import SampleScore, rule_score


def judge_checks(groups: Groups, outcomes: Outcomes, judge: JudgeRecord) -> Checks:
    """Of one judge, 0-100; `outcomes` are those of the reading of its protocol."""
    policy = PROTOCOLS[judge.protocol].policy
    scores = ((name, sample_score(some, policy)) for name, some in outcomes.items())
    return interval_checks(groups, _counted(scores, policy, 1), policy)


def panel_checks(groups: Groups, outcomes: Mapping[str, Outcomes], run: RunRecord) -> Checks | None:
    """Of the panel, 0-100; `outcomes` are each judge's by the reading of its protocol. None where the run has none."""
    if run.panel is None or not run.judges:
        return None
    policy = PROTOCOLS[run.judges[0].protocol].policy
    scores = scores_of(panel_of(run, run.panel), groups, outcomes, policy)
    return interval_checks(groups, _counted(scores, policy, 1), policy)


def rule_checks(groups: Groups, metrics: Mapping[str, Sequence[SampleMetrics]], policy: Policy) -> Checks:
    """Of the rule scores, [0, 1]."""
    scores = ((name, rule_score(some, policy == "floor")) for name, some in metrics.items())
    return interval_checks(groups, _counted(scores, policy, 1 / 100), policy)


def _counted(
    scores: Iterable[tuple[str, SampleScore | None]], policy: Policy, scale: float
) -> dict[str, float]:
    """What each sample counts: a failed one 0 or nothing."""
    found = {}
    for name, one in scores:
        if one is not None and (policy == "floor" or one.value is not None):
            found[name] = scale * (one.value or 0.0)
    return found
