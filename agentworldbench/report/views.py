"""The page of one prediction: everything about it that a person asks for, cut to what a page may weigh.

In: an `Item`, its history and its neighbours. Out: a `SampleView` for the template. Texts are cut by the bytes that they
take as HTML, so that a page stays under 300 KB whatever a model wrote; how much is left out is always told, and the
whole stands in a file beside the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentworldbench.prices import Price, dollars
from agentworldbench.prompts import action_text, reference_observation
from agentworldbench.records import DIMENSIONS, Asked, Prediction, Verdict
from agentworldbench.render.decoded import decoded
from agentworldbench.render.diff import Difference, beginning, difference
from agentworldbench.render.names import domain_name
from agentworldbench.render.nodes import NodeRow, node_rows
from agentworldbench.render.sample import unfenced
from agentworldbench.render.table import points
from agentworldbench.report.contents import (
    File,
    HistoryView,
    MetricView,
    Neighbour,
    SampleView,
    Text,
    VerdictView,
)
from agentworldbench.report.gather import Gathered, Given, Item
from agentworldbench.report.names import page_name
from agentworldbench.report.wholes import Wholes
from agentworldbench.scoring.metrics import ui_tree
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.stats.conflicts import DECISIVE
from agentworldbench.stats.costs import charge
from agentworldbench.texts import count_text

ACTION_BYTES: Final = 12_000
RAW_BYTES: Final = 40_000
"""Of the model's reply, reasoning and refusal together."""
REPLIES_BYTES: Final = 24_000
"""Of all judges' replies together."""
SAID_BYTES: Final = 16_000
"""Of all judges' sentences together."""
REAL_BYTES: Final = 60_000
MESSAGE_BYTES: Final = 1_500
"""Of a line that a server or a metric wrote."""


def sample_view(
    opened: Gathered,
    item: Item,
    history: HistoryView | None,
    neighbours: tuple[Neighbour | None, Neighbour | None],
    same_trajectory: Sequence[Neighbour],
) -> SampleView:
    """The page of one prediction."""
    observation, reading = item.shown
    real = reference_observation(item.sample, item.task)
    mine, theirs, apart = (
        (observation or "", real, False) if observation is None else _sides(observation, real)
    )
    prediction = item.prediction
    wholes = Wholes(page_name(item.ref.id, item.epoch))
    compared = None if observation is None else difference(mine, theirs)
    nodes, nodes_left = _nodes(item)
    return SampleView(
        sample_id=item.ref.id,
        page=page_name(item.ref.id, item.epoch),
        domain=domain_name(item.ref.domain),
        turn=item.ref.turn_idx,
        turns=item.ref.total_turns,
        epoch=item.epoch,
        score=tuple(_top(opened, item)),
        failure=_failure(prediction),
        action=wholes.cut(unfenced(action_text(item.sample.action, item.task)), ACTION_BYTES, "action"),
        history=history,
        difference=compared,
        taken_apart=apart,
        whole=tuple(_whole(compared, observation or "", real, wholes)),
        ansi="\x1b[" in mine or "\x1b[" in theirs,
        reading=reading,
        real=wholes.cut(real, REAL_BYTES, "came") if observation is None else None,
        nodes=tuple(nodes),
        nodes_left=nodes_left,
        verdicts=tuple(_verdicts(opened, item, wholes)),
        metrics=tuple(_metrics(item)),
        raw=tuple(_raw(prediction, wholes)),
        facts=tuple(_facts(opened, item)),
        before=neighbours[0],
        after=neighbours[1],
        same_trajectory=tuple(same_trajectory),
        epochs=tuple(
            Neighbour(page_name(item.ref.id, epoch), f"epoch {epoch}")
            for epoch in range(1, opened.run.epochs + 1)
            if opened.run.epochs > 1
        ),
        files=wholes.files,
    )


def _whole(
    compared: Difference | None, observation: str, real: str, wholes: Wholes
) -> Iterator[tuple[str, File]]:
    """Files of the compared texts that are cut."""
    if compared and compared.predicted_left:
        yield "the whole prediction", wholes.file(observation, "prediction")
    if compared and compared.real_left:
        yield "all that came", wholes.file(real, "came")


def _line(text: str, most: int = MESSAGE_BYTES) -> str:
    """A foreign line, cut where it is longer than a line should be."""
    kept, left = beginning(text, most)
    return f"{kept}… ({count_text(left, 'more character')})" if left else text


def _sides(observation: str, real: str) -> tuple[str, str, bool]:
    """The texts to compare: of two JSON texts a value a line."""
    mine, theirs = decoded(observation), decoded(real)
    if mine is None or theirs is None:
        return observation, real, False
    return "\n".join(mine), "\n".join(theirs), True


def _top(opened: Gathered, item: Item) -> Iterator[tuple[str, str]]:
    for judge, name in zip(opened.run.judges, opened.judge_names, strict=True):
        for one in item.of_judge(judge):
            label = f"{name}, repeat {one.repeat}" if opened.run.repeats.get(judge.digest, 1) > 1 else name
            said = (
                points(one.score) if one.score is not None else one.head.kind.replace("_", " ") or "no value"
            )
            yield label, said
    if item.metrics is not None:
        yield "Rule score", points(item.rule)


def _failure(prediction: Prediction | None) -> tuple[str, str] | None:
    if prediction is None:
        return "not run", "The model has not been asked about this sample yet."
    if prediction.failure is None:
        return None
    return prediction.failure.kind.value.replace("_", " "), _line(prediction.failure.message)


def _nodes(item: Item) -> tuple[list[NodeRow], int]:
    """The elements of two screens, and how many are not shown; none in domains without a metric of screens."""
    observation, _ = item.shown
    if observation is None or not set(item.task.metrics) & set(ui_tree.METRICS):
        return [], 0
    facts = Facts(item.sample, item.task)
    found = ui_tree.screens(facts, normalise(observation[:REAL_BYTES]))
    return ([], 0) if found is None else node_rows(found[1], found[2], found[0])


def _verdicts(opened: Gathered, item: Item, wholes: Wholes) -> Iterator[VerdictView]:
    names = dict(zip((one.digest for one in opened.run.judges), opened.judge_names, strict=True))
    replies = sum(one.verdict is not None for one in item.given) or 1
    for number, one in enumerate(item.given, start=1):
        verdict = one.verdict
        if verdict is None:
            continue  # it was not asked, because the prediction failed or the run is partial
        values, conflict = one.head.values or {}, item.conflict(one)
        yield VerdictView(
            judge=names[one.judge.digest],
            protocol=one.judge.protocol,
            repeat=one.repeat,
            score=one.score,
            values=tuple((name, values.get(name)) for name in DIMENSIONS),
            failure=None
            if one.head.values is not None
            else _line(f"{one.head.kind.replace('_', ' ')}: {one.head.message}"),
            other_reading=_other(one),
            said=tuple(_said(verdict, SAID_BYTES // replies)),
            side=conflict.side if conflict else None,
            reply=None
            if verdict.reply is None
            else wholes.cut(verdict.reply, REPLIES_BYTES // replies, f"verdict-{number}"),
            facts=tuple(_asked(verdict, opened.run.price(one.judge.model))),
        )


def _said(verdict: Verdict, most: int) -> Iterator[tuple[str, str]]:
    """A judge's sentences, as many as there is room for; the whole reply stands below them."""
    for kind, texts in (("strength", verdict.strengths), ("weakness", verdict.weaknesses)):
        for text in texts[:10]:
            yield kind, _line(text, most // 20)


def _other(one: Given) -> str | None:
    """What the other rules read, where that is another value or failure."""
    if one.head.values == one.other.values:
        return None
    name = "strict" if one.judge.parse == "official" else "official"
    return f"By the {name} rules: {one.other.said}"


def _metrics(item: Item) -> Iterator[MetricView]:
    if item.metrics is None:
        return
    for name in item.metrics.applicable:
        value = item.metrics.values.get(name)
        decided = {0.0: "wrong", 1.0: "right"}.get(-1.0 if value is None else value, "between")
        yield MetricView(
            name=name,
            value=value,
            baseline=item.metrics.baseline.get(name),
            primary=name in item.task.primary,
            stands=decided if name in DECISIVE and value is not None else "other",  # type: ignore[arg-type]
            reason=_line(item.metrics.reasons.get(name, "")),
        )


def _raw(prediction: Prediction | None, wholes: Wholes) -> Iterator[tuple[str, Text]]:
    """The reply as it came: before anything was read from it."""
    if prediction is None:
        return
    parts = {
        "Reply of the model, as it came": ("reply", prediction.text),
        "Reasoning": ("reasoning", prediction.reasoning),
        "Refusal": ("refusal", prediction.refusal),
    }
    held = {heading: (what, text) for heading, (what, text) in parts.items() if text}
    for heading, (what, text) in held.items():
        yield heading, wholes.cut(text, RAW_BYTES // len(held), what)


def _facts(opened: Gathered, item: Item) -> Iterator[tuple[str, str]]:
    ref, prediction = item.ref, item.prediction
    if prediction is not None:
        yield from _asked(prediction, opened.run.price(opened.model))
        if prediction.dropped_turns:
            yield "Oldest turns left out", str(prediction.dropped_turns)
    yield "Prompt, characters", f"{ref.context_chars:,}"
    yield "Trajectory", ref.cluster
    yield "Row, SHA-256", ref.row_hash
    if ref.flags:
        yield "Row was mended", ", ".join(ref.flags)


def _asked(record: Asked, price: Price | None) -> Iterator[tuple[str, str]]:
    """Tokens, cost, time and identity of one answer, as far as they are known."""
    usage = record.usage
    tokens = (
        ("prompt", usage.prompt_tokens),
        ("cached", usage.cached_tokens),
        ("answer", usage.completion_tokens),
        ("reasoning", usage.reasoning_tokens),
    )
    said = ", ".join(f"{name} {count:,}" for name, count in tokens if count is not None)
    cost = charge(record, price)
    failed = len([one for one in record.attempts if one.outcome != "ok"])
    known = {
        "Tokens": said,
        "Cost, USD": "unknown" if cost.unknown else dollars(cost.usd),
        "Seconds": "" if record.seconds is None else f"{record.seconds:.2f}",
        "Finish reason": record.finish_reason or "",
        "Longest answer asked for, tokens": "" if record.max_tokens is None else f"{record.max_tokens:,}",
        "Failed attempts before": str(failed) if failed else "",
        "Served as": record.model_served or "",
        "Prompt, SHA-256": record.prompt_sha256 or "",
        "Asked at": record.started_at or "",
        "Notes": _line("; ".join(record.notes)),
    }
    if isinstance(record, Verdict) and record.system_sha256:
        known["System prompt, SHA-256"] = record.system_sha256
    yield from ((name, text) for name, text in known.items() if text)
