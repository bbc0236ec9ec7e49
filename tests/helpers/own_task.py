"""Task files with metrics of a user's own beside them, for tests: a bundled task with names added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from agentworldbench.resources import asset


def own_task(folder: Path, code: str, names: Sequence[str] = ("seen",), domain: str = "terminal") -> Path:
    """Write `DOMAIN.yaml` and `metrics.py` into `folder`; the functions `names` are the task's primary metrics."""
    folder.mkdir(exist_ok=True)
    raw = yaml.safe_load(asset("tasks", f"{domain}.yaml").read_text(encoding="utf-8"))
    listed = [f"metrics.py:{name}" for name in names]
    raw |= {"metrics": [*raw["metrics"], *listed], "primary": listed, "judge_prompt": "judge.md"}
    (folder / "judge.md").write_text("Judge.\n", encoding="utf-8")
    (folder / "metrics.py").write_text(code, encoding="utf-8")
    path = folder / f"{domain}.yaml"
    path.write_text(yaml.safe_dump(raw, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path
