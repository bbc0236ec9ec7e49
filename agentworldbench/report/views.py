"""The page of one prediction: everything about it that a person asks for, cut to what a page may weigh.

In: an `Item`, its history and its neighbours. Out: a `SampleView` for the template. Texts are cut by the bytes that they
take as HTML, so that a page stays under 300 KB whatever a model wrote; how much is left out is always told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from agentworldbench.prices import Price, dollars
from agentworldbench.prompts import action_text, reference_observation
from agentworldbench.records import DIMENSIONS, Asked, Prediction, Verdict
from agentworldbench.render.decoded import decoded
from agentworldbench.render.diff import beginning, difference
from agentworldbench.render.names import domain_name
from agentworldbench.render.nodes import NodeRow, node_rows
from agentworldbench.render.sample import unfenced
from agentworldbench.render.table import points
from agentworldbench.report.contents import HistoryView, MetricView, Neighbour, SampleView, Text, VerdictView
from agentworldbench.report.gather import Gathered, Given, Item
from agentworldbench.report.names import page_name
from agentworldbench.scoring.metrics import ui_tree
from agentworldbench.scoring.metrics.facts import Facts, normalise
from agentworldbench.stats.conflicts import DECISIVE
from agentworldbench.stats.costs import charge

ACTION_BYTES: Final = 16_000
REPLY_BYTES: Final = 24_000
REPLIES_BYTES: Final = 40_000
"""Of all judges' replies together."""
REAL_BYTES: Final = 60_000
SAID: Final = 600
"""Characters of a judge's sentence."""


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
    return SampleView(
        sample_id=item.ref.id,
        page=page_name(item.ref.id, item.epoch),
        domain=domain_name(item.ref.domain),
        turn=item.ref.turn_idx,
        turns=item.ref.total_turns,
        epoch=item.epoch,
        score=tuple(_top(opened, item)),
        failure=_failure(prediction),
        action=cut(unfenced(action_text(item.sample.action, item.task)), ACTION_BYTES),
        history=history,
        difference=None if observation is None else difference(mine, theirs),
        taken_apart=apart,
        ansi="\x1b[" in mine or "\x1b[" in theirs,
        reading=reading,
        real=cut(real, REAL_BYTES) if observation is None else None,
        nodes=tuple(_nodes(item)),
        verdicts=tuple(_verdicts(opened, item)),
        metrics=tuple(_metrics(item)),
        raw=tuple(_raw(prediction)),
        facts=tuple(_facts(opened, item)),
        before=neighbours[0],
        after=neighbours[1],
        same_trajectory=tuple(same_trajectory),
        epochs=tuple(
            Neighbour(page_name(item.ref.id, epoch), f"epoch {epoch}")
            for epoch in range(1, opened.run.epochs + 1)
            if opened.run.epochs > 1
        ),
    )


def cut(text: str, most: int) -> Text:
    """As much of a text as takes `most` bytes of HTML."""
    kept, left = beginning(text, most)
    return Text(kept, left, json=not left and _is_json(text), ansi="\x1b[" in text)


def _is_json(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and bool(json.loads(text))
    except (ValueError, RecursionError):
        return False


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
    return prediction.failure.kind.value.replace("_", " "), prediction.failure.message


def _nodes(item: Item) -> list[NodeRow]:
    """The elements of two screens; none in domains without a metric of screens."""
    observation, _ = item.shown
    if observation is None or not set(item.task.metrics) & set(ui_tree.METRICS):
        return []
    facts = Facts(item.sample, item.task)
    found = ui_tree.screens(facts, normalise(observation[:REAL_BYTES]))
    return [] if found is None else node_rows(found[1], found[2], found[0])


def _verdicts(opened: Gathered, item: Item) -> Iterator[VerdictView]:
    names = dict(zip((one.digest for one in opened.run.judges), opened.judge_names, strict=True))
    replies = sum(one.verdict is not None for one in item.given) or 1
    for one in item.given:
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
            else f"{one.head.kind.replace('_', ' ')}: {one.head.message}",
            other_reading=_other(one),
            said=tuple(
                (kind, text[:SAID])
                for kind, texts in (("strength", verdict.strengths), ("weakness", verdict.weaknesses))
                for text in texts[:10]
            ),
            side=conflict.side if conflict else None,
            reply=None if verdict.reply is None else cut(verdict.reply, REPLIES_BYTES // replies),
            facts=tuple(_asked(verdict, opened.run.price(one.judge.model))),
        )


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
            reason=item.metrics.reasons.get(name, ""),
        )


def _raw(prediction: Prediction | None) -> Iterator[tuple[str, Text]]:
    """The reply as it came: before anything was read from it."""
    if prediction is None:
        return
    if prediction.text is not None:
        yield "Reply of the model, as it came", cut(prediction.text, REPLY_BYTES)
    if prediction.reasoning:
        yield "Reasoning", cut(prediction.reasoning, REPLY_BYTES)
    if prediction.refusal:
        yield "Refusal", cut(prediction.refusal, REPLY_BYTES // 4)


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
        "Notes": "; ".join(record.notes),
    }
    if isinstance(record, Verdict) and record.system_sha256:
        known["System prompt, SHA-256"] = record.system_sha256
    yield from ((name, text) for name, text in known.items() if text)
