"""Answers taken from the response cache in place of asking, and good ones put into it.

In: the cache (or none), a way to ask, and what makes a record from answers (a prediction, a verdict).
Out: the record, with the id of the draw that it rests on. Good is what became a prediction or a verdict
without a failure, on a prompt that the server read whole; nothing else is ever stored. What was stored as
good and is none by today's rules is asked for anew and replaced.

The key is made of all that can change an answer: where and which model (with what the server tells of its
weights, engine and template), messages, parameters as they are sent, the schema asked for. Epoch, repeat
and sample stand in it because each of them is to be a draw of its own. Keys, names of runs, timeouts and
connections do not. Answers that cost nothing to make again (baselines, replays) and those of engines in
this process, which cannot tell their weights apart, are never cached.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from agentworldbench.engine.budget import Asker
from agentworldbench.engine.retry import Answer
from agentworldbench.models import Model
from agentworldbench.records import Attempt, Completion, Failure, Prediction, Request, Verdict
from agentworldbench.response_cache import CachedAnswer, ResponseCache
from agentworldbench.run_record import PROMPT_CUT, PROMPT_PERHAPS_CUT
from agentworldbench.texts import digest, time_text

FROM_CACHE: Final = "answer taken from the response cache"
"""Note on a record; the tables count it."""
_WEIGHTS: Final = ("engine", "engine_version", "revision", "chat_template_sha256", "quantization", "dtype")
_NOT_WEIGHTS: Final = frozenset(
    {"id", "owned_by", "max_model_len", "context_length", "context_window", "meta.n_ctx"}
)
"""Of what is kept of a model's entry in a server's list: names, and lengths, which `max_tokens` keeps to."""
R = TypeVar("R", Prediction, Verdict)


async def remembered(
    cache: ResponseCache | None,
    asker: Asker,
    make: Callable[[Asker], Awaitable[R]],
    failed: Callable[[R], Failure | None] = lambda record: record.failure,
) -> R:
    """The record that `make` makes of answers, asked for or remembered; `failed` reads it as its protocol does."""
    if cache is None:
        return await make(asker)
    recall = _Recall(cache, asker)
    record = await make(recall)
    if recall.found is not None and (record.failure or failed(record)):
        recall.blind = True
        record = await make(recall)
    if record.failure or failed(record):
        return record
    if recall.found is not None:
        return _marked(record, recall.found)
    unread = {PROMPT_CUT, PROMPT_PERHAPS_CUT} & set(record.notes)
    draw = None if unread else await recall.keep()
    return record.model_copy(update={"draw": draw})


class _Recall:
    """An `Asker` that looks into the cache first. `found` is what the last answer was taken from."""

    def __init__(self, cache: ResponseCache, asker: Asker) -> None:
        self.found: CachedAnswer | None = None
        self.blind = False
        self._cache = cache
        self._asker = asker
        self._last: tuple[str, Answer] | None = None
        self._shown: set[str] = set()

    async def __call__(self, model: Model, request: Request) -> Answer:
        self.found = self._last = None
        if model.local:
            return await self._asker(model, request)
        key = cache_key(model, request)
        # An answer already handed out was not good enough: the same question again is meant for the model.
        if not self.blind and key not in self._shown:
            self.found = await self._cache.find(key)
        if self.found is not None:
            self._shown.add(key)
            return Answer(self.found.completion, (Attempt(outcome="ok", seconds=0.0, cost_usd=0.0),), 0.0)
        answer = await self._asker(model, request)
        self._last = (key, answer)
        return answer

    async def keep(self) -> str | None:
        """Store the last answer; its draw, or None where none was stored."""
        if self._last is None or not isinstance(self._last[1].outcome, Completion):
            return None
        key, answer = self._last
        assert isinstance(answer.outcome, Completion)
        kept = CachedAnswer(
            draw=secrets.token_hex(8),
            asked_at=time_text(datetime.now(UTC)),
            seconds=round(answer.seconds, 3),
            completion=answer.outcome,
        )
        return kept.draw if await self._cache.keep(key, kept, replace=key in self._shown) else None


def _marked(record: R, found: CachedAnswer) -> R:
    """The record as one that cost nothing, with the draw and what it cost when it was made."""
    return record.model_copy(
        update={
            "draw": found.draw,
            "cached_usage": found.completion.usage,
            "cached_cost_usd": found.completion.cost_usd,
            "notes": (*record.notes, FROM_CACHE),
        }
    )


def cache_key(model: Model, request: Request) -> str:
    """Hex SHA-256 of everything that can change the answer to `request`, and of what makes it a draw of its own."""
    facts, sampling = model.facts(), request.sampling
    source: dict[str, Any] = {name: getattr(facts, name) for name in _WEIGHTS}
    source["listed"] = {name: told for name, told in facts.listed.items() if name not in _NOT_WEIGHTS}
    return digest(
        {
            "model": model.identity(),
            "url": model.url,
            "query": model.query_mark,
            "source": source | {"defaults": facts.generation_defaults},
            "messages": [[message.role, message.content] for message in request.messages],
            "sampling": sampling.model_dump(exclude={"thinking", "reasoning_effort"}),
            "schema": request.json_schema,
            "sample": request.sample.id,
            "epoch": request.epoch,
            "repeat": request.repeat,
        }
    )
