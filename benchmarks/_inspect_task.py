"""The task that Inspect AI runs in `engine.py`: the same messages, one generation each, no scorer.

Runs in Inspect's own environment and imports nothing of this project. `-T file=FILE` names the messages.
"""

import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.solver import generate

KINDS = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task
def bench(file: str) -> Task:
    """One sample a line of the file."""
    samples = []
    with Path(file).open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            messages = [KINDS[one["role"]](content=one["content"]) for one in json.loads(line)["messages"]]
            samples.append(Sample(input=messages, id=number))
    config = GenerateConfig(temperature=0.6, max_tokens=32768)
    return Task(dataset=MemoryDataset(samples), solver=generate(), config=config)
