"""Runs for the tests of `awb export`, and readers of what they become.

`make_runs` evaluates three domains of the bundled set against a scripted server. What an answer is depends on the
messages alone: some are empty, refused, cut, or come at the second try, and some verdicts hold no scores. So
the same runs come out on every machine, and golden files can hold their numbers.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from agentworldbench.plan import Samples
from agentworldbench.prompts import reference_observation
from agentworldbench.resume import reopen_samples
from agentworldbench.run import Run, evaluate, load_run, score_run

from .scripted_server import ChatCall, Reply, ScriptedServer, hash_verdict
from .whole_runs import good, kind_of_call, options

TASKS: Final = ("terminal", "swe", "mcp")
EPOCHS, REPEATS = 2, 2
THOUGHT: Final = "first the prompt, then the output"
EACH: Final = 6
"""Samples of a domain."""


def script(call: ChatCall) -> Reply:
    """Model and judges, with failures that the messages decide."""
    kind = kind_of_call(call)
    if call.model.startswith("judge"):
        return Reply(content="no verdict here") if kind in (0, 5) else hash_verdict(call)
    if kind == 1:
        return Reply(content="", reasoning_content=THOUGHT)
    if kind == 2:
        return Reply(status=400, error={"message": "this prompt is not liked", "code": "x"})
    if kind == 3:
        return Reply(content="<predicted_observation>cut", finish_reason="length")
    if kind == 4 and call.attempt == 1:
        return Reply(status=500, error={"message": "try again"})
    return Reply(content=good(call).content, reasoning_content=THOUGHT, cached_tokens=4)


def make_runs(folder: Path, *names: str) -> dict[str, Run]:
    """Runs by name: `one`, `many` (epochs and repeats), `two` (judges), `none` (no judge), `part` (not complete)."""
    with ScriptedServer(script) as server:
        for name in names:
            asked = options(server, folder / name, "mini", tasks=TASKS, limit=str(EACH))
            asked |= {"judge_attempts": 1, "max_retries": 1}
            if name == "many":
                asked |= {"epochs": EPOCHS, "judge_repeats": REPEATS}
            elif name == "two":
                asked["judge"] = ["openai-api/judge", "openai-api/judge-b"]
            elif name == "none":
                del asked["judge"], asked["judge_base_url"]
            evaluate(**asked)
            if name == "part":
                _shorten(folder / name)
    return {name: load_run(folder / name) for name in names}


def _shorten(run: Path) -> None:
    """Take answers and verdicts of some samples away, as if the run had been stopped before them."""
    names = sorted(one.sample_id for one in load_run(run).predictions())
    for journal, gone in (("predictions.jsonl", names[-4:]), ("verdicts.jsonl", names[-8:])):
        path = run / journal
        kept = [
            line for line in path.read_bytes().splitlines(True) if json.loads(line)["sample_id"] not in gone
        ]
        path.write_bytes(b"".join(kept))
    score_run(run)


def samples_of(run: Run) -> Samples:
    """The data of a run."""
    return reopen_samples(run.path, run.record)


def references_of(run: Run) -> Iterator[str]:
    """Reference observations long enough that nobody writes them by chance."""
    samples = samples_of(run)
    for ref in samples.refs:
        text = reference_observation(samples.dataset.load(ref), samples.tasks[ref.domain])
        if len(text) > 80:
            yield text


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def members_of(path: Path) -> dict[str, Any]:
    """The JSON members of a ZIP file, read strictly: no NaN."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: json.loads(archive.read(name), parse_constant=_refuse) for name in archive.namelist()}


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield str(key)
            yield from texts_in(one)
    elif isinstance(value, Iterable):
        for one in value:
            yield from texts_in(one)


_VOLATILE: Final = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d(\.\d+)?(Z|[+-]\d\d[:-]\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"\b[0-9a-f]{16,64}\b"), "HASH"),
    (re.compile(r"\b1[0-9]{9}\b"), "SECONDS"),
)


def trimmed(value: Any, leave_out: Iterable[str] = ()) -> Any:
    """A JSON value for a golden file: times, hashes and ids replaced, numbers rounded, keys of `leave_out` gone."""
    if isinstance(value, Mapping):
        gone = set(leave_out)
        return {trimmed(key): trimmed(one, gone) for key, one in value.items() if key not in gone}
    if isinstance(value, list):
        return [trimmed(one, leave_out) for one in value]
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str):
        for pattern, word in _VOLATILE:
            value = pattern.sub(word, value)
    return value
