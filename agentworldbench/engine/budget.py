"""How many tokens an answer may have, and whether a prompt can be sent at all.

Rule: asked = min(--max-tokens, context - prompt tokens - 64, the model's longest answer). Where
context length or longest answer are unknown the server decides. Prompt tokens are estimated from characters, so the estimate only shrinks an
answer; a prompt is refused without being sent only when even a low estimate leaves less than
--min-output. History is never shortened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentworldbench.records import Failure, FailureKind, Message

RESERVE: Final = 64
"""Tokens kept free for the chat template."""
LOW: Final = 0.7
"""Share of the estimate that no common tokenizer goes below on these texts."""


def estimate_tokens(messages: Sequence[Message]) -> int:
    """About one token for 4 ASCII characters and for 1.25 others, and 4 for each message's frame."""
    total = 0.0
    for message in messages:
        plain = len(message.content.encode("ascii", "ignore"))
        total += 4 + plain / 4 + (len(message.content) - plain) / 1.25
    return round(total)


def allowed_output(
    messages: Sequence[Message],
    max_tokens: int | None,
    context: int | None,
    min_output: int,
    max_output: int | None = None,
) -> int | Failure | None:
    """Tokens to ask for, or `context_overflow` when the prompt leaves no room for an answer.

    None, the server's own default, stays None unless the context sets a bound.
    """
    if max_tokens is not None and max_output is not None:
        max_tokens = min(max_tokens, max_output)
    if context is None:
        return max_tokens
    prompt = estimate_tokens(messages)
    if context - round(prompt * LOW) - RESERVE < min_output:
        message = f"about {prompt} prompt tokens leave less than {min_output} of a context of {context}"
        return Failure(kind=FailureKind.CONTEXT_OVERFLOW, message=message)
    room = max(context - prompt - RESERVE, min_output)
    return min(most for most in (room, max_tokens, max_output) if most is not None)
