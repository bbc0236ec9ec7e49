"""`awb view` of runs under way: counts that follow the journals, half lines, pages that grow old, who works on a run.

The journals of a small finished run are played back line by line, as one process appends to them. Nothing in a directory may
change because somebody looks at it.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.report.activity import Counts
from agentworldbench.report.names import page_name
from agentworldbench.report.owner import worker_of
from agentworldbench.report.snapshot import REPLACED, Looks
from agentworldbench.run import Run
from agentworldbench.store import locked_store, open_store
from tests.helpers.viewing import files_of, grown, page_of, small_run, viewed

MADE = ("- Time:", "- Harness:")
"""Lines that say when results were made."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return small_run(tmp_path_factory.mktemp("played"))


def test_counts_follow_the_journals(run: Run, tmp_path: Path) -> None:
    lines = (run.path / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    part = tmp_path / "part"
    grown(run.path, part, 0, 0)
    with viewed(part) as found:
        told = found.until(lambda told: told["looked"])
        assert told["state"] == "stopped" and told["stages"][0]["done"] == 0
        assert "no prediction yet" in found.text("/") and "not run" in found.text("/list.js").replace(
            "_", " "
        )
        grown(run.path, part, 3, 1, more=lines[3][:50])
        told = found.told()
        assert [one["done"] for one in told["stages"]] == [3, 1], "half a line is no record"
        assert told["unread"] == 0
        grown(run.path, part, 4, 1)
        told = found.until(lambda told: told["scored"] == 4)
        assert told["stages"][0]["done"] == 4
        text = found.text("/")
        assert "PARTIAL" in text and 'class="headline"' in text
        assert not (part / "results.json").exists() and not (part / "metrics.jsonl").exists()
        (part / "run.owner").write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        told = found.told()
        assert (
            told["state"] == "running"
            and told["worker"] == f"process {os.getpid()} on {socket.gethostname()}"
        )


def test_a_page_says_when_it_is_old(run: Run, tmp_path: Path) -> None:
    part = tmp_path / "part"
    grown(run.path, part, 1, 0)
    key = json.loads((run.path / "verdicts.jsonl").read_bytes().splitlines()[0])["sample_id"]
    name = page_name(key)
    with viewed(part) as found:
        old = found.until(lambda told: told["looked"])
        place = f"/progress.json?page={name}"
        before = found.told(place)["made"]["sample"]
        first = page_of(found.text(f"/samples/{name}.html"), tmp_path)
        assert [one["data-made"] for one in first.all("p") if one.get("id") == "live"] == [before]
        count = len((run.path / "predictions.jsonl").read_bytes().splitlines())
        grown(run.path, part, count, 1)
        assert found.told(place)["made"]["sample"] != before
        assert "Verdict of openai-api/judge" in found.text(f"/samples/{name}.html"), (
            "it is made anew, without a look"
        )
        told = found.until(lambda told: told["scored"] == count)
        assert (
            told["made"]["overview"] != old["made"]["overview"]
            and told["made"]["list"] != old["made"]["list"]
        )
        assert f"{count} predictions are ready" in told["offers"]["overview"]


def test_numbers_made_in_memory_are_those_that_are_stored(run: Run, tmp_path: Path) -> None:
    bare = tmp_path / "run"
    bare.mkdir()
    for name in ("run.json", "predictions.jsonl", "verdicts.jsonl"):
        shutil.copy(run.path / name, bare / name)
    before = files_of(bare)
    with viewed(bare) as found, viewed(run.path) as stored:
        for some in (found, stored):
            some.until(lambda told: told["looked"])
        mine, theirs = (some.text("/summary.md") for some in (found, stored))
        assert [one for one in mine.splitlines() if not one.startswith(MADE)] == [
            one for one in theirs.splitlines() if not one.startswith(MADE)
        ]
        assert found.text("/list.js") == stored.text("/list.js")
    assert files_of(bare) == before, "nothing was written"


def test_a_run_does_not_notice_that_it_is_looked_at(run: Run, tmp_path: Path) -> None:
    part = tmp_path / "part"
    grown(run.path, part, 5, 2)
    with viewed(part) as found:
        found.until(lambda told: told["looked"])
        with locked_store(part):
            told = found.told()
            assert told["state"] == "running"
            before = files_of(part)
            for path in ("/", "/samples.html", "/list.js", "/summary.md"):
                found.text(path)
            assert files_of(part) == before
        assert found.told()["state"] == "stopped"


def test_a_journal_that_was_replaced_is_read_from_its_beginning(run: Run, tmp_path: Path) -> None:
    part = tmp_path / "part"
    grown(run.path, part, 5, 2)
    with viewed(part) as found:
        assert found.told()["stages"][0]["done"] == 5
        (part / "predictions.jsonl").rename(part / "predictions.jsonl.old")
        assert [one["done"] for one in found.told()["stages"]] == [0, 0], "verdicts on nothing do not count"
        lines = (run.path / "predictions.jsonl").read_bytes().splitlines(keepends=True)
        (part / "predictions.jsonl").write_bytes(lines[0] + b"no record\n" + lines[1])
        told = found.told()
        assert (told["stages"][0]["done"], told["unread"]) == (2, 1)
        assert "1 line of the journals is no record and left out" in told["shown"]["texts"]["facts.unread"]
        shutil.rmtree(part)
        status, _, body = found.ask("/progress.json")
        assert status == 503 and b"no run.json there" in body


def test_numbers_of_a_run_that_was_begun_anew_are_gone(run: Run, tmp_path: Path) -> None:
    part = tmp_path / "part"
    grown(run.path, part, 5, 2)
    with viewed(part) as found:
        before = found.until(lambda told: told["scored"] == 5)["made"]["overview"]
        assert 'class="headline"' in found.text("/")
        shutil.rmtree(part)
        assert found.ask("/progress.json")[0] == 503
        grown(run.path, part, 0, 0)
        told = found.until(lambda told: told["made"]["overview"] != before)
        assert told["scored"] == 0 and told["offers"]["overview"].startswith(
            "The files of this run were exchanged"
        )
        page = found.text("/")
        assert 'class="headline"' not in page and "no prediction yet" in page
        grown(run.path, part, 3, 0)
        found.until(lambda told: told["scored"] == 3)


def test_what_is_forgotten_while_it_is_looked_at_ends_no_thread(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / "part"
    grown(run.path, part, 5, 2)
    looks, gathered = Looks(part, None, False), Looks.gathered

    def exchanged(self: Looks, *given: Any) -> Any:
        found = gathered(self, *given)
        self.forget()
        return found

    monkeypatch.setattr(Looks, "gathered", exchanged)
    looks.look(lambda: None)
    assert looks.problem is not None and looks.problem.endswith(REPLACED)
    monkeypatch.undo()
    looks.look(lambda: None)
    assert looks.problem is None and looks.snapshot is not None


def test_another_answer_in_the_same_place_is_another_answer(run: Run, tmp_path: Path) -> None:
    """Places in a journal say nothing of the journal that stands there afterwards."""
    part, other = tmp_path / "part", tmp_path / "other"
    grown(run.path, part, 6, 0)
    whole = (part / "predictions.jsonl").read_bytes()
    texts = [json.loads(line).get("observation", "") for line in whole.splitlines()]
    told = json.dumps(max(texts[:3], key=len), ensure_ascii=False).encode()
    another = whole.replace(b'"observation":' + told, b'"observation":"' + b"x" * (len(told) - 2) + b'"')
    assert len(another) == len(whole) and another != whole
    with viewed(part) as found:
        numbering = found.until(lambda told: told["looked"])["made"]["overview"]
        before = found.text("/list.js")
        replacement = part / "new"
        replacement.write_bytes(another)
        replacement.replace(part / "predictions.jsonl")
        grown(part, other, 6, 0)
        with viewed(other) as fresh:
            fresh.until(lambda told: told["looked"])
            after = fresh.text("/list.js")
        assert before != after
        found.until(lambda told: told["made"]["overview"] != numbering and found.text("/list.js") == after)


def test_a_record_asked_again_counts_once_and_costs_twice(run: Run) -> None:
    store = open_store(run.path)
    counts = Counts(run.record)
    records = list(store.predictions)
    for record in records:
        counts.add(record)
    once = counts.activity(run.path)
    for record in records:
        counts.add(record)
    twice = counts.activity(run.path)
    assert [one.done for one in twice.stages] == [one.done for one in once.stages]
    assert twice.prompt_tokens == 2 * (once.prompt_tokens or 0) > 0


OWNERS = {
    "nobody": (None, (None, False)),
    "this process": (f"process {os.getpid()} on {socket.gethostname()}", (True, True)),
    "one that ended": (f"process 999999999 on {socket.gethostname()}", (True, False)),
    "another machine": ("process 1 on elsewhere.example", (True, None)),
    "something else": ("\x1b[31m'; drop", (None, False)),
}


@pytest.mark.parametrize("name", OWNERS)
def test_who_works_on_a_run(tmp_path: Path, name: str) -> None:
    text, (said, works) = OWNERS[name]
    if text is not None:
        (tmp_path / "run.owner").write_text(text + "\n")
    assert worker_of(tmp_path) == (text if said else None, works)


def test_a_number_that_another_process_got_is_not_believed(tmp_path: Path) -> None:
    owner = tmp_path / "run.owner"
    owner.write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
    os.utime(owner, (1, 1))
    assert worker_of(tmp_path)[1] is False


def test_without_the_data_there_are_counts_and_stored_numbers(run: Run, tmp_path: Path) -> None:
    copied = tmp_path / "run"
    shutil.copytree(run.path, copied)
    record = json.loads((copied / "run.json").read_text())
    record["selection"]["data"] = str(tmp_path / "gone")
    (copied / "run.json").write_text(json.dumps(record))
    with viewed(copied) as found:
        told = found.until(lambda told: told["looked"])
        assert "gone" in told["problem"] and told["state"] == "finished"
        text = found.text("/")
        assert 'class="headline"' in text and "gone" in text
        status, _, body = found.ask("/samples.html")
        assert status == 503 and b"gone" in body
