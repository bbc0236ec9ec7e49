"""Numbers of tokens in a provider's refusal: the longest answer it gives, or its context and the prompt.

In: the message of an HTTP error. Out: `output_limit`, a bound of the answer alone; `refuses_length`,
whether the prompt (or prompt and answer) is too long; `context_limit`, what is said about that. The
wordings are those of the servers people use; tests/cases/models holds them.

Servers also hand back what they could not read, and prompts of this benchmark quote every wording
there is. So a sentence counts only where the server itself speaks: at the start of the message, and
of looser words only what comes before the first quotation mark, colon, bracket or line break.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from agentworldbench.records import ContextLimit

_READ: Final = 1000
"""Characters that are looked at: a refusal says what it has to say at once."""

_GATEWAY: Final = (
    r"(?:(?:litellm\.)?[a-z]\w{0,60}(?:Error|Exception)(?:: | - )|Error code: \d{3} - |(?:API )?Error: |"
    r"Bad request: |Upstream error from [\w .-]{1,40}: |"
    r"\{(?:'error': \{)?(?:'\w{1,20}': (?:'[\w ]{0,40}'|None|\d{1,4}), ){0,4}'message': [\"']){0,6}"
)
"""What gateways put before another server's message: class names, a status, the printed body."""
_FRAME: Final = (
    rf"{_GATEWAY}(?:<\d{{3}}> [\w.]{{1,80}}: |\d{{3}} Bad Request: |Input validation error: |Invalid request: |"
    r"invalid params, |The model returned the following errors: |Unable to submit request because )?"
)
"""What stands in front of the sentence; the server's own words begin behind it."""

_OWN: Final = re.compile(rf"{_FRAME}(?:[^\"'`\n{{\[<:]|(?<=\w)'(?=s\b))*", re.IGNORECASE)
"""What a message says before it quotes anything."""

_CODES: Final = re.compile(
    r" \((?:[\w.]+, )*(?:context_length_exceeded|exceed_context_size_error|request_too_large|string_above_max_length)"
    r"(?:, [\w.=\[\]]+)*\)$"
)
"""Codes and types of an over-long prompt, in what `error_text` writes behind the message."""

_LOOSE: Final = re.compile(
    r"maximum (?:context|prompt|input) length|context window|longer than the (?:model's |maximum |available )?context|"
    r"exceed(?:s|ed)? (?:the |your |its )?(?:model's |maximum |available |configured )?(?:context|limit of \d+)|"
    r"(?:prompt|input|messages|conversation) (?:is|are|was|has become) too (?:long|large)|input too long|"
    r"exceeds the maximum allowed length|token count.{0,20}exceeds|too many (?:input |prompt )?tokens|"
    r"(?:request|prompt|input) payload size exceeds|context (?:length|size|window|limit) (?:has been |is |was )?exceeded|"
    r"(?:prompt|input) exceeds (?:the )?max(?:imum)? length",
    re.IGNORECASE,
)
"""Words of a refusal that is in no table yet; no number is read from it."""

_START: Final = "This (?:model|endpoint)'s maximum context length is #C tokens"
_ONLY: Final = {"prompt_only": True}
_LEAST: Final = {"at_least": True}
_WORDINGS: Final[tuple[tuple[str, dict[str, bool]], ...]] = (
    # OpenAI's, which many have taken over.
    (_START + r"[.,] however,? you requested (?:about )?\d+ tokens \(#P (?:in the|of text|in your)", {}),
    (_START + r"\. However, you requested #P tokens in the messages", {}),
    (_START + r"\. However, your messages resulted in #P tokens", {}),
    (r"Input tokens exceed the configured limit of #C tokens\. Your messages resulted in #P tokens", _ONLY),
    (r"Your input exceeds the context window", {}),
    (r"Please reduce the length of the messages(?: or completion\. Current length is #T while limit is #C)?", {}),
    # vLLM.
    (_START + r"\. However, your request has #P input tokens", {}),
    (r"'max_tokens' or 'max_completion_tokens' is too large: \d+\. " + _START + " and your request has #P", {}),
    (_START + r"\. However, you requested \d+ output tokens and your prompt contains at least #P input", _LEAST),
    (_START + r"\. However, your prompt contains at least #P input tokens", _LEAST),
    (_START, {}),
    (r"You passed #P input tokens and requested \d+ output tokens\. However, the model's context length is only #C", _LEAST),
    (r"The decoder prompt \(length #P\) .{1,80}longer than the maximum model length of #C", {}),
    (r"The engine prompt length #P exceeds the max_model_len #C", {}),
    (r"max_tokens=\d+ ?cannot be greater than max_model_len=(?:max_total_tokens=)?#C", {}),
    # SGLang, llama.cpp, Text Generation Inference, Ollama, LM Studio.
    (r"The input \(#P tokens\) is longer than the model's context length \(#C tokens\)", {}),
    (r"Requested token count exceeds the model's maximum context length of #C tokens\. "
     r"You requested a total of \d+ tokens: #P tokens from the input", {}),
    (r"Input length \(#P tokens\) exceeds the maximum allowed length \(#C tokens\)", _ONLY),
    (r"request \(#P tokens\) exceeds the available context size \(#C tokens\)", {}),
    (r"the request exceeds the available context size.{0,99}\(.{0,99}\bn_prompt_tokens=#P, n_ctx=#C\)$", {}),
    (r"`inputs` tokens \+ `max_new_tokens` must be <= #C\. Given: #P `inputs`", {}),
    (r"`inputs` must have less than #C tokens\. Given: #P", _ONLY),
    (r"The prompt is too long: #P, model maximum context length: #C", {}),
    (r"The number of tokens to keep from the initial prompt is greater than the context length "
     r"\(n_keep: #P ?>= n_ctx: #C\)", {}),
    (r"Trying to keep the first #P tokens .{1,80}loaded with context length of only #C tokens", {}),
    # Anthropic, Google, Amazon.
    (r"prompt is too long: #P tokens > #C maximum", {}),
    (r"input length and `max_tokens` exceed context limit: #P \+ \d+ > #C", {}),
    (r"The input token count (?:\(#P\) )?exceeds the maximum number of tokens allowed \(?#C", _ONLY),
    (r"the input token count is #P but model only supports up to #C", _ONLY),
    (r"Too many input tokens\. Max input tokens: #C, request input token count: #P", _ONLY),
    # Others.
    (r"Prompt too long: #P tokens, limit #C", {}),
    (r"Prompt contains #P tokens.{1,40}too large for model with #C maximum context length", {}),
    (r"Range of input length should be \[\d+, ?#C\]", _ONLY),
    (r"Your request exceeded model token limit: #C(?: \(requested: #T\))?", {}),
    (r"This model's maximum prompt length is #C but the request contains #P tokens", _ONLY),
    (r"too many tokens: size limit exceeded .{1,99}The limit for this model is #C tokens", {}),
    (r"too many tokens: total number of tokens \(prompt and prediction\) cannot exceed #C - received #T", {}),
    (r"prompt token count of #P exceeds the limit of #C", _ONLY),
)  # fmt: skip
"""Each refusal from its first word on, and what its numbers are worth (see `ContextLimit`).

#C stands for the context, #P for the prompt, #T for prompt and answer together. The first wording
found counts: where two begin alike, the one that says more stands first.
"""


def _pattern(wording: str) -> re.Pattern[str]:
    for letter, name in (("C", "context"), ("P", "prompt"), ("T", "total")):
        wording = wording.replace(f"#{letter}", rf"(?P<{name}>\d{{1,9}})")
    return re.compile(_FRAME + wording, re.IGNORECASE)


@cache
def _contexts() -> tuple[tuple[re.Pattern[str], dict[str, bool]], ...]:
    """`_WORDINGS`, compiled with the first refusal: most runs never see one, and it takes a while."""
    return tuple((_pattern(wording), marks) for wording, marks in _WORDINGS)


_ANSWER: Final = re.compile(
    r"max[_ ]?((completion|output|new)[_ ]?)?tokens|maximum (output|tokens)|(output|completion) tokens",
    re.IGNORECASE,
)
_OPENING: Final = (
    rf"{_FRAME}(?:Invalid |Malformed input request: #/|too many tokens: |\d{{1,9}} is greater than .{{1,40}} - )?[`'\"]?"
    rf"(?:{_ANSWER.pattern})"
)
"""How the length of the answer is named at once, though in quotes or behind a colon."""
_ANOTHER: Final = re.compile(
    r"context[ _-]?(length|limit|size)|max_(model|seq)_len|inputs?[`' _]+(tokens|length)|prompt[ _]tokens|"
    r"tokens in the (messages|prompt)|prompt and prediction|can only afford",
    re.IGNORECASE,
)
"""What a message names that is about something else than the answer's length alone."""
_MOST: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:supports?|allows?|produces?) (?:at most|up to|only|a maximum of) (?P<most>\d{1,9})",
        r"> (?P<most>\d{1,9}),? which is the maximum",
        r"range\b[^\[(\d]{0,60}[\[(]\s{0,9}\d{1,9}\s{0,9},\s{0,9}(?P<most>\d{1,9})\s{0,9}(?P<open>\))?",
        r"from \d{1,9} \(inclusive\) to (?P<most>\d{1,9}) \((?:inclusive|(?P<open>exclusive))",
        r"(?:range|between)\b[^\d]{0,30}\d{1,9} ?(?:-|–|to|and) ?(?P<most>\d{1,9})",
        r"(?:less(?: than)? or equal to|(?:no|not) (?:more|greater|larger) than|not exceed|at most|up to|<=|≤)"
        r"[ `'\"]{0,9}(?P<most>\d{1,9})",
        r"(?:(?:limit|maximum|allowed)(?: value)? (?:of|is)|(?:length|tokens) is)[ `'\"]{0,9}(?P<most>\d{1,9})",
    )
)
"""Wordings of the largest answer an endpoint gives; `open` marks a bound that is not itself allowed."""


def own_words(message: str) -> str:
    """What the server says in a message before it quotes anything."""
    found = _OWN.match(message[:_READ])
    return found[0] if found else ""


def output_limit(message: str) -> int | None:
    """The most tokens an answer may have, from a refusal that says so; None for any other message.

    Messages about the context (prompt and answer together) name numbers too, but are no limit of
    the answer.
    """
    message = message[:_READ]
    named = re.match(_OPENING, message, re.IGNORECASE) or _ANSWER.search(own_words(message))
    if named is None or _ANOTHER.search(message):
        return None
    found = next(filter(None, (pattern.search(message) for pattern in _MOST)), None)
    if found is None:
        return None
    most = int(found["most"]) - (found.groupdict().get("open") is not None)
    return most if most > 0 else None


def refuses_length(message: str) -> bool:
    """Whether a message refuses a prompt, or prompt and answer together, as too long."""
    if _found(message) or _CODES.search(message[-_READ:]):
        return True
    return output_limit(message) is None and _LOOSE.search(own_words(message)) is not None


def context_limit(message: str) -> ContextLimit:
    """What a refusal for length says of context and prompt; nothing where it names no number."""
    found = _found(message)
    if found is None:
        return ContextLimit()
    match, marks = found
    named: dict[str, Any] = {name: int(value) for name, value in match.groupdict().items() if value}
    return ContextLimit(**named, **marks)


def _found(message: str) -> tuple[re.Match[str], dict[str, bool]] | None:
    plain = re.sub(r"(?<=\d)[,_](?=\d{3}(?!\d))", "", message[:_READ])
    matches = ((pattern.match(plain), marks) for pattern, marks in _contexts())
    return next(((match, marks) for match, marks in matches if match), None)
