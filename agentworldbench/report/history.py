"""The turns before an action, which the samples of a trajectory share: one script file a trajectory, with JSON alone.

In: the samples of a trajectory. Out: the text of its file, and for each sample which of its turns came before. A page
loads the file when its reader asks for the history; the file only assigns JSON, and the page shows it as text.
"""

from __future__ import annotations

from typing import Any, Final

from agentworldbench.prompts import action_text, predict_messages
from agentworldbench.records import Sample
from agentworldbench.render.diff import visible
from agentworldbench.render.sample import unfenced
from agentworldbench.render.shell import script_json
from agentworldbench.report.contents import HistoryView
from agentworldbench.report.names import trajectory_name
from agentworldbench.task import Task
from agentworldbench.texts import count_text

MOST: Final = 200_000
"""Characters of one text of a turn that the file holds."""


class Trajectory:
    """Collects the turns of one trajectory, each once, and the system prompt."""

    def __init__(self, domain: str, cluster: str) -> None:
        self.name = trajectory_name(domain, cluster)
        self._system = ""
        self._turns: list[tuple[str, str]] = []
        self._places: dict[tuple[int, str, str], int] = {}

    def add(self, sample: Sample, task: Task) -> HistoryView | None:
        """Note a sample's turns; None where nothing stands before its action."""
        self._system = sample.system
        messages = predict_messages(sample)
        if len(messages) == 1:
            return None
        places = []
        for number, (prompt, response) in enumerate(
            zip(sample.prompts[:-1], sample.responses[:-1], strict=True)
        ):
            key = (number, prompt, response)
            if key not in self._places:
                self._places[key] = len(self._turns)
                self._turns.append((_said(prompt, task, first=number == 0), _observed(response, task)))
            places.append(self._places[key])
        return HistoryView(f"{self.name}.js", self.name, tuple(places))

    def script(self) -> str:
        """The file's text."""
        turns = [(_cut(said), _cut(observed)) for said, observed in self._turns]
        return assigned("history", {"system": _cut(self._system), "turns": turns})


def _said(prompt: str, task: Task, first: bool) -> str:
    """The action of a turn; of the first turn all its text, because the task stands in it."""
    return prompt if first else unfenced(action_text(prompt, task))


def _observed(response: str, task: Task) -> str:
    return response.replace(f"{task.markers.observation}\n", "", 1)


def _cut(text: str) -> str:
    left = len(text) - MOST
    return visible(text[:MOST]) + (f"\n… {count_text(left, 'more character')}" if left > 0 else "")


def assigned(name: str, value: Any) -> str:
    """A script that gives `window.AWB` one member: JSON, in which no text can end a script or begin a comment."""
    return f'"use strict";\n(window.AWB ??= {{}}).{name} = {script_json(value)};\n'
