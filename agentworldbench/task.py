"""A task: how one domain is evaluated, as a strict YAML file.

In: `tasks/<domain>.yaml`, a user's own file, or a folder of them. Out: frozen `Task` records.
A task names its data file, the tag and markers of its texts, whether an observation is a snapshot
(the whole screen or page each turn) or a stream (what the action printed), which text is volatile,
its metrics and which of them make the rule score, generation defaults and the judge's prompt.
There is no inheritance and no code in these files: seven near-equal files are easy to read. A metric of
a user's own stands in a Python file beside the task file, which names it as `FILE.py:FUNCTION`; nothing
here opens that file (`scoring/metrics/own.py` does, where the user allows it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticKnownError

from agentworldbench.errors import TaskError
from agentworldbench.other_harnesses import task_elsewhere
from agentworldbench.records import OFFICIAL_DOMAINS, Record
from agentworldbench.resources import asset
from agentworldbench.texts import digest, sha256_text
from agentworldbench.yamlfile import did_you_mean, load_yaml

MetricName = Literal[
    "exact_match", "masked_exact_match", "line_f1", "rouge_l", "length_ratio", "change_f1", "noop_match",
    "active_change_f1", "node_f1", "page_identity", "focus_match", "value_match", "bounds_iou",
    "status_match", "schema_f1", "value_f1", "payload_rouge_l", "order_match",
    "prompt_match", "echo_match", "status_class", "output_line_f1", "output_rouge_l", "interactive_state",
    "numbered_line_f1", "exit_code_match", "test_counts_match", "diff_f1",
    "url_f1", "host_f1", "title_f1", "snippet_rouge_l", "fact_f1", "count_match",
]  # fmt: skip
"""Metrics a task may list; `scoring/metrics` holds one function for each."""

METRIC_NAMES: Final[tuple[str, ...]] = get_args(MetricName)

_OWN: Final = re.compile(r"([^/\\:\x00]+\.py):([A-Za-z_]\w*)", re.ASCII)
_TAKEN: Final = {*METRIC_NAMES, "rule_score"}
"""Names that results have already."""


def _listed(value: Any) -> Any:
    """An entry of `metrics` or `primary`: a bundled metric, or `FILE.py:FUNCTION`."""
    if isinstance(value, str) and (value in METRIC_NAMES or _OWN.fullmatch(value)):
        return value
    raise PydanticKnownError("literal_error", {"expected": ", ".join((*METRIC_NAMES, "FILE.py:FUNCTION"))})


Listed = Annotated[str, BeforeValidator(_listed)]


def shown_name(listed: str) -> str:
    """What a listed metric is called in results: of one's own the function's name."""
    return listed.rpartition(":")[2]


CHANGE_METRICS = {"change_f1", "noop_match", "active_change_f1"}
"""Those that compare with the observation before: for snapshots alone."""

VolatileClass = Literal[
    "uuid", "hex_address", "container_id", "temp_path", "date", "time", "duration", "pid", "port", "size", "speed",
    "proxy_host", "status_clock", "retry_count", "stamp_date", "git_hash",
]  # fmt: skip
"""Kinds of text that no model could know; `scoring/metrics/volatile.py` holds one pattern for each."""


class Markers(Record):
    """Headings that stand in turn texts and responses."""

    observation: str = Field(min_length=1)
    action: str = Field(min_length=1)
    instruction: str = Field(min_length=1)
    state: tuple[str, ...]


class Generation(Record):
    """Defaults for asking the model: temperature >= 0, max_tokens in tokens, top_p in (0, 1]."""

    temperature: float = Field(ge=0, strict=True)
    max_tokens: int = Field(ge=1, strict=True)
    top_p: float | None = Field(default=None, gt=0, le=1, strict=True)


class Structured(Record):
    """How JSON is compared: relative tolerance of floats, and which lists are ordered, as paths (`rows[]`, `[]`)."""

    tolerance: float = Field(default=1e-9, ge=0, lt=1, strict=True)
    ordered: tuple[Annotated[str, Field(pattern=r"\[\]$")], ...] = ()

    @model_validator(mode="after")
    def _once(self) -> Structured:
        for path in self.ordered:
            if self.ordered.count(path) > 1:
                raise ValueError(f"ordered list '{path}' stands twice")
        return self


class TaskFile(Record):
    """The keys of a task YAML."""

    domain: str = Field(pattern=r"^[a-z][a-z0-9_-]*$")
    version: int = Field(ge=1, strict=True)
    description: str
    data_file: str = Field(pattern=r"^[^/\\]+\.jsonl$")
    observation: Literal["snapshot", "stream"]
    prediction_tag: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    markers: Markers
    volatile: tuple[VolatileClass, ...]
    metrics: tuple[Listed, ...] = Field(min_length=1)
    primary: tuple[Listed, ...] = Field(min_length=1)
    structured: Structured = Structured()
    generation: Generation
    judge_prompt: str

    @model_validator(mode="after")
    def _metrics_fit(self) -> TaskFile:
        for names in (self.metrics, self.primary):
            for name in names:
                if names.count(name) > 1:
                    raise ValueError(f"metric '{name}' stands twice in one list")
        for name in self.primary:
            if name not in self.metrics:
                raise ValueError(f"primary metric '{name}' is not listed under metrics")
        called: dict[str, str] = {}
        for listed in filter(_OWN.fullmatch, self.metrics):
            name = shown_name(listed)
            if name in _TAKEN or called.setdefault(name, listed) != listed:
                other = called.get(name, "one of the harness")
                raise ValueError(f"metric '{listed}' has the name of {other}; rename the function")
        if self.observation == "stream" and (wrong := CHANGE_METRICS & set(self.metrics)):
            raise ValueError(f"{min(wrong)} compares snapshots; this task's observation is a stream")
        if "order_match" in self.metrics and not self.structured.ordered:
            raise ValueError("order_match needs the lists whose order counts: structured.ordered")
        return self


class Task(TaskFile):
    """A task file, where it was read from, and the text of the judge's system prompt.

    `metrics` and `primary` hold names as results show them. `own` says of those that are a user's own in
    which file beside the task file their function stands.
    """

    path: Path = Field(exclude=True)
    judge_system_prompt: str = Field(exclude=True, repr=False)
    own: dict[str, str] = Field(default_factory=dict, exclude=True)

    def predict_digest(self) -> str:
        """Digest of what changes a prediction; metrics and judge prompts may be edited afterwards."""
        return digest(
            self.model_dump(mode="json", include={"domain", "version", "prediction_tag", "markers"})
        )

    def file_sha256(self) -> str:
        """Hash of the whole file, recorded with every result."""
        return sha256_text(self.path.read_text(encoding="utf-8"))


def load_task(path: Path) -> Task:
    """Read one task file. Raises TaskError with file:line."""
    task = load_yaml(path, Task, TaskError, context={"path": path, "judge_system_prompt": "", "own": {}})
    prompt = path.parent / task.judge_prompt
    try:
        # Read once: what a run's judge is told cannot change while it runs.
        text = prompt.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise TaskError(f"{path}: judge_prompt {task.judge_prompt!r} cannot be read ({problem})") from problem
    return task.model_copy(
        update={
            "judge_system_prompt": text,
            "metrics": tuple(map(shown_name, task.metrics)),
            "primary": tuple(map(shown_name, task.primary)),
            "own": {match[2]: match[1] for match in map(_OWN.fullmatch, task.metrics) if match},
        }
    )


def load_tasks(names: Sequence[str] = ()) -> dict[str, Task]:
    """Tasks by domain: all bundled ones, or those named.

    A name is a bundled domain, a task file, or a folder of task files (a user's own set); names may
    be joined by commas. Raises TaskError for an unknown name, and for one domain given twice.
    """
    words = [word.strip() for name in names for word in name.split(",") if word.strip()]
    paths = [path for word in words for path in _paths_of(word)] if words else sorted(_bundled().values())
    tasks: dict[str, Task] = {}
    for path in dict.fromkeys(paths):
        task = load_task(path)
        if task.domain in tasks:
            raise TaskError(f"{path}: domain '{task.domain}' is already defined by {tasks[task.domain].path}")
        tasks[task.domain] = task
    return _in_paper_order(tasks)


def _paths_of(word: str) -> list[Path]:
    bundled = _bundled()
    if word in bundled:
        return [bundled[word]]
    path = Path(word)
    if path.is_dir():
        found = sorted(path.glob("*.yaml"))
        if not found:
            raise TaskError(f"{path}: no task file (*.yaml) in this folder")
        return found
    if path.suffix in (".yaml", ".yml"):
        return [path]
    hint = task_elsewhere(word) or did_you_mean(word, bundled)
    raise TaskError(f"unknown domain '{word}'{hint} (known: {', '.join(bundled)})")


def is_bundled(word: str) -> bool:
    """Whether a word after --tasks names bundled domains, whatever files lie in the working directory."""
    return word in _bundled()


def _bundled() -> dict[str, Path]:
    paths = {path.stem: path for path in asset("tasks").glob("*.yaml")}
    return {name: paths[name] for name in _domain_order(paths)}


def _domain_order(names: Iterable[str]) -> list[str]:
    known = set(names)
    return [name for name in OFFICIAL_DOMAINS if name in known] + sorted(known - set(OFFICIAL_DOMAINS))


def _in_paper_order(tasks: dict[str, Task]) -> dict[str, Task]:
    return {name: tasks[name] for name in _domain_order(tasks)}
