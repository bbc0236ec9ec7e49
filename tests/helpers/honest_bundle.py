"""One honest run on rows of our own, as a bundle, and ways to make the folder of a bundle hold together again.

`make_rows` writes two domains whose recorded answers hold process ids, clocks and ids that no prompt tells.
`made_run` asks a scripted world and a scripted judge about them: some replies are empty, and every judge reply is
another text; `dishonest` worlds cheat. `seal` writes the manifest anew after a forger has changed files, as a forger would.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from agentworldbench.run import evaluate, score_run
from agentworldbench.submission.manifest import (
    MANIFEST,
    Options,
    Submitter,
    claims_of,
    read_manifest,
    write_manifest,
)
from agentworldbench.submission.pack import Prepared, mark, prepare, write_zip
from agentworldbench.verification.findings import Finding, Report

from .scripted_server import ChatCall, Reply, Script, ScriptedServer, hash_scores, verdict_text
from .whole_runs import kind_of_call, options

MARKER: Final = "**Environment Observation:**"
SUFFIX: Final = "\n\nAnswer between <predicted_observation> and </predicted_observation>."
TRAJECTORIES: Final = 12
TOOLS: Final = (
    "sleep",
    "tar",
    "rsync",
    "gzip",
    "curl",
    "make",
    "find",
    "sort",
    "grep",
    "diff",
    "wget",
    "scp",
)


def make_rows(folder: Path) -> Path:
    """Rows of `terminal` and `mcp`: twelve trajectories of two turns in each."""
    folder.mkdir(parents=True, exist_ok=True)
    for domain, observed in (("terminal", _screen), ("mcp", _envelope)):
        lines = []
        for number in range(TRAJECTORIES):
            turns = [(_turn(domain, number, turn), f"{MARKER}\n{observed(number, turn)}") for turn in (1, 2)]
            for last in (1, 2):
                lines.append(json.dumps(_row(domain, number, turns[:last]), ensure_ascii=False))
        (folder / f"{domain}_test.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _turn(domain: str, number: int, turn: int) -> str:
    action = f'["{TOOLS[number]} part-{turn} &\\n"]'
    if domain == "mcp":
        action = json.dumps({"name": "create_note", "arguments": {"title": f"{TOOLS[number]} {turn}"}})
    first = (
        f"**Task Instruction:**\nRun {TOOLS[number]} over all parts, in {domain}.\n\n" if turn == 1 else ""
    )
    return f"### Turn {turn}\n{first}**Action:**\n```\n{action}\n```"


def _row(domain: str, number: int, turns: list[tuple[str, str]]) -> dict[str, Any]:
    prompts = [text for text, _ in turns]
    return {
        "task": domain,
        "id": 100 + number,
        "prompt": [*prompts[:-1], prompts[-1] + SUFFIX],
        "response": [answer for _, answer in turns],
        "current_prompt": prompts[-1],
        "system_str": f"You stand in for a {domain} environment.",
        "turn_idx": len(turns),
        "total_turns": 2,
    }


def _secret(number: int, turn: int) -> str:
    return hashlib.sha256(f"{number}/{turn}".encode()).hexdigest()


def _screen(number: int, turn: int) -> str:
    pid = 10_000 + int(_secret(number, turn)[:6], 16) % 80_000
    tool = TOOLS[number]
    return f"ann@box:~$ {tool} part-{turn} &\n[1] {pid}\n{tool}: started at {number:02d}:{17 + turn}:{23 + number}\nann@box:~$"


def _envelope(number: int, turn: int) -> str:
    s = _secret(number, turn)
    note = {"id": f"{s[:8]}-{s[8:12]}-{s[12:16]}-{s[16:20]}-{s[20:32]}", "title": f"{TOOLS[number]} {turn}"}
    return json.dumps({"type": "text", "text": json.dumps(note), "annotations": None, "meta": None})


def script(call: ChatCall) -> Reply:
    """The world answers something of its own to each prompt, or nothing; the judge writes about each by itself."""
    mark_of_call = call.key[:10]
    if call.model == "judge":
        words = f"The texts were compared for case {mark_of_call}: layout, values and state, one after the other. "
        return Reply(content=words + verdict_text(hash_scores(call.last_user)))
    if kind_of_call(call) == 0:
        return Reply(content="")
    text = f"ann@box:~$ done with {mark_of_call}\nnothing else was printed by this command\nann@box:~$"
    return Reply(content=f"<predicted_observation>\n{text}\n</predicted_observation>")


def dishonest(world: Callable[[ChatCall], str]) -> Script:
    """A world that answers what `world` says, whatever an honest one would; the judge is the honest one."""

    def answer(call: ChatCall) -> Reply:
        if call.model == "judge":
            return script(call)
        return Reply(content=f"<predicted_observation>\n{world(call)}\n</predicted_observation>")

    return answer


def reference_for(call: ChatCall) -> str:
    """The recorded answer to a model's prompt: what a model gives that has seen the answers."""
    for observed in (_screen, _envelope):
        domain = "terminal" if observed is _screen else "mcp"
        for number in range(TRAJECTORIES):
            for turn in (1, 2):
                if call.last_user == _turn(domain, number, turn) + SUFFIX:
                    return observed(number, turn)
    raise AssertionError(f"no such prompt: {call.last_user[:80]}")


def made_run(folder: Path, script: Script = script, **more: Any) -> Path:
    """A finished run in `folder`/run over the rows in `folder`/rows, whole and judged."""
    rows = make_rows(folder / "rows")
    with ScriptedServer(script) as server:
        run = evaluate(**options(server, folder / "run", rows, max_retries=0, **more))
    return run.path


def bundle_folder(run: Path, folder: Path, data: Path, **chosen: bool) -> Prepared:
    """The run's bundle, unpacked in `folder`."""
    folder.mkdir(parents=True)
    wanted = Options(**{"reasoning": False, "references": True} | chosen)
    return prepare(run, folder, wanted, submitter=Submitter(name="A. Tester"), data=str(data))


def seal(folder: Path, change: Callable[[dict[str, Any]], None] = lambda fields: None) -> None:
    """Write the manifest of a folder anew: the marks of its files, and what `change` makes of the claims."""
    path = folder / MANIFEST
    fields = read_manifest(path.read_bytes()).model_dump(mode="json")
    change(fields)
    fields["files"] = {name: mark(folder / name).model_dump() for name in fields["files"]}
    path.write_bytes(write_manifest(read_manifest(json.dumps(fields).encode())))


def packed(folder: Path, target: Path) -> Path:
    """The zip file of a bundle's folder."""
    write_zip(folder, target)
    return target


Lines = list[dict[str, Any]]


def read_lines(path: Path) -> Lines:
    """The records of a journal."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_lines(path: Path, lines: Lines) -> None:
    """Replace a journal."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def edit_lines(folder: Path, name: str, edit: Callable[[Lines], object]) -> None:
    """Change the records of a journal in place, or put the list in their place that `edit` returns."""
    lines = read_lines(folder / name)
    edited = edit(lines)
    write_lines(folder / name, edited if isinstance(edited, list) else lines)


def edit_json(folder: Path, name: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Change a JSON file in place."""
    value = json.loads((folder / name).read_text(encoding="utf-8"))
    edit(value)
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


def rescored(folder: Path, data: Path) -> None:
    """Results and metrics of what now stands in the journals, and claims in the manifest to go with them."""
    results = score_run(folder, str(data)).results
    assert results is not None
    (folder / "run.lock").unlink(missing_ok=True)
    claims = [claim.model_dump(mode="json") for claim in claims_of(results)]
    seal(folder, lambda fields: fields.update(claims=claims))


def refused(report: Report, check: str) -> list[Finding]:
    """What a check refuses."""
    return [one for one in report.findings if one.severity == "refused" and one.check == check]


def told(findings: list[Finding]) -> str:
    """Messages and places as one text."""
    return "\n".join(f"{one.message}: {'; '.join(one.where)}" for one in findings)
