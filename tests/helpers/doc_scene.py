"""A folder with all that a reader of the documentation has by the time they type its commands.

In: a scripted server, an empty folder. Out: `make_scene` fills `work/` with finished runs under the names that the pages use,
rows in the benchmark's layout, tasks and data of one's own, a bundle, a leaderboard's folder and, beside it, a clone. What a
page makes by its own commands is not there yet: `page_folder` copies the scene without it.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agentworldbench.resources import asset, mini_folder
from agentworldbench.run import evaluate

from .doc_rules import RULES
from .documents import ROOT, Page
from .official_folder import make_official_folder
from .own_task import own_task
from .scripted_calls import ChatCall, Reply
from .scripted_server import ScriptedServer, echo_world, hash_scores, verdict_text

RUNS: Final = {
    "RUN": ("world", ("judge-a",)),
    "RUN_OF_THREE": ("world", ("judge-a", "judge-b", "judge-c")),
    "RUN_B": ("world-b", ("judge-a",)),
    "RUN_C": ("world-c", ("judge-a",)),
}
"""Model and judges of each run, all on the same rows."""
SAME: Final = {"RUN_A": "RUN", "my-run": "RUN", "runs/my-run": "RUN", "runs/one": "RUN", "runs/two": "RUN_B"}
"""Names that pages use for a run of the same kind."""
KEYS: Final = ("OPENAI_API_KEY", "AWB_API_KEY", "AWB_JUDGE_API_KEY")


def answers(call: ChatCall) -> Reply:
    """A world, and judges who do not all say the same."""
    if not call.is_judge:
        return echo_world(call)
    scores = hash_scores(call.model + call.last_user)
    if "response_format" in call.body:
        verdict = {
            "reasons": "The lines are compared.",
            "strengths": ["layout"],
            "weaknesses": ["a value"],
            "scores": scores,
        }
        return Reply(content=json.dumps(verdict))
    return Reply(content=verdict_text(scores))


def make_scene(work: Path, server: ScriptedServer) -> None:
    """Fill `work`, which must not exist."""
    work.mkdir()
    make_official_folder(work / "rows", trajectories=2, turns=4, observation_chars=200, special=False)
    (work / "FOLDER").symlink_to("rows")
    for name, (model, judges) in RUNS.items():
        evaluate(
            f"openai-api/{model}",
            base_url=server.base_url,
            judge=[f"openai-api/{judge}" for judge in judges],
            judge_base_url=[server.base_url],
            data=str(work / "rows"),
            output=work / name,
        )
    for name, like in SAME.items():
        (work / name).parent.mkdir(exist_ok=True)
        shutil.copytree(work / like, work / name)
    _tasks_of_ones_own(work)
    shutil.copytree(asset("leaderboards"), work / "leaderboards")
    clone = work.parent / "leaderboard"
    shutil.copytree(asset("leaderboards"), clone / "leaderboards")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Entries"]):
        author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *author, *words], cwd=clone, check=True)


def _tasks_of_ones_own(work: Path) -> None:
    """A copy of the bundled task, and one with the metric that docs/tasks.md shows; five terminal rows."""
    (code,) = (block.text for block in Page("docs/tasks.md").blocks if block.language == "python")
    (work / "my_tasks").mkdir()
    shutil.copy(asset("tasks", "terminal.yaml"), work / "my_tasks")
    shutil.copytree(asset("tasks", "prompts"), work / "my_tasks" / "prompts")
    own_task(work / "tasks_with_code", code, re.findall(r"^def (\w+)\(facts, prediction", code, re.MULTILINE))
    (work / "my_data").mkdir()
    rows = (mini_folder() / "terminal_test.jsonl").read_bytes().split(b"\n")[:5]
    (work / "my_data" / "terminal_test.jsonl").write_bytes(b"\n".join(rows) + b"\n")


def page_folder(scene: Path, page: Page, to: Path) -> Path:
    """A copy of the scene for the commands of one page, without the runs that they make."""
    shutil.copytree(scene.parent / "leaderboard", to / "leaderboard")
    work = to / "work"
    shutil.copytree(scene, work, symlinks=True)
    for name in made_by(page):
        shutil.rmtree(work / name, ignore_errors=True)
    for name in ("tools", "tasks"):  # what a command names by its place in the repository
        (work / name).symlink_to(ROOT / name)
    return work


def made_by(page: Page) -> Iterator[str]:
    """Run directories that the page's own commands make."""
    for command in page.commands:
        if command.words[:2] in (("awb", "run"), ("awb", "infer")):
            for flag, name in zip(command.words, command.words[1:], strict=False):
                if flag in ("-o", "--output"):
                    yield name


def stood_in(text: str, server: ScriptedServer) -> Sequence[str]:
    """The words behind `awb`, with what stands in for servers and data that a test has not."""
    text = "\n".join(word for word in shlex.split(text) if word != "…")
    for pattern, replacement in RULES.stand_ins:
        pattern = pattern.replace(" ", "\n")
        replacement = replacement.replace(" ", "\n").format(url=server.base_url, rows="rows")
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    return text.split("\n")[1:]
