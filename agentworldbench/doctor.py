"""Whether models and judges can be asked, found out with one cheap request each.

In: a configuration, the flags of `awb run`. Out: a `Checkup` a model: what was found, line by line,
with a state. A fault is what would keep a run from working; a warning is what would change its
numbers unseen. The machine itself (disk, versions) is looked at as well. Nothing is stored.
"""

from __future__ import annotations

import json
import platform
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agentworldbench.config import RunConfig
from agentworldbench.engine.budget import ask_within
from agentworldbench.engine.fitting import CHARACTERS, Room, Unsent, estimate_tokens
from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.errors import AwbError, CredentialsError
from agentworldbench.models import Model
from agentworldbench.models.names import same_model
from agentworldbench.observation import reasoning_of
from agentworldbench.plan import Roles, open_roles
from agentworldbench.pull import Tell
from agentworldbench.records import (
    Completion,
    Failure,
    FailureKind,
    Message,
    Request,
    Sample,
    SampleRef,
    Sampling,
)
from agentworldbench.reply import parts_of
from agentworldbench.resources import expanded
from agentworldbench.run_record import ModelFacts
from agentworldbench.scoring.verdict import TAG
from agentworldbench.texts import count_text
from agentworldbench.version import __version__

State = Literal["ok", "warning", "fault"]
LEAST_DISK: Final = 2 * 2**30
"""Bytes that a full judged run may need: replies with their reasoning."""
MOST_TOKENS: Final = 2048
"""Longest answer of the request: room for a model that reasons first."""
LEAST_TOKENS: Final = 64
"""Shortest answer worth asking for here."""
_ANSWERED: Final = frozenset({FailureKind.EMPTY, FailureKind.CONTENT_FILTER, FailureKind.REFUSED})
"""Failures in which the model did answer."""
MOST_SKEW: Final = 60.0
"""Seconds by which the clocks of server and machine may differ."""
QUESTION: Final = (
    Message(role="system", content="You are a shell. Answer with the screen's text and nothing else."),
    Message(role="user", content='$ echo "ready"\n\nWhat does the terminal print? One line.'),
)
SCHEMA: Final = {
    "type": "object",
    "properties": {"printed": {"type": "string"}},
    "required": ["printed"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, what was found, and what that means."""

    name: str
    found: str
    state: State = "ok"


@dataclass(frozen=True)
class Checkup:
    """All findings about one model, or about the machine (`role` "machine")."""

    role: str
    model: str
    findings: tuple[Finding, ...]

    @property
    def fault(self) -> bool:
        """Whether a run would fail."""
        return any(finding.state == "fault" for finding in self.findings)


async def examine(config: RunConfig, tell: Tell) -> list[Checkup]:
    """Look at the machine and at each model and judge of `config`, one after the other."""
    checkups = [Checkup("machine", platform.node() or "this machine", tuple(_machine(config)))]
    roles = open_roles(config, tell)
    for role, model, sampling in _asked(roles):
        wanted = config.max_context if role == "model" else config.judge_max_context
        try:
            findings = await _examine_model(role, model, sampling, wanted, config.max_cost is not None)
        finally:
            await model.close()
        checkups.append(Checkup(role, model.name, tuple(findings)))
    return checkups


def _asked(roles: Roles) -> Iterator[tuple[str, Model, Sampling]]:
    if roles.model:
        yield "model", roles.model, roles.sampling
    for judge in roles.judges:
        yield "judge", judge.model, judge.sampling


def _machine(config: RunConfig) -> Iterator[Finding]:
    yield Finding("versions", f"awb {__version__}, Python {platform.python_version()}")
    folder = expanded(config.output or Path("runs"), "--output").absolute()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    state: State = "ok" if free >= LEAST_DISK else "warning"
    yield Finding("disk", f"{free / 2**30:.1f} GiB free where runs are written ({folder})", state)
    year = time.gmtime().tm_year
    clock = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield Finding("clock", clock, "ok" if year >= 2026 else "warning")


async def _examine_model(
    role: str, model: Model, sampling: Sampling, context: int | None, capped: bool
) -> list[Finding]:
    """What one request shows; `context` is the length in tokens that the user or a recipe counts on, `capped` whether
    the run has a --max-cost."""
    begun = time.monotonic()
    try:
        await model.check()
    except AwbError as problem:
        name = "authorised" if isinstance(problem, CredentialsError) else "reachable"
        return [Finding(name, str(problem), "fault")]
    reached = f"{model.url or 'in this process'}, {time.monotonic() - begun:.1f} s"
    findings = [Finding("reachable", reached if not model.local or model.batch else "needs no server")]
    if model.local and model.batch is None:
        return findings
    request = Request(
        sample=_SAMPLE,
        messages=QUESTION,
        sampling=sampling.model_copy(update={"max_tokens": min(sampling.max_tokens or 2048, MOST_TOKENS)}),
        json_schema=SCHEMA if role == "judge" else None,
    )
    counted = await model.count(request)
    begun = time.monotonic()
    try:
        asked = await ask_within(model, request, Room(LEAST_TOKENS), _ask_twice)
    except AwbError as problem:
        name = "authorised" if isinstance(problem, CredentialsError) else "answer"
        return [*findings, Finding(name, str(problem), "fault")]
    outcome = asked.failure if isinstance(asked, Unsent) else asked.answer.outcome
    findings += _answered(outcome, time.monotonic() - begun)
    if isinstance(outcome, Completion):
        findings += _about_answer(role, model, outcome, sampling, counted)
    findings += _about_engine(model.facts(), counted, context)
    findings.append(_price(model, capped))
    return findings


async def _ask_twice(model: Model, request: Request) -> Answer:
    """One request; a second one after a failure of the moment."""
    return await ask(model, request, Limiter(1).slot(), 1, Progress())


def _answered(outcome: Completion | Failure, seconds: float) -> Iterator[Finding]:
    if isinstance(outcome, Completion):
        yield Finding("authorised", "yes")
        text = " ".join((outcome.text or "").split())
        ended = f"finish reason {outcome.finish_reason}, {seconds:.1f} s"
        whole = bool(text) and outcome.finish_reason != "length"
        said = f"{text[:60]!r} ({ended})" if text else f"no text ({ended})"
        yield Finding("answer", said, "ok" if whole else "warning")
    elif outcome.kind in _ANSWERED:
        yield Finding("authorised", "yes")
        yield Finding("answer", f"{outcome.kind.value}: {outcome.message}", "warning")
    else:
        yield Finding("answer", f"{outcome.kind.value}: {outcome.message}", "fault")


def _about_answer(
    role: str, model: Model, completion: Completion, sampling: Sampling, counted: int | None
) -> Iterator[Finding]:
    yield _returned_name(model.name, completion.model_served)
    yield _thinking(completion, sampling)
    # A thinking budget is lowered here for the sake of this short request alone.
    adapted = {name: instead for name, instead in completion.adapted.items() if "budget_tokens" not in name}
    if adapted:
        changes = ", ".join(
            f"{name} left out" if instead is None else f"{name} → {instead}"
            for name, instead in adapted.items()
        )
        yield Finding("parameters", f"adapted: {changes}", "warning")
    else:
        yield Finding("parameters", "all taken as they are")
    if role == "judge":
        yield _schema(completion)
    yield _usage(completion, counted)
    cached = completion.usage.cached_tokens
    yield Finding(
        "prefix cache",
        "not reported" if cached is None else f"reported ({count_text(cached, 'token')} cached)",
    )


def _returned_name(claimed: str, served: str | None) -> Finding:
    if not served:
        return Finding("returned name", "the answer does not say", "warning")
    if same_model(claimed, served):
        return Finding("returned name", served)
    return Finding("returned name", f"{served}: is that the model which you call {claimed}?", "warning")


def _thinking(completion: Completion, sampling: Sampling) -> Finding:
    apart, reasoning = reasoning_of(completion, parts_of(completion.text or "", TAG))
    if apart:
        found = "comes apart from the answer"
    elif reasoning:
        found = "stands inside the text, and is taken out when it is read"
    elif completion.usage.reasoning_tokens:
        found = f"hidden ({count_text(completion.usage.reasoning_tokens, 'token')})"
    else:
        found = "none came back"
    thought = found != "none came back"
    wrong = (sampling.thinking == "on" and not thought) or (sampling.thinking == "off" and thought)
    return Finding("thinking", f"{found} (--thinking {sampling.thinking})", "warning" if wrong else "ok")


def _schema(completion: Completion) -> Finding:
    if "response_format" in completion.adapted:
        return Finding("JSON schema", "not accepted: do not give --judge-json-schema")
    text = completion.text or ""
    try:
        fits = "printed" in json.loads(text[text.find("{") :])
    except ValueError:
        fits = False
    return Finding("JSON schema", "accepted and kept to" if fits else "accepted, but the answer is another")


def _usage(completion: Completion, counted: int | None) -> Finding:
    seen = completion.usage.prompt_tokens
    if seen is None:
        return Finding("usage", "no token counts: cost and budgets stay unknown", "warning")
    least = sum(len(message.content) for message in QUESTION) // CHARACTERS
    wrong = abs(seen - counted) > 0.1 * counted + 8 if counted is not None else seen < least
    told = count_text(seen, "prompt token") + (f" ({counted:,} counted)" if counted is not None else "")
    return Finding("usage", told, "warning" if wrong else "ok")


def _about_engine(facts: ModelFacts, counted: int | None, wanted: int | None) -> Iterator[Finding]:
    named = [facts.engine, facts.engine_version, facts.quantization, facts.dtype, facts.revision]
    yield Finding("engine", " ".join(part for part in named if part) or "not told")
    if facts.context and facts.context < (wanted or 0):
        short = f"{count_text(facts.context, 'token')} ({facts.context_from}), and not the {wanted:,} of --max-context"
        yield Finding("context", short, "warning")
    elif facts.context:
        yield Finding("context", f"{count_text(facts.context, 'token')} ({facts.context_from})")
    else:
        told = facts.context_from or "unknown"
        yield Finding("context", f"{told}: refusals will tell; --max-context sets it", "warning")
    longest = (
        f"{count_text(facts.max_output, 'token')} ({facts.max_output_from})"
        if facts.max_output
        else "not told"
    )
    yield Finding("longest answer", longest)
    how = "counted by the model's tokenizer" if counted is not None else "estimated from characters"
    yield Finding("prompt tokens", f"{how} ({counted or estimate_tokens(QUESTION)} here)")
    if facts.clock_offset is not None:
        skew = abs(facts.clock_offset)
        yield Finding("clock", f"differs from ours by {skew:.0f} s", "ok" if skew <= MOST_SKEW else "warning")


def _price(model: Model, capped: bool) -> Finding:
    """A price that is not known keeps a run from beginning only where its cost is capped."""
    price = model.price()
    if price is None:
        told = f"unknown, and so is cost; --price {model.name}=IN,OUT tells it, which --max-cost needs"
        if capped:
            told = f"unknown: --max-cost needs --price {model.name}=IN,OUT (USD per million tokens), else a run is refused"
        return Finding("price", told, "warning" if capped else "ok")
    return Finding("price", price.described())


def states(checkups: list[Checkup]) -> Mapping[str, int]:
    """How many findings have each state."""
    found = [finding.state for checkup in checkups for finding in checkup.findings]
    return {state: found.count(state) for state in ("ok", "warning", "fault")}


_SAMPLE: Final = Sample(
    ref=SampleRef(
        id="doctor/0/1", domain="terminal", row_id=0, turn_idx=1, total_turns=1, cluster="", task_key="",
        row_hash="", line=0, offset=0, length=0, context_chars=0,
    ),
    system="", prompts=("",), responses=("",), action="",
)  # fmt: skip
"""Requests belong to samples; this one is about none."""
