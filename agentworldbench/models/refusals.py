"""What an HTTP response means that holds no answer: a refusal, or a page that a redirect led to.

In: an open aiohttp response, the address that was asked, and the texts that nobody may see. Out: a
`CallFailure`. The status counts also where the body breaks off or cannot be unpacked, and a redirect is
named where it explains the refusal: keys go to no other address than the one they were given for.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentworldbench.models.base import one_line, public_url, root_url
from agentworldbench.models.failures import call_failure, error_text, failed
from agentworldbench.records import CallFailure, FailureKind

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES: Final = 16 * 2**20
WITHIN: Final = 20.0
"""Bytes and seconds of a refusal's body: validators hand back the whole prompt."""
MOST_PLAIN: Final = 50_000
"""Characters of a body that is no JSON: a page says what it has to say before."""


async def refused(response: aiohttp.ClientResponse, url: str, secrets: tuple[str, ...]) -> CallFailure:
    """The failure that a status other than 2xx is, of a request to what is below `url`."""
    status = response.status
    failure = call_failure(status, told(status, await _text(response)), dict(response.headers), secrets)
    hint = keyless(response, url) if status in (401, 403) else ""
    if not hint:
        return failure
    message = f"{failure.failure.message}{one_line(hint, secrets)}"
    return failure.model_copy(update={"failure": failure.failure.model_copy(update={"message": message})})


def moved(response: aiohttp.ClientResponse, secrets: tuple[str, ...]) -> CallFailure | None:
    """The failure of a request that a redirect made a mere look at a page, as 301 and 302 do; None for any other."""
    if response.method == "POST":
        return None
    status, place = response.history[0].status, root_url(public_url(str(response.url)))
    message = f"HTTP {status}: the address has moved; give the new one as --base-url: {place}"
    return failed(FailureKind.MODEL_MISSING, one_line(message, secrets), status)


def keyless(response: aiohttp.ClientResponse, url: str) -> str:
    """What to add about a refused key where a redirect from `url` led to another server; empty where none did."""
    if not response.history or response.history[0].url.origin() == response.url.origin():
        return ""
    place = root_url(public_url(str(response.url)))
    return f"; {url} redirects to {place}, where no key is sent: give that as --base-url"


def told(status: int, text: str) -> str:
    """What the body of a refusal says."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    return error_text(body, text[:MOST_PLAIN].strip() or f"Error code: {status}")


async def _text(response: aiohttp.ClientResponse) -> str:
    """The body of a refusal, as far as it can be read."""
    import aiohttp

    content = bytearray()
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(WITHIN):
            async for piece in response.content.iter_any():
                content += piece
                if len(content) > MOST_BYTES:
                    break
    with suppress(LookupError):  # a charset that is none
        return content.decode(response.charset or "utf-8", "replace")
    return content.decode("utf-8", "replace")
