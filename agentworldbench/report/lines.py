"""The list of samples: what it shows of each prediction, and what a search finds it by.

In: `Item`s. Out: `Line`s, the script file of the list (arrays with a legend, because it is loaded whole) and those of the
search, one a domain, loaded when somebody searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from agentworldbench.prompts import action_text
from agentworldbench.render.diff import visible
from agentworldbench.render.names import domain_name
from agentworldbench.render.sample import unfenced
from agentworldbench.report.contents import Line
from agentworldbench.report.gather import Gathered, Given, Item
from agentworldbench.report.history import assigned
from agentworldbench.report.names import page_name

SEARCHED_PREDICTION: Final = 2_000
SEARCHED_ACTION: Final = 1_000
"""Characters of the texts that a search looks through."""
_SHORT_ACTION: Final = 110


def line_of(opened: Gathered, item: Item) -> Line:
    """What the list shows of one prediction. A judge's score is the mean of its repeats."""
    judges = [item.of_judge(judge) for judge in opened.run.judges]
    failure = item.prediction.failure.kind.value if item.prediction and item.prediction.failure else None
    conflicts = [item.conflict(some[0]) if some else None for some in judges]
    return Line(
        page=page_name(item.ref.id, item.epoch),
        sample_id=item.ref.id,
        domain=item.ref.domain,
        cluster=item.ref.cluster,
        epoch=item.epoch,
        turn=item.ref.turn_idx,
        turns=item.ref.total_turns,
        characters=item.ref.context_chars,
        failure="not_run" if item.prediction is None else failure,
        scores=tuple(_mean([one.score for one in some]) for some in judges),
        judge_failures=tuple(_failure(some) for some in judges),
        sides=tuple(one.side if one else None for one in conflicts),
        rule=item.rule,
        metrics=dict(item.metrics.values) if item.metrics else {},
        unread=tuple(item.metrics.reasons) if item.metrics else (),
    )


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None


def _failure(some: Sequence[Given]) -> str | None:
    """What kept a judge from a score on this prediction; None where it gave one, or where the prediction failed."""
    if any(one.score is not None for one in some):
        return None
    return next((one.head.kind for one in some if one.head.stage in ("judge", "pending")), None)


def short_action(item: Item) -> str:
    """The beginning of the action on one line, without the fence around it."""
    text = " ".join(unfenced(action_text(item.sample.action, item.task)).split())
    return visible(text if len(text) <= _SHORT_ACTION else text[:_SHORT_ACTION] + "…")


def search_text(item: Item) -> str:
    """What a search looks through: id, action, what judges said, the beginning of the prediction."""
    said = [
        text
        for one in item.given
        if one.verdict
        for text in (*one.verdict.strengths, *one.verdict.weaknesses)
    ]
    action = action_text(item.sample.action, item.task)[:SEARCHED_ACTION]
    observation = (item.shown[0] or "")[:SEARCHED_PREDICTION]
    return "\n".join((item.ref.id, action, *dict.fromkeys(said), observation)).lower()


def list_script(opened: Gathered, lines: Sequence[Line], actions: Mapping[str, str]) -> str:
    """`list.js`: every line, and what its numbers stand for."""
    domains = list(dict.fromkeys(line.domain for line in lines))
    metrics = list(dict.fromkeys(name for line in lines for name in line.metrics))
    value: dict[str, Any] = {
        "domains": [(name, domain_name(name)) for name in domains],
        "metrics": metrics,
        "judges": [visible(name) for name in opened.judge_names],
        "lines": [_packed(line, domains, metrics, actions[line.page]) for line in lines],
    }
    return assigned("list", value)


def _packed(line: Line, domains: Sequence[str], metrics: Sequence[str], action: str) -> list[Any]:
    return [
        line.page,
        visible(line.sample_id) + (f" (epoch {line.epoch})" if line.epoch > 1 else ""),
        domains.index(line.domain),
        line.turn,
        line.turns,
        line.characters,
        line.failure,
        [_round(score) for score in line.scores],
        list(line.judge_failures),
        [side and side[0] for side in line.sides],
        _round(line.rule),
        [None if (value := line.metrics.get(name)) is None else round(value, 3) for name in metrics],
        action,
    ]


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def search_script(texts: Mapping[str, str]) -> str:
    """`search-<domain>.js`: what a search looks through, by page."""
    return assigned("search", dict(texts))
