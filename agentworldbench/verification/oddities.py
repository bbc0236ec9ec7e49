"""Times and token counts that do not fit each other. All of this only warns: clocks and counters are often wrong.

In: a case, and the journals in their order. Out: hits for answers that took no time, came faster than any server
writes, have more text than tokens, or began before their run. Servers that estimate usage, caches and machines whose
clock was set trigger these too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from agentworldbench.engine.fitting import CHARACTERS
from agentworldbench.records import Prediction, Verdict
from agentworldbench.texts import moment
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case, Material

FASTEST: Final = 5_000
"""Tokens a second that no server writes into one answer."""
CHECK: Final = "times and tokens"
NO_TIME: Final = "an answer that took no time"
TOO_FAST: Final = f"an answer faster than {FASTEST:,} tokens a second"
TOO_LONG: Final = "an answer of more text than its tokens can hold"
TOO_SHORT: Final = "a prompt of fewer tokens than its text can have"
EARLY: Final = "an answer begun before its run"
BEFORE: Final = "a verdict begun before its prediction"
BELOW_ZERO: Final = "tokens, USD or seconds below zero"
TO_COME: Final = "a run of a time that is still to come"
EARLY_SESSION: Final = "a session begun before its run"
NO_SESSION: Final = "a run that was made when none of its sessions began"
AHEAD: Final = timedelta(days=1)
"""How far clocks may differ."""
NO_START: Final = "a time that cannot be read"


def check_times(material: Material) -> Iterator[Hit]:
    """The times of the run as a whole. One that is none is refused: nothing could be held against it."""
    record, latest = material.record, datetime.now(UTC) + AHEAD
    begun = moment(record.created_at)
    named = {"created_at": record.created_at}
    named |= {f"sessions[{number}]": one.started_at for number, one in enumerate(record.sessions)}
    for name, text in named.items():
        at = moment(text)
        if at is None:
            yield Hit(CHECK, "refused", NO_START, f"run.json: {name} is {text}")
        elif at > latest:
            yield Hit(CHECK, "warning", TO_COME, f"run.json: {name} is {text}")
        elif begun is not None and at < begun:
            yield Hit(CHECK, "warning", EARLY_SESSION, f"run.json: {name} is {text}")
    if (
        record.sessions
        and begun is not None
        and not any(moment(one.started_at) == begun for one in record.sessions)
    ):
        yield Hit(CHECK, "warning", NO_SESSION, f"run.json: created_at is {record.created_at}")


def check_case(case: Case, material: Material) -> Iterator[Hit]:
    """Hits of one case."""
    local = str(material.record.predict.model["model"]).startswith(("baseline/", "replay/"))
    begun = moment(material.record.created_at)
    records: list[tuple[str, Prediction | Verdict, str | None]] = []
    if case.prediction is not None and not local:
        records.append((case.where, case.prediction, case.prediction.text))
    records += [(f"{case.where} by {judge.model}", one, one.reply) for judge, one in case.verdicts]
    if not local:
        yield from _against_the_prompt(case)
    for where, record, text in records:
        if record.failure is None and record.cached_usage is None and record.seconds is not None:
            yield from _about(record, text or "", where)
        counts = (*record.usage.model_dump().values(), record.cost_usd, record.seconds)
        if any(isinstance(count, int | float) and count < 0 for count in counts):
            yield Hit(CHECK, "warning", BELOW_ZERO, where)
        if record.started_at is not None:
            at = moment(record.started_at)
            if at is None:
                yield Hit(CHECK, "warning", NO_START, where)
            elif begun is not None and at < begun:
                yield Hit(CHECK, "warning", EARLY, where)


def _against_the_prompt(case: Case) -> Iterator[Hit]:
    """A prompt that was counted too short for its characters, and verdicts from before their prediction."""
    prediction = case.prediction
    if prediction is None:
        return
    read = prediction.usage.prompt_tokens
    whole = case.sample is not None and not prediction.dropped_turns and prediction.failure is None
    if whole and read is not None and read < case.ref.context_chars // CHARACTERS:
        yield Hit(CHECK, "warning", TOO_SHORT, case.where)
    began = moment(prediction.started_at or "")
    for judge, verdict in case.verdicts:
        judged = moment(verdict.started_at or "")
        if began is not None and judged is not None and judged < began and verdict.cached_usage is None:
            yield Hit(CHECK, "warning", BEFORE, f"{case.where} by {judge.model}")


def _about(record: Prediction | Verdict, text: str, where: str) -> Iterator[Hit]:
    made = record.usage.completion_tokens
    if record.seconds == 0:
        yield Hit(CHECK, "warning", NO_TIME, where)
    elif made is not None and record.seconds and made / record.seconds > FASTEST:
        yield Hit(CHECK, "warning", TOO_FAST, where)
    if made is not None and len(text) > CHARACTERS * max(made, 1):
        yield Hit(CHECK, "warning", TOO_LONG, where)
