"""Models in this process before and while their weights are loaded: arguments, identity, errors.

Nothing is loaded and no library of the extras is needed. What cannot be meant is refused when a run
is planned; errors of loading are told in a line that says what to do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.errors import AwbError, ConfigError, CredentialsError, EndpointError
from agentworldbench.models import Connection, create_model
from agentworldbench.plan import make_plan
from agentworldbench.prices import FREE
from agentworldbench.records import Sampling
from agentworldbench.texts import sha256_text
from tests.helpers.asking import TASKS
from tests.helpers.fake_engine import FakeEngine, ask_all, bounded, model_of

# --- model strings and arguments -------------------------------------------------------------

ROUTES = [
    ("hf/Qwen/Qwen3-8B", "hf", "Qwen/Qwen3-8B"),
    ("vllm/Qwen/Qwen3-8B", "vllm", "Qwen/Qwen3-8B"),
    ("hf/gpt2", "hf", "gpt2"),
]


@pytest.mark.parametrize(("name", "backend", "source"), ROUTES)
def test_a_name_leads_to_the_engine(name: str, backend: str, source: str) -> None:
    model = create_model(name, Connection(), TASKS)
    assert model.identity() == {"backend": backend, "name": source, "args": {}}
    assert (model.name, model.local, model.url, model.price()) == (name, True, None, FREE)
    assert model.endpoint != create_model(name, Connection(), TASKS).endpoint, "an engine is its own"


def test_a_folder_is_found_where_it_is(tmp_path: Path) -> None:
    assert create_model(f"hf/{tmp_path}", Connection(), TASKS).identity()["name"] == str(tmp_path)


POOLS = [("hf", "auto", 64), ("hf", 8, 32), ("vllm", "auto", 512), ("vllm", 8, 16)]


@pytest.mark.parametrize(("scheme", "size", "pool"), POOLS)
def test_how_many_requests_are_wanted_at_once(scheme: str, size: Any, pool: int) -> None:
    assert create_model(f"{scheme}/x", Connection(batch_size=size), TASKS).batch == pool


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no name": ("hf/", {}, "a name must follow"),
    "no slash": ("vllm", {}, "a name must follow"),
    "a server's address": ("vllm/x", {"base_url": "http://127.0.0.1:9/v1"}, "takes no --base-url"),
    "a folder that is not there": ("hf//no/such/folder", {}, "no folder at /no/such/folder"),
    "a relative folder that is not there": ("hf/./nowhere", {}, "no folder at nowhere"),
    "no repository": ("hf/a/b/c", {}, "neither a folder nor a repository"),
    "pretrained": ("hf/x", {"model_args": {"pretrained": "y"}}, "'pretrained' cannot be given"),
    "lm-eval's batch size": ("hf/x", {"model_args": {"batch_size": 4}}, "use --batch-size"),
    "think_end_token": ("hf/x", {"model_args": {"think_end_token": "</think>"}}, "told from the answer"),
    "truncation": ("hf/x", {"model_args": {"truncation": True}}, "never shortened"),
    "data parallel": ("vllm/x", {"model_args": {"data_parallel_size": 2}}, "vllm serve"),
    "a device for vLLM": ("vllm/x", {"model_args": {"device": "cuda:1"}}, "CUDA_VISIBLE_DEVICES"),
    "log-likelihoods": ("hf/x", {"model_args": {"logits_cache": False}}, "not computed here"),
    "a template of nobody": ("hf/x", {"model_args": {"chat_template": "~nobody-here/x"}}, "no home directory"),
    "a folder of nobody": ("hf/~nobody-here/x", {}, "no home directory is known for '~nobody-here'"),
    "template arguments": ("hf/x", {"model_args": {"chat_template_args": "yes"}}, "must be an object"),
    "a template that is not there": ("hf/x", {"model_args": {"chat_template": "/no.jinja"}}, "cannot be read"),
    "an unknown parameter": ("hf/x", {"parameters": {"guidance": 2}}, "unknown sampling parameter 'guidance'"),
    "arguments for a server": ("openai/gpt-5", {"model_args": {"dtype": "x"}}, "are for hf/ and vllm/"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_before_anything_is_loaded(case: str) -> None:
    name, connection, words = REFUSED[case]
    with pytest.raises(ConfigError) as caught:
        create_model(name, Connection(**connection), TASKS)
    assert words in str(caught.value)


def test_a_plan_loads_nothing_and_names_parameters_and_arguments() -> None:
    config = make_config(
        {
            "model": "hf/some/repo",
            "model_args": "dtype=float32,parallelize=True,token=True",
            "batch_size": "4",
        }
    )
    plan = make_plan(config, print)
    assert plan.predict.model["args"] == {"dtype": "float32", "parallelize": True, "token": True}
    with pytest.raises(ConfigError, match="unknown sampling parameter 'best_of'"):
        make_plan(make_config({"model": "hf/some/repo", "gen_kwargs": "best_of=3"}), print)
    with pytest.raises(ConfigError, match="unknown sampling parameter 'best_of'"):
        make_plan(
            make_config(
                {"model": "baseline/empty", "judge": "hf/some/repo", "judge_extra_body": {"best_of": 3}}
            ),
            print,
        )


def test_a_template_of_the_user_counts_by_its_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("no system role", encoding="utf-8")
    made = create_model("hf/x", Connection(model_args={"chat_template": str(file)}), TASKS)
    assert made.identity()["args"] == {"chat_template": f"sha256:{sha256_text('no system role')}"}
    file.write_text("another", encoding="utf-8")
    other = create_model("hf/x", Connection(model_args={"chat_template": str(file)}), TASKS)
    assert other.identity() != made.identity()


PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "a number as text": ({"min_p": "much"}, "min_p must be a number"),
    "a fraction of tokens": ({"top_k": 2.5}, "top_k must be a whole number"),
    "true": ({"presence_penalty": True}, "presence_penalty must be a number"),
    "an empty stop": ({"stop": ["a", ""]}, "stop must be a string"),
    "a stop that is none": ({"stop": {"a": 1}}, "stop must be a string"),
    "unknown": ({"logit_bias": {}}, "unknown sampling parameter 'logit_bias'"),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_a_parameter_that_no_engine_can_follow_stops_the_run(case: str) -> None:
    extra, words = PARAMETERS[case]
    with pytest.raises(ConfigError, match=words):
        ask_all(model_of(FakeEngine()), ["a"], Sampling(extra=extra))


def test_the_template_is_told_what_request_and_arguments_say() -> None:
    engine = FakeEngine()
    extra = {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low", "top_k": 5}
    ask_all(model_of(engine), ["a"], Sampling(extra=extra))
    told = engine.tokenizer.arguments[0]
    assert (told["enable_thinking"], told["reasoning_effort"]) == (False, "low")
    assert "top_k" not in told
    assert engine.jobs[0].decoding.top_k == 5


def test_thinking_is_switched_by_the_family_of_the_name() -> None:
    model = create_model("hf/Qwen/Qwen3-8B", Connection(), TASKS)
    assert model.switches("off", None) == {"chat_template_kwargs": {"enable_thinking": False}}
    with pytest.raises(ConfigError, match="always reasons"):
        create_model("vllm/openai/gpt-oss-20b", Connection(), TASKS).switches("off", None)


# --- loading ---------------------------------------------------------------------------------


def named(name: str, text: str) -> Exception:
    """An exception of a class with this name, as the hub's client has them."""
    made: Exception = type(name, (Exception,), {})(text)
    return made


def caused(problem: Exception, by: Exception) -> Exception:
    problem.__cause__ = by
    return problem


LOADING: dict[str, tuple[BaseException, type[AwbError], str]] = {
    "extra missing": (
        ModuleNotFoundError("No module named 'torch'"), ConfigError, "pip install 'agentworldbench[hf]'"),
    "unknown argument": (
        TypeError("LlamaForCausalLM.__init__() got an unexpected keyword argument 'dtyp'"),
        ConfigError, "--model-args: unknown argument 'dtyp'"),
    "gated": (
        caused(OSError("You are trying to access a gated repo."), named("GatedRepoError", "403")),
        CredentialsError, "set HF_TOKEN"),
    "no such repository": (
        caused(OSError("x is not a local folder"), named("RepositoryNotFoundError", "404")),
        EndpointError, "no such repository"),
    "no such revision": (
        caused(OSError("x"), named("RevisionNotFoundError", "404")), EndpointError, "no such revision"),
    "offline": (
        caused(OSError("We couldn't connect"), named("LocalEntryNotFoundError", "x")),
        EndpointError, "not in the local cache"),
    "no accelerator": (
        RuntimeError("Failed to infer device type"), ConfigError, "no accelerator found"),
    "memory": (RuntimeError("CUDA out of memory. Tried to"), ConfigError, "do not fit into memory"),
    "exit": (SystemExit("config refused"), ConfigError, "cannot be loaded: SystemExit: config refused"),
    "anything else": (ValueError("bad\nthing"), ConfigError, "cannot be loaded: ValueError: bad thing"),
    "our own": (ConfigError("told already"), ConfigError, "told already"),
}  # fmt: skip


@pytest.mark.parametrize("case", LOADING)
def test_an_error_of_loading_says_what_to_do(case: str) -> None:
    problem, kind, words = LOADING[case]
    engine = FakeEngine()
    engine.problem = problem
    with pytest.raises(kind) as caught:
        bounded(model_of(engine).check)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_a_template_there_is_no_chat() -> None:
    engine = FakeEngine()
    engine.tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="-M chat_template=FILE"):
        bounded(model_of(engine).check)


def test_facts_are_told_once_the_weights_are_there() -> None:
    model = model_of(FakeEngine(context=500), max_context=400)
    assert model.facts().prompts_counted is False

    async def work() -> None:
        await model.check()
        await model.check()

    bounded(work)
    facts = model.facts()
    assert (facts.engine, facts.dtype, facts.prompts_counted) == ("fake", "float32", True)
    assert (facts.context, facts.context_from) == (400, "--max-context")
    assert json.loads(facts.model_dump_json())["context"] == 400
