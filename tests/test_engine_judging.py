"""Judging in the pipeline: overlap, shared limits, several judges, attempts at a readable verdict.

Models inside the process answer, so nothing waits; the data is a folder in the official layout.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.records import DIMENSIONS, Completion, Request, Verdict
from agentworldbench.store import Store, locked_store
from tests.helpers.asking import TASKS
from tests.helpers.engine_work import GOOD, judge_of, verdict, work, world
from tests.helpers.fake_model import USAGE, FakeModel, VirtualTime, fails, says
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import verdict_text

TWO = ("terminal", "android")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data")
    make_official_folder(folder, domains=TWO, trajectories=4, observation_chars=80)
    tasks = {domain: TASKS[domain] for domain in TWO}
    return open_dataset({domain: folder / task.data_file for domain, task in tasks.items()}, tasks)


@pytest.fixture(name="store")
def run_directory(tmp_path: Path) -> Iterator[Store]:
    with locked_store(tmp_path / "run") as store:
        yield store


def test_judging_overlaps_with_predicting(dataset: Dataset, store: Store) -> None:
    judged: list[asyncio.Event] = []

    async def waits_for_a_judge(request: Request, number: int) -> Completion:
        if not judged:
            judged.append(asyncio.Event())
        if number > 6:
            await judged[0].wait()
        return world(request, number)

    def judging(request: Request, number: int) -> Completion:
        judged[0].set()
        return verdict(request, number)

    model = FakeModel(lambda request, number: waits_for_a_judge(request, number), endpoint="model")
    work(dataset, store, model, judge_of(FakeModel(judging, endpoint="judge")), max_connections=3)
    assert len(store.verdicts) == len(store.predictions) == len(dataset.refs)


@pytest.mark.parametrize(("judge_endpoint", "most"), [("here", 3), ("there", 6)])
def test_model_and_judge_share_the_limit_of_one_endpoint(
    judge_endpoint: str, most: int, dataset: Dataset, store: Store
) -> None:
    in_flight = Counter[str]()
    seen: list[int] = []

    def counting(answer: Callable[[Request, int], Completion]) -> Callable[[Request, int], Any]:
        async def counted(request: Request, number: int) -> Completion:
            in_flight["all"] += 1
            seen.append(in_flight["all"])
            for _ in range(20):
                await asyncio.sleep(0)
            in_flight["all"] -= 1
            return answer(request, number)

        return counted

    model = FakeModel(counting(world), endpoint="here")
    judge = FakeModel(counting(verdict), endpoint=judge_endpoint)
    work(dataset, store, model, judge_of(judge), max_connections=3)
    assert max(seen) == most


def test_several_judges_each_give_their_verdicts(dataset: Dataset, store: Store) -> None:
    def harsh(request: Request, number: int) -> Completion:
        return says(verdict_text(dict.fromkeys(DIMENSIONS, 1)))

    judges = (judge_of(FakeModel(verdict, name="kind")), judge_of(FakeModel(harsh, name="harsh")))
    progress = work(dataset, store, FakeModel(world), *judges)
    assert len(store.verdicts) == 2 * len(dataset.refs) == progress.verdicts.done
    for judge, score in zip(judges, (4, 1), strict=True):
        stored = [record for record in store.verdicts if record.judge == judge.digest()]
        assert len(stored) == len(dataset.refs)
        assert {value for record in stored for value in (record.scores or {}).values()} == {score}


def test_each_judge_has_the_connections_of_its_own_endpoint(dataset: Dataset, store: Store) -> None:
    async def slow(request: Request, number: int) -> Completion:
        for _ in range(40):
            await asyncio.sleep(0)
        return verdict(request, number)

    one, other = (FakeModel(slow, name=name, endpoint=name) for name in ("one", "other"))
    work(dataset, store, FakeModel(world), judge_of(one), judge_of(other), max_connections=3)
    assert (one.max_in_flight, other.max_in_flight) == (3, 3)


def judged(dataset: Dataset, store: Store, *replies: Any, attempts: int = 3) -> tuple[Verdict, FakeModel]:
    """The verdict of one sample whose judge gives `replies` one after another."""
    judge = FakeModel(lambda request, number: replies[min(number, len(replies)) - 1], name="judge")
    work(dataset, store, FakeModel(world), judge_of(judge, attempts), refs=dataset.refs[:1], max_retries=2)
    (stored,) = store.verdicts
    return stored, judge


def test_a_judge_is_asked_again_until_its_reply_holds_a_verdict(dataset: Dataset, store: Store) -> None:
    stored, judge = judged(dataset, store, says("hm"), says(None), says(verdict_text(GOOD)))
    assert (stored.scores, stored.failure) == (GOOD, None)
    assert [(one.outcome, one.reply) for one in stored.attempts] == [("judge_unparsed", "hm"), ("empty", None), ("ok", None)]  # fmt: skip
    assert stored.usage.prompt_tokens == 30, "what the earlier replies cost counts"
    assert stored.cost_usd == 0.75
    assert len({request.messages for request in judge.requests}) == 1, "every attempt asks the same"


LOST = fails("empty", usage=USAGE, cost_usd=0.5, reply='{"choices": []}')
"""A reply whose tokens arrive as no text, as `models/chat.py` hands it on."""


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_reply_that_lost_its_text_is_an_attempt_like_any_other(
    lost: int, dataset: Dataset, store: Store
) -> None:
    replies = [*[LOST] * lost, *[says("hm")] * (2 - lost), says(verdict_text(GOOD))]
    stored, judge = judged(dataset, store, *replies)
    outcomes = [*["empty"] * lost, *["judge_unparsed"] * (2 - lost), *["ok"] * (lost < 3)]
    assert [attempt.outcome for attempt in stored.attempts] == outcomes
    found = (stored.scores, stored.failure and stored.failure.kind)
    assert found == ((None, "empty") if lost == 3 else (GOOD, None))
    assert len(judge.requests) == 3
    assert stored.usage == USAGE + USAGE + USAGE
    assert stored.cost_usd == 0.5 * lost + 0.25 * (3 - lost)


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_replies_that_lose_their_text_end_with_the_attempts(
    attempts: int, dataset: Dataset, store: Store
) -> None:
    stored, judge = judged(dataset, store, LOST, attempts=attempts)
    assert stored.failure is not None
    assert stored.failure.kind == "empty"
    assert len(judge.requests) == len(stored.attempts) == attempts
    assert {attempt.reply for attempt in stored.attempts} == {'{"choices": []}'}


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_judge_that_never_gives_a_verdict_is_a_typed_failure(
    attempts: int, dataset: Dataset, store: Store
) -> None:
    replies = [says(f"reply {number}") for number in range(1, attempts + 1)]
    stored, judge = judged(dataset, store, *replies, attempts=attempts)
    assert stored.scores is None
    assert stored.failure is not None
    assert stored.failure.kind == "judge_unparsed"
    assert stored.reply == f"reply {attempts}"
    earlier = [attempt.reply for attempt in stored.attempts if attempt.reply is not None]
    assert earlier == [f"reply {number}" for number in range(1, attempts)]
    assert len(judge.requests) == attempts


def test_transport_failures_of_a_judge_do_not_use_up_its_attempts(
    dataset: Dataset, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    VirtualTime(monkeypatch)
    down = fails("provider_error", status=503)
    stored, _ = judged(dataset, store, down, says("hm"), down, down, says(verdict_text(GOOD)), attempts=2)
    assert stored.scores == GOOD
    kinds = [attempt.outcome for attempt in stored.attempts]
    assert kinds == ["provider_error", "judge_unparsed", "provider_error", "provider_error", "ok"]


ONCE = {"content_filter": says(None, finish_reason="content_filter"), "bad_request": fails("bad_request")}


@pytest.mark.parametrize("kind", ONCE)
def test_what_asking_again_cannot_cure_is_asked_once(kind: str, dataset: Dataset, store: Store) -> None:
    stored, judge = judged(dataset, store, ONCE[kind])
    assert stored.failure is not None
    assert stored.failure.kind == kind
    assert len(judge.requests) == 1


def test_a_verdict_with_half_a_surrogate_pair_can_be_stored(dataset: Dataset, store: Store) -> None:
    reply = verdict_text(GOOD).replace("keeps the layout", "keeps \\ud835 the layout")
    stored, _ = judged(dataset, store, says(reply))
    assert stored.strengths == ("keeps � the layout",)


@pytest.mark.parametrize(
    ("as_json", "tagged", "notes"),
    [
        (False, True, ()),
        (False, False, ("verdict found by: no tag",)),
        (True, False, ()),
        (True, True, ("verdict found by: tag",)),
    ],
)
def test_how_a_verdict_was_found_is_noted_where_it_is_odd(
    as_json: bool, tagged: bool, notes: tuple[str, ...], dataset: Dataset, store: Store
) -> None:
    text = verdict_text(dict.fromkeys(DIMENSIONS, 4))
    bare = re.sub(r".*```json\n(.*)\n```.*", r"\1", text, flags=re.DOTALL)
    reply = says(text if tagged else bare)
    judge = replace(judge_of(FakeModel(lambda request, number: reply, endpoint="judge")), as_json=as_json)
    work(dataset, store, FakeModel(world), judge)
    found = {tuple(note for note in record.notes if "verdict" in note) for record in store.verdicts}
    assert found == {notes}
