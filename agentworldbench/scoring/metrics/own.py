"""Metrics of a user's own: functions in Python files beside a task file, run only where the user allows it.

    def my_metric(facts, prediction):
        ...a number from 0 to 1, or None where the metric does not apply to this sample

In: a task that lists `FILE.py:FUNCTION`. Out: the same `Metric`s as the bundled ones. A function is first
called with the reference as prediction. None there means that the metric does not apply, so that this is
decided by the sample alone; any other value than 1 is refused. What it returns is checked, and an error in
it names file, line and sample. The text that runs is the text whose hash stands in the results: it is read
once and handed to worker processes as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from pathlib import Path
from types import ModuleType
from typing import Any

from agentworldbench.errors import ConfigError, TaskError
from agentworldbench.scoring.metrics.base import Metric, Unparsable
from agentworldbench.scoring.metrics.facts import Facts
from agentworldbench.task import Task
from agentworldbench.yamlfile import did_you_mean

Function = Callable[[Facts, str], Any]


@dataclass(frozen=True)
class OwnCode:
    """The Python files of one task: `functions` says which file holds which, `sources` the text of each."""

    folder: Path
    functions: Mapping[str, str]
    sources: Mapping[str, bytes]

    def digests(self) -> dict[str, str]:
        """SHA-256 of each file."""
        return {name: hashlib.sha256(source).hexdigest() for name, source in self.sources.items()}

    def metrics(self) -> dict[str, Metric]:
        """The functions as metrics. Raises TaskError for code that cannot be loaded."""
        return {
            name: _metric(name, self.folder / file, _function(self.folder / file, self.sources[file], name))
            for name, file in self.functions.items()
        }


def read_own(task: Task, allowed: bool) -> OwnCode:
    """The code that a task names; nothing of it runs yet. Raises ConfigError where it is not `allowed`."""
    if task.own and not allowed:
        name, file = next(iter(task.own.items()))
        raise ConfigError(
            f"{task.path}: metric '{file}:{name}' is Python code that stands beside this file; read it, then give "
            "--allow-code (in Python: allow_code=True) to let it run"
        )
    sources = {}
    for file in dict.fromkeys(task.own.values()):
        try:
            sources[file] = (task.path.parent / file).read_bytes()
        except OSError as problem:
            raise TaskError(f"{task.path.parent / file}: cannot be read ({problem.strerror})") from problem
    return OwnCode(task.path.parent, task.own, sources)


@lru_cache(maxsize=64)
def _module(path: Path, source: bytes) -> ModuleType:
    """The file as a module, run once for a text."""
    module = ModuleType(f"awb_own_{path.stem}_{hashlib.sha256(source).hexdigest()[:8]}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # data classes and the like look themselves up there
    try:
        with _output_aside():
            exec(compile(source, str(path), "exec"), module.__dict__)
    except (SyntaxError, ValueError) as problem:
        line = getattr(problem, "lineno", None)
        if line is None or getattr(problem, "filename", None) != str(path):
            raise TaskError(_told(problem, path)) from problem
        raise TaskError(f"{path}:{line}: not valid Python: {problem.args[0]}") from problem
    except (Exception, SystemExit) as problem:
        raise TaskError(_told(problem, path)) from problem
    return module


def _function(path: Path, source: bytes, name: str) -> Function:
    functions = {
        word: value
        for word, value in vars(_module(path, source)).items()
        if callable(value) and not word.startswith("__")
    }
    if name not in functions:
        raise TaskError(f"{path}: has no function '{name}'{did_you_mean(name, functions)}")
    function: Function = functions[name]
    with contextlib.suppress(ValueError):  # no signature to be had
        try:
            inspect.signature(function).bind(None, "")
        except TypeError as problem:
            raise TaskError(
                f"{path}: '{name}' must take two arguments, (facts, prediction): {problem}"
            ) from problem
    return function


def _metric(name: str, path: Path, function: Function) -> Metric:
    def applies(facts: Facts) -> bool:
        value = _value(name, path, function, facts, facts.reference)
        if value is not None and value != 1.0:
            shown = (
                f"unparsable ({value.reason})"
                if isinstance(value, Unparsable)
                else f"{value!r}, not exactly 1"
            )
            raise TaskError(
                f"{path}: metric '{name}': the reference of {facts.sample.id} scores {shown}; a metric gives the "
                "reference 1, or None where it does not apply"
            )
        return value is not None

    def score(facts: Facts, prediction: str) -> float | Unparsable:
        value = _value(name, path, function, facts, prediction)
        if value is None:
            raise TaskError(
                f"{path}: metric '{name}' gave None for a prediction of {facts.sample.id}, but 1 for the reference; "
                "whether it applies may depend on the sample alone"
            )
        return value

    return Metric(score, applies)


def _value(
    name: str, path: Path, function: Function, facts: Facts, prediction: str
) -> float | Unparsable | None:
    """What the function gives, checked."""
    try:
        with _output_aside():
            value = function(facts, prediction)
            if value is None or isinstance(value, Unparsable):
                return value
            number = float(value) if hasattr(value, "__float__") else float("nan")
    except (Exception, SystemExit) as problem:
        raise TaskError(f"{_told(problem, path)} (metric '{name}', sample {facts.sample.id})") from problem
    if not isfinite(number) or not 0 <= number <= 1:
        raise TaskError(
            f"{path}: metric '{name}' gave {value!r:.60} for sample {facts.sample.id}; expected a number from 0 to 1, "
            "or None where it does not apply"
        )
    return number


def _told(problem: BaseException, path: Path) -> str:
    """File and line of the user's code where it happened, class and first line of the error."""
    line = 0
    trace = problem.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    message = (str(problem).splitlines() or [""])[0][:200]
    return f"{path}:{line or 1}: {type(problem).__name__}{': ' * bool(message)}{message}"


def _output_aside() -> contextlib.redirect_stdout[Any]:
    """Standard output is for tables and events: what the code prints goes to standard error."""
    return contextlib.redirect_stdout(sys.stderr)
