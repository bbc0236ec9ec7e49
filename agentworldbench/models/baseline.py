"""Models that need no model: lower and upper anchors of every table.

They hand over an observation, not text to be parsed, and know only the sample itself:
`copy-last` answers the observation of the turn before (at turn 1 the state that the prompt shows,
else nothing), `nearest` the answer to the most similar earlier action, `empty` nothing, and
`reference` the ground truth, which must score 1 on every metric.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agentworldbench.errors import ConfigError
from agentworldbench.models.base import LocalAnswers
from agentworldbench.observation import without_marker
from agentworldbench.prompts import action_text, previous_observation, reference_observation
from agentworldbench.records import CallFailure, Completion, Request, Sample, Usage
from agentworldbench.task import Task
from agentworldbench.yamlfile import did_you_mean


def copy_last(sample: Sample, task: Task) -> str:
    """The previous observation; the empty one where there is none."""
    return previous_observation(sample, task) or ""


def nearest(sample: Sample, task: Task) -> str:
    """The response in the sample's own history whose action is most similar (latest on ties).

    Similarity is rapidfuzz's normalised indel ratio. Other rows are never looked at: siblings
    hold answers. At turn 1 the same as `copy_last`.
    """
    from rapidfuzz import fuzz

    action = action_text(sample.action, task)
    best, best_ratio = None, -1.0
    for prompt, response in zip(sample.prompts[:-1], sample.responses[:-1], strict=True):
        ratio = fuzz.ratio(action, action_text(prompt, task))
        if ratio >= best_ratio:
            best, best_ratio = response, ratio
    return copy_last(sample, task) if best is None else without_marker(best, task.markers.observation)


BASELINES: Final[Mapping[str, Callable[[Sample, Task], str]]] = {
    "copy-last": copy_last,
    "nearest": nearest,
    "empty": lambda sample, task: "",
    "reference": reference_observation,
}


class BaselineModel(LocalAnswers):
    """A baseline by name. Raises ConfigError for an unknown one."""

    def __init__(self, name: str, tasks: Mapping[str, Task]) -> None:
        word = name.partition("/")[2]
        if word not in BASELINES:
            known = ", ".join(f"baseline/{known}" for known in BASELINES)
            raise ConfigError(
                f"model '{name}': unknown baseline{did_you_mean(word, BASELINES)} (known: {known})"
            )
        super().__init__(name)
        self._answer = BASELINES[word]
        self._tasks = tasks

    def identity(self) -> dict[str, Any]:
        """Backend and name."""
        return {"backend": "baseline", "name": self.name.partition("/")[2]}

    async def generate(self, request: Request) -> Completion | CallFailure:
        """The baseline's observation."""
        task = self._tasks[request.sample.ref.domain]
        return Completion(
            observation=self._answer(request.sample, task), finish_reason="stop", usage=Usage(), cost_usd=0.0
        )
