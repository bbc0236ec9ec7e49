"""Messages: what the model and the judge are asked, word for word.

In: a sample (and for the judge an observation). Out: message tuples that can be hashed and rendered
again. The model's messages are the official ones (github.com/QwenLM/Qwen-AgentWorld at cd0aa83):
system text when not empty, the earlier turns as user and assistant, then the last prompt with its
suffix. The judge's messages are those of the protocol `builtin`: the task's system prompt and one
user message in which every untrusted text is enclosed by a boundary made from its own hash, so a
text cannot contain the line that ends it. Templates are filled in one pass: text that looks like a
placeholder stays text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from pydantic_core import to_json

from agentworldbench.observation import without_blank_lines, without_marker
from agentworldbench.records import DIMENSIONS, Message, Sample
from agentworldbench.resources import asset
from agentworldbench.task import Task
from agentworldbench.texts import scrub, sha256_text

NO_HISTORY: Final = "(none: this is the first turn)"
_TEMPLATES: Final = ("tasks", "prompts", "builtin")
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")

VERDICT_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "reasons": {"type": "string", "maxLength": 1500},
        "strengths": {"type": "array", "items": {"type": "string", "maxLength": 300}, "maxItems": 5},
        "weaknesses": {"type": "array", "items": {"type": "string", "maxLength": 300}, "maxItems": 5},
        "scores": {
            "type": "object",
            "properties": {name: {"type": "integer", "enum": [1, 2, 3, 4, 5]} for name in DIMENSIONS},
            "required": list(DIMENSIONS),
            "additionalProperties": False,
        },
    },
    "required": ["reasons", "strengths", "weaknesses", "scores"],
    "additionalProperties": False,
}
"""JSON schema of a verdict, for servers that enforce one (`--judge-json-schema`)."""


def predict_messages(sample: Sample) -> tuple[Message, ...]:
    """The messages that ask the model for the sample's observation (official form)."""
    messages = [Message(role="system", content=sample.system)] if sample.system else []
    for prompt, response in zip(sample.prompts[:-1], sample.responses[:-1], strict=True):
        messages.append(Message(role="user", content=prompt))
        messages.append(Message(role="assistant", content=response))
    messages.append(Message(role="user", content=sample.prompts[-1]))
    return tuple(messages)


def reference_observation(sample: Sample, task: Task) -> str:
    """The real observation, freed of its marker as predictions are."""
    return without_marker(sample.responses[-1], task.markers.observation)


def previous_observation(sample: Sample, task: Task) -> str | None:
    """What the environment showed before the action: the response of the turn before, at turn 1 the
    state block of the prompt, else None."""
    if len(sample.responses) > 1:
        return without_marker(sample.responses[-2], task.markers.observation)
    for marker in task.markers.state:
        _, found, rest = sample.action.partition(marker)
        if found:
            return without_blank_lines(rest.partition(task.markers.action)[0])
    return None


def action_text(turn: str, task: Task) -> str:
    """The action inside a turn's text: what follows the action marker, else the whole text."""
    _, found, rest = turn.rpartition(task.markers.action)
    return (rest if found else turn).strip()


def history_text(sample: Sample) -> str:
    """Earlier turns as the judge sees them: prompt and response, a blank line between turns."""
    turns = zip(sample.prompts[:-1], sample.responses[:-1], strict=True)
    return "\n\n".join(f"{prompt}\n{response}" for prompt, response in turns)


def judge_messages(task: Task, sample: Sample, observation: str, as_json: bool) -> tuple[Message, ...]:
    """The two messages that ask a judge for a verdict on `observation` (protocol builtin)."""
    texts = {
        "history": history_text(sample) or NO_HISTORY,
        "action": sample.action,
        "prediction": scrub(observation),
        "reference": reference_observation(sample, task),
    }
    parts = texts | {f"{name}_boundary": boundary(text) for name, text in texts.items()}
    parts["answer_format"] = _template("answer_json" if as_json else "answer_text").strip()
    user = fill(_template("user"), parts)
    return (
        Message(role="system", content=task.judge_system_prompt),
        Message(role="user", content=user.strip()),
    )


def boundary(text: str) -> str:
    """`OBS-` and the first 20 hex digits of the SHA-256 of the text that it encloses."""
    return "OBS-" + sha256_text(text)[:20]


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Replace every `{{name}}` in one pass. Raises KeyError for a placeholder without a part."""
    return _PLACEHOLDER.sub(lambda match: parts[match.group(1)], template)


def messages_json(messages: Sequence[Message]) -> bytes:
    """A message list as compact JSON of `{"role", "content"}` objects, UTF-8: what is hashed and what is sent."""
    return to_json([{"role": message.role, "content": message.content} for message in messages])


def messages_sha256(messages: Sequence[Message]) -> str:
    """Hash of a message list, as it is written."""
    return hashlib.sha256(messages_json(messages)).hexdigest()


def judge_prompt_hashes(as_json: bool) -> dict[str, str]:
    """SHA-256 of the prompt files that all domains share: the user template and the answer form."""
    names = ("user", "answer_json" if as_json else "answer_text")
    return {name: sha256_text(_template(name)) for name in names}


@lru_cache(maxsize=32)
def _template(name: str) -> str:
    return asset(*_TEMPLATES, f"{name}.md").read_text(encoding="utf-8")
