"""`hf/` on tiny random models in float32: token for token what plain transformers makes, alone and in batches.

Slow: needs torch, transformers and lm-eval (`agentworldbench[hf]`). The models are made here, in
folders of their own; no hub is asked. What holds for any engine is tested without weights in
`test_in_process.py`.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError, EndpointError
from agentworldbench.models.generation import Decoding, EngineSettings, Generated, Job, Loaded
from agentworldbench.models.hf_engine import HfEngine
from agentworldbench.plan import open_samples
from agentworldbench.prompts import predict_messages
from agentworldbench.records import FailureKind, Message, Prediction
from agentworldbench.run import Run, evaluate, load_run
from tests.helpers.awb_command import clean_environment
from tests.helpers.tiny_model import CHATML, NO_SYSTEM, make_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

ROOM = 24
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


class Engine:
    """An `HfEngine`, and the same folder in plain transformers."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._engine = HfEngine(EngineSettings("hf/tiny", str(folder)))
        self.loaded: Loaded = self._engine.load()
        self._model = AutoModelForCausalLM.from_pretrained(folder)
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._made: dict[str, list[int]] = {}
        self.close = self._engine.close

    def batch(self, jobs: Sequence[Job]) -> list[Generated]:
        """Answers of one batch, in the order of the jobs."""
        answers = dict(self._engine.generate(jobs, list))
        assert all(isinstance(answer, Generated) for answer in answers.values())
        return [answers[job] for job in jobs]  # type: ignore[misc]

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """Prompt tokens as plain transformers makes them."""
        plain = [{"role": message.role, "content": message.content} for message in messages]
        encoded = self._tokenizer.apply_chat_template(plain, add_generation_prompt=True, return_dict=True)
        tokens: list[int] = encoded["input_ids"]
        return tokens

    def plain(self, prompt: Sequence[int], room: int = ROOM, seed: int = 0, **more: Any) -> list[int]:
        """Answer tokens as plain transformers generates them, one prompt at a time."""
        import torch

        key = f"{list(prompt)} {room} {seed} {more}"
        if key in self._made:
            return self._made[key]
        torch.manual_seed(seed)
        made = self._model.generate(
            torch.tensor([list(prompt)]), max_new_tokens=room, **({"do_sample": False} | more)
        )
        tokens: list[int] = made[0, len(prompt) :].tolist()
        self._made[key] = tokens
        return tokens

    def text(self, tokens: Sequence[int]) -> str:
        """What `tokens` are read as."""
        return self.loaded.template.read(tokens)


def conversations() -> list[tuple[Message, ...]]:
    """The messages of the first samples of both domains of the bundled data."""
    samples = open_samples(make_config({"data": "mini", "limit": f"1-{SAMPLES // 2}"}))
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
    ended = ["length" if len(tokens) == ROOM else "stop" for tokens in expected]
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


# --- whole runs ------------------------------------------------------------------------------


def run_of(folder: Path, output: Path, **more: Any) -> Run:
    options = {"temperature": 0.0, "max_tokens": ROOM, "min_output": 16, "data": "mini", "limit": "1-10"}
    return evaluate(model=f"hf/{folder}", output=output, **(options | more))


def answers(run: Run) -> Mapping[str, Prediction]:
    return {prediction.sample_id: prediction for prediction in run.predictions()}


@pytest.fixture(scope="module")
def unbroken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 24 samples."""
    return run_of(folder, tmp_path_factory.mktemp("runs") / "unbroken", batch_size=8)


def test_a_run_has_the_answers_of_plain_transformers(unbroken: Run, folder: Path) -> None:
    reference = Engine(folder)
    samples = open_samples(make_config({"data": "mini", "limit": "1-10"}))
    made = answers(unbroken)
    assert len(made) == len(samples.refs) == SAMPLES
    for ref in samples.refs:
        prompt = reference.prompt(predict_messages(samples.dataset.load(ref)))
        tokens = reference.plain(prompt)
        prediction = made[ref.id]
        assert prediction.text == reference.text(tokens)
        assert prediction.usage.prompt_tokens == len(prompt)
        assert prediction.usage.completion_tokens == len(tokens)
    reference.close()


def test_a_run_records_what_was_loaded(unbroken: Run) -> None:
    facts = unbroken.record.sessions[0].model_facts
    assert facts is not None
    assert (facts.engine, facts.dtype, facts.context) == ("transformers", "float32", 8192)
    assert facts.context_from == "the model's configuration"
    assert facts.prompts_counted
    assert facts.chat_template_sha256
    assert unbroken.record.predict.model["backend"] == "hf"


def test_an_over_long_prompt_is_context_overflow_and_nothing_is_cut(folder: Path, tmp_path: Path) -> None:
    run = run_of(folder, tmp_path / "run", model_args={"max_length": 1800})
    made = answers(run).values()
    over = [one for one in made if one.failure and one.failure.kind is FailureKind.CONTEXT_OVERFLOW]
    sent = [one for one in made if one not in over]
    assert over and sent
    for one in over:
        counted = int(re.findall(r"\d+", one.failure.message if one.failure else "")[0])
        assert counted > 1800 - 64 - 16
        assert one.text is None
    for one in sent:
        assert one.prompt_tokens_from == "counted"
        assert one.usage.prompt_tokens == one.prompt_tokens
        assert (one.prompt_tokens or 0) + (one.max_tokens or 0) <= 1800 - 64


def test_a_template_that_opens_the_reasoning(folder: Path, tmp_path: Path) -> None:
    """An answer cut inside it is no answer, although the opener stands in the prompt."""
    run = run_of(folder, tmp_path / "run", limit="1-2", model_args={"enable_thinking": True})
    for prediction in run.predictions():
        assert prediction.text is not None
        assert prediction.text.startswith("<think>\n")
        assert prediction.failure is not None
        assert prediction.observation is None


def test_a_template_of_the_user_and_one_that_refuses(tmp_path: Path) -> None:
    base = make_model(tmp_path / "base", template=None)
    with pytest.raises(ConfigError, match="-M chat_template=FILE"):
        run_of(base, tmp_path / "none")
    for name, text in {"chatml": CHATML, "refuses": NO_SYSTEM + CHATML}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    good = run_of(
        base, tmp_path / "good", limit="1-2", model_args={"chat_template": str(tmp_path / "chatml")}
    )
    assert all(one.usage.completion_tokens for one in good.predictions())
    bad = run_of(base, tmp_path / "bad", limit="1-2", model_args={"chat_template": str(tmp_path / "refuses")})
    for one in bad.predictions():
        assert one.failure is not None
        assert one.failure.kind is FailureKind.BAD_REQUEST
        assert "no system role here" in one.failure.message


def test_a_model_may_be_the_judge(folder: Path, tmp_path: Path) -> None:
    run = evaluate(
        model="baseline/copy-last",
        judge=f"hf/{folder}",
        judge_max_tokens=520,
        judge_attempts=1,
        judge_json_schema=True,
        limit="1-1",
        output=tmp_path / "run",
    )
    verdicts = list(run.verdicts())
    assert len(verdicts) == 2
    for verdict in verdicts:
        assert verdict.usage.completion_tokens
        assert verdict.adapted == {"response_format": None}
        assert verdict.failure is not None, "random weights write no verdict"


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an argument that nobody knows": ({"dtyp": "float32"}, ConfigError, "unknown argument 'dtyp'"),
    "a device that is not there": ({"device": "cuda"}, ConfigError, "no such device"),
    "a type that is none": ({"dtype": "float33"}, ConfigError, "float33"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_loaded_says_why(case: str, folder: Path, tmp_path: Path) -> None:
    arguments, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        run_of(folder, tmp_path / "run", model_args=arguments)


def test_a_repository_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(EndpointError, match="not in the local cache"):
        evaluate(model="hf/agentworldbench/no-such-model", output=tmp_path / "run")


ENDED_BY = {"killed": signal.SIGKILL, "interrupted": signal.SIGINT}
PROGRAM = f"""
import os, sys
from agentworldbench.run import evaluate

def watch(progress):
    if progress.predictions.done >= 4:
        os.kill(os.getpid(), int(sys.argv[3]))

evaluate(model="hf/" + sys.argv[1], output=sys.argv[2], watch=watch, temperature=0.0, max_tokens={ROOM},
         min_output=16, limit="1-10", batch_size=4)
"""


@pytest.mark.parametrize("how", ENDED_BY)
def test_a_run_that_was_ended_goes_on_to_the_same_answers(
    how: str, folder: Path, unbroken: Run, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / "run"), str(int(ENDED_BY[how]))]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env=clean_environment(), check=False
    )
    assert ended.returncode != 0
    assert how == "killed" or "Interrupted" in ended.stderr, ended.stderr
    before = answers(Run(tmp_path / "run", unbroken.record, None))
    assert 4 <= len(before) < SAMPLES
    run = run_of(folder, tmp_path / "run", batch_size=4)
    assert len(run.record.sessions) == 2
    expected = {name: one.text for name, one in answers(unbroken).items()}
    assert {name: one.text for name, one in answers(load_run(run.path)).items()} == expected


def test_nothing_of_the_libraries_stands_on_the_terminal(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agentworldbench", "run", "--model", f"hf/{folder}", "--limit", "1-2"]
    command += [
        "--max-tokens",
        "8",
        "--min-output",
        "8",
        "--output",
        str(tmp_path / "run"),
        "--display",
        "none",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, env=clean_environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"it/s|Warning:|lm[_-]eval|transformers|torch", done.stdout + done.stderr)
