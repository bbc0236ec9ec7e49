"""agentworldbench: the evaluation harness for AgentWorldBench (command `awb`).

`evaluate(...)` runs an evaluation and returns a `Run`; `load_run(path)` opens a finished or stopped
one. Both are imported on first use, so that `import agentworldbench` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentworldbench.version import __version__

if TYPE_CHECKING:
    from agentworldbench.run import Run, evaluate, load_run

__all__ = ["Run", "__version__", "evaluate", "load_run"]


def __getattr__(name: str) -> Any:
    if name in ("Run", "evaluate", "load_run"):
        from agentworldbench import run

        return getattr(run, name)
    raise AttributeError(f"module 'agentworldbench' has no attribute {name!r}")
