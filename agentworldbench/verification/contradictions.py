"""Records that contradict the settings of their own run, or each other: what no run of this harness writes.

In: a case, and the material. Out: hits for answers longer than the run allows, for histories that were shortened where the
run says that they are not, for prompts called too long that fit, for costs below what the run's own prices make
of the tokens, and for files in which a name stands twice, so that two programs read two things in them. Who changes the
settings changes the group that an entry stands in; who changes a record alone is found here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentworldbench.engine.fitting import RESERVE, TEMPLATE
from agentworldbench.prompts import predict_messages
from agentworldbench.records import FailureKind, Prediction, Verdict
from agentworldbench.run_record import RunRecord
from agentworldbench.submission.manifest import MANIFEST, NAMES
from agentworldbench.texts import repeated_name
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case, Material

TWICE: Final = "a name stands twice in one object: programs read unlike things in it"
MORE_TOKENS: Final = "an answer that may be longer than the run's settings allow"
KEPT_QUIET: Final = "turns were left out of a history, and the run says that none are"
FITS: Final = "a prompt that fits the context is called too long"
LONGER_ONE: Final = "a prompt is called too long, and a longer one was answered"
CHEAP: Final = "an answer that cost far less than its tokens do at the run's own price"
CHEAPER: Final = 0.4
"""Share of a price below which nothing honest goes: batches cost half of it."""


def check_names(material: Material) -> Iterator[Hit]:
    """Every file of the run: JSON keeps the last of two equal names here, and another one elsewhere."""
    for name in sorted({*NAMES, MANIFEST}):
        path = material.path / name
        if name.endswith(".json") and path.is_file():
            if (twice := repeated_name(path.read_bytes())) is not None:
                yield Hit("journals", "refused", TWICE, f"{name}: {twice}")
        elif name.endswith(".jsonl") and path.is_file():
            with path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if (twice := repeated_name(line)) is not None:
                        yield Hit("journals", "refused", TWICE, f"{name}:{number}: {twice}")


def check_case(case: Case, material: Material) -> Iterator[Hit]:
    """Hits of one case."""
    record, prediction = material.record, case.prediction
    model = str(record.predict.model.get("model"))
    if prediction is not None:
        sampling = record.predict.sampling.get(case.ref.domain, {})
        yield from _longer(prediction, sampling, "predictions", case.where)
        yield from _cheaper(prediction, record, model, case.where)
        if prediction.dropped_turns and record.predict.context_policy != "drop-oldest":
            yield Hit("prompts", "refused", KEPT_QUIET, case.where)
        if prediction.failure is not None and prediction.failure.kind is FailureKind.CONTEXT_OVERFLOW:
            yield from _fits(case, material)
    for judge, verdict in case.verdicts:
        where = f"{case.where} by {judge.model}"
        yield from _longer(verdict, judge.sampling, "judge replies", where)
        yield from _cheaper(verdict, record, judge.model, where)


def _longer(
    record: Prediction | Verdict, sampling: Mapping[str, Any], check: str, where: str
) -> Iterator[Hit]:
    most = sampling.get("max_tokens")
    if isinstance(most, int) and (record.max_tokens or 0) > most:
        yield Hit(check, "refused", MORE_TOKENS, f"{where}: {record.max_tokens}, at most {most}")


def _cheaper(record: Prediction | Verdict, run: RunRecord, model: str, where: str) -> Iterator[Hit]:
    """A cost is what a provider said or what a price made of tokens; the lowest price of all sessions counts."""
    prices = [one.prices[model] for one in run.sessions if model in one.prices]
    costs = [cost for price in prices if (cost := price.cost(record.usage)) is not None]
    if record.cost_usd is None or record.cached_usage is not None or not costs:
        return
    if record.cost_usd < CHEAPER * min(costs):
        yield Hit(
            "times and tokens", "warning", CHEAP, f"{where}: {record.cost_usd:g} USD, not {min(costs):g}"
        )


def _fits(case: Case, material: Material) -> Iterator[Hit]:
    """No tokenizer makes more tokens of a text than it has bytes. The smallest context of all sessions counts; where one
    does not tell, what other prompts of a single session had."""
    if case.sample is None:
        return
    record = material.record
    most = sum(len(one.content.encode()) for one in predict_messages(case.sample))
    needed = most + TEMPLATE + (record.predict.min_output or 0) + RESERVE
    told = [one.model_facts.context if one.model_facts else None for one in record.sessions]
    contexts = [one for one in (record.predict.max_context, *told) if one is not None]
    if contexts and None not in told:
        if needed <= min(contexts):
            yield Hit("prompts", "refused", FITS, f"{case.where}: at most {most} tokens of {min(contexts)}")
    elif len(record.sessions) == 1 and most <= material.longest_answered:
        yield Hit("prompts", "warning", LONGER_ONE, f"{case.where}: at most {most} tokens")
