"""Run configuration: every knob of the harness, once.

An option is a field of `RunConfig` or it does not exist. The command line builds its flags from
these fields (flag names, help panel and help text stand with each field), `--config file.yaml`
holds the same names, and the Python API takes them as keyword arguments. Values are checked here;
nothing is looked up, imported or contacted. Keys and tokens are never part of a configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from agentworldbench.errors import ConfigError
from agentworldbench.option_values import (
    ModelName,
    ModelNames,
    Parameters,
    PathText,
    Strings,
    Words,
    batch_form,
    limit_form,
    refuse_parameters,
    shard_form,
    token_range,
)
from agentworldbench.other_harnesses import model_elsewhere, option_elsewhere
from agentworldbench.prices import Price, parse_price, plain_name
from agentworldbench.recipe import Recipe
from agentworldbench.records import Record, Thinking
from agentworldbench.resources import find_config, recipe_names
from agentworldbench.run_record import ContextPolicy
from agentworldbench.texts import scrub
from agentworldbench.yamlfile import UNSHOWN, did_you_mean, load_yaml

Stage = Literal["predict", "judge", "data", "events"]
"""Which commands take an option: those that ask the model, those that ask a judge, those that read data,
those that tell programs of their progress."""

PANELS = ("Start here", "Model", "Judge", "Which samples", "Speed and failures", "Cost", "Output")


def _option(
    default: Any, panel: str, help: str, *flags: str, stages: tuple[Stage, ...] = ("predict",), **checks: Any
) -> Any:
    """A field with its command-line face; without flags the flag is the field's name."""
    face: dict[str, Any] = {"panel": panel, "flags": list(flags), "stages": list(stages)}
    return Field(default=default, description=help, json_schema_extra={"cli": face}, **checks)


_JUDGE: tuple[Stage, ...] = ("judge",)
_ASK: tuple[Stage, ...] = ("predict", "judge")


class RunConfig(Record):
    """One evaluation: what is asked of whom, about which samples, and how patiently."""

    # Start here
    model: ModelName = _option(
        None, "Start here", "Model to evaluate: baseline/copy-last, replay/RUN, openai-api/NAME with --base-url, "
        "hf/REPO or vllm/REPO in this process, or any LiteLLM name such as openai/gpt-5.4.", "--model", "-m")  # fmt: skip
    judge: ModelNames = _option(
        (), "Start here", "Judge model, written like --model; may be given several times. Without it nothing is "
        "judged: predictions and rule metrics only.", "--judge", stages=_JUDGE)  # fmt: skip
    data: PathText = _option(
        "mini", "Start here", "mini (bundled), official (the benchmark, from the Hugging Face hub), "
        "hf:REPO[@REVISION], or a folder of {domain}_test.jsonl files.", "--data", stages=("predict", "data"))  # fmt: skip
    tasks: Words = _option(
        (), "Start here", "Domains, task files or folders of task files, comma-separated; default: every domain "
        "that the data has.", "--tasks", "-t", "--domains", stages=("predict", "data"))  # fmt: skip
    limit: str | None = _option(
        None, "Start here", "Per domain: a number of samples, a fraction such as 0.1 (both a seeded draw), or rows "
        "a-b in file order.", "--limit", "-L")  # fmt: skip
    output: Path | None = _option(
        None, "Start here", "Run directory; the same command on it resumes. Default: runs/<model>-<data>-<digest>.",
        "--output", "-o")  # fmt: skip

    # Model
    base_url: str | None = _option(
        None, "Model", "Root of an OpenAI-compatible server, for example http://127.0.0.1:8000/v1.",
        "--base-url", "--model-base-url")  # fmt: skip
    model_args: Parameters = _option(
        {}, "Model", "For hf/ and vllm/: arguments of lm-eval's model class as key=value,… (dtype, revision, "
        "tensor_parallel_size, …).", "--model-args", "-M")  # fmt: skip
    batch_size: str = _option(
        "auto", "Model", "For hf/ and vllm/: samples an engine works on at once, or auto.")  # fmt: skip
    thinking: Thinking = _option(
        "default", "Model", "Tell the model to reason before it answers, or not to, in the way of its family.",
        "--thinking")  # fmt: skip
    reasoning_effort: str | None = _option(
        None, "Model", "How hard to reason, in the provider's words (low, medium, high, …).")  # fmt: skip
    temperature: float | None = _option(
        None, "Model", "Sampling temperature; default: the task's (0.6).", ge=0
    )
    top_p: float | None = _option(None, "Model", "Nucleus sampling; default: the server's.", gt=0, le=1)
    max_tokens: int | None = _option(
        None, "Model", "Most tokens of one answer, reasoning included; default: the task's (32768).", ge=1)  # fmt: skip
    max_context: int | None = _option(
        None, "Model", "Context length in tokens, where the server does not tell it or is to use less.", ge=1)  # fmt: skip
    min_output: int = _option(
        512, "Model", "A sample whose prompt leaves fewer tokens than this is context_overflow and not sent.", ge=1)  # fmt: skip
    context_policy: ContextPolicy = _option(
        "error", "Model", "What becomes of such a sample: a failure, or its oldest turns are left out (never ranked).",
        "--context-policy")  # fmt: skip
    seed: int | None = _option(
        None, "Model", "Seeds the order of work and the draw of --limit, and gives each request a seed of its own.")  # fmt: skip
    epochs: int | None = _option(
        None, "Model", "Answers to each sample, each a draw of its own; scores are their averages. Default: 1, or as "
        "many as the run directory has.", ge=1, le=1000)  # fmt: skip
    gen_kwargs: Parameters = _option(
        {}, "Model", "More sampling parameters as key=value,… or JSON; they are sent as given.", "--gen-kwargs")  # fmt: skip
    extra_body: Parameters = _option(
        {}, "Model", "JSON object merged into the request body as it stands.", "--extra-body")  # fmt: skip

    stream: bool = _option(
        False, "Model", "Receive answers of openai-api/ servers as they are made: for gateways that cut silent "
        "connections, and servers that only stream.", "--stream")  # fmt: skip

    # Judge
    judge_base_url: Strings = _option(
        (), "Judge", "Server of the judge; once for all judges, or once for each in their order.",
        "--judge-base-url", stages=_JUDGE)  # fmt: skip
    judge_temperature: float | None = _option(
        None, "Judge", "Default: the protocol's (builtin: 0).", stages=_JUDGE, ge=0)  # fmt: skip
    judge_max_tokens: int | None = _option(
        None, "Judge", "Default: the protocol's (builtin: 8192).", stages=_JUDGE, ge=1)  # fmt: skip
    judge_max_context: int | None = _option(
        None, "Judge", "Context length of the judge in tokens.", stages=_JUDGE, ge=1)  # fmt: skip
    judge_thinking: Thinking = _option(
        "default", "Judge", "As --thinking.", "--judge-thinking", stages=_JUDGE)  # fmt: skip
    judge_reasoning_effort: str | None = _option(
        None, "Judge", "As --reasoning-effort.", "--judge-reasoning-effort", stages=_JUDGE)  # fmt: skip
    judge_attempts: int = _option(
        3, "Judge", "How often a judge is asked until its reply holds a verdict.", stages=_JUDGE, ge=1, le=20)  # fmt: skip
    judge_repeats: int | None = _option(
        None, "Judge", "Verdicts of each judge on each prediction, averaged. Default: 1, or as many as the run "
        "directory has of that judge.", stages=_JUDGE, ge=1, le=1000)  # fmt: skip
    panel: Literal["median", "mean", "none"] | None = _option(
        None, "Judge", "Combine the verdicts of all judges of the run, in each sample; needs two or more. Default: as "
        "the run directory has it.", stages=_JUDGE)  # fmt: skip
    min_judges: int | None = _option(
        None, "Judge", "With --panel: judges that must have a valid verdict on a prediction; with fewer it has no "
        "score. Default: more than half of them.", stages=_JUDGE, ge=1)  # fmt: skip
    judge_json_schema: bool = _option(
        False, "Judge", "Ask the judge's server for structured output.", "--judge-json-schema", stages=_JUDGE)  # fmt: skip
    judge_extra_body: Parameters = _option(
        {}, "Judge", "JSON object merged into the judge's request body.", "--judge-extra-body", stages=_JUDGE)  # fmt: skip
    judge_stream: bool = _option(
        False, "Judge", "As --stream.", "--judge-stream", stages=_JUDGE)  # fmt: skip
    no_judge: bool = _option(
        False, "Judge", "Predict only, whatever --judge or the configuration file says.",
        "--no-judge", "--predict-only", stages=_JUDGE)  # fmt: skip
    protocol: Literal["builtin", "official"] = _option(
        "builtin", "Judge", "The judge's prompts, reading of verdicts and failure policy under one name: our own, or "
        "the paper's (its prompt files are fetched).", "--protocol", stages=_ASK)  # fmt: skip
    gui_diagnostics: bool = _option(
        False, "Judge", "Protocol official: add the counts that its GUI prompts speak of and its code never sends "
        "(our definitions; the result is labelled).", "--gui-diagnostics", stages=_JUDGE)  # fmt: skip
    prompts: Path | None = _option(
        None, "Judge", "Folder with the official prompt files, in place of fetching them.", "--prompts", stages=_JUDGE)  # fmt: skip

    # Which samples
    sample_id: Strings = _option(
        (), "Which samples", "Only this sample; may be given several times.", "--sample-id")  # fmt: skip
    limit_trajectories: int | None = _option(
        None, "Which samples", "Per domain: a seeded draw of whole trajectories.", "--limit-trajectories", ge=1)  # fmt: skip
    shard: str | None = _option(
        None, "Which samples", "I/N: the I-th of N parts of the selection, in whole trajectories; the parts go together "
        "again with `awb runs merge`.", "--shard")  # fmt: skip

    # Speed and failures
    max_connections: int | None = _option(
        None, "Speed and failures", "Requests in flight at one endpoint, from the start and at most; default: begins "
        "with 16 and goes up to 256 as far as the server keeps up.",
        "--max-connections", "--num-concurrent", "-j", stages=_ASK, ge=1, le=4096)  # fmt: skip
    requests_per_minute: int | None = _option(
        None, "Speed and failures", "Most requests a minute to the model's endpoint.",
        "--requests-per-minute", "--rpm", ge=1)  # fmt: skip
    tokens_per_minute: int | None = _option(
        None, "Speed and failures", "Most tokens a minute there, prompts and answers.",
        "--tokens-per-minute", "--tpm", ge=1)  # fmt: skip
    judge_requests_per_minute: int | None = _option(
        None, "Speed and failures", "The same for the judges' endpoint; where that is the model's, the lower one holds.",
        "--judge-requests-per-minute", "--judge-rpm", stages=_JUDGE, ge=1)  # fmt: skip
    judge_tokens_per_minute: int | None = _option(
        None, "Speed and failures", "The same for the judges' endpoint.",
        "--judge-tokens-per-minute", "--judge-tpm", stages=_JUDGE, ge=1)  # fmt: skip
    max_retries: int = _option(
        6, "Speed and failures", "Further attempts after a transient failure (429, 5xx, network, timeout).",
        stages=_ASK, ge=0)  # fmt: skip
    timeout: float = _option(
        7200.0, "Speed and failures", "Seconds one attempt may take; long reasoning needs many.", stages=_ASK, gt=0)  # fmt: skip
    retry_failed: bool = _option(
        False, "Speed and failures", "On a resumed run, ask again also where the answer itself was the failure.",
        "--retry-failed", stages=_ASK)  # fmt: skip
    fail_on_error: float | None = _option(
        None, "Speed and failures", "Exit with 3 when more than this share of the samples (0 to 1) has no score.",
        "--fail-on-error", stages=_ASK, ge=0, le=1)  # fmt: skip
    processes: int | None = _option(
        None, "Speed and failures", "Processes that compute the rule metrics at the end; default: as many as there are "
        "cores, and one for a small run.", "--processes", stages=_ASK, ge=1, le=1024)  # fmt: skip
    cache: Path | None = _option(
        None, "Speed and failures", "Folder with good answers that runs share: what stands in it is not asked again.",
        "--cache", stages=_ASK)  # fmt: skip
    allow_code: bool = _option(
        False, "Speed and failures", "Let the metrics run that a task file names as FILE.py:FUNCTION: Python code "
        "beside it.", "--allow-code", stages=_ASK)  # fmt: skip
    dry_run: bool = _option(
        False, "Speed and failures", "Say what would be asked, and stop.", "--dry-run", stages=_ASK)  # fmt: skip

    # Cost
    max_cost: float | None = _option(
        None, "Cost", "Stop before all sessions of this run directory have cost more than so many USD; what is "
        "predicted is still judged. Exit code 4.", "--max-cost", stages=_ASK, gt=0, allow_inf_nan=False)  # fmt: skip
    price: Strings = _option(
        (), "Cost", "MODEL=IN,OUT[,CACHED]: what a model costs, in USD per million tokens; may be given several "
        "times. Wins over LiteLLM's table.", "--price", stages=_ASK)  # fmt: skip
    output_tokens: str | None = _option(
        None, "Cost", "LOW-HIGH tokens of one answer that the estimate assumes, reasoning included.",
        "--output-tokens")  # fmt: skip
    judge_output_tokens: str | None = _option(
        None, "Cost", "As --output-tokens, for one reply of a judge.", "--judge-output-tokens", stages=_JUDGE)  # fmt: skip
    yes: bool = _option(
        False, "Cost", "Do not ask before spending more than 20 USD.", "--yes", "-y", stages=_ASK)  # fmt: skip

    # Output
    display: Literal["auto", "live", "plain", "none"] = _option(
        "auto", "Output", "Progress: live on a terminal, plain lines elsewhere, or none.", stages=_ASK)  # fmt: skip
    json_events: bool = _option(
        False, "Output", "Events for programs on standard output, one JSON object a line; tables go to standard error.",
        "--json", stages=("events",))  # fmt: skip

    recipe: Recipe | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _plain_value(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, bool) and info.field_name in ("thinking", "judge_thinking"):
            return "on" if value else "off"  # what YAML makes of these words
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation is not bool:
            raise ValueError("expected a value, not true or false")
        texts = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(text, (str, Path)) and scrub(str(text)) != str(text) for text in texts):
            raise PydanticCustomError(UNSHOWN, "not valid text: it holds bytes that are not UTF-8")
        return value

    @field_validator("limit", mode="before")
    @classmethod
    def _limit_form(cls, value: Any) -> Any:
        return None if value is None else limit_form(value)

    @field_validator("shard")
    @classmethod
    def _shard_form(cls, value: str | None) -> str | None:
        return None if value is None else shard_form(value)

    @field_validator("batch_size", mode="before")
    @classmethod
    def _batch_form(cls, value: Any) -> str:
        return batch_form(value)

    @field_validator("output_tokens", "judge_output_tokens", mode="before")
    @classmethod
    def _token_range(cls, value: Any) -> Any:
        return None if value is None else token_range(value)

    @field_validator("price")
    @classmethod
    def _price_form(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = [plain_name(parse_price(text)[0]) for text in value]
        if len(set(names)) != len(names):
            raise ValueError("a model has one price")
        return value

    @field_validator("extra_body", "judge_extra_body", "gen_kwargs", "model_args")
    @classmethod
    def _free_parameters(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        refuse_parameters(info.field_name or "", value)
        return value

    @model_validator(mode="after")
    def _urls_fit_judges(self) -> RunConfig:
        if len(self.judge_base_url) > 1 and len(self.judge_base_url) != len(self.judge):
            raise ValueError("--judge-base-url stands once, or once for each --judge")
        return self

    @property
    def prices(self) -> dict[str, Price]:
        """Prices by model string, as --price gives them."""
        return dict(map(parse_price, self.price))

    def judge_url(self, position: int) -> str | None:
        """Base URL of the judge at `position`, or None."""
        if not self.judge_base_url:
            return None
        return self.judge_base_url[position if len(self.judge_base_url) > 1 else 0]


def make_config(values: Mapping[str, Any], file: Path | None = None) -> RunConfig:
    """Configuration from a YAML file (optional; also the name of a bundled recipe) with `values` on top.

    Raises ConfigError naming the flag or file:line that is wrong.
    """
    base = _from_file(file) if file else RunConfig()
    if base.allow_code:
        raise ConfigError(f"{file}: allow_code cannot be given by a file; whoever runs it says --allow-code")
    given = {name: value for name, value in values.items() if value is not None}
    if base.no_judge and given.get("judge"):
        given.setdefault("no_judge", False)  # flags win over the file
    for name in given:
        if name not in RunConfig.model_fields:
            hint = option_elsewhere(name) or did_you_mean(name, RunConfig.model_fields)
            raise ConfigError(f"unknown option '{name}'{hint}")
    try:
        made = RunConfig.model_validate(base.model_dump(exclude_unset=True) | given)
    except ValidationError as problem:
        detail = problem.errors()[0]
        flag = "--" + str(detail["loc"][0]).replace("_", "-") + ": " if detail["loc"] else ""
        message = detail["msg"].removeprefix("Value error, ")
        shown = detail["loc"] and detail["type"] != UNSHOWN
        got = f" (got {detail['input']!r:.80})" if shown else ""
        raise ConfigError(f"{flag}{message}{got}") from None
    _refuse_names_of_others(made)
    return made


def _from_file(file: Path) -> RunConfig:
    """A configuration file, or the bundled recipe of that name."""
    path = find_config(file)
    if path.suffix == ".toml":
        raise ConfigError(f"{path}: TOML is not read; write it as YAML (`limit: 20`) or as JSON")
    if not path.suffix and not path.exists() and (near := did_you_mean(path.name, recipe_names())):
        raise ConfigError(f"{path}: no such file, and no recipe of this name{near}")
    return load_yaml(path, RunConfig, ConfigError, unknown=option_elsewhere)


def _refuse_names_of_others(config: RunConfig) -> None:
    """Raise for models that are written as other harnesses write them, with what is typed here."""
    asked = [("--model", config.model, config.model_args, config.base_url)]
    asked += [("--judge", name, {}, config.judge_url(number)) for number, name in enumerate(config.judge)]
    for flag, name, arguments, url in asked:
        if name and (said := model_elsewhere(name, arguments, url)):
            if flag == "--judge":
                said = said.replace("--model ", "--judge ").replace("--base-url", "--judge-base-url")
            raise ConfigError(f"{flag} {name}: {said}")
