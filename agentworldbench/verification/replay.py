"""Stored replies read again: does each raw reply say what its record says it says?

In: a case. Out: the prediction and the verdicts as the rules of this harness read them from the raw text, and hits
where a record differs. What came without text (a timeout, a refused request) has nothing to read and stays as it
stands. A bundle without the models' reasoning is read as if reasoning had come apart, and as if it had not: a record
that either reading gives is right. Nothing ties a reply to the model that wrote it: an edited reply that reads well is
found only by judging again (`audit.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentworldbench.observation import Reading, read_reply
from agentworldbench.official import official_observation
from agentworldbench.prompts import reference_observation
from agentworldbench.records import Completion, Failure, Prediction, Sample, Verdict
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.judge import strict_verdict
from agentworldbench.texts import sha256_text
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case, Material

LEFT_OUT: Final = "(reasoning that the bundle leaves out)"
ANOTHER_READING: Final = "the prediction is not what its raw reply says"
NO_REPLY: Final = "an observation without the reply that it was taken from"
NOT_THE_BASELINE: Final = "the observation is not the one that this baseline gives"
ANOTHER_GRADE: Final = "the stored grades are not those in the judge's raw reply"
NO_GRADING: Final = "grades without the judge's reply"
OTHER_TEXT: Final = "the verdict is on another text than the stored prediction"


def reread_prediction(case: Case, material: Material) -> tuple[Prediction | None, list[Hit]]:
    """The prediction as its raw text reads, and hits where the record says something else."""
    stored = case.prediction
    if stored is None:
        return stored, []
    if stored.text is None and stored.observation is not None:
        return stored, list(_without_text(case, material, stored))
    if stored.text is None and stored.finish_reason is None:
        return stored, []
    task, readings = case.task, list(_readings(case, material, stored))
    official = official_observation(
        stored.text, stored.observation, task.prediction_tag, task.markers.observation
    )
    sha256 = None if official is None else sha256_text(official)
    same = [
        one
        for one in readings
        if _kind(one.failure) == _kind(stored.failure) and one.observation == stored.observation
    ]
    if same and stored.official_sha256 == sha256:
        return stored, []
    read = (same or readings)[0]
    fields: dict[str, Any] = {
        "observation": read.observation,
        "failure": read.failure,
        "official_sha256": sha256,
    }
    return stored.model_copy(update=fields), [Hit("predictions", "refused", ANOTHER_READING, case.where)]


def _readings(case: Case, material: Material, stored: Prediction) -> Iterator[Reading]:
    left_out = not material.given_reasoning and stored.reasoning is None
    for reasoning in (stored.reasoning, LEFT_OUT) if left_out else (stored.reasoning,):
        completion = _completion(stored, stored.text, reasoning)
        yield read_reply(
            completion, case.task.prediction_tag, case.task.markers.observation, stops_sent=False
        )


def _without_text(case: Case, material: Material, stored: Prediction) -> Iterator[Hit]:
    """Only a baseline hands over an observation, and the sample decides which."""
    from agentworldbench.models.baseline import BASELINES

    model = str(material.record.predict.model["model"])
    answer = BASELINES.get(model.partition("/")[2]) if model.startswith("baseline/") else None
    if answer is None:
        yield Hit("predictions", "refused", NO_REPLY, case.where)
    elif case.sample is not None and answer(case.sample, case.task) != stored.observation:
        yield Hit("predictions", "refused", NOT_THE_BASELINE, case.where)


def reread_verdict(
    case: Case, judge: JudgeRecord, stored: Verdict, prediction: Prediction | None
) -> tuple[Verdict, list[Hit]]:
    """A verdict as the judge's raw reply reads, and hits where the record says something else."""
    if stored.reply is None:
        unread = stored.scores is not None
        return stored, [
            Hit("judge replies", "refused", NO_GRADING, _named(case, judge, stored))
        ] if unread else []
    shown = _shown(case, judge, prediction)
    if shown is None or sha256_text(shown) != stored.observation_sha256:
        return stored, [Hit("judge replies", "warning", OTHER_TEXT, _named(case, judge, stored))]
    read = strict_verdict(
        _completion(stored, stored.reply, stored.reasoning), case.sample or _blank(case), shown, case.task
    )
    if isinstance(read, Failure):
        fields: dict[str, Any] = {"scores": None, "failure": read, "strengths": (), "weaknesses": ()}
        same = stored.scores is None and _kind(stored.failure) == read.kind
    else:
        fields = {"scores": read.scores, "failure": None}
        fields |= {"strengths": read.strengths, "weaknesses": read.weaknesses}
        told = (stored.scores, stored.strengths, stored.weaknesses)
        same = told == (read.scores, read.strengths, read.weaknesses) and stored.failure is None
    # Without the sample nobody knows what a judge only quoted.
    if same or (case.sample is None and stored.scores is None):
        return stored, []
    return stored.model_copy(update=fields), [
        Hit("judge replies", "refused", ANOTHER_GRADE, _named(case, judge, stored))
    ]


def _shown(case: Case, judge: JudgeRecord, prediction: Prediction | None) -> str | None:
    if prediction is None:
        return None
    if judge.parse == "strict":
        return prediction.observation
    return official_observation(
        prediction.text, prediction.observation, case.task.prediction_tag, case.task.markers.observation
    )


def shown_to(case: Case, judge: JudgeRecord) -> str | None:
    """What a judge was shown of a case's prediction."""
    return _shown(case, judge, case.prediction)


def shown_texts(case: Case) -> list[str]:
    """Every reading of a case's prediction that somebody scores: the strict one, and what each judge was shown."""
    prediction = case.prediction
    strict = None if prediction is None else prediction.observation
    texts = [strict, *(shown_to(case, judge) for judge, _ in case.verdicts)]
    return list(dict.fromkeys(text for text in texts if text is not None))


def _completion(record: Prediction | Verdict, text: str | None, reasoning: str | None) -> Completion:
    return Completion(
        text=text,
        reasoning=reasoning,
        finish_reason=record.finish_reason,
        refusal=record.refusal,
        tool_calls=record.tool_calls,
        usage=record.usage,
    )


def _kind(failure: Failure | None) -> str | None:
    return None if failure is None else failure.kind.value


def _blank(case: Case) -> Sample:
    return Sample(ref=case.ref, system="", prompts=("",), responses=("",), action="")


def _named(case: Case, judge: JudgeRecord, verdict: Verdict) -> str:
    repeat = f", repeat {verdict.repeat}" if verdict.repeat > 1 else ""
    return f"{case.where} by {judge.model}{repeat}"


def reference_of(case: Case) -> str | None:
    """The real observation, where the data are at hand."""
    return None if case.sample is None else reference_observation(case.sample, case.task)
