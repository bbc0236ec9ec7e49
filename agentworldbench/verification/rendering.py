"""Prompts rendered again from the data, and their hashes compared with the recorded ones.

In: a case with its sample. Out: hits where a model or a judge was asked something else than this harness asks: other
history, other suffix, another system prompt, another prediction shown to the judge. A hash says that the record names
the right prompt. That the model answered this prompt and no other, no file can show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from agentworldbench.prompts import messages_sha256, predict_messages
from agentworldbench.records import Message
from agentworldbench.scoring.judge import Judge
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case
from agentworldbench.verification.replay import shown_to

OTHER_PROMPT: Final = "the model was asked another prompt than the one rendered from the data"
OTHER_JUDGE_PROMPT: Final = "the judge was asked another prompt than the one rendered from the data"
NO_HASH: Final = "the record does not say which prompt was asked"
SHORTENED: Final = "the oldest turns were left out of the history: such results are a group of their own"


def check_prompts(case: Case, judges: Mapping[str, Judge]) -> Iterator[Hit]:
    """Hits of one case; `judges` are those that can be rendered, by digest."""
    sample, prediction = case.sample, case.prediction
    if sample is None or prediction is None:
        return
    messages = without_turns(predict_messages(sample), prediction.dropped_turns)
    if prediction.prompt_sha256 is None:
        yield Hit("prompts", "refused", NO_HASH, case.where)
    elif messages is None or messages_sha256(messages) != prediction.prompt_sha256:
        yield Hit("prompts", "refused", OTHER_PROMPT, case.where)
    elif prediction.dropped_turns:
        yield Hit("prompts", "warning", SHORTENED, case.where)
    for record, verdict in case.verdicts:
        judge, shown = judges.get(record.digest), shown_to(case, record)
        if judge is None or shown is None:
            continue
        where = f"{case.where} by {record.model}"
        if verdict.prompt_sha256 is None:
            yield Hit("judge prompts", "refused", NO_HASH, where)
            continue
        asked = judge.request(sample, shown, case.epoch, verdict.repeat, prediction.text).messages
        if messages_sha256(asked) != verdict.prompt_sha256:
            yield Hit("judge prompts", "refused", OTHER_JUDGE_PROMPT, where)


def without_turns(messages: tuple[Message, ...], turns: int) -> tuple[Message, ...] | None:
    """Messages without their oldest turns, as `--context-policy drop-oldest` sends them; None for more than there are."""
    system = tuple(message for message in messages if message.role == "system")
    rest = messages[len(system) :]
    return None if turns < 0 or 2 * turns >= len(rest) else system + rest[2 * turns :]
