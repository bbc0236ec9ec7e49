"""Whether runs may be compared at all, and by what: their judges, and the rules.

In: `Side`s. Out: what differs between them beside the models, in words (refused, unless forced); the judges that all
have, and the panel where all have the same, with the score that each gives to every sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Final

from agentworldbench.compare.sides import Kind, Scores, Shared, Side
from agentworldbench.errors import ConfigError
from agentworldbench.panels import panel_scores
from agentworldbench.protocol import PROTOCOLS, Policy
from agentworldbench.readings import judge_scores
from agentworldbench.run_record import JudgeRecord, judge_names
from agentworldbench.stats.epochs import SampleScore, rule_score
from agentworldbench.stats.results import PanelResults

PANEL: Final = "panel"
"""What --judge says for the panel of the runs."""


@dataclass(frozen=True)
class Measured:
    """How all runs are compared: by one judge (each run's own record of it), by the `panel` that all have (its digest),
    or by rules (neither)."""

    name: str
    judges: tuple[JudgeRecord, ...] | None
    policy: Policy
    panel: str | None = None

    @property
    def kind(self) -> Kind:
        """What gives the scores."""
        if self.panel is not None:
            return "panel"
        return "rules" if self.judges is None else "judge"

    @property
    def digest(self) -> str | None:
        """The digest of the panel, or of the first run's judge."""
        return self.panel or (None if self.judges is None else self.judges[0].digest)

    def scores(self, sides: Sequence[Side], shared: Shared) -> list[Scores]:
        """The score of each shared sample in each run."""
        if self.panel is not None:
            return [dict(_panel_scores(side, shared, self.policy)) for side in sides]
        if self.judges is None:
            return [dict(_rule_scores(side)) for side in sides]
        return [
            dict(
                judge_scores(
                    side.store,
                    shared,
                    judge,
                    PROTOCOLS[judge.protocol].policy,
                    side.run.record.epochs,
                    side.run.record.repeats.get(judge.digest, 1),
                )
            )
            for side, judge in zip(sides, self.judges, strict=True)
        ]


def alike_or_forced(sides: Sequence[Side], missing: Sequence[str], force: bool) -> tuple[str, ...]:
    """What differs beside the models, in words. Raises ConfigError where anything does and `force` is not set."""
    unlike: dict[str, list[tuple[int, int]]] = {}
    for one, other in combinations(range(len(sides)), 2):
        for words in _unlike(sides[one], sides[other]):
            unlike.setdefault(words, []).append((one, other))
    known = [_named_odd(words, pairs, sides) for words, pairs in unlike.items()]
    if (found := (*known, *missing)) and not force:
        raise ConfigError(
            f"these runs are not alike: {'; '.join(found)}. Their scores do not compare; --force compares them all "
            "the same and says so"
        )
    return found


def _named_odd(words: str, pairs: Sequence[tuple[int, int]], sides: Sequence[Side]) -> str:
    """What differs, with the run that is unlike all the others where there is one."""
    odd = [number for number in range(len(sides)) if all(number in pair for pair in pairs)]
    return f"{sides[odd[0]].run.path}: {words}" if len(odd) == 1 else words


def _unlike(first: Side, second: Side) -> Iterator[str]:
    one, other = first.results, second.results
    domains = [domain for domain in first.groups if domain in second.groups]
    for what, known in (
        ("the data", [side.predict.data.files for side in (one, other)]),
        ("how predictions are asked for and read", [side.predict.tasks for side in (one, other)]),
        (
            "the task files, so the rule metrics (`awb score` computes both anew)",
            [one.task_files, other.task_files],
        ),
        ("a user's own metrics", [one.own_metrics, other.own_metrics]),
    ):
        differing = [domain for domain in domains if known[0].get(domain) != known[1].get(domain)]
        if differing:
            yield f"{what} of {', '.join(differing)}"
    for what, values in (
        ("the protocols", (one.protocol, other.protocol)),
        ("the rules of extraction", (one.predict.extraction, other.predict.extraction)),
        ("the context policies", (one.predict.context_policy, other.predict.context_policy)),
        ("the versions that computed the metrics", (one.made_by, other.made_by)),
    ):
        if values[0] != values[1]:
            yield f"{what} ({values[0]} and {values[1]})"


def measures_of(sides: Sequence[Side], wanted: str | None) -> tuple[list[Measured], list[str]]:
    """What the runs are compared by (each judge that all have, the panel where it is the same in all, then rules,
    unless one of them is `wanted`), and what keeps their judges from being alike. Raises ConfigError for a judge or a
    panel that not all runs have."""
    together = _panel_of_all(sides)
    if wanted == PANEL:
        if together is None:
            raise ConfigError(f"--judge {PANEL}: {_no_panel(sides)}")
        return [together], []
    known = [_judges(side, wanted) for side in sides]
    if wanted is not None and not all(known):
        raise ConfigError(f"--judge {wanted}: no judge of {'both' if len(sides) == 2 else 'all'} runs")
    common = [digest for digest in known[0] if all(digest in one for one in known)]
    matched = [tuple(one[digest] for one in known) for digest in common]
    missing = []
    if not matched and all(known):
        if all(len(one) == 1 for one in known):
            matched = [tuple(judge for one in known for judge in one.values())]
            called = dict.fromkeys(f"{one.model}, {one.protocol}, {one.digest}" for one in matched[0])
            missing = [f"the judges ({' and '.join(called)})"]
        else:
            missing = [f"the judges: none judged {'both' if len(sides) == 2 else 'all'}"]
    names = judge_names(sides[0].run.record.judges)
    measures = [Measured(names[some[0].digest], some, PROTOCOLS[some[0].protocol].policy) for some in matched]
    if wanted is None:
        measures += [] if together is None else [together]
        measures.append(Measured("rules", None, sides[0].results.policy))
    return measures, missing


def _panel_of_all(sides: Sequence[Side]) -> Measured | None:
    """The panel that all runs have."""
    first = sides[0].results.panel
    if first is None or any(panel is None or panel.digest != first.digest for panel in _panels(sides)):
        return None
    return Measured(first.rule, None, PROTOCOLS[first.protocol].policy, first.digest)


def _panels(sides: Sequence[Side]) -> list[PanelResults | None]:
    return [side.results.panel for side in sides]


def panel_notes(sides: Sequence[Side], wanted: str | None) -> Iterator[str]:
    """That the runs are not compared by a panel, though one of them has one."""
    if wanted is None and any(_panels(sides)) and _panel_of_all(sides) is None:
        yield f"Not compared by a panel: {_no_panel(sides)}"


def _no_panel(sides: Sequence[Side]) -> str:
    """Why there is no panel of all runs."""
    if all(_panels(sides)):
        return "the runs' panels have other judges or another rule; `awb score RUN --panel …` gives a run another one"
    without = [str(side.run.path) for side in sides if side.results.panel is None]
    return f"{', '.join(without)} {'has' if len(without) == 1 else 'have'} none; `awb score RUN --panel median` makes one of a run's judges"


def _panel_scores(side: Side, shared: Shared, policy: Policy) -> Iterator[tuple[str, SampleScore]]:
    rule = side.run.record.panel
    assert rule is not None, "results with a panel are those of a run with its rule"
    yield from panel_scores(side.store, shared, side.run.record, rule, policy)


def _judges(side: Side, wanted: str | None) -> dict[str, JudgeRecord]:
    judges = side.run.record.judges
    names = judge_names(judges)
    return {one.digest: one for one in judges if wanted in (None, one.model, one.digest, names[one.digest])}


def _rule_scores(side: Side) -> Iterator[tuple[str, SampleScore]]:
    """The rule score of each sample with a primary metric: those that copying was scored on."""
    floor = PROTOCOLS[side.run.record.protocol].policy == "floor"
    for name, some in groupby(side.run.metrics(), lambda record: record.sample_id):
        score = rule_score(list(some), floor)
        if score is not None:
            yield name, score
