"""From a configuration to everything a run needs, and the run's recorded identity.

In: a `RunConfig`. Out: a `Plan`: data set, chosen samples, model, judges, the `predict` section of
`run.json` and the run directory. Nothing is asked yet. A run directory made under another
`predict` section is refused with the differing fields named; adding domains, samples or judges to a
run is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentworldbench.config import RunConfig
from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.engine.steps import Predictor
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.models import Connection, Model, create_model
from agentworldbench.protocol import PROTOCOLS, Protocol
from agentworldbench.records import SampleRef, Sampling, digest, sha256_text
from agentworldbench.scoring.judge import Judge
from agentworldbench.selection import select
from agentworldbench.sources import Source, resolve_source
from agentworldbench.task import Task

MODEL_KEYS = ("AWB_API_KEY", "OPENAI_API_KEY")
JUDGE_KEYS = ("AWB_JUDGE_API_KEY", "AWB_API_KEY", "OPENAI_API_KEY")
SELECTION_FIELDS = ("limit", "limit_trajectories", "sample_id", "seed")


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
    predict: dict[str, Any]
    selection: dict[str, Any]

    @property
    def models(self) -> list[Model]:
        """Every model of the plan that may have to be asked."""
        asked = [self.predictor.model] if self.predictor else []
        return asked + [judge.model for judge in self.judges]


def open_samples(config: RunConfig) -> Samples:
    """Find, index and choose the data of a configuration. Raises DataError, TaskError, ConfigError."""
    source = resolve_source(config.data, config.tasks)
    dataset = open_dataset(source.files, source.tasks)
    return Samples(source, dataset, select(dataset.refs, config))


def make_plan(config: RunConfig) -> Plan:
    """Plan an evaluation. Raises ConfigError, TaskError, DataError or CredentialsError."""
    if not config.model:
        raise ConfigError(
            "--model is missing: name the model to evaluate (baseline/copy-last works everywhere)"
        )
    protocol = PROTOCOLS[config.protocol]
    samples = open_samples(config)
    connection = Connection(config.base_url, config.timeout, MODEL_KEYS, config.max_context)
    model = create_model(config.model, connection, samples.tasks)
    predictor = Predictor(
        model=model,
        tasks=samples.tasks,
        sampling=lambda ref: request_sampling(config, samples.tasks[ref.domain], ref),
        min_output=config.min_output,
    )
    predict = _predict_section(config, samples, model)
    selection = _selection(config, samples)
    path = config.output.expanduser() if config.output else _default_path(config, predict, selection)
    judges = make_judges(config, protocol, samples.tasks)
    return Plan(config, protocol, samples, predictor, judges, path, predict, selection)


def make_judges(config: RunConfig, protocol: Protocol, tasks: Mapping[str, Task]) -> tuple[Judge, ...]:
    """The judges of a configuration; none with --no-judge."""
    if config.no_judge:
        return ()
    judges = []
    for position, name in enumerate(config.judge):
        if name.startswith(("baseline/", "replay/")):
            raise ConfigError(f"--judge {name}: a judge must be a model that can be asked")
        connection = Connection(
            config.judge_url(position), config.timeout, JUDGE_KEYS, config.judge_max_context
        )
        temperature = config.judge_temperature
        sampling = Sampling(
            temperature=protocol.judge_temperature if temperature is None else temperature,
            max_tokens=config.judge_max_tokens or protocol.judge_max_tokens,
            extra=config.judge_extra_body,
        )
        model = create_model(name, connection, tasks)
        judges.append(
            Judge(model, sampling, protocol, tasks, config.judge_json_schema, config.judge_attempts)
        )
    if len({judge.digest() for judge in judges}) != len(judges):
        raise ConfigError("--judge: the same judge is given twice")
    return tuple(judges)


def request_sampling(config: RunConfig, task: Task, ref: SampleRef | None = None) -> Sampling:
    """Sampling of one request: flags first, then --gen-kwargs, then the task's defaults.

    With --seed each sample has a seed of its own, derived from it.
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
        seed = int(sha256_text(f"{config.seed}/{ref.id}")[:8], 16) >> 1
    try:
        return Sampling.model_validate(named | {"seed": seed, "extra": extra | config.extra_body})
    except ValueError as problem:
        raise ConfigError(f"--gen-kwargs: {str(problem).splitlines()[2].strip()}") from None


def _predict_section(config: RunConfig, samples: Samples, model: Model) -> dict[str, Any]:
    """What fixes every prediction of a run; a difference makes another run."""
    source = samples.source
    sampling = {domain: request_sampling(config, task).described() for domain, task in samples.tasks.items()}
    for some in sampling.values():
        if config.seed is not None and "seed" not in config.gen_kwargs | config.extra_body:
            some["seed"] = f"derived from {config.seed} and the sample id"
    return {
        "data": {
            "name": source.name,
            "repository": source.repository,
            "revision": source.revision,
            "files": {domain: file.sha256 for domain, file in samples.dataset.files.items()},
        },
        "tasks": {domain: task.predict_digest() for domain, task in samples.tasks.items()},
        "protocol": {"name": config.protocol, "version": PROTOCOLS[config.protocol].version},
        "model": {"model": config.model, **model.identity()},
        "sampling": sampling,
        "max_context": config.max_context,
        "min_output": config.min_output,
        "context_policy": "error",
    }


def _selection(config: RunConfig, samples: Samples) -> dict[str, Any]:
    """Which samples a run is about, with what is needed to find the data again."""
    data = config.data
    if samples.source.name == "folder":
        data = str(Path(data).expanduser().resolve())
    chosen = {name: getattr(config, name) for name in SELECTION_FIELDS}
    chosen["sample_id"] = list(config.sample_id)
    tasks = [word if not Path(word).exists() else str(Path(word).resolve()) for word in config.tasks]
    counts = {domain: 0 for domain in samples.tasks}
    for ref in samples.refs:
        counts[ref.domain] += 1
    return {"data": data, "tasks": tasks, **chosen, "samples": counts}


def _default_path(config: RunConfig, predict: dict[str, Any], selection: dict[str, Any]) -> Path:
    """`runs/<model>-<data>-<digest>`: the same command finds its run again."""
    words = [config.model or "", predict["data"]["name"]]
    slug = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-.") for word in words)[:80]
    return Path("runs") / f"{slug}-{digest({'predict': predict, 'selection': selection})[:8]}"


def check_same_run(path: Path, stored: Mapping[str, Any], predict: Mapping[str, Any]) -> None:
    """Refuse a run directory made under another `predict` section. Raises ConfigError.

    Domains that only one side has are no difference: a run may grow by domains.
    """
    differences = _differences(stored, predict, "predict")
    if differences:
        raise ConfigError(
            f"{path}: made with another configuration: {'; '.join(differences[:6])}; choose another --output"
        )


def _differences(old: Any, new: Any, where: str) -> list[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        per_domain = where in ("predict.data.files", "predict.tasks", "predict.sampling")
        names = old.keys() & new.keys() if per_domain else old.keys() | new.keys()
        found: list[str] = []
        for name in sorted(names):
            found += _differences(old.get(name), new.get(name), f"{where}.{name}")
        return found
    return [] if old == new else [f"{where} was {_short(old)}, now {_short(new)}"]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 44 else text[:12] + "…"


def check_selection_grows(path: Path, stored: Mapping[str, Any], samples: Samples) -> None:
    """Refuse a selection that leaves out samples which the run is about. Raises ConfigError."""
    old_domains = {domain for domain, count in stored["samples"].items() if count}
    fields = {name: stored[name] for name in SELECTION_FIELDS}
    missing = old_domains - samples.tasks.keys()
    if not missing:
        before = select(
            [ref for ref in samples.dataset.refs if ref.domain in old_domains],
            RunConfig.model_validate(fields),
        )
        missing = {ref.id for ref in before} - {ref.id for ref in samples.refs}
    if missing:
        raise ConfigError(
            f"{path}: made for a larger selection ({len(missing)} samples or domains would be left out, for example "
            f"{min(missing)}); choose another --output"
        )


def reopen_samples(path: Path, run: Mapping[str, Any], data: str | None = None) -> Samples:
    """The data of a stored run. Raises DataError when it is not the data the run was made with."""
    stored = run["selection"]
    fields = {name: stored[name] for name in SELECTION_FIELDS} | {
        "data": data or stored["data"],
        "tasks": stored["tasks"],
    }
    samples = open_samples(RunConfig.model_validate(fields))
    wanted = {domain for domain, count in stored["samples"].items() if count}
    for domain in sorted(wanted):
        file = samples.dataset.files.get(domain)
        if file is None or file.sha256 != run["predict"]["data"]["files"].get(domain):
            raise DataError(f"{path}: the data of domain '{domain}' is not the one this run was made with")
    kept = tuple(ref for ref in samples.refs if ref.domain in wanted)
    return Samples(samples.source, samples.dataset, kept)
