"""An engine without weights, for `InProcessModel`: what it is asked is noted, what it answers is scripted.

`FakeTokenizer` makes one token of each character and renders `role:content` lines. `FakeEngine`
answers every job with the end of its prompt in capitals, or as `script` says for a batch; it runs in
the model's worker thread like a real one. Nothing here sleeps: where a test must wait for the
worker, both sides use events, bounded by `LIMIT_S`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from agentworldbench.models import Connection
from agentworldbench.models.chat_template import ChatTemplate
from agentworldbench.models.generation import EngineFailed, Generated, Job, Loaded
from agentworldbench.models.in_process import InProcessModel
from agentworldbench.records import CallFailure, Completion, Sampling
from agentworldbench.run_record import ModelFacts

from .asking import make_request

LIMIT_S = 30.0
END, BOS = 3, 1
Outcome = TypeVar("Outcome")
Script = Callable[[Sequence[Job]], Iterable[tuple[Job, Generated | EngineFailed]]]
More = Callable[[], Iterable[Job]]


class FakeTokenizer:
    """One token a character; `END` ends answers. `tail` is what the template ends a prompt with."""

    bos_token_id = BOS

    def __init__(self, template: str | None = "plain", tail: str = "") -> None:
        self.chat_template = template
        self.encoded: list[str] = []
        self.arguments: list[dict[str, Any]] = []
        self._tail = tail

    def get_chat_template(self) -> str | None:
        """The template's text."""
        return self.chat_template

    def apply_chat_template(self, messages: list[dict[str, str]], **arguments: Any) -> str:
        """`role:content` lines, and what the template adds at the end."""
        from jinja2 import TemplateError

        self.arguments.append(arguments)
        if arguments["chat_template"] == "no system role" and messages[0]["role"] == "system":
            raise TemplateError("System role not supported")
        return "".join(f"{one['role']}:{one['content']}\n" for one in messages) + self._tail

    def __call__(self, text: str, add_special_tokens: bool) -> dict[str, list[int]]:
        """Code points."""
        assert not add_special_tokens, "the template writes the special tokens"
        self.encoded.append(text)
        return {"input_ids": [ord(char) for char in text]}

    def decode(self, tokens: list[int], **others: Any) -> str:
        """The characters; the end token shows."""
        return "".join("<end>" if token == END else chr(token) for token in tokens)


class FakeEngine:
    """An `Engine`. `batches` are the prompts' last words, batch by batch, in the order of the rows."""

    def __init__(
        self, script: Script | None = None, rolling: bool = False, context: int = 1000, rows: int = 1000
    ) -> None:
        self.rolling = rolling
        self.takes_schema = rolling
        self.tokenizer = FakeTokenizer()
        self.template: str | None = None
        self.problem: BaseException | None = None
        self.batches: list[list[str]] = []
        self.jobs: list[Job] = []
        self.loading, self.may_load, self.closed = threading.Event(), threading.Event(), threading.Event()
        self.may_load.set()
        self._script = script or (lambda jobs: ((job, echo(job)) for job in jobs))
        self._context = context
        self._rows = rows

    def load(self) -> Loaded:
        """What a real engine tells, once it may; raises `problem` where that is set."""
        self.loading.set()
        assert self.may_load.wait(LIMIT_S)
        if self.problem is not None:
            raise self.problem
        template = ChatTemplate("hf/x", self.tokenizer, {END}, self.template)
        return Loaded(template, self._context, "the fake", ModelFacts(engine="fake", dtype="float32"))

    def fits(self, tokens: int) -> int:
        """`rows` tokens altogether."""
        return max(1, self._rows // tokens)

    def generate(self, jobs: Sequence[Job], more: More) -> Iterator[tuple[Job, Generated | EngineFailed]]:
        """As the script says, and what has come in meanwhile when rolling."""
        waiting = list(jobs)
        while waiting:
            self.batches.append([word(job) for job in waiting])
            self.jobs += waiting
            yield from self._script(waiting)
            waiting = list(more()) if self.rolling else []

    def close(self) -> None:
        """Remembers."""
        self.closed.set()


def word(job: Job) -> str:
    """The last word of a job's prompt."""
    return "".join(map(chr, job.prompt)).strip().rpartition(":")[2]


def echo(job: Job) -> Generated:
    """The last word in capitals, then the end token."""
    return Generated((*map(ord, word(job).upper()), END), "stop")


def model_of(engine: FakeEngine, scheme: str = "hf", **connection: Any) -> InProcessModel:
    """A model of scheme `hf` or `vllm` on a fake engine."""
    return InProcessModel(f"{scheme}/x", Connection(**connection), scheme, engine)  # type: ignore[arg-type]


def bounded(work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Run a coroutine on a loop of its own, within LIMIT_S."""

    async def run() -> Outcome:
        return await asyncio.wait_for(work(), LIMIT_S)

    return asyncio.run(run())


def ask_all(
    model: InProcessModel, words: Sequence[str], sampling: Sampling | None = None
) -> list[Completion | CallFailure]:
    """Load, ask for all words at once, close; outcomes in the order of the words."""

    async def work() -> list[Completion | CallFailure]:
        await model.check()
        try:
            asked = (model.generate(make_request(sampling or Sampling(), text=one)) for one in words)
            return await asyncio.gather(*asked)
        finally:
            await model.close()

    return bounded(work)
