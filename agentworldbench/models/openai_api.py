"""`openai-api/NAME` with `--base-url`: every OpenAI-compatible server (vLLM, SGLang, llama.cpp, TGI).

Asks through the `openai` SDK with its aiohttp client, the fastest of the usual ones; the SDK's own
retries are off. The reply is decoded here, not by the SDK's models, so that odd shapes become typed
failures. The key is `AWB_API_KEY` or `OPENAI_API_KEY` (for a judge `AWB_JUDGE_API_KEY` first); a
local server needs none.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

from agentworldbench.errors import ConfigError, CredentialsError, EndpointError
from agentworldbench.models.adapt import Adaptation
from agentworldbench.models.base import Connection, one_line, public_url
from agentworldbench.models.chat import read_chat, request_body
from agentworldbench.models.failures import call_failure, error_text
from agentworldbench.records import CallFailure, Completion, Failure, FailureKind, Request

if TYPE_CHECKING:
    import openai

CHECK_SECONDS = 20.0


class OpenAIModel:
    """One model of one OpenAI-compatible server."""

    local = False

    def __init__(self, name: str, served: str, connection: Connection) -> None:
        if not connection.base_url:
            raise ConfigError(f"{name}: --base-url is missing (for example http://127.0.0.1:8000/v1)")
        if not connection.base_url.startswith(("http://", "https://")):
            raise ConfigError(
                f"--base-url {public_url(connection.base_url)}: must begin with http:// or https://"
            )
        self.name = name
        self.context = connection.max_context
        self._served = served
        self._connection = connection
        self._key, variable = _key(connection.key_variables)
        self._secrets = (self._key,) if variable else ()
        self._url = public_url(connection.base_url) or ""
        self.endpoint: str | None = f"{self._url} {variable or 'no key'}"
        self._adaptation = Adaptation()
        self._client: openai.AsyncOpenAI | None = None

    def identity(self) -> dict[str, Any]:
        """Backend, served name and URL."""
        return {"backend": "openai-api", "name": self._served, "base_url": self._url}

    def price(self) -> None:
        """A server of one's own has no price list: the cost is unknown, which is not 0."""
        return

    def _open(self) -> openai.AsyncOpenAI:
        if self._client is None:
            import openai

            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self._connection.base_url,
                max_retries=0,
                timeout=self._connection.timeout,
                http_client=openai.DefaultAioHttpClient(timeout=self._connection.timeout),
            )
        return self._client

    async def check(self) -> None:
        """Ask `/models`: the server must answer at all and accept the key; learn its context length."""
        import openai

        try:
            raw = await self._open().with_options(timeout=CHECK_SECONDS).models.with_raw_response.list()
            listed = json.loads(raw.http_response.text)
        except openai.APIConnectionError as problem:
            raise EndpointError(
                f"{self._url}: cannot be reached ({_reason(problem)}); is the server running, and the address right?"
            ) from problem
        except (openai.AuthenticationError, openai.PermissionDeniedError) as problem:
            raise CredentialsError(self._refused_key(problem.message)) from problem
        except (openai.APIStatusError, ValueError):
            return  # many servers have no such list; the first request will tell
        for entry in (listed.get("data") or []) if isinstance(listed, dict) else []:
            length = entry.get("max_model_len") if isinstance(entry, dict) else None
            if self.context is None and isinstance(length, int) and entry.get("id") == self._served:
                self.context = length

    def _refused_key(self, message: str) -> str:
        names = " or ".join(self._connection.key_variables)
        return f"{self._url}: the key was refused ({one_line(message, self._secrets)}); set {names}"

    async def generate(self, request: Request) -> Completion | CallFailure:
        """Send one request; a refused parameter is adapted and sent again at once."""
        async with self._adaptation.first_alone():
            body = request_body(request)
            while True:
                sent = self._adaptation.apply(body)
                outcome = await self._send(sent)
                if isinstance(outcome, Completion):
                    return outcome
                failure = outcome.failure
                adaptable = failure.kind is FailureKind.BAD_REQUEST
                if not (adaptable and self._adaptation.learn(sent, failure.message)):
                    return outcome

    async def _send(self, body: dict[str, Any]) -> Completion | CallFailure:
        import openai

        options = {name: value for name, value in body.items() if name != "messages"}
        try:
            async with asyncio.timeout(self._connection.timeout):
                raw = await self._open().chat.completions.with_raw_response.create(
                    model=self._served, messages=body["messages"], extra_body=options
                )
                reply = json.loads(raw.http_response.content)
        except (TimeoutError, openai.APITimeoutError):
            return _failure(FailureKind.TIMEOUT, f"no answer within {self._connection.timeout:g} s")
        except openai.APIConnectionError as problem:
            refused = "refused" in _reason(problem).lower() or "connect" in _reason(problem).lower()
            kind = FailureKind.UNREACHABLE if refused else FailureKind.NETWORK
            return _failure(kind, f"{self._url}: {one_line(_reason(problem), self._secrets)}")
        except openai.APIStatusError as problem:
            text = error_text(problem.body, problem.message)
            return call_failure(problem.status_code, text, dict(problem.response.headers), self._secrets)
        except ValueError as problem:
            return _failure(
                FailureKind.MALFORMED_RESPONSE, f"the reply is not JSON ({one_line(str(problem))})"
            )
        return read_chat(reply, self._adaptation.notes)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def _key(variables: tuple[str, ...]) -> tuple[str, str | None]:
    """(key, name of its variable); servers without keys get a placeholder, which the SDK wants."""
    for variable in variables:
        if os.environ.get(variable):
            return os.environ[variable], variable
    return "none", None


def _failure(kind: FailureKind, message: str) -> CallFailure:
    return CallFailure(failure=Failure(kind=kind, message=message))


def _reason(problem: BaseException) -> str:
    """The innermost message of a chain of exceptions: the one that says what happened."""
    while problem.__cause__ or problem.__context__:
        inner = problem.__cause__ or problem.__context__
        if inner is None or not str(inner):
            break
        problem = inner
    return str(problem) or type(problem).__name__
