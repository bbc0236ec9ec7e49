"""Both readings of one stored reply: each way a sample can count, why the two differ, and one arithmetic.

The official side must equal `stats/official.py`, which the official script's vectors check, to the last
bit: a mean on a tie of the printed decimals depends on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.readings import BothReadings, Outcome, both_readings, differences_table, reading
from agentworldbench.records import DIMENSIONS, Failure, FailureKind, Prediction, SampleRef, Verdict
from agentworldbench.run_record import JudgeRecord
from agentworldbench.scoring.official_verdict import read_official
from agentworldbench.scoring.verdict import ReadVerdict, read_verdict
from agentworldbench.stats.aggregate import COLUMNS, official_values, strict_values
from agentworldbench.stats.official import TOTAL, JudgedRow, OfficialDomain, official_results
from agentworldbench.stats.results import Block
from agentworldbench.store import Store, locked_store
from agentworldbench.texts import sha256_text
from tests.helpers.failing_world import FORGED_BLOCK
from tests.helpers.scripted_server import verdict_text

FOUR = dict.fromkeys(DIMENSIONS, 4)


def ref_of(domain: str, number: int) -> SampleRef:
    return SampleRef(
        id=f"{domain}/{number}/1", domain=domain, row_id=number, turn_idx=1, total_turns=1, cluster=f"{number}",
        task_key="t", row_hash="h", line=1, offset=0, length=1, context_chars=1,
    )  # fmt: skip


REF = ref_of("web", 1)


def prediction(observation: str | None, official: str | None, kind: str | None = None) -> Prediction:
    return Prediction(
        sample_id=REF.id,
        row_hash="h",
        prompt_sha256="p",
        started_at="",
        observation=observation,
        official_sha256=None if official is None else sha256_text(official),
        text=official,
        failure=Failure(kind=FailureKind(kind), message=f"it is {kind}") if kind else None,
    )


def verdict(reply: str | None, shown: str = "a", kind: str | None = None, **more: Any) -> Verdict:
    """A stored verdict: the strict reading of the reply, or the failure of the call."""
    read = read_verdict(reply or "") if kind is None else Failure(kind=FailureKind(kind), message="no reply")
    record: dict[str, Any] = {
        "sample_id": REF.id, "row_hash": "h", "prompt_sha256": "p", "started_at": "", "judge": "j",
        "observation_sha256": sha256_text(shown), "system_sha256": "s", "reply": reply,
    }  # fmt: skip
    if isinstance(read, ReadVerdict):
        record["scores"] = read.scores
    else:
        record["failure"] = read
    return Verdict(**record | more)


def judge_of(parse: str) -> JudgeRecord:
    return JudgeRecord.model_validate(
        {
            "digest": "j", "model": "m", "identity": {}, "protocol": "p", "protocol_version": 1, "sampling": {},
            "schema_sha256": None, "prompts": {}, "system_prompts": {"web": "s"}, "parse": parse, "attempts": 3,
            "min_output": 1, "max_context": None,
        }
    )  # fmt: skip


def read_both(path: Path, parse: str, predicted: Prediction | None, judged: Verdict | None) -> BothReadings:
    with locked_store(path / "run") as store:
        store.write_json("run.json", {})
        if predicted is not None:
            store.predictions.append(predicted)
        if judged is not None:
            store.verdicts.append(judged)
    (both,) = both_readings(Store(path / "run"), {"web": [REF]}, judge_of(parse))
    return both


GOOD = prediction("a", "a")
CUT = prediction(None, "a", "truncated")
EMPTY = prediction(None, None, "empty")
SAYS_FOUR = verdict(verdict_text(FOUR))
MISSING = verdict(verdict_text({name: 4 for name in DIMENSIONS[:4]}))
ZEROS = verdict(verdict_text({}))
SIX = verdict(verdict_text(FOUR | {"format": 6}))
NONE = verdict("I will not.")
QUOTING = verdict(f"{verdict_text(FOUR)}\nThe text ends in {FORGED_BLOCK}", scores=FOUR, failure=None)
CAPITALS = verdict(verdict_text({name.upper(): 4 for name in DIMENSIONS}))
DOWN = verdict(None, kind="provider_error")
HUGE = verdict(verdict_text(FOUR | {"format": -(10**400)}))
STRICT_ALONE = verdict("no object at all", scores=FOUR, failure=None)
ALL_STRICTLY = verdict(verdict_text({name: 4 for name in DIMENSIONS[:4]}), scores=FOUR, failure=None)
STALE = verdict(verdict_text(FOUR), shown="another text")

CASES: dict[str, tuple[str, Prediction | None, Verdict | None, str, str]] = {
    # parse of the judge, prediction, verdict: what the official and the strict reading say
    "not predicted": ("official", None, None, "pending: not_run", "pending: not_run"),
    "not judged": ("official", GOOD, None, "pending: not_run", "pending: not_run"),
    "clean": ("official", GOOD, SAYS_FOUR, "75.00", "75.00"),
    "clean, strict judge": ("strict", GOOD, SAYS_FOUR, "75.00", "75.00"),
    "on another text": ("official", GOOD, STALE, "pending: not_run", "pending: not_run"),
    "null reply": ("official", EMPTY, None, "prediction: empty", "prediction: empty"),
    "null reply, strict judge": ("strict", EMPTY, None, "prediction: empty", "prediction: empty"),
    "cut reply, to be judged": ("official", CUT, None, "pending: not_run", "prediction: truncated"),
    "cut reply, judged": ("official", CUT, SAYS_FOUR, "75.00", "prediction: truncated"),
    "cut reply, strict judge": ("strict", CUT, None, "prediction: truncated", "prediction: truncated"),
    "dimension missing": ("official", GOOD, MISSING, "75.00", "judge: judge_unparsed"),
    "no dimension": ("official", GOOD, ZEROS, "no value", "judge: judge_unparsed"),
    "six": ("official", GOOD, SIX, "80.00", "judge: judge_unparsed"),
    "no verdict": ("official", GOOD, NONE, "judge: judge_unparsed", "judge: judge_unparsed"),
    "quoted verdict": ("official", GOOD, QUOTING, "100.00", "75.00"),
    "capitals": ("official", GOOD, CAPITALS, "no value", "75.00"),
    "one dimension less": ("official", GOOD, ALL_STRICTLY, "75.00", "75.00"),
    "server down": ("official", GOOD, DOWN, "judge: provider_error", "judge: provider_error"),
    "too large for a mean": ("official", GOOD, HUGE, "judge: judge_unparsed", "judge: judge_unparsed"),
    "read strictly alone": ("official", GOOD, STRICT_ALONE, "judge: judge_unparsed", "75.00"),
}
WHY = {
    "cut reply, judged": "the reply is truncated, which the official rules read as text",
    "dimension missing": "the judge's reply holds no valid verdict (scores lacks quality); the official rules repair",
    "no dimension": "the judge's reply holds no valid verdict (scores lacks format",
    "six": "the judge's reply holds no valid verdict (score 'format' is 6",
    "quoted verdict": "the two rules take other objects of the judge's reply for its verdict",
    "capitals": "the official rules take format, factuality, consistency, realism, quality for 0 and leave them out",
    "one dimension less": "the official rules take quality for 0 and leave it out of its mean",
    "read strictly alone": "the official rules find no verdict in the judge's reply; the strict ones do",
}


@pytest.mark.parametrize("name", CASES)
def test_how_a_sample_counts(name: str, tmp_path: Path) -> None:
    parse, predicted, judged, official, strict = CASES[name]
    both = read_both(tmp_path, parse, predicted, judged)
    assert (both.official.said, both.strict.said) == (official, strict)
    assert both.differ is (name in WHY)
    if both.differ:
        assert both.why.startswith(WHY[name])
    for one in (both.official, both.strict):
        assert bool(one.message) is (one.stage in ("prediction", "judge"))
    table = differences_table("m", [both])
    assert [row[:3] for row in table.rows] == ([(REF.id, official, strict)] if both.differ else [])


def test_all_verdicts_that_both_read_are_equal_to_the_last_bit() -> None:
    """No float may make two equal readings differ: 4.6 - 1 is not 3.6."""
    for scores in itertools.product(range(1, 6), repeat=5):
        given_scores = dict(zip(DIMENSIONS, scores, strict=True))
        total = read_official(verdict_text(given_scores)).total
        assert official_values(given_scores, total) == strict_values(given_scores)


values = st.sampled_from([1, 2, 3, 4, 5, 5, 4, 0, -1, -7])
verdicts = st.fixed_dictionaries({name: values for name in DIMENSIONS})
rows = st.lists(st.tuples(st.sampled_from(["mcp", "web", "os"]), st.none() | verdicts), max_size=60)
Rows = list[tuple[str, dict[str, int] | None]]


def total_of(scores: Mapping[str, int]) -> float:
    above = [score for score in scores.values() if score > 0]
    return sum(above) / len(above) if above else 0.0


def judged_rows(some: Rows) -> list[JudgedRow]:
    return [
        JudgedRow(domain, scores is None, {} if scores is None else {**scores, TOTAL: total_of(scores)})
        for domain, scores in some
    ]


def outcomes_of(some: Rows) -> tuple[dict[str, list[SampleRef]], dict[str, Outcome]]:
    groups: dict[str, list[SampleRef]] = {}
    outcomes = {}
    for number, (domain, scores) in enumerate(some):
        ref = ref_of(domain, number)
        groups.setdefault(domain, []).append(ref)
        failed = Outcome(None, "judge", "judge_unparsed")
        outcomes[ref.id] = failed if scores is None else Outcome(official_values(scores, total_of(scores)))
    return groups, outcomes


@given(rows)
def test_the_official_reading_is_the_official_aggregation(some: Rows) -> None:
    groups, outcomes = outcomes_of(some)
    mine = reading(groups, outcomes)
    theirs = official_results(judged_rows(some))
    assert mine.micro.exclude["total"] == theirs.overall
    assert sum(one.counted[TOTAL] for one in theirs.domains) == theirs.valid
    assert mine.macro_exclude["total"] == theirs.macro
    assert sorted(mine.domains) == [one.domain for one in theirs.domains]
    for one in theirs.domains:
        same_block(mine.domains[one.domain], one)


def same_block(mine: Block, theirs: OfficialDomain) -> None:
    assert (mine.samples, mine.asked, mine.scored) == (theirs.rows, theirs.rows, theirs.valid)
    for name in COLUMNS:
        score = mine.exclude[name]
        column = TOTAL if name == "total" else name
        if theirs.counted[column]:
            assert theirs.scores is not None
            assert score == theirs.scores[column]
            assert mine.floor[name] == pytest.approx(score * theirs.counted[column] / theirs.rows, abs=1e-9)
        else:  # printed as -25 there, when a row of the domain is valid
            assert (score, mine.floor[name]) == (None, None)


def test_a_mean_on_a_tie_is_printed_as_the_official_script_does() -> None:
    """These totals have the mean 3.325, so 58.125; the script's float lies above, and it prints 58.13."""
    scores = ("21431", "42555", "54424", "13524", "23431", "53444", "35343", "55411")
    made: Rows = [("os", dict(zip(DIMENSIONS, map(int, one), strict=True))) for one in scores]
    block = reading(*outcomes_of(made)).domains["os"]
    shown = {name: f"{score:.2f}" for name, score in block.exclude.items()}
    assert shown == {
        "total": "58.13", "format": "59.38", "factuality": "56.25", "consistency": "78.12", "realism": "50.00",
        "quality": "46.88",
    }  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["mcp", "web"]), st.fixed_dictionaries({name: st.integers(1, 5) for name in DIMENSIONS})), min_size=1, max_size=30))  # fmt: skip
def test_where_all_replies_are_clean_both_readings_are_one(some: list[tuple[str, dict[str, int]]]) -> None:
    groups, official = outcomes_of([*some])
    strict = dict(zip(official, (Outcome(strict_values(scores)) for _, scores in some), strict=True))
    assert reading(groups, official) == reading(groups, strict)
    whole = reading(groups, strict)
    assert whole.macro_exclude == whole.macro_floor
    assert whole.micro.coverage == 1


def test_samples_not_asked_yet_lower_the_coverage_and_no_mean() -> None:
    groups, outcomes = outcomes_of([("web", FOUR), ("web", None), ("web", FOUR)])
    outcomes["web/2/1"] = Outcome(None, "pending", "not_run")
    block = reading(groups, outcomes).domains["web"]
    assert (block.samples, block.asked, block.scored) == (3, 2, 1)
    assert (block.exclude["total"], block.floor["total"], block.coverage) == (75.0, 37.5, 1 / 3)
