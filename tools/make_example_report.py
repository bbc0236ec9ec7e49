"""Writes reports/example/: the report of a small run in which model and judge follow a script.

In: some samples of three domains of the bundled data, `tests/helpers/played_world.py` as model and judge on a loopback server.
Out: the pages, the same bytes each time but for the version they name: times, addresses, commit and packages of the run are
set to fixed values before its report is made. From the repository root: `python -m tools.make_example_report`
(some seconds); a test fails when the example is stale.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agentworldbench.report.build import build_report
from agentworldbench.run import evaluate
from tests.helpers.played_world import PlayedWorld
from tests.helpers.scripted_server import ScriptedServer
from tools.damage import scenes

FOLDER: Final = Path(__file__).resolve().parent.parent / "reports" / "example"
REMARK: Final = (
    "An example made by a script: no model was asked and no judge, so its numbers say nothing about any. The samples are of "
    "the bundled data (mini), which are not the benchmark."
)
DOMAINS: Final = ("mcp", "terminal", "web")
MOMENT: Final = "2026-01-01T12:00:00Z"
_PNG: Final = re.compile(r'<a href="plots/[\w-]+\.png"[^>]*>PNG</a> ?')
"""Links to plots as PNG. The example does without: they would be half of it, and no two machines draw them alike."""
_FIXED: Final[dict[str, Any]] = {
    "started_at": MOMENT,
    "created_at": MOMENT,
    "made_at": "2026-01-01T12:01:00Z",
    "asked_at": MOMENT,
    "seconds": 1.5,
    "git_commit": None,
    "git_dirty": None,
    "packages": {},
    "model_url": "http://127.0.0.1:8000/v1",
}
"""Fields of records that each run has otherwise."""


def make(output: Path) -> None:
    """Write the report into a folder, in place of an older one."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "example"
        with ScriptedServer(PlayedWorld()) as server:
            evaluate(
                model="openai-api/scripted-world",
                base_url=server.base_url,
                judge="openai-api/scripted-judge",
                judge_base_url=server.base_url,
                data="mini",
                sample_id=tuple(chosen()),
                price=("openai-api/scripted-world=0.5,2", "openai-api/scripted-judge=2,8"),
                max_connections=1,
                output=path,
                display="none",
            )
        settle(path)
        build_report([path], output, remark=REMARK)
    _rewrite(output / "report.json")
    for picture in output.glob("plots/*.png"):
        picture.unlink()
    first = output / "index.html"
    first.write_text(_PNG.sub("", first.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


def chosen() -> Iterator[str]:
    """Ids of samples: of each domain six trajectories, of each a late turn, and of every second an early one."""
    for domain in DOMAINS:
        clusters: dict[str, list[str]] = {}
        for scene in scenes()[domain]:
            clusters.setdefault(scene.sample.ref.cluster, []).append(scene.sample.id)
        for number, ids in enumerate(list(clusters.values())[:6]):
            yield from (ids[1], ids[-1]) if number % 2 else (ids[-1],)


def settle(path: Path) -> None:
    """Set what differs from run to run in all files of a run directory."""
    for name in ("run.json", "results.json"):
        _rewrite(path / name)
    for name in ("predictions.jsonl", "verdicts.jsonl"):
        lines = (path / name).read_text(encoding="utf-8").splitlines()
        settled = sorted(json.dumps(_settled(json.loads(line)), ensure_ascii=False) for line in lines)
        (path / name).write_text("".join(f"{line}\n" for line in settled), encoding="utf-8")


def _rewrite(path: Path) -> None:
    value = _settled(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _settled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _FIXED[name] if name in _FIXED else _settled(held) for name, held in value.items()}
    return [_settled(held) for held in value] if isinstance(value, list) else value


if __name__ == "__main__":
    make(FOLDER)
    print(FOLDER / "index.html")
