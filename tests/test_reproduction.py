"""A simulated full reproduction: 2,170 rows in official shape, a model and a judge that fail in every way.

One run of `--protocol official` against `helpers/failing_world.py`, then a judge of the protocol builtin on
the same predictions. All numbers of both judges, in both readings, are computed again here from the rows and
from what the helper says each reply means, without the package. Takes about a minute: marker `slow`.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from agentworldbench.config import make_config
from agentworldbench.render.results import judge_table, readings_table
from agentworldbench.run import Run, evaluate, explain_run, judge_run
from agentworldbench.stats.results import Block, JudgeResults, Reading
from tests.helpers import failing_world
from tests.helpers.failing_world import JUDGINGS, WORLDS, Judging, Values, World
from tests.helpers.official_folder import MARKER, make_official_folder
from tests.helpers.own_prompts import judge_texts, row_messages, use_prompts
from tests.helpers.scripted_server import DIMENSIONS, ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import options

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROWS: Final = {"mcp": 286, "search": 458, "terminal": 354, "swe": 472, "android": 200, "web": 200, "os": 200}
HALF: Final = 0.005 + 1e-9
COLUMNS: Final = ("total", *DIMENSIONS)
READINGS: Final = ("official", "strict")
BOTH: Final = [(protocol, reading) for protocol in ("official", "builtin") for reading in READINGS]
CURABLE: Final = frozenset({"judge_unparsed", "judge_ambiguous", "empty", "truncated", "refused"})
"""Failures after which the judge of the protocol builtin is asked again, three times in all."""
Scores = dict[str, float | None]


@dataclass(frozen=True)
class Expected:
    """What becomes of one row under one judge: the observation that is shown (None: nothing) and the values
    of each reading (None: no score, and then the stage and class of the failure)."""

    domain: str
    world: World
    judging: Judging | None
    shown: str | None
    values: Mapping[str, Values | None]
    failures: Mapping[str, tuple[str, str]]


@dataclass(frozen=True)
class Reproduction:
    """The run, what was expected of it by protocol, and what the server was asked for each."""

    run: Run
    rows: tuple[dict[str, Any], ...]
    expected: Mapping[str, list[Expected]]
    calls: Mapping[str, tuple[ChatCall, ...]]

    def judge(self, protocol: str) -> JudgeResults:
        assert self.run.results is not None
        (found,) = [one for one in self.run.results.judges if one.judge.protocol == protocol]
        return found

    def reading(self, protocol: str, name: str) -> Reading:
        judge = self.judge(protocol)
        return {"official": judge.official, "strict": judge.strict}[name]


def judge_key(current: str, reference: str) -> str:
    return f"{current}\n{reference}"


def script(call: ChatCall) -> Reply:
    """Model and judge, each by what it is asked; some recover at the second attempt."""
    if call.model == "judge":
        texts = judge_texts(call)
        key = judge_key(texts.current, texts.reference)
        judging = failing_world.judging(key, texts.prediction)
        kind: World | Judging = judging
        reply = judging.reply(failing_world.scores_of(key, texts.prediction))
    else:
        kind = failing_world.world(call.last_user)
        reply = kind.reply(failing_world.own_text(call.last_user))
    return kind.first if kind.first and call.attempt == 1 else reply


def row_key(row: dict[str, Any]) -> str:
    return judge_key(row["current_prompt"], row["response"][-1].removeprefix(MARKER).strip())


def expect(row: dict[str, Any], protocol: str) -> Expected:
    """What becomes of a row, from the meanings that the helper states."""
    asked = row["prompt"][-1]
    key = row_key(row)
    world = failing_world.world(asked)
    text = failing_world.own_text(asked)
    shown = world.official(text) if protocol == "official" else world.strict(text)
    unread = ("prediction", world.failure or "")
    if shown is None:
        failed = dict.fromkeys(READINGS, unread)
        return Expected(row["task"], world, None, None, dict.fromkeys(READINGS), failed)
    judging = failing_world.judging(key, shown)
    scores = failing_world.scores_of(key, shown)
    values = {"official": judging.official(scores), "strict": judging.strict(scores)}
    failures = {name: ("judge", judging.failure) for name in READINGS if values[name] is None}
    if world.failure:
        values["strict"] = None
        failures["strict"] = unread
    return Expected(row["task"], world, judging, shown, values, failures)


def read_rows(folder: Path) -> Iterator[dict[str, Any]]:
    for domain in ROWS:
        for line in (folder / f"{domain}_test.jsonl").read_bytes().splitlines():
            yield json.loads(line)


def write_rows(folder: Path) -> None:
    """The folder of the helper, each file cut to the number of rows that the benchmark has."""
    for domain, count in ROWS.items():
        make_official_folder(
            folder,
            seed=4,
            domains=(domain,),
            trajectories=-(-count // 5),
            observation_chars=60,
            special=False,
        )
        path = folder / f"{domain}_test.jsonl"
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines[:count]))


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reproduction]:
    folder = tmp_path_factory.mktemp("reproduction")
    write_rows(folder / "data")
    rows = tuple(read_rows(folder / "data"))
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        use_prompts(patch)
        asked = options(server, folder / "run", folder / "data", protocol="official", max_retries=1)
        evaluate(**asked)
        calls = server.calls
        judge = {"judge": "openai-api/judge", "judge_base_url": server.base_url, "max_retries": 1}
        run = judge_run(folder / "run", make_config(judge))
        expected = {protocol: [expect(row, protocol) for row in rows] for protocol in ("official", "builtin")}
        yield Reproduction(run, rows, expected, {"official": calls, "builtin": server.calls[len(calls) :]})


def score(values: Iterable[float]) -> float | None:
    """(mean - 1) / 4 x 100."""
    every = list(values)
    return (statistics.fmean(every) - 1) / 4 * 100 if every else None


def column(rows: Iterable[Expected], reading: str, name: str) -> list[float]:
    """The values other than 0 of a column; the total is the mean of those above 0."""
    found: list[float] = []
    for row in rows:
        values = row.values[reading]
        if values is not None:
            above = [value for value in values.values() if value > 0]
            total = sum(above) / len(above) if above else 0
            value = total if name == "total" else values[name]
            found += [value] if value else []
    return found


def exclude(rows: Iterable[Expected], reading: str) -> Scores:
    every = list(rows)
    return {name: score(column(every, reading, name)) for name in COLUMNS}


def floor(rows: Iterable[Expected], reading: str) -> Scores:
    """Every row that adds nothing counts 0 of 100."""
    every = list(rows)
    return {
        name: sum((value - 1) * 25 for value in column(every, reading, name)) / len(every) for name in COLUMNS
    }


def macro(domains: Iterable[Scores]) -> Scores:
    every = list(domains)
    return {name: statistics.fmean(one[name] or 0 for one in every) for name in COLUMNS}


def of(rows: Iterable[Expected], domain: str) -> list[Expected]:
    return [row for row in rows if row.domain == domain]


def check(block: Block, rows: list[Expected], reading: str) -> None:
    scored = sum(row.values[reading] is not None for row in rows)
    assert (block.samples, block.asked, block.scored) == (len(rows), len(rows), scored)
    assert block.coverage == pytest.approx(scored / len(rows), abs=1e-12)
    assert block.exclude == pytest.approx(exclude(rows, reading), abs=1e-9)
    assert block.floor == pytest.approx(floor(rows, reading), abs=1e-9)


def test_the_rows_are_as_many_as_the_benchmark_has_and_meet_every_kind(reproduction: Reproduction) -> None:
    expected = reproduction.expected["official"]
    assert Counter(row.domain for row in expected) == ROWS
    assert len(expected) == 2170
    messages = {json.dumps(row_messages(row)) for row in reproduction.rows}
    assert len(messages) == 2170, "attempts are counted by messages"
    assert {row.world.name for row in expected} == {kind.name for kind in WORLDS}
    for judged in reproduction.expected.values():
        kinds = {row.judging.name for row in judged if row.judging}
        assert kinds == {kind.name for kind in (*JUDGINGS, failing_world.QUOTES)}


@pytest.mark.parametrize("protocol", ["official", "builtin"])
def test_the_judge_is_shown_what_its_rules_make_of_each_reply(
    protocol: str, reproduction: Reproduction
) -> None:
    calls = [call for call in reproduction.calls[protocol] if call.model == "judge"]
    shown = {judge_key(texts.current, texts.reference): texts.prediction for texts in map(judge_texts, calls)}
    pairs = zip(reproduction.rows, reproduction.expected[protocol], strict=True)
    assert shown == {row_key(row): one.shown for row, one in pairs if one.shown is not None}


def test_everything_is_asked_as_often_as_the_rules_say(reproduction: Reproduction) -> None:
    expected, calls = reproduction.expected, reproduction.calls
    asked = {protocol: Counter(call.model for call in some) for protocol, some in calls.items()}
    worlds = [call for call in calls["official"] if call.model == "world"]
    certain = sum(failing_world.world(call.last_user).calls is not None for call in worlds)
    assert certain == sum(one.world.calls or 0 for one in expected["official"])
    assert asked["official"]["judge"] == sum(one.judging.calls for one in expected["official"] if one.judging)
    assert asked["builtin"] == {"judge": sum(builtin_calls(one) for one in expected["builtin"])}


def builtin_calls(one: Expected) -> int:
    if one.judging is None:
        return 0
    if one.values["strict"] is None and one.judging.failure in CURABLE:
        return 3
    return 2 if one.judging.first or one.judging.failure == "provider_error" else 1


@pytest.mark.parametrize(("protocol", "reading"), BOTH)
@pytest.mark.parametrize("domain", ROWS)
def test_a_domain(domain: str, protocol: str, reading: str, reproduction: Reproduction) -> None:
    rows = of(reproduction.expected[protocol], domain)
    found = reproduction.reading(protocol, reading)
    check(found.domains[domain], rows, reading)
    failures = Counter(row.failures[reading] for row in rows if row.values[reading] is None)
    stages = found.failures[domain].items()
    assert {(stage, kind): count for stage, kinds in stages for kind, count in kinds.items()} == failures


@pytest.mark.parametrize(("protocol", "reading"), BOTH)
def test_the_whole(protocol: str, reading: str, reproduction: Reproduction) -> None:
    expected, found = reproduction.expected[protocol], reproduction.reading(protocol, reading)
    check(found.micro, expected, reading)
    domains = [of(expected, domain) for domain in ROWS]
    assert found.macro_exclude == pytest.approx(macro(exclude(rows, reading) for rows in domains), abs=1e-9)
    assert found.macro_floor == pytest.approx(macro(floor(rows, reading) for rows in domains), abs=1e-9)


@pytest.mark.parametrize("protocol", ["official", "builtin"])
def test_the_printed_tables_show_these_numbers(protocol: str, reproduction: Reproduction) -> None:
    results, expected = reproduction.run.results, reproduction.expected[protocol]
    assert results is not None
    domains = [of(expected, domain) for domain in ROWS]
    judge = reproduction.judge(protocol)
    means = {
        reading: (
            macro(exclude(some, reading) for some in domains),
            macro(floor(some, reading) for some in domains),
            exclude(expected, reading),
            floor(expected, reading),
        )
        for reading in READINGS
    }
    for row in readings_table(results, judge).rows:
        assert printed(row[3:]) == pytest.approx([one["total"] for one in means[row[0]]], abs=HALF)
    own = means["official"][:2] if protocol == "official" else means["strict"][1::-1]
    (head,) = [row for row in judge_table(results, judge).rows if row[0] == "Overall, macro"]
    wanted = [own[0]["total"], own[1]["total"], *(own[0][name] for name in DIMENSIONS)]
    assert printed(head[3:]) == pytest.approx(wanted, abs=HALF)


def printed(cells: Sequence[str]) -> list[float]:
    assert all(len(cell.partition(".")[2]) == 2 for cell in cells), cells
    return [float(cell) for cell in cells]


@pytest.mark.parametrize("protocol", ["official", "builtin"])
def test_the_samples_that_differ_are_listed(protocol: str, reproduction: Reproduction) -> None:
    expected = reproduction.expected[protocol]
    differing = [one for one in expected if counted(one, "official") != counted(one, "strict")]
    judge = reproduction.judge(protocol)
    judges = [one.protocol for one in reproduction.run.record.judges]
    table = explain_run(reproduction.run.path)[judges.index(protocol)]
    assert judge.differing == len(table.rows) == len(differing) > 100
    empty = sum(one.world.official("text") is None for one in expected)
    failed = [one for one in expected if one.failures.get("strict", ("",))[0] == "prediction"]
    judged = sum(one.values["official"] is not None for one in failed)
    assert (judged > 100) is (protocol == "official")
    totals = column(expected, "official", "total")
    with_zeros = sum((total - 1) * 25 for total in totals) / (len(totals) + empty)
    without = exclude((one for one in expected if one not in failed), "official")["total"]
    (mean, floored), (same, other) = [numbers(note) for note in table.notes[1:3]]
    assert (mean, floored, other) == pytest.approx((score(totals), with_zeros, without), abs=HALF)
    assert same == mean
    assert table.notes[1].startswith(f"Replies without content: {empty}.")
    assert table.notes[2].startswith("Failed replies with content ") and f": {judged}. They" in table.notes[2]


def numbers(note: str) -> list[float]:
    return [float(found) for found in re.findall(r"\d+\.\d\d", note)]


def counted(one: Expected, reading: str) -> Values | None:
    """The values that enter a mean, or None where the row has no score."""
    values = one.values[reading]
    return None if values is None else {name: value for name, value in values.items() if value}
