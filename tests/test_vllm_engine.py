"""How `vllm/` drives vLLM: requests join, answers leave when they are finished, nothing runs for nobody.

vLLM and lm-eval are stood in for by a few scripted classes; what the real ones answer is compared by
`tools/compare_engines.py` (docs/engines.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from agentworldbench.models.generation import Decoding, EngineFailed, EngineSettings, Generated, Job
from agentworldbench.models.vllm_engine import VllmEngine
from tests.helpers.fake_engine import END, FakeTokenizer

Answers = list[tuple[Job, Generated | EngineFailed]]


class Core:
    """vLLM's `LLMEngine`: each step makes one token for every request; it ends after as many as asked."""

    def __init__(self) -> None:
        self.model_config = SimpleNamespace(
            hf_config=SimpleNamespace(_commit_hash="abc"),
            quantization=None,
            dtype="torch.float32",
            get_diff_sampling_param=lambda: {"temperature": 0.7, "top_k": 20, "max_tokens": 5},
            try_get_generation_config=lambda: {"eos_token_id": [END, 4]},
        )
        self.running: dict[str, Any] = {}
        self.made: dict[str, int] = {}
        self.aborted: list[str] = []
        self.steps = 0
        self.finish = "length"

    def add_request(self, number: str, prompt: dict[str, Any], parameters: Any, lora_request: Any) -> None:
        """Takes prompts of at most ten tokens."""
        if len(prompt["prompt_token_ids"]) > 10:
            raise ValueError("The decoder prompt is too long\nfor this model")
        self.running[number], self.made[number] = parameters, 0

    def abort_request(self, numbers: list[str]) -> None:
        """Ends requests without an answer."""
        self.aborted += numbers
        for number in numbers:
            del self.running[number]

    def step(self) -> list[Any]:
        """One more token each."""
        self.steps += 1
        outputs = []
        for number, parameters in list(self.running.items()):
            self.made[number] += 1
            finished = self.made[number] == parameters.given["max_tokens"]
            if finished:
                del self.running[number]
            answer = SimpleNamespace(token_ids=[65] * self.made[number], finish_reason=self.finish)
            outputs.append(SimpleNamespace(request_id=number, finished=finished, outputs=[answer]))
        return outputs


class Parameters:
    """Any class of vLLM's that holds what it is given."""

    def __init__(self, **given: Any) -> None:
        self.given = given


class Held:
    """lm-eval's `VLLM`, which notes its arguments."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.model = SimpleNamespace(llm_engine=Core())
        self.tokenizer = FakeTokenizer()
        self.tokenizer.eos_token_id = END  # type: ignore[attr-defined]
        self.hf_chat_template = "plain"
        self.lora_request = None
        self.max_length = 4096


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules in the place of vLLM and lm-eval."""

    def module(name: str, **names: Any) -> None:
        made = ModuleType(name)
        vars(made).update(names)
        monkeypatch.setitem(sys.modules, name, made)

    kinds = SimpleNamespace(FINAL_ONLY="final")
    module("lm_eval")
    module("lm_eval.models")
    module("lm_eval.models.vllm_causallms", VLLM=Held)
    sampling = {
        "SamplingParams": Parameters,
        "RequestOutputKind": kinds,
        "StructuredOutputsParams": Parameters,
    }
    module("vllm.sampling_params", **sampling)
    module("vllm", SamplingParams=Parameters, TokensPrompt=dict, __version__="0.0", __path__=[],
           sampling_params=sys.modules["vllm.sampling_params"])  # fmt: skip
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_LOGGING_LEVEL", "VLLM_LOGGING_STREAM"):
        monkeypatch.setenv(name, "of the test")


@pytest.fixture
def engine(libraries: None) -> VllmEngine:
    """A loaded engine."""
    made = VllmEngine(EngineSettings("vllm/x", "x"))
    made.load()
    return made


def core_of(engine: VllmEngine) -> Core:
    core: Core = engine._held.model.llm_engine
    return core


def job(room: int, prompt: int = 3, **decoding: Any) -> Job:
    return Job([1] * prompt, room, Decoding(**decoding))


def nothing() -> Iterable[Job]:
    return ()


def test_each_answer_leaves_when_it_is_finished(engine: VllmEngine) -> None:
    jobs = [job(3), job(1), job(2)]
    answers = list(engine.generate(jobs, nothing))
    assert [one for one, _ in answers] == [jobs[1], jobs[2], jobs[0]]
    assert [made for _, made in answers] == [Generated((65,) * n, "length") for n in (1, 2, 3)]
    assert core_of(engine).steps == 3


def test_what_comes_in_joins(engine: VllmEngine) -> None:
    late = job(1)
    coming: Iterator[list[Job]] = iter([[], [late], [], [], []])
    first = job(4)
    answers = list(engine.generate([first], lambda: next(coming)))
    assert [one for one, _ in answers] == [late, first]
    assert core_of(engine).steps == 4


def test_what_nobody_waits_for_is_aborted_at_the_next_step(engine: VllmEngine) -> None:
    jobs = [job(100_000), job(2)]

    def more() -> Iterable[Job]:
        jobs[0].cancelled = True
        return ()

    answers = list(engine.generate(jobs, more))
    assert [one for one, _ in answers] == [jobs[1]]
    assert core_of(engine).aborted == ["0"]
    assert core_of(engine).steps == 2
    assert not core_of(engine).running


def test_an_engine_that_is_left_in_the_middle_runs_nothing_on(engine: VllmEngine) -> None:
    running = engine.generate([job(5), job(1)], nothing)
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert core_of(engine).aborted == ["0"]


def test_a_request_that_vllm_refuses_fails_alone(engine: VllmEngine) -> None:
    jobs = [job(2, prompt=11), job(2)]
    answers: Answers = list(engine.generate(jobs, nothing))
    refused, made = (dict(answers)[one] for one in jobs)
    assert str(refused) == "vLLM refused the request: The decoder prompt is too long for this model"
    assert isinstance(made, Generated)


def test_an_end_that_is_no_end_is_a_failure(engine: VllmEngine) -> None:
    core_of(engine).finish = "abort"
    ((_, made),) = engine.generate([job(1)], nothing)
    assert str(made) == "vLLM ended the answer with 'abort'"


DRAWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what the model's own configuration sets": ({}, {"temperature": 0.7, "top_k": 20}),
    "what the request sets": (
        {"temperature": 0.0, "top_k": 0, "presence_penalty": 1.5},
        {"temperature": 0.0, "top_k": 0, "presence_penalty": 1.5}),
}  # fmt: skip


@pytest.mark.parametrize("case", DRAWN)
def test_sampling_parameters(case: str, engine: VllmEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    decoding, expected = DRAWN[case]
    seen: list[Parameters] = []
    add = core_of(engine).add_request

    def noted(number: str, prompt: Any, parameters: Parameters, lora_request: Any) -> None:
        seen.append(parameters)
        add(number, prompt, parameters, lora_request)

    monkeypatch.setattr(core_of(engine), "add_request", noted)
    asked = Job([1], 2, Decoding(stop=("x",), schema='{"type": "object"}', **decoding), seed=7)
    list(engine.generate([asked], nothing))
    given = seen[0].given
    names = ("temperature", "top_p", "top_k", "min_p", "presence_penalty")
    assert {name: given[name] for name in names if name in given} == expected
    assert (given["max_tokens"], given["seed"], given["stop"]) == (2, 7, ["x"])
    assert given["skip_special_tokens"] is False
    assert given["structured_outputs"].given == {"json": {"type": "object"}}


def test_what_loading_tells(libraries: None) -> None:
    arguments = {"max_model_len": 4096, "dtype": "float32"}
    engine = VllmEngine(EngineSettings("vllm/x", "folder", arguments, batch_size=8))
    loaded = engine.load()
    assert engine._held.arguments == arguments | {
        "pretrained": "folder", "batch_size": "auto", "max_num_seqs": 8, "use_tqdm_on_load": False
    }  # fmt: skip
    facts = loaded.facts
    assert (loaded.context, loaded.context_from) == (4096, "-M max_model_len")
    assert (facts.engine, facts.dtype, facts.revision) == ("vllm", "float32", "abc")
    assert facts.generation_defaults == {"temperature": 0.7, "top_k": 20}
    assert loaded.template.read([65, 4, END]) == "A", "both end tokens end an answer"
    engine.close()
    assert engine._held is None
