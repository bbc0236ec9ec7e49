"""From a configuration to everything a run needs, and the run's recorded identity.

In: a `RunConfig`. Out: a `Plan`: data set, chosen samples, model, judges, the `predict` section of
`run.json` and the run directory. Nothing is asked yet.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentworldbench.config import RunConfig
from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.engine.fitting import Room
from agentworldbench.engine.spending import check_prices
from agentworldbench.engine.steps import Predictor
from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, Model, create_model
from agentworldbench.observation import EXTRACTION
from agentworldbench.official_files import OfficialPrompts
from agentworldbench.prices import price_of
from agentworldbench.protocol import PROTOCOLS, Protocol
from agentworldbench.pull import Tell, prompts_for_run
from agentworldbench.records import SampleRef, Sampling
from agentworldbench.resources import expanded
from agentworldbench.run_record import DataSection, PredictSection, SelectionRecord
from agentworldbench.scoring.judge import Judge
from agentworldbench.selection import select
from agentworldbench.sources import Source, resolve_source
from agentworldbench.task import Task, is_bundled, load_tasks
from agentworldbench.texts import digest, sha256_text

MODEL_KEYS = ("AWB_API_KEY", "OPENAI_API_KEY")
JUDGE_KEYS = ("AWB_JUDGE_API_KEY", "AWB_API_KEY", "OPENAI_API_KEY")
SELECTION_FIELDS = ("limit", "limit_trajectories", "sample_id", "seed", "shard")


@dataclass(frozen=True)
class Samples:
    """The data half of a plan: where it came from, what is in it, which of it is meant."""

    source: Source
    dataset: Dataset
    refs: tuple[SampleRef, ...]

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Tasks by domain."""
        return self.source.tasks


@dataclass(frozen=True)
class Plan:
    """A run, ready to start. `predictor` is None when stored predictions are only to be judged."""

    config: RunConfig
    protocol: Protocol
    samples: Samples
    predictor: Predictor | None
    judges: tuple[Judge, ...]
    path: Path
    predict: PredictSection
    selection: SelectionRecord

    @property
    def models(self) -> list[Model]:
        """Every model of the plan that may have to be asked."""
        asked = [self.predictor.model] if self.predictor else []
        return asked + [judge.model for judge in self.judges]


def open_samples(config: RunConfig) -> Samples:
    """Find, index and choose the data of a configuration. Raises DataError, TaskError, ConfigError."""
    source = resolve_source(config.data, config.tasks)
    dataset = open_dataset(source.files, source.tasks)
    source.check({domain: file.sha256 for domain, file in dataset.files.items()})
    return Samples(source, dataset, select(dataset.refs, config))


def make_plan(config: RunConfig, tell: Tell) -> Plan:
    """Plan an evaluation; `tell` takes lines about files that are fetched first.

    Raises ConfigError, TaskError, DataError or CredentialsError.
    """
    if not config.model:
        raise ConfigError(
            "--model is missing: name the model to evaluate (baseline/copy-last works everywhere)"
        )
    protocol = PROTOCOLS[config.protocol]
    samples = open_samples(config)
    model, switches = _open_model(config, samples.tasks)
    predictor = Predictor(
        model=model,
        tasks=samples.tasks,
        sampling=lambda ref, epoch: request_sampling(config, samples.tasks[ref.domain], switches, ref, epoch),
        room=Room(config.min_output, config.context_policy),
        parse=protocol.parse,
    )
    predict = _predict_section(config, samples, model, switches)
    selection = _selection(config, samples)
    path = _given_path(config.output) if config.output else _default_path(config, model, predict, selection)
    judges = make_judges(config, protocol, samples.tasks, tell)
    check_prices(config, [model, *(judge.model for judge in judges)], config.judge)
    return Plan(config, protocol, samples, predictor, judges, path, predict, selection)


def _open_model(config: RunConfig, tasks: Mapping[str, Task]) -> tuple[Model, dict[str, Any]]:
    """The model of a configuration, and the parameters that its flags about thinking stand for."""
    assert config.model, "asked for only where there is one"
    batch: int | Literal["auto"] = "auto" if config.batch_size == "auto" else int(config.batch_size)
    flags = ("temperature", "top_p", "max_tokens")
    added = {name: value for name, value in config.gen_kwargs.items() if name not in flags}
    connection = Connection(
        config.base_url,
        config.timeout,
        MODEL_KEYS,
        config.max_context,
        config.model_args,
        batch,
        added | config.extra_body,
        price_of(config.model, config.prices),
        config.stream,
    )
    model = create_model(config.model, connection, tasks)
    return model, model.switches(config.thinking, config.reasoning_effort)


@dataclass(frozen=True)
class Roles:
    """The models of a configuration without any data: for looking at them. `sampling` is the model's."""

    model: Model | None
    sampling: Sampling
    judges: tuple[Judge, ...]


def open_roles(config: RunConfig, tell: Tell) -> Roles:
    """Model and judges of a configuration, with the sampling of its first task."""
    tasks = load_tasks(config.tasks)
    judges = make_judges(config, PROTOCOLS[config.protocol], tasks, tell)
    model, switches = _open_model(config, tasks) if config.model else (None, {})
    return Roles(model, request_sampling(config, next(iter(tasks.values())), switches), judges)


def _official_prompts(config: RunConfig, protocol: Protocol, tell: Tell) -> OfficialPrompts | None:
    """The prompt files of the protocol official, fetched where missing; None under any other."""
    if protocol.name == "official" and config.judge:
        if config.judge_json_schema:
            raise ConfigError("--judge-json-schema: the official protocol asks for a verdict in tags")
        return prompts_for_run(config.prompts, tell)
    for name in ("prompts", "gui_diagnostics"):
        if getattr(config, name):
            flag = "--" + name.replace("_", "-")
            raise ConfigError(f"{flag}: only a judge of --protocol official reads the official prompt files")
    return None


def make_judges(
    config: RunConfig, protocol: Protocol, tasks: Mapping[str, Task], tell: Tell
) -> tuple[Judge, ...]:
    """The judges of a configuration; none with --no-judge. Official prompts are fetched where missing."""
    if config.no_judge:
        return ()
    official = _official_prompts(config, protocol, tell)
    if config.judge_base_url and not config.judge:
        raise ConfigError("--judge-base-url is given without --judge: name the judge that it serves")
    judges = []
    for position, name in enumerate(config.judge):
        if name.startswith(("baseline/", "replay/")):
            raise ConfigError(f"--judge {name}: a judge must be a model that can be asked")
        connection = Connection(
            config.judge_url(position),
            config.timeout,
            JUDGE_KEYS,
            config.judge_max_context,
            parameters=config.judge_extra_body,
            price=price_of(name, config.prices),
            stream=config.judge_stream,
        )
        if name.startswith("openai-api/") and not connection.base_url:
            raise ConfigError(
                f"--judge {name}: --judge-base-url is missing (for example http://127.0.0.1:8000/v1)"
            )
        model = create_model(name, connection, tasks)
        switches = model.switches(config.judge_thinking, config.judge_reasoning_effort)
        temperature = config.judge_temperature
        sampling = Sampling(
            temperature=protocol.judge_temperature if temperature is None else temperature,
            max_tokens=config.judge_max_tokens or protocol.judge_max_tokens,
            extra=_merged(switches, config.judge_extra_body),
            thinking=config.judge_thinking,
            reasoning_effort=config.judge_reasoning_effort,
        )
        judges.append(
            Judge(
                model,
                sampling,
                protocol,
                tasks,
                config.judge_json_schema,
                config.judge_attempts,
                official=official,
                diagnostics=config.gui_diagnostics,
            )
        )
    if len({judge.digest() for judge in judges}) != len(judges):
        raise ConfigError("--judge: the same judge is given twice (its model names it, not its address)")
    return tuple(judges)


def request_sampling(
    config: RunConfig,
    task: Task,
    switches: Mapping[str, Any],
    ref: SampleRef | None = None,
    epoch: int = 1,
) -> Sampling:
    """Sampling of one request: flags first, then --gen-kwargs, then the task's defaults.

    `switches` are the parameters that --thinking and --reasoning-effort stand for; what the user
    writes into the body by hand wins over them. With --seed each (sample, epoch) has a seed of its own, derived from it.
    """
    named = {
        "temperature": task.generation.temperature,
        "top_p": task.generation.top_p,
        "max_tokens": task.generation.max_tokens,
    }
    extra: dict[str, Any] = {}
    for name, value in config.gen_kwargs.items():
        (named if name in named else extra)[name] = value
    for name in named:
        if getattr(config, name) is not None:
            named[name] = getattr(config, name)
    seed = None
    if config.seed is not None and ref is not None:
        seed = int(sha256_text(f"{config.seed}/{ref.id}/{epoch}")[:8], 16) >> 1
    try:
        return Sampling.model_validate(
            named
            | {"seed": seed, "extra": _merged(switches, extra | config.extra_body)}
            | {"thinking": config.thinking, "reasoning_effort": config.reasoning_effort}
        )
    except ValueError as problem:
        raise ConfigError(f"--gen-kwargs: {str(problem).splitlines()[2].strip()}") from None


def _merged(switches: Mapping[str, Any], by_hand: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of body parameters; objects under one name are joined, `by_hand` wins."""
    both = dict(switches) | dict(by_hand)
    for name in switches.keys() & by_hand.keys():
        if isinstance(switches[name], dict) and isinstance(by_hand[name], dict):
            both[name] = switches[name] | by_hand[name]
    return both


def _predict_section(
    config: RunConfig, samples: Samples, model: Model, switches: Mapping[str, Any]
) -> PredictSection:
    """What fixes every prediction of a run; a difference makes another run."""
    source = samples.source
    sampling = {
        domain: request_sampling(config, task, switches).described() for domain, task in samples.tasks.items()
    }
    for some in sampling.values():
        if config.seed is not None:
            some["seed"] = f"derived from {config.seed}, sample id and epoch"
    return PredictSection(
        data=DataSection(
            name=source.name,
            repository=source.repository,
            revision=source.revision,
            files={domain: file.sha256 for domain, file in samples.dataset.files.items()},
            simulated=source.simulated,
        ),
        tasks={domain: task.predict_digest() for domain, task in samples.tasks.items()},
        extraction=EXTRACTION,
        model={"model": config.model, **model.identity()},
        sampling=sampling,
        max_context=config.max_context,
        min_output=config.min_output,
        context_policy=config.context_policy,
    )


def _selection(config: RunConfig, samples: Samples) -> SelectionRecord:
    """Which samples a run is about, with what is needed to find the data again."""
    data = config.data
    if samples.source.name.startswith("folder "):
        data = str(Path(data).expanduser().resolve())
    counts = {domain: 0 for domain in samples.tasks}
    for ref in samples.refs:
        counts[ref.domain] += 1
    return SelectionRecord(
        data=data,
        tasks=tuple(word if is_bundled(word) else str(Path(word).resolve()) for word in config.tasks),
        **{name: getattr(config, name) for name in SELECTION_FIELDS},
        samples=counts,
    )


def _given_path(output: Path) -> Path:
    """The directory that --output names. Raises ConfigError for a name that no directory can have."""
    path = expanded(output, "--output")
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.lstat()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise ConfigError(
            f"--output {output}: cannot be a run directory ({why}); choose another --output"
        ) from problem
    return path


def _default_path(
    config: RunConfig, model: Model, predict: PredictSection, selection: SelectionRecord
) -> Path:
    """`runs/<model>-<data>-<digest>`: the same command finds its run again.

    Unlike a run's identity, the name also depends on the server's address: two servers may well
    serve different models under one name.
    """
    words = [config.model or "", predict.data.name]
    slug = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words)[:80]
    parts = {"predict": predict.model_dump(mode="json"), "selection": selection.model_dump(mode="json")}
    return Path("runs") / f"{slug}-{digest(parts | {'url': model.url})[:8]}"
