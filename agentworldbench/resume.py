"""Whether a session may work on a run directory, and what `run.json` says afterwards.

A run directory is continued by the same `predict` section (names and addresses may differ, hashes
may not) and by a selection that holds at least the samples it had. Judges are added; one that never
gave a verdict is forgotten when the next session comes. While a directory holds no good answer, it
has no identity: another configuration takes it over, and the failures are set aside.
"""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.models import Model
from agentworldbench.official_files import existing_folder
from agentworldbench.panels import panel_asked
from agentworldbench.plan import SELECTION_FIELDS, Plan, Samples, open_samples
from agentworldbench.records import SampleRef
from agentworldbench.run_record import (
    JudgeRecord,
    PanelRule,
    PredictSection,
    RequestLimits,
    RunRecord,
    SelectionRecord,
    Session,
)
from agentworldbench.selection import select
from agentworldbench.sources import is_folder
from agentworldbench.store import Store
from agentworldbench.texts import count_text, time_text
from agentworldbench.version import __version__

_INFORMATION = {
    "predict.data.name",
    "predict.data.repository",
    "predict.data.revision",
    "predict.data.simulated",
    "predict.model.model",
}
_PER_DOMAIN = {"predict.data.files", "predict.tasks", "predict.sampling"}


def continued(store: Store, plan: Plan) -> RunRecord | None:
    """The run that a session of `plan` on `store` goes on with; None where it begins one.

    It begins one too where another configuration has left nothing but failures. Raises ConfigError when the
    plan may not continue what is there.
    """
    stored = store.read_run()
    if stored is None or (not store.has_answers() and differences(stored.predict, plan.predict)):
        return None
    check_same_run(plan.path, stored.predict, plan.predict)
    check_selection_grows(plan.path, stored.selection, plan.samples)
    return stored


def continue_run(store: Store, plan: Plan) -> RunRecord:
    """`run.json` for a session of `plan` on `store`. Raises ConfigError when it may not continue the run."""
    stored = continued(store, plan)
    judges, panel = judges_and_panel(store, plan, stored)
    session = _session(plan)
    if stored is None:
        if store.read_run() is not None:
            store.set_aside()
        return RunRecord(
            created_at=session.started_at,
            protocol=plan.protocol.name,
            predict=plan.predict,
            selection=plan.selection,
            judges=judges,
            sessions=(session,),
            epochs=epochs_asked(plan.config, None),
            repeats=_repeats(plan, None, judges),
            panel=panel,
        )
    return stored.model_copy(
        update={
            "epochs": max(stored.epochs, epochs_asked(plan.config, stored)),
            "repeats": _repeats(plan, stored, judges),
            "panel": panel,
            "predict": grown(stored.predict, plan.predict),
            "selection": plan.selection,
            "judges": judges,
            "sessions": (*stored.sessions, session),
        }
    )


def judges_and_panel(
    store: Store, plan: Plan, stored: RunRecord | None
) -> tuple[tuple[JudgeRecord, ...], PanelRule | None]:
    """The judges of a run with a session of `plan`, and their panel. Raises ConfigError where they cannot be it."""
    new = tuple(judge.record() for judge in plan.judges)
    judges = _merged(stored.judges, new, store) if stored else new
    return judges, panel_asked(plan.config, stored.panel if stored else None, judges)


def epochs_asked(config: RunConfig, run: RunRecord | None) -> int:
    """How many answers to each sample a session asks for: as --epochs says, else as many as its run has."""
    return config.epochs or (run.epochs if run else 1)


def repeats_asked(plan: Plan, run: RunRecord | None) -> dict[str, int]:
    """How many verdicts on each prediction a session asks of each of its judges, by digest."""
    known = run.repeats if run else {}
    return {
        (digest := judge.digest()): plan.config.judge_repeats or known.get(digest, 1) for judge in plan.judges
    }


def _repeats(plan: Plan, stored: RunRecord | None, judges: Iterable[JudgeRecord]) -> dict[str, int]:
    """What `run.json` says of repeats, for the judges that have more than one."""
    known, asked = stored.repeats if stored else {}, repeats_asked(plan, stored)
    most = {one.digest: max(known.get(one.digest, 1), asked.get(one.digest, 1)) for one in judges}
    return {digest: number for digest, number in most.items() if number > 1}


def repetition_notices(plan: Plan, run: RunRecord) -> Iterator[str]:
    """Lines about epochs and repeats that say less than they seem to, or that this session leaves alone."""
    config = plan.config
    if (epochs := epochs_asked(config, run)) < run.epochs:
        yield f"--epochs {epochs}: this run has {count_text(run.epochs, 'epoch')}; all of them count, this session asks for {epochs}"
    for digest, number in repeats_asked(plan, run).items():
        if number < run.repeats.get(digest, 1):
            yield f"--judge-repeats {number}: this run has {run.repeats[digest]} of judge {digest}; all of them count"
    if epochs > 1 and plan.predictor is not None:
        drawn = [plan.predictor.sampling(ref, 1) for ref in _one_a_domain(plan)]
        if str(config.model).startswith("baseline/"):
            yield f"--epochs {epochs}: a baseline answers alike each time"
        elif any(one.temperature == 0 for one in drawn):
            yield f"--epochs {epochs} at temperature 0: answers differ only as far as the server makes them differ"
        elif any("seed" in one.extra for one in drawn):
            yield f"--epochs {epochs} with one seed in the request's body: the answers will be alike; --seed gives each its own"
    if any(
        number > 1 and judge.sampling.temperature == 0
        for judge, number in zip(plan.judges, repeats_asked(plan, run).values(), strict=True)
    ):
        yield "--judge-repeats at temperature 0: verdicts differ only as far as the server makes them differ"


def _one_a_domain(plan: Plan) -> Iterable[SampleRef]:
    return {ref.domain: ref for ref in plan.samples.refs}.values()


def with_facts(run: RunRecord, plan: Plan, asked: Iterable[Model]) -> RunRecord:
    """`run.json` with what the models told of themselves, for those that this session asked."""
    models = list(asked)
    predictor, facts = plan.predictor, dict[str, Any]()
    if predictor and predictor.model in models:
        facts["model_facts"] = predictor.model.facts()
    judges = {judge.digest(): judge.model.facts() for judge in plan.judges if judge.model in models}
    session = run.sessions[-1].model_copy(update=facts | {"judge_facts": judges})
    return run.model_copy(update={"sessions": (*run.sessions[:-1], session)})


def grown(old: PredictSection, new: PredictSection) -> PredictSection:
    """The section with the domains of both sides."""
    return old.model_copy(
        update={
            "data": old.data.model_copy(
                update={
                    "files": old.data.files | new.data.files,
                    "simulated": tuple(dict.fromkeys((*old.data.simulated, *new.data.simulated))),
                }
            ),
            "tasks": old.tasks | new.tasks,
            "sampling": old.sampling | new.sampling,
        }
    )


def _merged(
    old: tuple[JudgeRecord, ...], new: tuple[JudgeRecord, ...], store: Store
) -> tuple[JudgeRecord, ...]:
    """Earlier judges that gave verdicts, then those of this session; a judge's prompts are brought up to date."""
    given = store.judges_with_verdicts()
    merged = {judge.digest: judge for judge in old if judge.digest in given}
    for judge in new:
        before = merged.get(judge.digest)
        prompts = (before.system_prompts if before else {}) | judge.system_prompts
        merged[judge.digest] = judge.model_copy(update={"system_prompts": prompts})
    return tuple(merged.values())


def check_same_run(path: Path, stored: PredictSection, predict: PredictSection) -> None:
    """Refuse a directory made under another `predict` section, with the fields named. Raises ConfigError."""
    found = differences(stored, predict)
    if found:
        raise ConfigError(
            f"{path}: made with another configuration: {'; '.join(found[:6])}; choose another --output"
        )


def differences(old: PredictSection, new: PredictSection) -> list[str]:
    """Where two sections would lead to other predictions, by field name; `*` stands for several domains."""
    places: dict[str, list[tuple[str, str]]] = {}
    for field, where, change in _compare(
        old.model_dump(mode="json"), new.model_dump(mode="json"), "predict", "predict"
    ):
        places.setdefault(field, []).append((where, change))
    return [_told(field, found) for field, found in places.items()]


def _told(field: str, found: list[tuple[str, str]]) -> str:
    """One line of a field that differs in the places found, which are domains where they are several."""
    where, change = found[0]
    if len(found) == 1:
        return f"{where} {change}"
    alike = len({change for _, change in found}) == 1
    return f"{field} {change}" if alike else f"{field} differ ({count_text(len(found), 'domain')})"


def _compare(old: Any, new: Any, where: str, field: str) -> Iterator[tuple[str, str, str]]:
    """Differences: field with `*` for the domain, its place, what changed. Domains that only one side has are none."""
    if where in _INFORMATION or old == new:
        return
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        yield field, where, f"was {_short(old)}, now {_short(new)}"
        return
    by_domain = where in _PER_DOMAIN
    for name in sorted(old.keys() & new.keys() if by_domain else old.keys() | new.keys()):
        inner = f"{field}.*" if by_domain else f"{field}.{name}"
        yield from _compare(old.get(name), new.get(name), f"{where}.{name}", inner)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 44 else text[:12] + "…"


def check_selection_grows(path: Path, stored: SelectionRecord, samples: Samples) -> None:
    """Refuse a selection that leaves out samples which the run is about. Raises ConfigError."""
    old_domains = {domain for domain, count in stored.samples.items() if count}
    missing = old_domains - samples.tasks.keys()
    if not missing:
        before = select(samples.dataset.refs, RunConfig.model_validate(_fields(stored)))
        known = {ref.id for ref in before if ref.domain in old_domains}
        missing = known - {ref.id for ref in samples.refs}
    if missing:
        raise ConfigError(
            f"{path}: made for a larger selection ({count_text(len(missing), 'sample or domain', 'samples or domains')} would be left out, for example "
            f"{min(missing)}); choose another --output"
        )


def reopen_samples(path: Path, run: RunRecord, data: str | None = None) -> Samples:
    """The data of a stored run, from `data` where they have moved. Raises DataError when they are not there, or not the
    data the run was made with."""
    stored = run.selection
    fields = _fields(stored) | {"data": data or stored.data, "tasks": stored.tasks}
    if data is None and is_folder(stored.data) and existing_folder(Path(stored.data)) is None:
        raise DataError(
            f"{path}: its data were in the folder {stored.data}, which is not there (any more); --data FOLDER says where "
            "they are now"
        )
    samples = open_samples(RunConfig.model_validate(fields))
    wanted = {domain for domain, count in stored.samples.items() if count}
    for domain in sorted(wanted):
        file = samples.dataset.files.get(domain)
        if file is None or file.sha256 != run.predict.data.files.get(domain):
            raise DataError(
                f"{path}: the data of domain '{domain}' is not the one this run was made with (looked for in "
                f"{samples.source.name}); --data says where it is"
            )
    kept = tuple(ref for ref in samples.refs if ref.domain in wanted)
    return Samples(samples.source, samples.dataset, kept)


def _fields(stored: SelectionRecord) -> dict[str, Any]:
    return {name: getattr(stored, name) for name in SELECTION_FIELDS}


def _session(plan: Plan) -> Session:
    return Session(
        # Milliseconds tell the sessions of shards apart that are begun together.
        started_at=time_text(datetime.now(UTC), "milliseconds"),
        harness=__version__,
        packages=dict(_packages()),
        model_url=plan.predictor.model.url if plan.predictor else None,
        judge_urls={judge.digest(): judge.model.url for judge in plan.judges},
        prices={model.name: price for model in plan.models if (price := model.price()) and not model.local},
        max_cost=plan.config.max_cost,
        limits=RequestLimits(**{name: getattr(plan.config, name) for name in RequestLimits.model_fields}),
        **_git(),
    )


@cache  # what this process has loaded does not change, whatever is installed meanwhile
def _packages() -> Mapping[str, str]:
    """Versions of what can change an answer or a number."""
    names = "litellm openai pydantic numpy rapidfuzz huggingface-hub lm-eval transformers torch vllm"
    found = {"python": platform.python_version()}
    for name in names.split():
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def _git() -> Mapping[str, Any]:
    """Commit of the harness when it runs from a checkout."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return {"git_commit": None, "git_dirty": None}
    status = _ask_git(root, "status", "--porcelain", "--untracked-files=no")
    return {
        "git_commit": _ask_git(root, "rev-parse", "HEAD"),
        "git_dirty": None if status is None else bool(status),
    }


def _ask_git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
