"""Messages to prompt tokens and generated tokens to text, by the tokenizer of the model itself.

In: the tokenizer that lm-eval's class holds. A prompt is what the chat template renders, encoded
without any further special token: the template writes the BOS itself where the model wants one. A
template that refuses a conversation (some know no system role) raises; nothing is taken out of it.

Text keeps every token but the end token, since markers of reasoning are special tokens in many
families; `reply.py` knows them. Where the template has opened the reasoning already, its opener is
put in front of the text: an answer cut while thinking must not be read as an answer.
"""

from __future__ import annotations

import re
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentworldbench.errors import ConfigError
from agentworldbench.markers import REASONING
from agentworldbench.records import Message
from agentworldbench.texts import scrub, sha256_text

_TAIL: Final = 200
"""Characters at the end of a prompt in which an opener of reasoning may stand."""
_OPENERS: Final = tuple(re.compile(rf"(?:{row.opener})\s*\Z") for row in REASONING)


class TemplateRefused(Exception):
    """The chat template does not take this conversation."""


@dataclass(frozen=True)
class Prompt:
    """Tokens of a rendered conversation, and the opener of thinking that they end with (or "")."""

    tokens: array[int]
    opener: str


class ChatTemplate:
    """A tokenizer with its chat template.

    `given` replaces the model's own template; `bos` asks for a BOS in front of prompts whose template
    writes none; `ends` are the tokens that end an answer. Raises ConfigError when there is no template.
    """

    def __init__(
        self,
        name: str,
        tokenizer: Any,
        ends: Iterable[int],
        given: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        bos: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._arguments = dict(arguments or {})
        self._bos = tokenizer.bos_token_id if bos else None
        self._ends = frozenset(ends)
        self._text = given or _own_template(tokenizer)
        if not self._text:
            raise ConfigError(
                f"model '{name}': its tokenizer has no chat template; give one with -M chat_template=FILE"
            )
        self.sha256 = sha256_text(self._text)
        # Tokenizers are not made for two threads: the event loop encodes while the engine decodes.
        self._lock = threading.Lock()

    def encode(self, messages: Sequence[Message], arguments: Mapping[str, Any]) -> Prompt:
        """The prompt of a conversation, ready for the answer. Raises TemplateRefused."""
        from jinja2 import TemplateError

        plain = [{"role": message.role, "content": message.content} for message in messages]
        with self._lock:
            try:
                text = self._tokenizer.apply_chat_template(
                    plain,
                    tokenize=False,
                    add_generation_prompt=True,
                    chat_template=self._text,
                    **(self._arguments | dict(arguments)),
                )
            except (TemplateError, TypeError, ValueError) as problem:
                raise TemplateRefused(f"the chat template refuses the conversation: {problem}") from problem
            tokens = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if self._bos is not None and tokens[:1] != [self._bos]:
            tokens = [self._bos, *tokens]
        return Prompt(array("I", tokens), _opener(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of tokens, special ones included."""
        with self._lock:
            text: str = self._tokenizer.decode(
                list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        return text

    def read(self, tokens: Sequence[int], opener: str = "", stops: Sequence[str] = ()) -> str:
        """The answer that `tokens` are: without end tokens, up to the first stop string."""
        end = len(tokens)
        while end and tokens[end - 1] in self._ends:
            end -= 1
        text = scrub(self.decode(tokens[:end]))
        cuts = [position for position in map(text.find, stops) if position >= 0]
        return opener + text[: min(cuts, default=len(text))]


def _own_template(tokenizer: Any) -> str | None:
    """The model's template: the one named default, where there are several."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    template: str = tokenizer.get_chat_template()
    return template


def _opener(text: str) -> str:
    """The opener of reasoning that a rendered prompt ends with, or nothing."""
    found = (opener.search(text[-_TAIL:]) for opener in _OPENERS)
    return next((match.group() for match in found if match), "")
