"""The plots of a run: domains with intervals, profile, score by turn and by length, distribution, judge and rules, cost.

In: results, and the lines of all predictions. Out: `Plot`s. Numbers that stand in the tables are taken from there; means
over bins of turns or lengths are made here, over the scored predictions alone (failed ones have no score to place), each
with the interval of clustered samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import fsum
from statistics import fmean
from typing import Final

from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import DIMENSIONS
from agentworldbench.render.names import domain_name
from agentworldbench.render.numbers import in_points
from agentworldbench.render.plot_parts import load_altair
from agentworldbench.render.plot_values import Series, Value, with_ends, without_bars
from agentworldbench.render.plots import Plot, bubbles, distribution, grid, intervals, stacked, trend
from agentworldbench.render.scores import judge_letters
from agentworldbench.report.contents import Line
from agentworldbench.report.gather import Opened
from agentworldbench.stats.intervals import Interval, Intervals, clustered
from agentworldbench.stats.results import JudgeResults, Results, Scores

_TURNS: Final = ((1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, None))
_LENGTHS: Final = ((0, 10), (10, 30), (30, 60), (60, 120), (120, 240), (240, None))
"""Bins of turns, and of thousands of characters of the prompt."""
_BINS: Final = 10
_JUDGES: Final = 3
"""Judges that plots show, by the letters of the first table; tables have them all."""
RULES: Final = "Rule score"

Bin = tuple[str, Callable[[Line], bool]]
_Scores = tuple[str, Callable[[Line], float | None]]
"""What marks of a series are called, and the score of a prediction."""


def plots(opened: Opened, lines: Sequence[Line]) -> list[Plot]:
    """All plots that there are numbers for: a frame without a mark is none."""
    load_altair()
    series = _series(opened)
    scored = any(of(line) is not None for _, of in series for line in lines)
    found = [_domains(opened)] if scored else []
    for at, judge in enumerate(opened.results.judges[:_JUDGES]):
        if judge.micro.scored:
            found.append(_profile(opened, at, judge))
    if scored:
        found += _trends(lines, series)
        found.append(_distribution(lines, series))
    found += _against(opened, lines)
    found += _costs(opened)
    return found


def _trends(lines: Sequence[Line], series: Sequence[_Scores]) -> Iterator[Plot]:
    yield _trend(
        "turns",
        "Score by turn",
        "How deep in its trajectory the predicted turn stands.",
        "Turn",
        lines,
        _turn_bins(lines),
        series,
    )
    yield _trend(
        "lengths", "Score by context length", "How long the prompt was.", "Prompt, thousands of characters", lines,
        _length_bins(lines), series,
    )  # fmt: skip


def _headline(judge: JudgeResults) -> str:
    return PROTOCOLS[judge.judge.protocol].policy


def _domains(opened: Opened) -> Plot:
    results = opened.results
    domains = list(results.predictions.samples)
    series = []
    letters = judge_letters(len(results.judges))
    for letter, judge in zip(letters[:_JUDGES], results.judges, strict=False):
        policy = _headline(judge)
        macro: Scores = getattr(judge, f"macro_{policy}")
        values = [
            *(
                _value(getattr(one, policy)["total"], one.intervals, policy)
                for one in map(judge.domains.__getitem__, domains)
            ),
            _value(macro["total"], judge.macro_intervals, policy),
        ]
        series.append(Series(f"Judge{letter}", tuple(values)))
    rules, policy = results.rules, results.policy
    scores = [
        *(
            _value(getattr(rules.score[name], policy), rules.intervals.get(name, Intervals()), policy, 100)
            for name in domains
        ),
        _value(getattr(rules.macro["rule_score"], policy), rules.macro_intervals, policy, 100),
    ]
    series.append(Series(RULES, tuple(scores)))
    policies = {_headline(judge) for judge in results.judges} | {policy}
    note = f"Policy {' and '.join(sorted(policies))}; bars are 95 % intervals over trajectories."
    if results.judges:
        note += " Judge and rules measure different things."
    if len(results.judges) > 1:
        names = zip(letters[:_JUDGES], opened.judge_names, strict=False)
        note += " " + ", ".join(f"Judge{letter}: {name}" for letter, name in names) + "."
    note += without_bars(series)
    return intervals(
        "domains", "Scores by domain", note, [*map(domain_name, domains), "Overall, macro"], series
    )


def _value(value: float | None, of: Intervals, policy: str, scale: float = 1) -> Value | None:
    interval: Interval | None = getattr(of, policy)
    return None if value is None else with_ends(value * scale, in_points(interval, scale))


def _profile(opened: Opened, at: int, judge: JudgeResults) -> Plot:
    policy = _headline(judge)
    columns = ("total", *DIMENSIONS)
    rows = [*map(domain_name, judge.domains), "Overall, macro"]
    scores: list[Scores] = [
        *(getattr(one, policy) for one in judge.domains.values()),
        getattr(judge, f"macro_{policy}"),
    ]
    several = len(opened.results.judges) > 1
    return grid(
        f"profile-{at + 1}" if several else "profile",
        f"Profile by {opened.judge_names[at]}" if several else "Profile",
        f"Judge's score in each dimension, {policy}.",
        rows,
        [name.capitalize() for name in columns],
        [[one.get(name) for name in columns] for one in scores],
    )


def _series(opened: Opened) -> list[_Scores]:
    """What a prediction's scores are, by judge and by rules."""

    def of_judge(at: int) -> Callable[[Line], float | None]:
        return lambda line: line.scores[at]

    letters = judge_letters(len(opened.run.judges))
    judges = [(f"Judge{letter}", of_judge(at)) for at, letter in enumerate(letters[:_JUDGES])]
    return [*judges, (RULES, lambda line: line.rule)]


def _turn_bins(lines: Sequence[Line]) -> list[Bin]:
    most = max(line.turn for line in lines)
    return [_bin(f"{low}" if low == high else f"{low}–{high}" if high else f"{low}+", low, high, lambda line: line.turn)
            for low, high in _TURNS if low <= most]  # fmt: skip


def _length_bins(lines: Sequence[Line]) -> list[Bin]:
    most = max(line.characters for line in lines) / 1000
    return [_bin(f"{low}–{high}" if high else f"{low}+", low, high and high - 1e-9, lambda line: line.characters / 1000)
            for low, high in _LENGTHS if low <= most]  # fmt: skip


def _bin(label: str, low: float, high: float | None, of: Callable[[Line], float]) -> Bin:
    return label, lambda line: low <= of(line) and (high is None or of(line) <= high)


def _trend(
    name: str,
    title: str,
    note: str,
    across: str,
    lines: Sequence[Line],
    bins: Sequence[Bin],
    series: Sequence[_Scores],
) -> Plot:
    made = [
        Series(label, tuple(_mean(of, [line for line in lines if inside(line)]) for _, inside in bins))
        for label, of in series
    ]
    note += " Scored predictions of all domains together, bars are 95 % intervals; domains differ in depth and length."
    note += without_bars(made)
    return trend(name, title, note, across, [label for label, _ in bins], made)


def _mean(of: Callable[[Line], float | None], lines: Sequence[Line]) -> Value | None:
    """Mean of a bin with its interval; clusters of several domains do not meet."""
    known = [(f"{line.domain}/{line.cluster}", score) for line in lines if (score := of(line)) is not None]
    if not known:
        return None
    mean = fmean(score for _, score in known)
    return with_ends(mean, in_points(clustered(mean, known)), len(known))


def _place(score: float) -> int:
    return max(0, min(_BINS - 1, int(score * _BINS / 100)))


def _distribution(lines: Sequence[Line], series: Sequence[_Scores]) -> Plot:
    made = []
    for label, of in series:
        counts = Counter(_place(score) for line in lines if (score := of(line)) is not None)
        made.append((label, [counts[at] for at in range(_BINS)]))
    return distribution(
        "distribution", "Distribution", "How many predictions have which score.", "Score", made
    )


def _against(opened: Opened, lines: Sequence[Line]) -> Iterator[Plot]:
    for at, name in enumerate(opened.judge_names[:_JUDGES]):
        scored = [
            (line.rule, score)
            for line in lines
            if line.rule is not None and (score := line.scores[at]) is not None
        ]
        if scored:
            counts = Counter((round(rule / 5) * 5, round(score / 5) * 5) for rule, score in scored)
            several = len(opened.run.judges) > 1
            yield bubbles(
                f"rules-and-judge-{at + 1}" if several else "rules-and-judge",
                f"Rules and {name}" if several else "Rules and judge",
                "Area: number of predictions. Far from the dashed line the two disagree.",
                RULES,
                "Judge score",
                [(rule, max(0, min(100, score)), count) for (rule, score), count in sorted(counts.items())],
            )


def _costs(opened: Opened) -> Iterator[Plot]:
    """USD by domain where all of it is known, else tokens where any are."""
    results = opened.results
    stages = [("Predictions", results.predictions.spent, results.predictions.spent_by_domain)]
    stages += [
        (f"Verdicts{letter}", one.spent, one.spent_by_domain)
        for letter, one in zip(judge_letters(len(results.judges)), results.judges, strict=True)
    ]
    domains = list(results.predictions.samples)
    rows = [domain_name(name) for name in domains]
    known = all(spent.cost_usd is not None for _, spent, _ in stages)
    if known and any(spent.cost_usd for _, spent, _ in stages):
        amounts = [
            (label, [(by[name].cost_usd or 0.0) if name in by else 0.0 for name in domains])
            for label, _, by in stages
        ]
        yield stacked("cost", "Cost", "USD by domain, all attempts.", "USD", rows, _few(amounts))
    elif _tokens(results):
        amounts = [(label, [float(_sum(by.get(name))) for name in domains]) for label, _, by in stages]
        yield stacked(
            "tokens",
            "Tokens",
            "Tokens of prompts and answers by domain, all attempts; not all prices are known.",
            "tokens",
            rows,
            _few(amounts),
        )


def _few(amounts: list[tuple[str, list[float]]]) -> list[tuple[str, list[float]]]:
    """As many as colours tell apart; what is beyond them stands together."""
    if len(amounts) <= _JUDGES + 1:
        return amounts
    rest = [fsum(column) for column in zip(*(values for _, values in amounts[_JUDGES:]), strict=True)]
    return [*amounts[:_JUDGES], ("Verdicts of others", rest)]


def _sum(spent: object) -> int:
    usage = getattr(spent, "usage", None)
    return 0 if usage is None else (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)


def _tokens(results: Results) -> bool:
    return _sum(results.predictions.spent) > 0
