"""The nouns of the harness as frozen records, and nothing else.

Every layer talks in these types; dicts do not cross module borders. Records that are written to disk carry
`schema_version`. Failures are values (`Failure`), never exceptions or text: a failed prediction or verdict is
a record like any other and counts wherever a score is shown. Nothing here imports another module of the package.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

DIMENSIONS: Final = ("format", "factuality", "consistency", "realism", "quality")
"""The judge's five dimensions, in the order in which every table shows them."""

OFFICIAL_DOMAINS: Final = ("mcp", "search", "terminal", "swe", "android", "web", "os")
"""The seven domains of AgentWorldBench, in the paper's order."""

RowId = int | str


class Record(BaseModel):
    """Base: frozen, unknown fields refused, no infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), allow_inf_nan=False)


class FailureKind(StrEnum):
    """Why a prediction or a verdict does not exist. Counted and shown beside every score."""

    # The model (or judge) answered, but not with something that may be scored.
    EMPTY = "empty"  # no text, blank text, or nothing but reasoning
    TRUNCATED = "truncated"  # finish reason length without a complete answer
    REFUSED = "refused"  # the provider's refusal field is set
    CONTENT_FILTER = "content_filter"
    TOOL_CALL = "tool_call"  # a tool call in place of text
    MALFORMED_RESPONSE = "malformed_response"  # not a chat completion
    # The request could not be served.
    CONTEXT_OVERFLOW = "context_overflow"
    BAD_REQUEST = "bad_request"
    PROVIDER_ERROR = "provider_error"  # 5xx
    OVERLOADED = "overloaded"  # 529, or the server says so: too much for it, whoever asks
    RATE_LIMIT = "rate_limit"  # 429: too much from us
    TIMEOUT = "timeout"
    NETWORK = "network"
    NOT_IN_REPLAY = "not_in_replay"
    UNKNOWN = "unknown"  # a file of another program says that it failed, not why
    # The judge answered, but its reply holds no single valid verdict.
    JUDGE_UNPARSED = "judge_unparsed"
    JUDGE_AMBIGUOUS = "judge_ambiguous"
    # Known only when results are made.
    NOT_RUN = "not_run"  # selected, but not asked yet: the run is partial
    # Fatal: these stop the run and never become a record.
    AUTHENTICATION = "authentication"
    MODEL_MISSING = "model_missing"
    QUOTA = "quota"
    UNREACHABLE = "unreachable"


TRANSIENT: Final = frozenset(
    FailureKind(name)
    for name in ("provider_error", "overloaded", "rate_limit", "timeout", "network", "malformed_response")
)
"""Kinds that another attempt may cure: retried within a run, and asked again when a run resumes."""


class Failure(Record):
    """A typed failure. `message` is one redacted line; `status` the HTTP status where there was one."""

    kind: FailureKind
    message: str
    status: int | None = None


class Usage(Record):
    """Token counts as the provider reported them; None where it did not say."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None  # of the prompt, read from the provider's cache
    cache_write_tokens: int | None = None  # of the prompt, put into it
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """Sum field by field; a field unknown on both sides stays unknown."""
        more, mine = other.__dict__, self.__dict__.items()
        return Usage(**{name: n if more[name] is None else more[name] + (n or 0) for name, n in mine})


class Attempt(Record):
    """One request that was sent: what came of it, how long it took (seconds), what it cost (USD).

    `cost_usd` None means unknown; a request that cannot have been billed costs 0. `reply` is kept
    where nothing else keeps it: judge replies without a verdict, replies that are no completion.
    """

    outcome: Literal["ok"] | FailureKind
    seconds: float
    status: int | None = None
    message: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    reply: str | None = None
    finish_reason: str | None = None


class SampleRef(Record):
    """Where a sample lies and how it belongs together, without its text (index entry)."""

    id: str
    domain: str
    row_id: RowId
    turn_idx: int
    total_turns: int
    cluster: str
    task_key: str
    row_hash: str
    line: int
    offset: int
    length: int
    context_chars: int
    flags: tuple[str, ...] = ()


class Sample(Record):
    """One turn of a trajectory to predict.

    `prompts` and `responses` hold turns 1..turn_idx as in the file: the last prompt ends in the
    instruction suffix, the last response is the reference with its observation marker.
    `action` is the current turn's text without the suffix (`current_prompt`).
    """

    ref: SampleRef
    system: str
    prompts: tuple[str, ...]
    responses: tuple[str, ...]
    action: str

    @property
    def id(self) -> str:
        """`<domain>/<id>/<turn_idx>`, with `#2`, `#3` on collision in file order."""
        return self.ref.id


class Message(Record):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


Thinking = Literal["on", "off", "default"]
"""Whether a model is told to reason before it answers, told not to, or left to its default."""

OTHER_SAMPLING: Final = (
    "top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "stop"
)  # fmt: skip
"""Sampling parameters without a flag of their own: given as extra, or else the server's defaults."""


class Sampling(Record):
    """Sampling parameters of one request; None means the server's own default is used.

    `extra` goes into the body as it stands. What `thinking` and `reasoning_effort` ask for stands
    there too, as the backend writes it; the two fields themselves are for reading the answer.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    extra: dict[str, Any] = {}
    thinking: Thinking = "default"
    reasoning_effort: str | None = None

    def described(self) -> dict[str, Any]:
        """For records: every parameter explicit, or named `server default`."""
        fields = {name: value for name, value in self.model_dump().items() if name != "extra"}
        fields = dict.fromkeys(OTHER_SAMPLING) | fields | self.extra
        fields["thinking"] = None if self.thinking == "default" else self.thinking
        return {name: "server default" if value is None else value for name, value in fields.items()}


class Request(Record):
    """One question. `sample` lets baselines and replays answer without text; a refusal of a `tentative` one
    is followed by a shorter one; only with `again_if_empty` a reply that lost its text is asked for again."""

    sample: Sample
    messages: tuple[Message, ...]
    sampling: Sampling
    epoch: int = 1
    repeat: int = 1
    json_schema: dict[str, Any] | None = None
    tentative: bool = False
    again_if_empty: bool = True
    read_again: tuple[int, ...] = ()  # a later request begins with so many of these messages
    json_text: bytes | None = None  # these messages as they are sent, where they are written already,
    prompt_sha256: str | None = None  # their hash,
    estimate: int | None = None  # and about how many tokens they have


class Completion(Record):
    """What a model answered. Baselines hand over `observation` and have no text to be parsed."""

    text: str | None = None
    observation: str | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    tool_calls: bool = False
    usage: Usage = Usage()
    cost_usd: float | None = None
    model_served: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    adapted: dict[str, Any] = {}
    cache_breakpoints: int = 0
    notes: tuple[str, ...] = ()


class ContextLimit(Record):
    """Numbers of tokens that a server named when it refused a request for its length.

    `context` is what there is room for, `prompt` what the prompt has, `total` what prompt and answer
    have together where the server named that sum alone. `prompt_only`: `context` bounds the prompt,
    the answer takes nothing away. `at_least`: the server stopped counting, the prompt may be longer.
    """

    context: int | None = None
    prompt: int | None = None
    total: int | None = None
    prompt_only: bool = False
    at_least: bool = False


class CallFailure(Record):
    """A request that brought no completion.

    `limit` is what a refusal for length said about it. `retry_after` is the server's wish in seconds. `usage` is what
    it made nevertheless; `cost_usd` is 0 where nothing can have been billed (never connected, refused) and None where
    that is not known. `reply` is the raw text (its first 10,000 characters) of an answer that is no completion.
    """

    failure: Failure
    retry_after: float | None = None
    limit: ContextLimit | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    reply: str | None = None


class Asked(Record):
    """What predictions and verdicts share: how a model was asked and what came back, unread.

    `adapted` holds the parameters that the endpoint did not take as they were meant, with what was sent in their
    place (None: left out). `usage` and `cost_usd` are those of all attempts together. `max_tokens` was asked for on
    the ground of `prompt_tokens`: counted by the model's own tokenizer, estimated from characters, or named in the
    server's refusal. `dropped_turns` counts the oldest turns left out of the history (drop-oldest). `prompt_sha256`
    and `started_at` are None where another program asked and did not say. `draw` names the answer in a response
    cache: records with one draw rest on one answer; `cached_*` is what it took when it was not asked for now.
    """

    schema_version: Literal[1] = 1
    sample_id: str
    row_hash: str
    epoch: int = 1
    failure: Failure | None = None
    reasoning: str | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    tool_calls: bool = False
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float | None = None
    max_tokens: int | None = None
    prompt_tokens: int | None = None
    prompt_tokens_from: Literal["counted", "estimated", "refusal"] | None = None
    dropped_turns: int = 0
    model_served: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    adapted: dict[str, Any] = {}
    cache_breakpoints: int = 0  # sent for the provider's own cache of prompts
    prompt_sha256: str | None = None
    attempts: tuple[Attempt, ...] = ()
    notes: tuple[str, ...] = ()
    started_at: str | None = None
    draw: str | None = None
    cached_usage: Usage | None = None
    cached_cost_usd: float | None = None


class Prediction(Asked):
    """What the model answered for (sample, epoch): an observation, or a typed failure.

    `official_sha256` is the hash of what the official rules make of the same reply (None: nothing).
    """

    observation: str | None = None
    official_sha256: str | None = None
    text: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        """(sample id, epoch): the last record of a key counts."""
        return (self.sample_id, self.epoch)


class Verdict(Asked):
    """A judge's five integers with reasons and raw reply, or a typed failure.

    It counts only for the observation and under the system prompt whose hashes it carries (None: another
    program's prompt, which it did not name).
    """

    judge: str
    repeat: int = 1
    observation_sha256: str
    system_sha256: str | None = None
    scores: dict[str, int] | None = None
    strengths: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()
    reply: str | None = None

    @property
    def key(self) -> tuple[str, int, str, int]:
        """(sample id, epoch, judge digest, repeat): the last record of a key counts."""
        return (self.sample_id, self.epoch, self.judge, self.repeat)


class SampleMetrics(Record):
    """Rule metrics of (sample, epoch): [0, 1] each; what does not apply has no value.

    What applies depends on the sample alone: `applicable` lists it also where the prediction `failed` and has no
    values, so that the policy `floor` counts 0 over the same denominators. `reasons` says by metric why a prediction
    that could not be read is 0, `baseline` what copying the observation before scores on the primary metrics.
    """

    schema_version: Literal[1] = 1
    sample_id: str
    epoch: int = 1
    applicable: tuple[str, ...]
    values: dict[str, float]
    baseline: dict[str, float] = {}
    reasons: dict[str, str] = {}
    failed: FailureKind | None = None
    flags: tuple[str, ...] = ()
