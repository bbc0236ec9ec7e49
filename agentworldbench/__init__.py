"""agentworldbench: the evaluation harness for AgentWorldBench (command `awb`).

`evaluate(...)` runs an evaluation and returns a `Run`; `load_run(path)` opens a finished or stopped one, `score_run`
makes its results again; `compare_runs` and `rank_runs` set runs against each other. All are imported on first use, so
that `import agentworldbench` costs nothing. In a notebook progress and results are shown below the cell.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentworldbench.version import __version__

if TYPE_CHECKING:
    from agentworldbench.compare.several import rank_runs
    from agentworldbench.compare.two import compare_runs
    from agentworldbench.run import Run, evaluate, load_run, score_run

__all__ = ["Run", "__version__", "compare_runs", "evaluate", "load_run", "rank_runs", "score_run"]

_MODULES = {
    **dict.fromkeys(("Run", "evaluate", "load_run", "score_run"), "run"),
    "compare_runs": "compare.two",
    "rank_runs": "compare.several",
}


def __dir__() -> list[str]:
    return (
        __all__  # what a notebook completes: names that are imported on first use stand in no namespace yet
    )


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"agentworldbench.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'agentworldbench' has no attribute {name!r}")
