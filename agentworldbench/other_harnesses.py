"""How lm-evaluation-harness, Inspect AI and the benchmark's official script say things, and what is typed here instead.

In: an option, a command or a model string that does not exist here. Out: a phrase for the end of a refusal, which says
what to type, or nothing for words that no harness is known for. Names are not aliases: where two harnesses mean
different things by one word, a run that took the wrong one would be wrong in silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ALWAYS_CHAT: Final = (
    "leave it out: a sample is always asked as a conversation, by the model's own chat template"
)
_ONE_DRAW: Final = "leave it out: a sample brings its own history, and no examples are added"
_KEPT: Final = "leave it out: every answer and every failure is always kept in the run directory"
_PROGRESS: Final = "leave it out; --display says how progress is shown, --json prints events for programs"
_KEYS: Final = "set AWB_API_KEY, or the provider's own variable, in the environment or in .env"
_JUDGE_KEYS: Final = "set AWB_JUDGE_API_KEY, or the provider's own variable, in the environment or in .env"
_AT_ONCE: Final = "here --max-connections N; without it the number of requests finds its level"
_SAMPLING: Final = "here --gen-kwargs {}=…"
_SYSTEM: Final = "leave it out: the system message is the sample's own"
_RESUMES: Final = "leave it out: the same command on the same --output goes on where it stopped"
_NEW_RUN: Final = "name another directory with --output, or remove that one"
_DIRECTORY: Final = "here --output DIR, the directory of this one run"
_ENGINE: Final = "for hf/ and vllm/ here --model-args {}=…"

OPTIONS: Final[Mapping[str, str]] = {
    # lm-evaluation-harness
    "num-fewshot": _ONE_DRAW,
    "fewshot-as-multiturn": _ALWAYS_CHAT,
    "apply-chat-template": _ALWAYS_CHAT,
    "system-instruction": _SYSTEM,
    "log-samples": _KEPT,
    "output-path": _DIRECTORY,
    "use-cache": "leave it out to resume, which the run directory does by itself; --cache DIR shares answers between runs",
    "cache-requests": "leave it out: prompts are made when they are sent",
    "device": _ENGINE.format("device"),
    "dtype": _ENGINE.format("dtype"),
    "trust-remote-code": _ENGINE.format("trust_remote_code"),
    "max-batch-size": "here --batch-size N",
    "include-path": "here --tasks FOLDER",
    "samples": "here --sample-id DOMAIN/ID/TURN, once for each",
    "write-out": "`awb data show` prints samples; --dry-run says what would be asked",
    "show-config": "--dry-run says what would be asked",
    "check-integrity": "`awb tasks validate` checks task files, `awb data info` checks data",
    "verbosity": _PROGRESS,
    "wandb-args": "`awb export lm-eval RUN` writes files that other programs read",
    "hf-hub-log-args": "`awb submit RUN --to hub` makes a finished run public",
    "confirm-run-unsafe-code": "here --allow-code",
    "a": "here --model-args K=V,…",
    "b": "here --batch-size N",
    "f": _ONE_DRAW,
    "s": _KEPT,
    # Inspect AI
    "T": "tasks here have no arguments; --tasks, --data and --protocol choose what is asked",
    "S": "there are no solvers here: a sample is one question with one answer",
    "solver": "there are no solvers here: a sample is one question with one answer",
    "scorer": "here --judge MODEL; rule metrics are always computed",
    "log-dir": "here --output DIR, the directory of this one run; without it a directory below runs/ is made",
    "log-format": _KEPT,
    "log-level": _PROGRESS,
    "no-log-samples": _KEPT,
    "max-samples": _AT_ONCE,
    "max-tasks": _AT_ONCE,
    "epochs-reducer": "leave it out: the score of a sample is the mean over its epochs",
    "no-fail-on-error": "leave it out: a failed sample never stops a run; --fail-on-error SHARE only sets the exit code",
    "continue-on-fail": "leave it out: a failed sample never stops a run; --fail-on-error SHARE only sets the exit code",
    "retry-on-error": "here --max-retries N for transient failures, and --retry-failed when a run resumes",
    "model-role": "here --judge MODEL",
    "model-config": "here --config FILE",
    "model-cost-config": "here --price MODEL=IN,OUT",
    "run-config": "here --config FILE",
    "task-config": "here --tasks FILE",
    "reasoning-tokens": "here --reasoning-effort WORD, or the provider's own field by --extra-body JSON",
    "time-limit": "here --timeout SECONDS, for one attempt",
    "attempt-timeout": "here --timeout SECONDS",
    "token-limit": "here --max-tokens N for one answer, --max-cost USD for the run",
    "cost-limit": "here --max-cost USD",
    "sample-shuffle": "leave it out: the order of work is drawn; --seed N repeats it",
    "no-score": "here --no-judge; rule metrics cost nothing",
    "num-choices": "here --epochs N",
    "system-message": _SYSTEM,
    "top-k": _SAMPLING.format("top_k"),
    "min-p": _SAMPLING.format("min_p"),
    "stop-seqs": _SAMPLING.format("stop"),
    "stop": _SAMPLING.format("stop"),
    "frequency-penalty": _SAMPLING.format("frequency_penalty"),
    "presence-penalty": _SAMPLING.format("presence_penalty"),
    "repetition-penalty": _SAMPLING.format("repetition_penalty"),
    # the official script, whose own three commands take its flags
    "data-dir": "here --data DIR",
    "output-dir": _DIRECTORY,
    "model-name": "here --model openai-api/NAME",
    "judge-model": "here --judge openai-api/NAME for a server of your own, or PROVIDER/NAME",
    "model-api-key": _KEYS,
    "judge-api-key": _JUDGE_KEYS,
    "predictions": "`awb judge RUN` judges what a run has stored, `awb score RUN` computes its results again",
    # on other commands than those that ask models: the command stands in front
    "view log-dir": "name the folder itself: awb view DIR",
    # words that many programs have
    "api-key": _KEYS,
    "api-base": "here --base-url URL",
    "api-url": "here --base-url URL",
    "concurrency": _AT_ONCE,
    "num-workers": _AT_ONCE,
    "max-workers": _AT_ONCE,
    "workers": _AT_ONCE,
    "num-threads": _AT_ONCE,
    "dataset": "here --data",
    "dataset-path": "here --data",
    "split": "here --tasks DOMAINS; the data have no splits",
    "num-samples": "here --limit N",
    "n": "here --limit N",
    "max-examples": "here --limit N",
    "max-new-tokens": "here --max-tokens N",
    "max-gen-toks": "here --max-tokens N",
    "repeats": "here --epochs N",
    "grader": "here --judge MODEL",
    "grader-model": "here --judge MODEL",
    "config-file": "here --config FILE",
    "budget": "here --max-cost USD",
    "resume": _RESUMES,
    "overwrite": _NEW_RUN,
    "force": _NEW_RUN,
    "verbose": _PROGRESS,
    "debug": _PROGRESS,
    "quiet": "here --display none",
}
"""Options of others, without dashes in front, and what is typed here on the commands that ask models."""

COMMANDS: Final[Mapping[str, str]] = {
    "eval": "awb run --model …",
    "evaluate": "awb run --model …",
    "eval.py": "awb infer, awb judge and awb score, with the same flags",
    "eval-set": "awb run, once for each model",
    "eval-retry": "the same awb run command again",
    "resume": "the same awb run command again",
    "predict": "awb infer",
    "list": "awb runs list, awb tasks list",
    "ls": "awb runs list, awb tasks list",
    "log": "awb runs list, awb view",
    "logs": "awb runs list, awb view",
    "show": "awb report RUN, awb data show",
    "results": "awb report RUN, awb runs list",
    "serve": "awb view",
    "info": "awb data info",
    "validate": "awb tasks validate",
    "download": "awb data pull",
    "pull": "awb data pull",
    "merge": "awb runs merge",
    "cache": "awb run --cache DIR",
    "cost": "awb estimate",
    "bundle": "awb submit RUN",
    "push": "awb submit RUN",
    "upload": "awb submit RUN",
    "version": "awb --version",
    "help": "awb --help",
}
"""Commands of others, and what is typed here."""

_IN_PROCESS: Final = {
    "hf": "hf", "hf-auto": "hf", "huggingface": "hf", "transformers": "hf", "vllm": "vllm",
}  # fmt: skip
_SERVERS: Final = frozenset(
    [
        "local-chat-completions",
        "local-completions",
        "openai-chat-completions",
        "openai-completions",
        "sglang",
        "sglang-generate",
        "gguf",
        "ggml",
    ]
)
_HOSTED: Final = {"openai-chat-completions": "openai", "openai-completions": "openai", "anthropic-chat": "anthropic",
                  "anthropic-chat-completions": "anthropic", "anthropic-completions": "anthropic"}  # fmt: skip
"""Kinds of models by lm-eval's words, whose names stand in --model_args."""
_SCHEMES: Final = {
    "google": "gemini", "grok": "xai", "together": "together_ai", "azureai": "azure_ai", "fireworks": "fireworks_ai",
    "vertex": "vertex_ai", "hf-inference-providers": "huggingface", "transformers": "hf",
}  # fmt: skip
"""Schemes of Inspect's model strings, and ours."""
_SERVER_SCHEMES: Final = frozenset(["sglang", "llama-cpp-python"])
_BASELINES: Final = ("copy-last", "nearest", "empty", "reference")
_NO_MODELS: Final = frozenset(["mockllm", "dummy", "none", *_BASELINES])
_SERVER_ARGUMENTS: Final = {
    "base_url": "--base-url", "num_concurrent": "--max-connections", "max_retries": "--max-retries",
    "timeout": "--timeout", "max_length": "--max-context", "max_gen_toks": "--max-tokens", "seed": "--seed",
    "temperature": "--temperature", "top_p": "--top-p", "max_tokens": "--max-tokens", "reasoning_effort": "--reasoning-effort",
}  # fmt: skip
"""Arguments that lm-eval and Inspect give a model behind a server, and our flags."""
_NAMES: Final = ("pretrained", "model")


def option_elsewhere(name: str, command: str = "") -> str:
    """`; …` for an option, or a key of a configuration file, that other harnesses have, or the empty string; `command`
    is one that asks no model."""
    bare = name.lstrip("-").replace("_", "-")
    said = OPTIONS.get(f"{command} {bare}".lstrip())
    return f"; {said}" if said else ""


def task_elsewhere(word: str) -> str:
    """`; …` for a word that names tasks elsewhere, or the empty string."""
    if word.casefold() in ("all", "*", "agentworldbench", "agent_world_bench"):
        return "; without --tasks every domain of the data is taken"
    return "; `awb tasks list` lists them" if word == "list" else ""


def model_elsewhere(name: str, arguments: Mapping[str, Any], base_url: str | None) -> str | None:
    """What is typed here for a model that is written as other harnesses write it; None for a name that may be ours.

    Words that stand for no model here, names without their second half, and `--model-args` of servers are looked at;
    with a `base_url` a name is the server's affair.
    """
    scheme, slash, rest = name.partition("/")
    several = [part.strip() for part in name.split(",")]
    if len(several) > 1 and all("/" in part for part in several):
        return f"these are {len(several)} names: several judges want a flag each, several models a run each"
    inner = next((str(arguments[key]) for key in _NAMES if arguments.get(key)), "")
    if not slash and scheme in {*_IN_PROCESS, *_SERVERS, *_HOSTED} and (inner or not base_url):
        return _lm_eval(scheme, inner, arguments, base_url)
    if slash and not rest and scheme not in ("baseline", "replay", "hf", "vllm", "openai-api"):
        return f"a name must follow '{name}'"
    if scheme in ("hf", "vllm") and rest and base_url:
        return f"{scheme}/ is an engine in this process; for a server write --model openai-api/{rest}"
    if arguments and scheme not in ("baseline", "replay", "hf", "vllm"):
        return f"--model-args are for hf/ and vllm/; {_as_flags(arguments)}"
    if base_url:
        return None
    if scheme in _NO_MODELS:
        return f"for an answer without a model write --model baseline/{scheme if scheme in _BASELINES else 'copy-last'}"
    if rest and scheme in _SERVER_SCHEMES:
        return f"for a server write --model openai-api/{rest} --base-url URL"
    if rest and scheme in _SCHEMES:
        return f"here --model {_SCHEMES[scheme]}/{rest}"
    return None


def _lm_eval(kind: str, inner: str, arguments: Mapping[str, Any], base_url: str | None) -> str:
    """The command line for lm-eval's `--model KIND --model_args pretrained=NAME,…`."""
    others = {key: value for key, value in arguments.items() if key not in _NAMES}
    inner = inner or "NAME"
    if kind in _IN_PROCESS:
        size = f" --batch-size {others.pop('batch_size')}" if "batch_size" in others else ""
        rest = ",".join(f"{key}={value}" for key, value in others.items())
        return f"here --model {_IN_PROCESS[kind]}/{inner}{size}" + (f" --model-args {rest}" if rest else "")
    address = others.get("base_url") or base_url
    if kind in _HOSTED and not address:
        return f"here --model {_HOSTED[kind]}/{inner}" + (f"; {_as_flags(others)}" if others else "")
    told = _as_flags({"base_url": "URL"} | ({"base_url": base_url} if base_url else {}) | others, "")
    return f"here --model openai-api/{inner} {told}"


def _as_flags(arguments: Mapping[str, Any], begin: str = "here ") -> str:
    """Arguments of a model behind a server as our flags; what has none is named."""
    known = [
        f"{_SERVER_ARGUMENTS[key]} {'URL' if '@' in str(value) else value}"  # an address may hold a password
        for key, value in arguments.items()
        if key in _SERVER_ARGUMENTS
    ]
    unknown = [key for key in arguments if key not in _SERVER_ARGUMENTS]
    parts = [begin + " ".join(known)] if known else []
    if unknown:
        parts.append(
            f"no flag stands for {', '.join(unknown)}: sampling goes into --gen-kwargs, fields of a request into --extra-body"
        )
    return "; ".join(parts)
