"""The markers that model families leave in their text: one table, and nothing about what to do with them.

A server that knows its model takes them out and returns the reasoning apart. Many servers do not, so
every reply, a model's or a judge's, is read with this table in hand. An entry names the families whose
chat template or reasoning parser (vLLM, SGLang, llama.cpp) has it. Left out, because plain text holds
them as well: `</s>` (strike-through in HTML), `[unused16]` (Pangu, but also every BERT vocabulary),
the sentence "Here is my thought process:" (Granite 3), `<answer>` (Hunyuan A13B) and `<reasoning>`
(tutorials, no family).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Reasoning:
    """What opens and closes the reasoning of some families, as regular expressions.

    A closer may take along the marker that opens the answer behind it. `nests`: an opener inside
    the reasoning wants a closer of its own, where there are enough of them.
    """

    families: str
    opener: str
    closer: str
    nests: bool = True


def _tag(name: str) -> tuple[str, str]:
    """A tag in any case: with blanks or attributes, and damaged (its `>` is missing, white space follows)."""
    return (
        rf"(?i:<{name}(?:[ \t][^<>\n]{{0,80}})?>|<{name}(?=\s))",
        rf"(?i:</{name}[ \t]{{0,9}}>|</{name}(?=\n))",
    )


def _token(*names: str) -> str:
    """Special tokens in a row, exactly as written; white space between them is allowed."""
    return r"\s{0,9}".join(re.escape(name) for name in names)


_TO_CHANNEL: Final = rf"(?:<\|(?:end|call)\|>\s{{0,9}})?(?:{_token('<|start|>', 'assistant')}\s{{0,9}})?"
_TO_MESSAGE: Final = r"\b[^<\n]{0,99}(?:<\|constrain\|>[^<\n]{0,99})?<\|message\|>"

REASONING: Final = (
    Reasoning("Qwen, DeepSeek, GLM, Kimi K2, MiniMax M1 and M2, Nemotron, Granite 4", *_tag("think")),
    Reasoning("Amazon Nova; Claude when a prompt asks for it", *_tag("thinking")),
    Reasoning("EXAONE Deep; Gemini behind its OpenAI-compatible address", *_tag("thought")),
    Reasoning("MiniMax M3", *_tag("mm:think")),
    Reasoning("Seed-OSS", *_tag("seed:think")),
    Reasoning("Hunyuan 3", *_tag("think:opensource")),
    Reasoning("LongCat", *_tag("longcat_think")),
    Reasoning("Mistral: Magistral", _token("[THINK]"), _token("[/THINK]")),
    Reasoning("Kimi-VL", _token("◁think▷"), _token("◁/think▷")),
    Reasoning(
        "Kimi K3",
        r"<\|open\|>\s?think\s?<\|sep\|>",
        r"<\|close\|>\s?think\s?<\|sep\|>(?:<\|open\|>\s?response\s?<\|sep\|>)?",
    ),
    Reasoning(
        "Solar Open; fine-tunes of other families",
        _token("<|think|>"),
        f"{_token('<|/think|>')}|{_token('<|end|>', '<|begin|>', 'assistant', '<|content|>')}",
    ),
    Reasoning("Solar Open 2", _token("<|think:start|>"), _token("<|think:end|>")),
    Reasoning("Apertus", _token("<|inner_prefix|>"), _token("<|inner_suffix|>")),
    Reasoning(
        "Cohere Command",
        _token("<|START_THINKING|>"),
        rf"{_token('<|END_THINKING|>')}(?:\s{{0,9}}{_token('<|START_RESPONSE|>')})?",
    ),
    Reasoning(
        "OpenThinker, Sky-T1",
        _token("<|begin_of_thought|>"),
        rf"{_token('<|end_of_thought|>')}(?:\s{{0,9}}{_token('<|begin_of_solution|>')})?",
    ),
    Reasoning("Gemma 4", r"<\|channel>(?:thought\b)?", _token("<channel|>")),
    # Harmony: messages in channels; analysis and commentary are closed by nothing but the final one.
    Reasoning(
        "gpt-oss",
        rf"{_TO_CHANNEL}{_token('<|channel|>')}\s{{0,9}}(?:analysis|commentary){_TO_MESSAGE}",
        rf"{_TO_CHANNEL}{_token('<|channel|>')}\s{{0,9}}final{_TO_MESSAGE}",
        nests=False,
    ),
)

FIRST_CHARACTERS: Final = "<[◁"
"""Every marker above begins with one of these and goes on with none: a search skips all other places at once."""

END_OF_TURN: Final[Mapping[str, str]] = {
    "<|im_end|>": "Qwen and all that use ChatML, Kimi K2",
    "<|endoftext|>": "Qwen, GLM, Phi, Falcon",
    "<|end_of_text|>": "Llama 3, Granite",
    "<|eot_id|>": "Llama 3",
    "<|eom_id|>": "Llama 3",
    "<|eot|>": "Llama 4",
    "<end_of_turn>": "Gemma to 3",
    "<turn|>": "Gemma 4",
    "<|return|>": "gpt-oss",
    "<|call|>": "gpt-oss",
    "<|end|>": "gpt-oss, Phi, Solar Open",
    "<｜end▁of▁sentence｜>": "DeepSeek",
    "<|user|>": "GLM",
    "<|observation|>": "GLM",
    "<|END_RESPONSE|>": "Cohere Command",
    "<|END_OF_TURN_TOKEN|>": "Cohere Command",
    "<|end_of_solution|>": "OpenThinker, Sky-T1",
    "<|close|>response<|sep|>": "Kimi K3",
    "<|close|>message<|sep|>": "Kimi K3",
    "<seed:eos>": "Seed-OSS",
    "[e~[": "MiniMax",
    "[|endofturn|]": "EXAONE",
    "<|endofturn|>": "HyperCLOVA X",
    "<|assistant_end|>": "Apertus",
}
"""Tokens that end a turn. Left by a server at the end of a text, they are no part of it."""

_STRIPPED_HARMONY: Final = ("analysis", "assistantfinal")
"""How harmony output begins, and what stands before the answer, once its special tokens are stripped."""


def looks_like_stripped_harmony(text: str) -> bool:
    """Whether a text may be harmony output without its tokens; an observation may begin so as well."""
    begin, final = _STRIPPED_HARMONY
    return text.lstrip().startswith(begin) and final in text


def end_of_answer(text: str) -> int:
    """Where a text ends once end-of-turn tokens at its very end are left out; its length without any."""
    tokens = tuple(END_OF_TURN)
    end = len(text)
    last = len(text.rstrip())
    while text.endswith(tokens, 0, last):
        token = next(one for one in tokens if text.endswith(one, 0, last))
        end = last = last - len(token)
        while last and text[last - 1].isspace():
            last -= 1
    return end
