"""A copied epoch, or a judge's copied second verdict: found by ids, by times, and told where only the text is the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.verification.draws import (
    SAME_ID,
    SAME_REQUEST,
    SAME_TEXT,
    SHARED_IDS,
    Drawn,
    check_draws,
)
from agentworldbench.verification.verify import verify
from tests.helpers.honest_bundle import (
    Lines,
    bundle_folder,
    edit_lines,
    made_run,
    refused,
    rescored,
    script,
    told,
)
from tests.helpers.scripted_server import ChatCall, Reply

QUESTIONS = 30


def answers(change: Callable[[int, int, Drawn], Drawn] = lambda question, epoch, one: one) -> list[Drawn]:
    """Two epochs of thirty questions, every answer a draw of its own unless `change` says otherwise."""
    return [
        change(
            number,
            epoch,
            Drawn(
                kind="model",
                question=f"mcp/{number}/1",
                where=f"mcp/{number}/1 (epoch {epoch})",
                response=f"id-{number}-{epoch}",
                text=f"text {number} {epoch}",
                request=f"request {number} {epoch}",
            ),
        )
        for number in range(QUESTIONS)
        for epoch in (1, 2)
    ]


def found(drawn: list[Drawn], temperature: float | None = 0.6) -> dict[str, set[str]]:
    """Severities by the beginning of the message."""
    kinds: dict[str, set[str]] = {}
    for hit in check_draws(drawn, {"model": temperature}):
        kinds.setdefault(hit.message.partition(",")[0], set()).add(hit.severity)
    return kinds


def test_answers_of_their_own_are_no_finding() -> None:
    assert found(answers()) == {}


def test_one_id_for_two_answers_is_refused() -> None:
    copied = answers(lambda number, epoch, one: replace(one, response=f"id-{number}") if number == 7 else one)
    assert found(copied) == {SAME_ID: {"refused"}}
    (hit,) = check_draws(copied, {})
    assert hit.where == "mcp/7/1 (epoch 1), mcp/7/1 (epoch 2)"


def test_ids_that_a_server_gives_to_everybody_tell_nothing() -> None:
    assert found(answers(lambda number, epoch, one: replace(one, response="chatcmpl-1"))) == {}
    few = answers(lambda number, epoch, one: replace(one, response=f"id-{number % 11}-{epoch}"))
    assert found(few) == {}
    both = [replace(one, response="id-x") if one.question == "mcp/29/1" else one for one in few]
    assert found(both) == {SHARED_IDS.partition(",")[0]: {"warning"}}


def test_the_same_text_and_times_are_a_copy() -> None:
    copied = answers(
        lambda number, epoch, one: (
            replace(one, text=f"t{number}", request=f"r{number}") if number < 6 else one
        )
    )
    assert found(copied) == {SAME_REQUEST.partition(",")[0]: {"refused"}}
    once = answers(lambda number, epoch, one: replace(one, request="r") if number == 3 else one)
    assert found(once) == {SAME_REQUEST.partition(",")[0]: {"warning"}}


def test_the_same_text_alone_is_told() -> None:
    alike = answers(lambda number, epoch, one: replace(one, text=f"t{number}") if number < 20 else one)
    for temperature, words in (
        (0.0, "as temperature 0 gives them"),
        (0.6, "although the temperature is 0.6"),
        (None, "although the temperature is the server's own"),
    ):
        (hit,) = check_draws(alike, {"model": temperature})
        assert (hit.severity, hit.message.startswith(SAME_TEXT)) == ("warning", True)
        assert words in hit.message and "(20 of 30; of at least 200 characters 0 of 0)" in hit.message
    fewer = answers(lambda number, epoch, one: replace(one, text=f"t{number}") if number < 10 else one)
    assert found(fewer) == {}


@pytest.mark.parametrize(
    ("temperature", "alike", "says"),
    [
        (0.6, 3, None),
        (0.6, 5, "5 of 30; of at least 200 characters 5 of 30"),
        (None, 5, "server's own"),
        (0.0, 15, None),
    ],
)
def test_long_texts_tell_sooner(temperature: float | None, alike: int, says: str | None) -> None:
    """A sampling server repeats few of its long answers; one that decodes greedily repeats all, so nothing is refused."""
    drawn = answers(
        lambda number, epoch, one: replace(one, long=True, text=f"t{number}" if number < alike else one.text)
    )
    hits = list(check_draws(drawn, {"model": temperature}))
    assert [hit.severity for hit in hits] == (["warning"] if says else [])
    assert all((says or "") in hit.message for hit in hits)


def of_its_own(call: ChatCall) -> Reply:
    """A world that answers otherwise each time, after a second and a bit."""
    reply = script(call)
    if call.model == "judge" or not isinstance(reply.content, str):
        return reply
    return replace(reply, content=reply.content.replace("done", f"done in attempt {call.attempt}"))


@pytest.mark.slow
@pytest.mark.usefixtures("quick_retries")
def test_a_copied_epoch_is_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    bundle_folder(made_run(tmp_path, of_its_own, epochs=2), tmp_path / "bundle", rows)
    honest = verify(tmp_path / "bundle", data=str(rows))
    assert (honest.verdict, [one for one in honest.findings if one.check == "duplicates"]) == ("accepted", [])

    def copied(keep: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Lines], Lines]:
        """The second epoch of a journal as a copy of its first."""

        def edit(lines: Lines) -> Lines:
            first = [line for line in lines if line.get("epoch", 1) == 1]
            return first + [keep(line) | {"epoch": 2} for line in first]

        return edit

    def without_id(line: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in line.items() if name != "response_id"}

    def whole(line: dict[str, Any]) -> dict[str, Any]:
        return line

    for number, (keep, message) in enumerate(((whole, SAME_ID), (without_id, SAME_REQUEST))):
        folder = tmp_path / f"forged{number}"
        shutil.copytree(tmp_path / "bundle", folder)
        for name in ("predictions.jsonl", "verdicts.jsonl"):
            edit_lines(folder, name, copied(keep))
        rescored(folder, rows)
        report = verify(folder, data=str(rows))
        assert message in told(refused(report, "duplicates")), told(list(report.findings))
        assert {one.check for one in report.findings if one.severity == "refused"} == {"duplicates"}
