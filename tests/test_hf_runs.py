"""Whole runs with `hf/` on a tiny random model: answers, failures, what is recorded, interruption, errors.

Slow: needs torch, transformers and lm-eval (`agentworldbench[hf]`). The model is made here; no hub is
asked. The engine alone is tested in `test_hf_engine.py`.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError, EndpointError
from agentworldbench.plan import open_samples
from agentworldbench.prompts import predict_messages
from agentworldbench.records import FailureKind, Prediction
from agentworldbench.run import Run, evaluate, load_run
from tests.helpers.awb_command import clean_environment
from tests.helpers.plain_transformers import ROOM, Engine
from tests.helpers.tiny_model import CHATML, NO_SYSTEM, make_model

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

SAMPLES = 20
DOMAINS = ("terminal", "swe")
"""Those of the bundled set with short prompts."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama."""
    return make_model(tmp_path_factory.mktemp("models") / "llama")


def run_of(folder: Path, output: Path, **more: Any) -> Run:
    options = {
        "temperature": 0.0,
        "max_tokens": ROOM,
        "min_output": 16,
        "data": "mini",
        "limit": "1-10",
        "tasks": DOMAINS,
    }
    return evaluate(model=f"hf/{folder}", output=output, **(options | more))


def answers(run: Run) -> Mapping[str, Prediction]:
    return {prediction.sample_id: prediction for prediction in run.predictions()}


@pytest.fixture(scope="module")
def unbroken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of 24 samples."""
    return run_of(folder, tmp_path_factory.mktemp("runs") / "unbroken", batch_size=8)


def test_a_run_has_the_answers_of_plain_transformers(unbroken: Run, folder: Path) -> None:
    reference = Engine(folder)
    samples = open_samples(make_config({"data": "mini", "limit": "1-10", "tasks": DOMAINS}))
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
        counted = int(re.findall(r"[\d,]+", one.failure.message if one.failure else "")[0].replace(",", ""))
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
        tasks=DOMAINS,
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
         min_output=16, limit="1-10", batch_size=4, tasks={DOMAINS!r})
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
    command = [
        sys.executable,
        "-m",
        "agentworldbench",
        "run",
        "--model",
        f"hf/{folder}",
        "--limit",
        "1-2",
        "-t",
        ",".join(DOMAINS),
    ]
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
