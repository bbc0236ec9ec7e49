"""What may have changed a run's numbers unseen, as lines for people.

In: the run's record (what the models told of themselves, session by session) and the counts of its
results. Out: one line a fact. Failures are counted elsewhere; here stands what a table of failures
does not say: a server that changed under its name, answers cut so often that the limit is at fault,
histories that were shortened, answers that had less room than the run asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from agentworldbench.records import FailureKind
from agentworldbench.run_record import PROMPT_CUT, PROMPT_PERHAPS_CUT, ModelFacts, RunRecord, judge_names
from agentworldbench.stats.results import JudgeResults, PredictionResults
from agentworldbench.texts import count_text

OFTEN: Final = 0.02
"""Share of answers cut by the token limit from which on the limit is named."""
_LASTING: Final = ("engine", "engine_version", "revision", "chat_template_sha256", "quantization", "dtype")
"""What should not change between the sessions of one run."""


def warnings_of(
    run: RunRecord, predictions: PredictionResults, judges: Sequence[JudgeResults]
) -> Iterator[str]:
    """Warnings about the model, then about each judge."""
    model = str(run.predict.model["model"])
    yield from _names(f"model {model}", predictions.served)
    yield from _changes(f"model {model}", [session.model_facts for session in run.sessions])
    yield from _cut(predictions)
    if unread := sum(predictions.notes.get(note, 0) for note in (PROMPT_CUT, PROMPT_PERHAPS_CUT)):
        yield (
            f"{count_text(unread, 'prompt was', 'prompts were')} cut by the server, or so it looks: answers to them are about other prompts; give the server "
            "a longer context, or the harness its length (--max-context)"
        )
    if predictions.shortened:
        yield (
            f"{count_text(predictions.shortened, 'prediction was', 'predictions were')} made on a shortened history (--context-policy drop-oldest): "
            "they are no results of this benchmark and are never ranked"
        )
    yield from _less_room(f"model {model}", predictions.less_room, "--max-tokens")
    called = judge_names(one.judge for one in judges)
    for judge in judges:
        name = f"judge {called[judge.judge.digest]}"
        yield from _names(name, judge.served)
        yield from _changes(name, [session.judge_facts.get(judge.judge.digest) for session in run.sessions])
        yield from _less_room(name, judge.less_room, "--judge-max-tokens")


def _names(who: str, served: Sequence[str]) -> Iterator[str]:
    if len(served) > 1:
        yield f"{who} answered under {len(served)} names ({', '.join(served)}): its server changed within the run"


def _changes(who: str, facts: Sequence[ModelFacts | None]) -> Iterator[str]:
    told = [one for one in facts if one is not None]
    for name in _LASTING:
        values = list(dict.fromkeys(value for one in told if (value := getattr(one, name)) is not None))
        if len(values) > 1:
            shown = " → ".join(value if len(value) <= 24 else f"{value[:12]}…" for value in values)
            yield f"{who}: {name.replace('_', ' ')} changed between sessions ({shown})"


def _less_room(who: str, count: int, flag: str) -> Iterator[str]:
    if count:
        yield (
            f"{who}: {count_text(count, 'answer was', 'answers were')} asked for with fewer tokens than {flag} says, because its context or its "
            "longest answer leaves no more; each record says how many (max_tokens)"
        )


def _cut(predictions: PredictionResults) -> Iterator[str]:
    cut = sum(counts.get(FailureKind.TRUNCATED.value, 0) for counts in predictions.failures.values())
    samples = sum(predictions.samples.values())
    if samples and cut / samples >= OFTEN:
        yield (
            f"{cut:,} of {count_text(samples, 'answer')} were cut by the token limit and have no score in the strict reading: "
            "give the model more room (--max-tokens, the server's context length), or check that it stops"
        )
