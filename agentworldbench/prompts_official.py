"""The judge's messages of the protocol `official`, equal to the official code's, byte for byte.

In: the official prompts, a sample, the observation as the official rules extracted it. Out: two messages.
The user message is the official template with four parts put in in one pass: a part that looks like a
placeholder stays text. Unlike the builtin protocol nothing encloses the prediction but a fence that it can
close: that is how the published numbers were made.
"""

from __future__ import annotations

from typing import Final

from agentworldbench.official import without_marker
from agentworldbench.official_files import OfficialPrompts
from agentworldbench.records import Message, Sample
from agentworldbench.task import Task
from agentworldbench.texts import scrub

HISTORY: Final = "# Context (Historical Interactions):"
CURRENT: Final = "# Current Turn:"
PREDICTION: Final = "**World Model Output (Simulated):**"
REFERENCE: Final = "**Ground Truth (Real Output):**"


def official_judge_messages(
    prompts: OfficialPrompts, task: Task, sample: Sample, observation: str, diagnostics: str = ""
) -> tuple[Message, ...]:
    """System: the domain's prompt as it stands in its file. User: the template with its parts, stripped.

    `observation` is the prediction after extraction and the marker step of `official.py`; the reference is
    given that step here. `diagnostics` stands behind the prediction, and is empty as in the official code.
    The judge never sees the sample's system text. Raises ConfigError for a domain
    without official prompt.
    """
    turns = zip(sample.prompts[:-1], sample.responses[:-1], strict=True)
    history = "".join(f"{prompt}\n{response}\n\n" for prompt, response in turns)
    reference = without_marker(sample.responses[-1], task.markers.observation)
    user = prompts.user.format(  # one pass: what is put in is not looked at again
        context=f"{HISTORY}\n\n{history}" if history else "",
        world_model_input=f"{CURRENT}\n\n{sample.action}",
        predicted_observation="\n\n".join(
            part for part in (_fenced(PREDICTION, scrub(observation)), diagnostics) if part
        ),
        ground_truth=_fenced(REFERENCE, reference),
    )
    return (
        Message(role="system", content=prompts.system(task.domain)),
        Message(role="user", content=user.strip()),
    )


def _fenced(heading: str, text: str) -> str:
    return f"{heading}\n```\n{text}\n```"
