"""Every hosted provider, through LiteLLM: the model string goes to it as it stands.

LiteLLM's own retries are off, every call has an explicit timeout, nothing is dropped silently
(`drop_params` stays off: a parameter that a provider does not take is adapted visibly, and one that
LiteLLM itself leaves out or changes is recorded as adapted), and its price table is the one in the wheel, so that nothing is contacted at import. Importing it takes
seconds, so that happens when the first such model is made. Keys are the providers' own variables,
which LiteLLM reads; `AWB_API_KEY` (for a judge `AWB_JUDGE_API_KEY` first) is for a server of the
model's own `--base-url` alone: no provider is sent a key that was meant for another.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

from agentworldbench.errors import ConfigError, CredentialsError
from agentworldbench.models import thinking as families
from agentworldbench.models.adapt import Adaptation, Adapted
from agentworldbench.models.base import Connection, one_line, public_url, query_mark, reach_hint
from agentworldbench.models.cache_breakpoints import CacheBreakpoints, marked, refuses_breakpoints
from agentworldbench.models.chat import read_chat, read_usage, request_body
from agentworldbench.models.connections import key_mark, probe_litellm
from agentworldbench.models.failures import (
    call_failure,
    connection_failure,
    error_text,
    failed,
    first_cause,
)
from agentworldbench.models.lengths import output_limit
from agentworldbench.models.pricing import TABLE, cost_of, table_price
from agentworldbench.prices import Price
from agentworldbench.records import CallFailure, Completion, FailureKind, Request, Thinking
from agentworldbench.run_record import ModelFacts

_BY_CLASS = {
    "AuthenticationError": FailureKind.AUTHENTICATION,
    "PermissionDeniedError": FailureKind.AUTHENTICATION,
    "NotFoundError": FailureKind.MODEL_MISSING,
    "Timeout": FailureKind.TIMEOUT,
    "UnsupportedParamsError": FailureKind.BAD_REQUEST,
}
_SURER = frozenset({FailureKind.QUOTA, FailureKind.CONTEXT_OVERFLOW, FailureKind.CONTENT_FILTER})
"""What the words of a refusal tell more surely than the class that LiteLLM raised."""
_OWN_BODY: Final = frozenset({"anthropic", "azure_ai", "bedrock", "vertex_ai"})
"""Providers to which LiteLLM sends `extra_body` as a parameter of that name when the model is Claude."""


def load_litellm() -> Any:
    """Import LiteLLM without its network requests and its chatter."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    probe_litellm()
    import litellm

    litellm.suppress_debug_info = True
    litellm.drop_params = False
    litellm.telemetry = False
    return litellm


class LiteLLMModel:
    """One model of one provider. Raises ConfigError when LiteLLM knows no such provider."""

    local = False
    batch: int | None = None

    def __init__(self, name: str, connection: Connection) -> None:
        self._litellm = load_litellm()
        try:
            self._served, self.provider, _, _ = self._litellm.get_llm_provider(
                name, api_base=connection.base_url
            )
        except self._litellm.exceptions.BadRequestError:
            raise ConfigError(
                f"model '{name}': not a provider that LiteLLM knows; write PROVIDER/NAME (openai/…, anthropic/…, "
                "gemini/…), hf/REPO or vllm/REPO for an engine in this process, or give --base-url (for a judge "
                "--judge-base-url) for a server of your own"
            ) from None
        self.name = name
        self._connection = connection
        address = connection.base_url or _base_in_environment(self.provider)
        self.url = public_url(address)
        self.query_mark = query_mark(address)
        self._adaptation = Adaptation()
        self._breakpoints = CacheBreakpoints(self.provider, name)
        self.endpoint: str | None = f"{self.url or self.provider} via litellm {key_mark(self._api_key())}"
        known = (
            self._litellm.model_cost.get(name) or self._litellm.model_cost.get(name.partition("/")[2]) or {}
        )
        self._price = connection.price or table_price(known)
        self.limits = connection.limits()
        self.limits.learn_context(known.get("max_input_tokens"), TABLE)
        self.limits.learn_output(known.get("max_output_tokens"), TABLE)
        self._left_out: dict[tuple[str, str], bool | None] = {}

    def identity(self) -> dict[str, Any]:
        """Backend and model string."""
        return {"backend": "litellm", "name": self.name}

    def facts(self) -> ModelFacts:
        """Limits; a provider tells nothing else before it answers."""
        limits = self.limits
        return ModelFacts(
            engine=self.provider,
            context=limits.context,
            context_from=limits.context_from,
            max_output=limits.max_output,
            max_output_from=limits.max_output_from,
        )

    def switches(self, thinking: Thinking, effort: str | None) -> dict[str, Any]:
        """By provider and model."""
        return families.provider(self.provider, self._served, thinking, effort)

    async def count(self, request: Request) -> int | None:
        """Only the provider knows."""
        return None

    def price(self) -> Price | None:
        """--price, or LiteLLM's shipped table; None when neither knows it."""
        return self._price

    async def check(self) -> None:
        """The provider's key must stand in the environment; nothing is sent.

        Clouds have other ways to know who asks (profiles, roles, metadata servers): no variable of
        theirs is demanded.
        """
        if self._api_key():
            return
        missing = [
            name
            for name in self._litellm.validate_environment(self.name)["missing_keys"]
            if name.endswith(("_API_KEY", "_TOKEN")) and not name.startswith(("AWS_", "VERTEX"))
        ]
        if missing:
            raise CredentialsError(
                f"model '{self.name}': no credentials; set {' or '.join(missing)} in the environment or in .env"
            )

    def _api_key(self) -> str | None:
        """The key of ours for a server of one's own; providers' variables are read by LiteLLM itself."""
        if not self._connection.base_url:
            return None
        ours = (name for name in self._connection.key_variables if name.startswith("AWB_"))
        return next((key for name in ours if (key := os.environ.get(name, "").strip())), None)

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Send one request; a refused parameter is adapted and sent again at once."""
        async with self._adaptation.first_alone():
            while True:
                placed = self._breakpoints.place(request)
                body = request_body(request)
                sent = self._adaptation.apply(body | {"messages": marked(body["messages"], placed)})
                through, extra = self._divide(sent, set(request.sampling.extra))
                outcome = await self._send(through, extra)
                if isinstance(outcome, Completion):
                    self._breakpoints.heard(placed, outcome.usage)
                    return outcome.model_copy(update={"cache_breakpoints": len(placed.lengths)})
                failure = outcome.failure
                adaptable = failure.kind is FailureKind.BAD_REQUEST
                if placed.lengths and refuses_breakpoints(failure.status, failure.message):
                    self._breakpoints.refused()
                elif not (adaptable and self._adaptation.learn(sent.body, failure.message)):
                    return outcome

    def _leaves_out(self, name: str, value: Any) -> bool | None:
        """Whether LiteLLM would drop a parameter unasked; None where it does not translate it at all.

        Its translation is made with and without the parameter: where nothing differs, it is gone.
        """
        key = (name, "" if name in ("seed", "max_tokens", "max_completion_tokens") else repr(value))
        if key not in self._left_out:
            translate = self._litellm.utils.get_optional_params
            asked = {"model": self._served, "custom_llm_provider": self.provider}
            try:
                told: bool | None = translate(**asked, **{name: value}) == translate(**asked)
            except self._litellm.exceptions.UnsupportedParamsError:
                told = None
            self._left_out[key] = told
        return self._left_out[key]

    def _divide(self, sent: Adapted, extra: set[str]) -> tuple[Adapted, dict[str, Any]]:
        """What goes through LiteLLM's translation, with what that drops, and what goes round it.

        Of the extra parameters those are translated that LiteLLM knows for this provider.
        """
        known = set(self._litellm.get_supported_openai_params(self._served, self.provider) or ())
        round_it = {name: sent.body[name] for name in extra & sent.body.keys()}
        for name in extra & sent.body.keys() & known:
            if self._leaves_out(name, sent.body[name]) is False:
                del round_it[name]
        through = {name: value for name, value in sent.body.items() if name not in round_it}
        named = [name for name in through if name not in (*extra, "messages")]
        dropped = {name: None for name in named if self._leaves_out(name, through[name])}
        through = {name: value for name, value in through.items() if name not in dropped}
        return Adapted(through, sent.changes | dropped), round_it

    async def _send(self, sent: Adapted, extra: dict[str, Any]) -> Completion | CallFailure:
        options = dict(sent.body)
        if extra and "claude" in self.name.lower() and self.provider in _OWN_BODY:
            options |= extra
        elif extra:
            options["extra_body"] = extra
        if key := self._api_key():
            options["api_key"] = key
        try:
            async with asyncio.timeout(self._connection.timeout):
                reply = await self._litellm.acompletion(
                    model=self.name,
                    api_base=self._connection.base_url,
                    timeout=self._connection.timeout,
                    num_retries=0,
                    max_retries=0,
                    **options,
                )
        except TimeoutError:
            return self._failed(FailureKind.TIMEOUT, f"no answer within {self._connection.timeout:g} s")
        except Exception as problem:  # noqa: BLE001 - LiteLLM raises its providers' own classes too
            return self._call_failure(problem)
        decoded = reply.model_dump()
        if not read_usage(decoded.get("usage")).prompt_tokens:
            decoded["usage"] = None  # LiteLLM writes zeros where the provider did not say
            return read_chat(decoded, sent, None, self._secrets())
        table = (getattr(reply, "_hidden_params", None) or {}).get("response_cost") if self._price else None
        usage = decoded["usage"]
        cost = cost_of(usage, read_usage(usage), self._connection.price, table)
        return read_chat(decoded, sent, cost, self._secrets())

    def _call_failure(self, problem: Exception) -> CallFailure:
        response = getattr(problem, "response", None)
        status, told_by_server = _status(problem)
        message = str(getattr(problem, "message", "") or problem)
        body = getattr(problem, "body", None)
        broken = connection_failure(problem)
        if broken is None and not body and _says_refused(message):
            broken = FailureKind.UNREACHABLE
        if broken is not None:
            reason = first_cause(problem)
            hint = reach_hint(self.url or "", reason) if broken is FailureKind.UNREACHABLE else ""
            return self._failed(broken, f"{self.url or self.provider}: {reason}{hint}")
        message = error_text(body, message.partition("Traceback (most recent")[0])
        headers = (
            getattr(problem, "litellm_response_headers", None) or getattr(response, "headers", None) or {}
        )
        outcome = call_failure(status, message, dict(headers), self._secrets())
        kind = _BY_CLASS.get(type(problem).__name__)
        told = outcome.failure
        if kind is None or told_by_server or told.kind in _SURER or output_limit(message) is not None:
            return outcome
        return failed(kind, told.message, told.status, outcome.retry_after)

    def _secrets(self) -> tuple[str, ...]:
        kinds = ("_API_KEY", "_ACCESS_KEY", "_TOKEN")
        return tuple(value for name, value in os.environ.items() if name.endswith(kinds) and len(value) > 7)

    def _failed(self, kind: FailureKind, message: str) -> CallFailure:
        return failed(kind, one_line(message, self._secrets()))

    async def close(self) -> None:
        """Close the clients that LiteLLM keeps, and let it forget them: others would be handed closed ones."""
        close = getattr(self._litellm, "close_litellm_async_clients", None)
        if close is not None:
            await close()
            self._litellm.in_memory_llm_clients_cache.flush_cache()


def _base_in_environment(provider: str) -> str | None:
    """Where LiteLLM sends requests when the environment names another address than the provider's."""
    names = (f"{provider.upper()}_{kind}" for kind in ("API_BASE", "BASE_URL"))
    return next((url for name in names if (url := os.environ.get(name, "").strip())), None)


def _status(problem: BaseException) -> tuple[int, bool]:
    """HTTP status, and whether it is the server's: that of the first error, which LiteLLM made its own of.

    LiteLLM finds its classes by words anywhere in a refusal, so also in a prompt that is handed back.
    """
    status, inner = getattr(problem, "status_code", None), False
    while (cause := problem.__cause__ or problem.__context__) is not None:
        problem = cause
        if isinstance(told := getattr(problem, "status_code", None), int):
            status, inner = told, True
    return int(status or 500), inner


def _says_refused(text: str) -> bool:
    """LiteLLM sometimes keeps only the words of the first exception."""
    return any(
        words in text for words in ("Connection refused", "Connect call failed", "Cannot connect to host")
    )
