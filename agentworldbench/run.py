"""One evaluation from configuration to results, and the Python interface.

`evaluate(...)` plans, asks, scores and returns a `Run`; `load_run(path)` opens a stored one;
`judge_run` and `score_run` redo a single stage from what the stage before it stored. The event loop
runs in a thread of its own, so all of this works inside Jupyter too; Ctrl-C and SIGTERM cancel what
is in flight, and what was journaled stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import json
import platform
import subprocess
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agentworldbench.config import RunConfig, make_config
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress
from agentworldbench.errors import ConfigError, Interrupted, StoreError
from agentworldbench.models import Model
from agentworldbench.outcome import make_results
from agentworldbench.plan import (
    Plan,
    check_same_run,
    check_selection_grows,
    make_judges,
    make_plan,
    reopen_samples,
)
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import Prediction, SampleMetrics, Verdict
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, locked_store, open_store
from agentworldbench.version import __version__

if TYPE_CHECKING:
    import pandas

Watcher = Callable[[Progress], None]


@dataclass(frozen=True)
class Run:
    """A run directory, for reading. `results` is None while none have been made."""

    path: Path
    config: dict[str, Any]
    results: Results | None

    def predictions(self) -> Iterator[Prediction]:
        """Stored predictions, one at a time."""
        return iter(open_store(self.path).predictions)

    def verdicts(self) -> Iterator[Verdict]:
        """Stored verdicts of all judges, one at a time."""
        return iter(open_store(self.path).verdicts)

    def metrics(self) -> Iterator[SampleMetrics]:
        """Rule metrics of each sample, in file order."""
        return open_store(self.path).read_metrics()

    def frame(self) -> pandas.DataFrame:
        """One row a sample: id, domain, failure, metrics, and each judge's dimensions (1-5)."""
        import pandas

        rows: dict[str, dict[str, Any]] = {}
        for prediction in self.predictions():
            failure = prediction.failure.kind.value if prediction.failure else None
            rows[prediction.sample_id] = {
                "domain": prediction.sample_id.partition("/")[0],
                "failure": failure,
            }
        for record in self.metrics():
            rows.setdefault(record.sample_id, {}).update(record.values)
        for verdict in self.verdicts():
            scores = verdict.scores or {}
            row = rows.setdefault(verdict.sample_id, {})
            row |= {f"{verdict.judge}.{name}": score for name, score in scores.items()}
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis("sample_id")


def load_run(path: str | Path) -> Run:
    """Open a run directory. Raises ConfigError when it is none, StoreError when it is damaged."""
    store = open_store(Path(path))
    results = store.read_json("results.json")
    try:
        parsed = None if results is None else Results.model_validate_json(json.dumps(results))
    except ValidationError as problem:
        raise StoreError(f"{store.path / 'results.json'}: damaged; `awb score` makes it again") from problem
    return Run(path=store.path, config=store.read_json("run.json"), results=parsed)


def evaluate(
    model: str | None = None,
    *,
    watch: Watcher | None = None,
    config: str | Path | None = None,
    **options: Any,
) -> Run:
    """Evaluate a model and return the finished run.

    `options` are the fields of `RunConfig` (`data`, `judge`, `tasks`, `limit`, `output`, …); `config`
    is a YAML file of the same names. The same call on the same `output` resumes. Raises an
    `AwbError` for everything a user can mend.

    >>> run = evaluate(model="baseline/copy-last", data="mini")
    >>> run.results.rules.macro_floor
    """
    made = make_config({"model": model, **options}, Path(config) if config else None)
    return execute(make_plan(made), watch)


def execute(plan: Plan, watch: Watcher | None = None) -> Run:
    """Carry out a plan: ask what is due, then score. Raises Interrupted when the user stops it."""
    with locked_store(plan.path) as store:
        run = _merge_run(store, plan)
        store.write_json("run.json", run)
        _work(store, plan, watch)
        make_results(store, run, plan.samples)
    return load_run(plan.path)


def judge_run(path: Path, config: RunConfig, watch: Watcher | None = None) -> Run:
    """Judge the stored predictions of a run with the judges of `config`; predictions stay as they are."""
    if not config.judge or config.no_judge:
        raise ConfigError("--judge is missing: name the judge to ask")
    open_store(path)
    with locked_store(path) as store:
        plan = plan_judging(store, config)
        run = _merge_run(store, plan)
        store.write_json("run.json", run)
        _work(store, plan, watch)
        make_results(store, run, plan.samples)
    return load_run(path)


def plan_judging(store: Store, config: RunConfig) -> Plan:
    """Plan for judging what `store` holds."""
    run = store.read_json("run.json")
    if run is None:
        raise ConfigError(f"{store.path}: no run.json there; give the directory of a run")
    samples = reopen_samples(store.path, run)
    protocol = PROTOCOLS[run["predict"]["protocol"]["name"]]
    judges = make_judges(config, protocol, samples.tasks)
    return Plan(config, protocol, samples, None, judges, store.path, run["predict"], run["selection"])


def score_run(path: Path, data: str | None = None) -> Run:
    """Compute metrics and results again from what is stored. No model is asked."""
    open_store(path)
    with locked_store(path) as store:
        run = store.read_json("run.json")
        make_results(store, run, reopen_samples(path, run, data))
    return load_run(path)


def _merge_run(store: Store, plan: Plan) -> dict[str, Any]:
    """The content of `run.json` for this session: checked against what stands there, then extended."""
    stored = store.read_json("run.json")
    judges = [{"digest": judge.digest(), **judge.identity()} for judge in plan.judges]
    if stored is None or not (len(store.predictions) or len(store.verdicts)):
        # A run without any answer has no identity yet: a mistyped URL can still be mended.
        return {
            "schema_version": 1,
            "created_at": _now(),
            "harness": {"version": __version__, **_git()},
            "predict": plan.predict,
            "selection": plan.selection,
            "judges": judges,
            "packages": _packages(),
        }
    check_same_run(plan.path, stored["predict"], plan.predict)
    check_selection_grows(plan.path, stored["selection"], plan.samples)
    known = {judge["digest"] for judge in stored["judges"]}
    predict = stored["predict"] | {
        name: stored["predict"][name] | plan.predict[name] for name in ("tasks", "sampling", "model")
    }
    predict["data"] = stored["predict"]["data"] | {
        "files": stored["predict"]["data"]["files"] | plan.predict["data"]["files"]
    }
    merged: dict[str, Any] = stored | {
        "predict": predict,
        "selection": plan.selection,
        "judges": stored["judges"] + [judge for judge in judges if judge["digest"] not in known],
    }
    return merged


def _work(store: Store, plan: Plan, watch: Watcher | None) -> None:
    config = plan.config
    patience = Patience(config.max_connections, config.max_retries, config.retry_failed)
    progress = Progress(watch)
    run_in_thread(lambda: _session(store, plan, patience, progress))


async def _session(store: Store, plan: Plan, patience: Patience, progress: Progress) -> None:
    pipeline = Pipeline(plan.samples.dataset, store, plan.predictor, plan.judges, patience, progress)
    predictions, verdicts = pipeline.due(plan.samples.refs)
    progress.begin(predictions, verdicts)
    try:
        if predictions and plan.predictor:
            await plan.predictor.model.check()
        if verdicts:
            for judge in plan.judges:
                await judge.model.check()
        await pipeline.run(plan.samples.refs, plan.config.seed)
    finally:
        await _close(plan.models)


async def _close(models: list[Model]) -> None:
    for model in models:
        await model.close()


def run_in_thread(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine on a new event loop in a thread of its own and wait for it.

    An interrupt (KeyboardInterrupt in the calling thread) cancels the coroutine and is raised as
    `Interrupted` once it has ended.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work())  # made before the thread: an interrupt always finds it
    failure: list[BaseException] = []
    ended = threading.Event()

    async def main() -> None:
        await task

    def target() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(main())
        except BaseException as problem:  # noqa: BLE001 - handed over to the calling thread
            failure.append(problem)
        finally:
            ended.set()

    thread = threading.Thread(target=target, name="awb-engine", daemon=True)
    begun = interrupted = False
    while not ended.is_set():
        try:
            if not begun:
                begun = True
                thread.start()  # waits too, and may be interrupted
            ended.wait()  # not join(): before Python 3.13 an interrupted join takes the thread for ended
        except KeyboardInterrupt:
            interrupted = True
            with contextlib.suppress(RuntimeError):  # the loop may close at this moment
                loop.call_soon_threadsafe(task.cancel)
    if interrupted:
        raise Interrupted("interrupted; what is done stays, and the same command continues")
    if failure:
        raise failure[0]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _packages() -> dict[str, str]:
    """Versions of what can change an answer or a number."""
    names = ("litellm", "openai", "pydantic", "numpy", "rapidfuzz", "rouge-score", "huggingface-hub")
    found = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _git() -> dict[str, Any]:
    """Commit of the harness when it runs from a checkout."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return {"git_commit": None, "git_dirty": None}

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"git_commit": git("rev-parse", "HEAD"), "git_dirty": None if status is None else bool(status)}
