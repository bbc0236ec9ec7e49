"""What a model's tokens cost, as a record, and how `--price` is written.

A price is known from `--price` or from LiteLLM's shipped table; an unknown one is None everywhere and
never 0. In: prices by token (or `MODEL=IN,OUT[,CACHED]` in USD per million tokens) and token counts.
Out: USD. Prompt tokens count cached ones in, as OpenAI's usage and LiteLLM's do.
"""

from __future__ import annotations

import math
from typing import Final

from pydantic import Field

from agentworldbench.records import Record, Usage
from agentworldbench.texts import count_text

MILLION: Final = 1_000_000
MOST_A_TOKEN: Final = 1.0
"""USD; no model costs a thousandth of it."""


class Rates(Record):
    """USD per token: fresh prompt, completion (reasoning included), prompt read from the provider's
    cache (None: as fresh), prompt written into it (None: as fresh)."""

    prompt: float
    completion: float
    cached: float | None = None
    written: float | None = None

    @property
    def of_cached(self) -> float:
        """USD per prompt token that the cache gave."""
        return self.prompt if self.cached is None else self.cached

    def usd(self, prompt: float, completion: float, cached: float = 0, written: float = 0) -> float:
        """USD for so many tokens, of whose prompt `cached` were read from the cache and `written` put there."""
        dearer = 0.0 if self.written is None else written * (self.written - self.prompt)
        fresh = (prompt - cached) * self.prompt + cached * self.of_cached + dearer
        return fresh + completion * self.completion


class Price(Rates):
    """A model's prices with their source; `longer` holds the rates of prompts above so many tokens."""

    source: str
    longer: dict[int, Rates] = Field(default_factory=dict)

    def rates(self, prompt_tokens: float) -> Rates:
        """The rates of a request with a prompt of this length."""
        reached = [limit for limit in self.longer if prompt_tokens > limit]
        return self.longer[max(reached)] if reached else self

    def cost(self, usage: Usage) -> float | None:
        """USD of one request; None where the provider did not count its tokens."""
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
        written = min(usage.cache_write_tokens or 0, usage.prompt_tokens - cached)
        rates = self.rates(usage.prompt_tokens)
        return rates.usd(usage.prompt_tokens, usage.completion_tokens, cached, written)

    def saved(self, usage: Usage) -> float:
        """USD that the provider's prompt cache saved on these tokens, less what writing it cost more.

        For the tokens of many requests together: by the rates of short prompts.
        """
        written = usage.cache_write_tokens or 0
        return self.usd(usage.prompt_tokens or 0, 0) - self.usd(
            usage.prompt_tokens or 0, 0, usage.cached_tokens or 0, written
        )

    def described(self) -> str:
        """For people: USD per million tokens."""
        cached = "" if self.cached is None else f", {MILLION * self.cached:g} cached"
        longer = "".join(
            f"; dearer above {count_text(limit, 'prompt token')}" for limit in sorted(self.longer)[:1]
        )
        return (
            f"{MILLION * self.prompt:g} USD in{cached}, {MILLION * self.completion:g} out per million tokens "
            f"({self.source}{longer})"
        )


FREE: Final = Price(prompt=0.0, completion=0.0, source="local")
"""What answers without a provider cost."""


def parse_price(text: str) -> tuple[str, Price]:
    """(model string, price) of `MODEL=IN,OUT[,CACHED]`. Raises ValueError that says what is wrong."""
    model, equals, numbers = text.strip().rpartition("=")
    if not equals or not model.strip():
        raise ValueError("expected MODEL=IN,OUT[,CACHED], in USD per million tokens")
    try:
        values = [float(number) / MILLION for number in numbers.split(",")]
    except ValueError:
        raise ValueError(f"expected two or three numbers after '=', got {numbers[:40]!r}") from None
    if len(values) not in (2, 3) or not all(math.isfinite(value) and value >= 0 for value in values):
        raise ValueError("expected two or three numbers, none below 0: IN,OUT[,CACHED]")
    if max(values) > MOST_A_TOKEN:
        raise ValueError("more than 1 USD a token; prices are in USD per million tokens")
    rates = dict(zip(("prompt", "completion", "cached"), values, strict=False))
    return model.strip(), Price(**rates, source="--price")


def price_of(name: str, prices: dict[str, Price]) -> Price | None:
    """The price given for a model; `openai-api/NAME` is also found under NAME."""
    return prices.get(name) or prices.get(plain_name(name))


def plain_name(name: str) -> str:
    """A model string without `openai-api/`: --base-url serves models under their bare name."""
    return name.removeprefix("openai-api/")


def dollars(amount: float) -> str:
    """An amount in USD: to the cent, or two digits of what is less than ten cents."""
    if not amount or abs(amount) >= 0.1:
        return f"{amount:.2f}"
    return f"{amount:#.2g}" if abs(amount) >= 0.0001 else f"{amount:.1e}"
