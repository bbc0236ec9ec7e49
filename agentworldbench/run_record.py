"""What `run.json` holds: one run's identity and history, as frozen records.

`predict` fixes every prediction: a difference there makes another run. `selection` says which samples
the run is about, `judges` who judged them, `sessions` when and with which versions and addresses it
was worked on. URLs belong to sessions, not to identities: a server may move between two sessions.
Only `store.py` reads and writes this record.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, SerializerFunctionWrapHandler, model_serializer

from agentworldbench.errors import DataError
from agentworldbench.prices import Price
from agentworldbench.records import Record
from agentworldbench.texts import UTC_TIME, moment

ContextPolicy = Literal["error", "drop-oldest"]
"""What becomes of a prompt that leaves no room for an answer: a failure, or a shorter history."""


PROMPT_CUT = "the server read fewer prompt tokens than were sent: it cut the prompt"
PROMPT_PERHAPS_CUT = "the prompt looks longer than what the server read: it may have been cut"
"""Notes on a record that results warn about: such an answer is about another prompt."""


class Grown(Record):
    """A stored record that has got fields since: those in `LATER` are left out while they have their defaults, so
    that what does not use them is written as before."""

    LATER: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        known = type(self).model_fields
        unused = {
            name
            for name in self.LATER
            if getattr(self, name) == known[name].get_default(call_default_factory=True)
        }
        return {name: value for name, value in handler(self).items() if name not in unused}


class ModelFacts(Record):
    """What an endpoint or engine tells about the model it serves; None or empty where it does not say.

    `listed` is the model's entry in the server's list, `generation_defaults` what applies to
    parameters that no request sets. `context` (tokens of prompt and answer together) and
    `max_output` come with the place they are known from; `prompts_counted` tells whether prompts
    are measured with the model's own tokenizer, or else estimated. `clock_offset` is by how many
    seconds the server's clock was ahead.
    """

    engine: str | None = None
    engine_version: str | None = None
    listed: dict[str, Any] = Field(default_factory=dict)
    revision: str | None = None
    chat_template_sha256: str | None = None
    quantization: str | None = None
    dtype: str | None = None
    generation_defaults: dict[str, Any] = Field(default_factory=dict)
    context: int | None = None
    context_from: str | None = None
    max_output: int | None = None
    max_output_from: str | None = None
    prompts_counted: bool = False
    clock_offset: float | None = None


class DataSection(Record):
    """The data set: its hashes decide, the rest informs. `simulated` names domains without a real environment."""

    name: str
    repository: str | None
    revision: str | None
    files: dict[str, str]
    simulated: tuple[str, ...] = ()


class PredictSection(Record):
    """What fixes every prediction of a run.

    `tasks` are digests by domain, `sampling` every parameter by domain (or "server default"),
    `model` the model string with the backend's identity, `extraction` how text becomes observation.
    """

    data: DataSection
    tasks: dict[str, str]
    extraction: str
    model: dict[str, Any]
    sampling: dict[str, dict[str, Any]]
    max_context: int | None
    min_output: int
    context_policy: ContextPolicy = "error"


class SelectionRecord(Record):
    """Which samples, and what is needed to find them again; `samples` counts them by domain. `shard` says which
    part of what the other fields select this is (None: all of it)."""

    data: str
    tasks: tuple[str, ...]
    limit: str | None
    limit_trajectories: int | None
    sample_id: tuple[str, ...]
    seed: int | None
    samples: dict[str, NonNegativeInt]
    shard: str | None = None


class JudgeRecord(Record):
    """One judge. The digest covers `identity`, protocol, sampling, `prompts` and schema; the system
    prompts are hashed by domain, so that one of them may change and ask its own domain again. Of a judge
    that another program asked, what its file does not say is None or missing."""

    digest: str
    model: str
    identity: dict[str, Any]
    protocol: str
    protocol_version: int
    sampling: dict[str, Any]
    schema_sha256: str | None
    prompts: dict[str, str]
    system_prompts: dict[str, str | None]
    parse: Literal["strict", "official"]
    attempts: int | None
    min_output: int | None
    max_context: int | None


def judge_names(judges: Iterable[JudgeRecord]) -> dict[str, str]:
    """What each judge of a run is called, by digest: its model, and as much more as tells it from the others."""
    known, names = list(judges), dict[str, str]()
    for form in ("{0.model}", "{0.model} ({0.protocol})", "{0.model} ({0.protocol}, {0.digest})"):
        called = Counter(form.format(one) for one in known)
        for one in known:
            if called[form.format(one)] == 1:
                names.setdefault(one.digest, form.format(one))
    return {one.digest: names[one.digest] for one in known}


class PanelRule(Record):
    """How the verdicts of a run's judges are combined. `least` of them must be valid on a prediction; None: more
    than half of the judges, however many the run has."""

    combine: Literal["median", "mean"]
    least: PositiveInt | None = None

    def needed(self, judges: int) -> int:
        """How many of so many judges must have a valid verdict."""
        return judges // 2 + 1 if self.least is None else self.least

    def words(self, judges: int) -> str:
        """The rule for so many judges: `median of 3 judges, at least 2`."""
        return f"{self.combine} of {judges} judges, at least {self.needed(judges)}"


class RequestLimits(Record):
    """The limits that a session was given. None: no ceiling; of `max_connections`: found out as it went."""

    max_connections: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    judge_requests_per_minute: int | None
    judge_tokens_per_minute: int | None
    max_retries: int
    timeout: float
    stream: bool = False
    judge_stream: bool = False


class Session(Record):
    """One session of work: when, with which harness and packages, and where the models were.

    `prices` are those in force, by model string; `max_cost` is the limit in USD that it kept to.
    """

    started_at: str
    harness: str
    git_commit: str | None
    git_dirty: bool | None
    packages: dict[str, str]
    model_url: str | None
    judge_urls: dict[str, str | None]
    model_facts: ModelFacts | None = None
    judge_facts: dict[str, ModelFacts] = Field(default_factory=dict)
    prices: dict[str, Price] = Field(default_factory=dict)
    max_cost: float | None = None
    limits: RequestLimits | None = None


class RunRecord(Grown):
    """The whole of `run.json`. `protocol` is that of the first session: it says how the rule metrics are headed.
    A judge that is added has its own, and heads no numbers but its own.

    `epochs` is how many answers each sample has, `repeats` by digest how many verdicts a judge gives on each
    (missing: 1). Both grow and never shrink: results read all of them. `panel` combines the verdicts of all judges
    of the run; it asks for nothing.
    """

    LATER: ClassVar = ("epochs", "repeats", "panel")

    schema_version: Literal[1] = 1
    created_at: str
    protocol: str
    predict: PredictSection
    selection: SelectionRecord
    judges: tuple[JudgeRecord, ...]
    sessions: tuple[Session, ...]
    epochs: PositiveInt = 1
    repeats: dict[str, PositiveInt] = Field(default_factory=dict)
    panel: PanelRule | None = None

    def price(self, model: str) -> Price | None:
        """The price of a model string in the last session that knew one."""
        known = (session.prices.get(model) for session in reversed(self.sessions))
        return next(filter(None, known), None)


def check_times(path: Path, run: RunRecord) -> None:
    """Raises DataError where a time in the `run.json` of the directory `path` is none, or is that of no session: what is
    public of a run has dates."""
    if not run.sessions:
        raise DataError(
            f"{path / 'run.json'}: sessions: names no session, so nothing tells when and with what the run was made"
        )
    times = {"created_at": run.created_at}
    times |= {f"sessions[{number}].started_at": one.started_at for number, one in enumerate(run.sessions)}
    for field, text in times.items():
        if moment(text) is None or not re.match(UTC_TIME, text, re.ASCII):
            raise DataError(f"{path / 'run.json'}: {field}: {text!r} is no time such as 2026-11-30T09:30:00Z")
