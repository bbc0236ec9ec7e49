"""`hf/` on tiny random models in float32: token for token what plain transformers makes, alone and in batches.

Slow: needs torch, transformers and lm-eval (`agentworldbench[hf]`). The models are made here, in
folders of their own; no hub is asked. What holds for any engine is tested without weights in
`test_in_process.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.models.generation import Decoding, Job
from agentworldbench.plan import open_samples
from agentworldbench.prompts import predict_messages
from agentworldbench.records import Message
from tests.helpers.plain_transformers import ROOM, Engine
from tests.helpers.tiny_model import make_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

SAMPLES = 20
GREEDY = Decoding(temperature=0.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama."""
    return make_model(tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    """The tiny Llama, loaded by both ways."""
    made = Engine(folder)
    yield made
    made.close()


@pytest.fixture(scope="module", params=["llama", "qwen3"])
def kind(request: pytest.FixtureRequest, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Each kind of model."""
    if request.param == "llama":
        return engine
    return Engine(make_model(tmp_path_factory.mktemp("models") / request.param, request.param))


def conversations() -> list[tuple[Message, ...]]:
    """The messages of the first samples of both domains of the bundled data."""
    samples = open_samples(
        make_config({"data": "mini", "limit": f"1-{SAMPLES // 2}", "tasks": ("terminal", "swe")})
    )
    return [predict_messages(samples.dataset.load(ref)) for ref in samples.refs]


def jobs_of(engine: Engine, decoding: Decoding = GREEDY, seeded: bool = False) -> list[Job]:
    """One job a conversation, encoded by the project."""
    return [
        Job(engine.loaded.template.encode(messages, {}).tokens, ROOM, decoding, index if seeded else None)
        for index, messages in enumerate(conversations())
    ]


# --- equal to plain transformers -------------------------------------------------------------


def test_prompts_are_those_of_plain_transformers(kind: Engine) -> None:
    for job, messages in zip(jobs_of(kind), conversations(), strict=True):
        assert list(job.prompt) == kind.prompt(messages)


@pytest.mark.parametrize("size", [1, 3, SAMPLES])
def test_greedy_answers_are_those_of_plain_transformers(kind: Engine, size: int) -> None:
    jobs = jobs_of(kind)
    made = [one for start in range(0, len(jobs), size) for one in kind.batch(jobs[start : start + size])]
    expected = [kind.plain(job.prompt) for job in jobs]
    assert [list(one.tokens) for one in made] == expected
    ended = [kind.ended(tokens) for tokens in expected]
    assert [one.finish for one in made] == ended
    assert len(made) >= 20
    assert set(ended) == {"length", "stop"}, "answers of both kinds are compared"


SAMPLED: dict[str, tuple[Decoding, dict[str, Any]]] = {
    "temperature": (Decoding(temperature=0.8), {"temperature": 0.8, "top_k": 0}),
    "all of them": (
        Decoding(temperature=1.3, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.2),
        {"temperature": 1.3, "top_k": 40, "top_p": 0.9, "min_p": 0.02, "repetition_penalty": 1.2}),
}  # fmt: skip


@pytest.mark.parametrize("case", SAMPLED)
@pytest.mark.parametrize("size", [1, 7])
def test_a_seed_gives_the_draw_of_plain_transformers_in_any_batch(
    engine: Engine, case: str, size: int
) -> None:
    decoding, plain = SAMPLED[case]
    jobs = jobs_of(engine, decoding, seeded=True)
    made = [one for start in range(0, len(jobs), size) for one in engine.batch(jobs[start : start + size])]
    expected = [engine.plain(job.prompt, seed=job.seed or 0, do_sample=True, **plain) for job in jobs]
    assert [list(one.tokens) for one in made] == expected


def test_a_repetition_penalty_counts_the_prompt_without_its_padding(engine: Engine) -> None:
    jobs = jobs_of(engine, Decoding(temperature=0.0, repetition_penalty=1.5))
    expected = [engine.plain(job.prompt, repetition_penalty=1.5) for job in jobs]
    assert [list(one.tokens) for one in engine.batch(jobs)] == expected


# --- rows of a batch -------------------------------------------------------------------------


def test_every_row_has_its_own_budget(engine: Engine) -> None:
    jobs = jobs_of(engine)
    whole = engine.batch(jobs)
    for index, job in enumerate(jobs):
        job.room = 1 + index
    for short, full, job in zip(engine.batch(jobs), whole, jobs, strict=True):
        assert short.tokens == full.tokens[: job.room]
        cut = len(full.tokens) > job.room or full.finish == "length"
        assert short.finish == ("length" if cut else "stop")


def test_a_stop_string_ends_its_row_and_no_other(engine: Engine) -> None:
    jobs = jobs_of(engine)
    whole = [engine.text(one.tokens) for one in engine.batch(jobs)]
    stop = next(text for text in whole if len(text) > 60)[20:24]
    for job in jobs:
        job.decoding = Decoding(temperature=0.0, stop=(stop, "never made of these"))
    stopped = engine.batch(jobs)
    assert {stop in text for text in whole} == {True, False}
    for one, text in zip(stopped, whole, strict=True):
        assert engine.loaded.template.read(one.tokens, stops=(stop,)) == text.partition(stop)[0]
        if stop in text:
            assert one.finish == "stop"
            assert len(one.tokens) < ROOM


def test_penalties_on_the_answer_keep_tokens_from_coming_again(engine: Engine) -> None:
    (made,) = engine.batch(jobs_of(engine, Decoding(temperature=0.0, presence_penalty=1e6))[:1])
    assert len(set(made.tokens)) == len(made.tokens) > 1


def test_a_batch_that_nobody_waits_for_ends_at_once(engine: Engine) -> None:
    jobs = jobs_of(engine)[:3]
    for job in jobs:
        job.room, job.cancelled = 100_000, True
    assert list(engine._engine.generate(jobs, list)) == []


def test_more_rows_fit_where_they_are_shorter(engine: Engine) -> None:
    assert engine._engine.fits(10) == 4
    assert engine._engine.fits(10**9) == 1
