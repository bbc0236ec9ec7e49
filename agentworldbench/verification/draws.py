"""Several answers to one question that are one draw: an epoch, or a judge's second verdict, that was copied.

In: small facts of each answer to a question (ids, hashes, lengths, never texts); a question is a sample, for a judge one
prompt. Out: findings. An id that a server gave to two answers of one question, and to no other, is refused, unless the
server gives more of its ids to unlike questions: then its ids tell nothing. So are answers of the same text, tokens
and times: no temperature makes two requests last equally long. The same text alone is a warning, whatever its share: a
server that decodes greedily whatever it is asked, or answers from a cache of its own, honestly repeats every word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agentworldbench.records import Prediction, Verdict
from agentworldbench.texts import sha256_text
from agentworldbench.verification.duplicates import REFUSED, SEVERAL, SHORT
from agentworldbench.verification.findings import Hit
from agentworldbench.verification.material import Case, Material

LONG_SECONDS: Final = 1.0
"""A request that takes so long takes another time, to the millisecond, when it is asked again; a faster one may not."""
ALIKE: Final = 0.5
"""Share of answers that repeat an earlier one above which intervals over re-runs tell nothing."""
LONG: Final = 200
ALIKE_LONG: Final = 0.1
"""The same above temperature 0 for texts of `LONG` characters or more, of which sampling repeats few (docs/verify.md)."""
SAME_ID: Final = "one response id stands behind two answers to one question: the second is a copy"
SHARED_IDS: Final = (
    "one response id stands behind two answers to one question, of a server that gives ids more than once"
)
SAME_REQUEST: Final = "answers to one question of the same text, tokens and times: one of them is a copy"
SAME_TEXT: Final = "answers to one question are the same word for word"


@dataclass(frozen=True)
class Drawn:
    """One answer: of which kind, to which question, where it stands; what it has in common with a copy of it."""

    kind: str
    question: str
    where: str
    response: str | None
    text: str | None
    request: str | None
    long: bool = False


def drawn_of(case: Case, material: Material) -> Iterator[Drawn]:
    """What a model and its judges answered, where more than one answer to a question was asked for."""
    record, prediction = material.record, case.prediction
    if record.epochs == 1 and all(count == 1 for count in record.repeats.values()):
        return
    local = str(record.predict.model["model"]).startswith(("baseline/", "replay/"))
    if prediction is not None and not local:
        yield _drawn("model", case.ref.id, case.where, prediction, prediction.text)
    for judge, verdict in case.verdicts:
        where = f"{case.where} by {judge.model}, repeat {verdict.repeat}"
        asked = verdict.prompt_sha256 or case.where
        yield _drawn(f"judge {judge.model}", f"{judge.digest} {asked}", where, verdict, verdict.reply)


def _drawn(kind: str, question: str, where: str, record: Prediction | Verdict, text: str | None) -> Drawn:
    long = text is not None and len(text.strip()) >= SHORT and record.failure is None
    usage, seconds = record.usage, record.seconds or 0.0
    # A fast request may last as long as another one, but not begin in the same millisecond, too.
    begun = "" if seconds >= LONG_SECONDS else record.started_at
    timed = long and seconds > 0 and begun is not None
    return Drawn(
        kind=kind,
        question=question,
        where=where,
        response=record.response_id or None,
        text=sha256_text(text or "") if long else None,
        long=long and len((text or "").strip()) >= LONG,
        request=sha256_text(f"{text}\0{usage.model_dump_json()}\0{seconds}\0{begun}") if timed else None,
    )


def check_draws(found: Iterable[Drawn], temperatures: dict[str, float | None]) -> Iterator[Hit]:
    """Hits of all answers together; `temperatures` are those recorded, by kind (None: the server's own)."""
    kinds: dict[str, list[Drawn]] = defaultdict(list)
    for one in found:
        kinds[one.kind].append(one)
    for kind, drawn in kinds.items():
        yield from _ids(drawn)
        yield from _alike(kind, drawn, temperatures.get(kind))


def _ids(drawn: list[Drawn]) -> Iterator[Hit]:
    behind: dict[str, list[Drawn]] = defaultdict(list)
    for one in drawn:
        if one.response is not None:
            behind[one.response].append(one)
    twice = [some for some in behind.values() if len(some) > 1]
    copied = [some for some in twice if len({one.question for one in some}) == 1]
    refused = len(copied) > len(twice) - len(copied)
    for some in copied:
        places = _places(some)
        yield Hit(
            "duplicates", "refused" if refused else "warning", SAME_ID if refused else SHARED_IDS, places
        )


def _alike(kind: str, drawn: list[Drawn], temperature: float | None) -> Iterator[Hit]:
    questions: dict[str, list[Drawn]] = defaultdict(list)
    for one in drawn:
        questions[one.question].append(one)
    again = sum(len(some) - 1 for some in questions.values())
    requests = [some for several in questions.values() for some in _equal(several, "request")]
    copies = sum(len(some) - 1 for some in requests)
    refused = copies >= SEVERAL and copies > REFUSED * again
    for some in requests:
        yield Hit("duplicates", "refused" if refused else "warning", SAME_REQUEST, _places(some))
    texts = [some for several in questions.values() for some in _equal(several, "text")]
    same = sum(len(some) - 1 for some in texts)
    long = sum(len(some) - 1 for some in _long(questions.values()))
    same_long = sum(len(some) - 1 for some in texts if some[0].long)
    warm = temperature != 0 and same_long >= SEVERAL and same_long > ALIKE_LONG * long
    if warm or (same >= SEVERAL and same > ALIKE * again):
        asked = "the server's own" if temperature is None else f"{temperature:g}"
        why = "as temperature 0 gives them" if temperature == 0 else f"although the temperature is {asked}"
        counted = f"{same} of {again}; of at least {LONG} characters {same_long} of {long}"
        told = f"{SAME_TEXT}, {why} ({counted}); intervals over re-runs tell nothing here"
        yield Hit("duplicates", "warning", told, f"{kind}: {_places(max(texts, key=len))}")


def _long(questions: Iterable[list[Drawn]]) -> Iterator[list[Drawn]]:
    """The long answers to each question that has more than one."""
    for several in questions:
        some = [one for one in several if one.long]
        if len(some) > 1:
            yield some


def _equal(several: list[Drawn], field: str) -> Iterator[list[Drawn]]:
    """Answers to one question that are equal in a field."""
    groups: dict[str, list[Drawn]] = defaultdict(list)
    for one in several:
        if (value := getattr(one, field)) is not None:
            groups[value].append(one)
    yield from (some for some in groups.values() if len(some) > 1)


def _places(some: list[Drawn]) -> str:
    return ", ".join(one.where for one in some[:4]) + (f" and {len(some) - 4} more" if len(some) > 4 else "")


def temperatures_of(material: Material) -> dict[str, float | None]:
    """The recorded temperature of the model (its lowest, where domains differ) and of each judge."""
    record = material.record
    asked = {"model": [one.get("temperature") for one in record.predict.sampling.values()]}
    asked |= {f"judge {judge.model}": [judge.sampling.get("temperature")] for judge in record.judges}
    known = {kind: [one for one in some if isinstance(one, int | float)] for kind, some in asked.items()}
    return {kind: min(some) if some else None for kind, some in known.items()}
