"""One evaluation from configuration to results, and the Python interface.

`evaluate(...)` plans, asks, scores and returns a `Run`; `load_run(path)` opens a stored one;
`judge_run` and `score_run` redo a single stage from what the stage before it stored. The event loop
runs in a thread of its own, so all of this works inside Jupyter too; Ctrl-C and SIGTERM cancel what
is in flight, and what was journaled stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentworldbench.config import RunConfig, make_config
from agentworldbench.engine.descriptors import connections_each
from agentworldbench.engine.pipeline import Patience, Pipeline
from agentworldbench.engine.progress import Progress, Watcher
from agentworldbench.engine.rates import Ceilings
from agentworldbench.engine.spending import Ledger, check_prices, open_ledger
from agentworldbench.engine.thread import run_in_thread
from agentworldbench.errors import ConfigError
from agentworldbench.models.replay import ReplayModel
from agentworldbench.notebook import Look, nothing, watching
from agentworldbench.outcome import Scoring, make_results, read_results, try_own
from agentworldbench.panels import panel_asked, panel_notices
from agentworldbench.plan import Plan, make_judges, make_plan
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.pull import Tell
from agentworldbench.readings import both_readings, differences_table
from agentworldbench.records import Prediction, SampleMetrics, Verdict
from agentworldbench.render.cells import run_html
from agentworldbench.render.table import Table
from agentworldbench.resources import expanded, read_dotenv
from agentworldbench.response_cache import ResponseCache
from agentworldbench.resume import (
    continue_run,
    epochs_asked,
    reopen_samples,
    repeats_asked,
    repetition_notices,
    with_facts,
)
from agentworldbench.run_record import RunRecord, judge_names
from agentworldbench.stats.aggregate import by_domain
from agentworldbench.stats.results import Results
from agentworldbench.store import Store, locked_store, no_run, open_store
from agentworldbench.texts import count_text

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Run:
    """A run directory, for reading. `results` is None while none have been made.

    `stopped` says why the session that handed it over ended before all was done (--max-cost).
    """

    path: Path
    record: RunRecord = field(repr=False)
    results: Results | None = field(repr=False)
    stopped: str | None = None

    def __fspath__(self) -> str:
        """A run stands for its directory wherever a path is wanted: `compare_runs(a, b)`."""
        return str(self.path)

    def _repr_html_(self) -> str:
        """Below a notebook's cell: scores with intervals, coverage, judge and protocol, failures."""
        return run_html(self.results, str(self.path), self.stopped)

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
        """One row a prediction: domain, failure, metrics, and each judge's dimensions (1-5).

        Where a metric could not read a prediction and counts 0, a column `METRIC.unparsed` holds why.
        """
        import pandas

        store = open_store(self.path)
        rows: dict[tuple[str, int], dict[str, Any]] = {}
        for prediction in store.predictions:
            domain = prediction.sample_id.partition("/")[0]
            failure = prediction.failure.kind.value if prediction.failure else None
            row = rows[prediction.key] = {"domain": domain, "failure": failure}
            for judge in self.record.judges:
                system = judge.system_prompts.get(domain, "")
                verdict = store.verdict_on(prediction, judge.digest, judge.parse, system)
                scores = (verdict.scores if verdict else None) or {}
                row |= {f"{judge.digest}.{name}": score for name, score in scores.items()}
        for record in store.read_metrics():
            row = rows.setdefault((record.sample_id, record.epoch), {})
            row |= record.values
            row |= {f"{name}.unparsed": reason for name, reason in record.reasons.items()}
        frame = pandas.DataFrame.from_dict(rows, orient="index")
        return frame.set_axis(pandas.MultiIndex.from_tuples(rows, names=["sample_id", "epoch"]))


def load_run(path: str | os.PathLike[str]) -> Run:
    """Open a run directory. Raises ConfigError when it is none, StoreError when it is damaged."""
    store = open_store(Path(path))
    return Run(path=store.path, record=_read_run(store), results=read_results(store))


def evaluate(
    model: str | None = None,
    *,
    watch: Watcher | None = None,
    config: str | Path | None = None,
    **options: Any,
) -> Run:
    """Evaluate a model and return the finished run.

    `options` are the fields of `RunConfig` (`data`, `judge`, `tasks`, `limit`, `output`, …); `config` is a YAML file of
    the same names. The same call on the same `output` resumes. Raises an `AwbError` for everything a user can mend.
    Keys come from the environment or `.env`.

    >>> run = evaluate(model="baseline/copy-last", data="mini")
    >>> run.results.rules.macro["rule_score"].floor
    """
    read_dotenv()
    made = make_config({"model": model, **options}, Path(config) if config else None)
    if made.dry_run:
        raise ConfigError(
            "dry_run: evaluate() always asks; `awb run --dry-run` and `awb estimate` ask nobody"
        )
    with watching(watch) as (told, look):
        return execute(make_plan(made, _silent), told, look)


def execute(plan: Plan, watch: Watcher | None = None, look: Look = nothing) -> Run:
    """Carry out a plan: ask what is due, then score. Raises Interrupted when the user stops it.

    `watch` is told of every change, by the thread of the engine too; `look` is called now and then by this one.
    """
    check_own_metrics(plan)
    progress = Progress(watch)
    scoring = Scoring(plan.config.allow_code, plan.config.processes, progress.scoring)
    with locked_store(plan.path) as store:
        run = continue_run(store, plan)
        stopped = _work(store, plan, run, progress, look)
        make_results(store, _read_run(store), plan.samples, scoring)
    return replace(load_run(plan.path), stopped=stopped)


def ask(plan: Plan, watch: Watcher | None = None) -> str | None:
    """Ask what of a plan is due and journal it; no results are made. Returns why it stopped early, or None."""
    with locked_store(plan.path) as store:
        return _work(store, plan, continue_run(store, plan), Progress(watch), nothing)


def check_own_metrics(plan: Plan) -> None:
    """Try users' own metrics before anything is asked. Raises ConfigError where they are not allowed, TaskError
    where they are wrong."""
    try_own(plan.samples, plan.config.allow_code)


def _silent(line: str) -> None:
    """Files are fetched without a word; the command line tells of them."""


def plan_judging(path: Path, config: RunConfig, data: str | None = None, tell: Tell = _silent) -> Plan:
    """Plan to judge the stored predictions of a run; predictions stay as they are.

    `data` says where the data are now, when they have moved.
    """
    if not config.judge or config.no_judge:
        raise ConfigError("--judge is missing: name the judge to ask")
    run = _read_run(open_store(path))
    samples = reopen_samples(path, run, data)
    protocol = PROTOCOLS[config.protocol]
    judges = make_judges(config, protocol, samples.tasks, tell)
    check_prices(config, [judge.model for judge in judges], [str(run.predict.model["model"])])
    return Plan(config, protocol, samples, None, judges, path, run.predict, run.selection)


def judge_run(path: Path, config: RunConfig, watch: Watcher | None = None, data: str | None = None) -> Run:
    """Judge the stored predictions of a run with the judges of `config`."""
    with watching(watch) as (told, look):
        return execute(plan_judging(path, config, data), told, look)


def score_run(
    path: str | os.PathLike[str],
    data: str | None = None,
    *,
    allow_code: bool = False,
    processes: int | None = None,
    panel: Literal["median", "mean", "none"] | None = None,
    min_judges: int | None = None,
    watch: Watcher | None = None,
) -> Run:
    """Compute metrics and results again from what is stored. No model is asked.

    `allow_code` lets metrics run that stand beside task files; `processes` None means as many as pay. `panel` and
    `min_judges` are those of `RunConfig`; the run remembers them. Raises ConfigError where its judges are no panel.
    """
    path = open_store(Path(path)).path
    asked = make_config({"panel": panel, "min_judges": min_judges})
    with watching(watch) as (told, _), locked_store(path) as store:
        scoring = Scoring(allow_code, processes, Progress(told).scoring)
        stored = _read_run(store)
        run = stored.model_copy(update={"panel": panel_asked(asked, stored.panel, stored.judges)})
        make_results(store, run, reopen_samples(path, run, data), scoring)
        if run != stored:
            store.write_run(run)
    return load_run(path)


def explain_run(path: Path, data: str | None = None) -> list[Table]:
    """For each judge of a run, the samples that the official and the strict reading do not score alike."""
    store = open_store(path)
    run = _read_run(store)
    groups = by_domain(reopen_samples(path, run, data).refs)
    called = judge_names(run.judges)
    return [
        differences_table(
            called[one.digest],
            both_readings(store, groups, one, run.epochs, run.repeats.get(one.digest, 1)),
        )
        for one in run.judges
    ]


def _read_run(store: Store) -> RunRecord:
    run = store.read_run()
    if run is None:
        raise no_run(store.path)
    return run


def _work(store: Store, plan: Plan, run: RunRecord, progress: Progress, look: Look) -> str | None:
    """One session of work; what it left undone for want of money, or None."""
    config = plan.config
    notices = [*store.notices(), *_strays(store, plan), *repetition_notices(plan, run)]
    notices += [*panel_notices(store.read_run(), run), *_unknown_answers(plan)]
    patience = Patience(
        config.max_connections,
        config.max_retries,
        config.retry_failed,
        Ceilings(config.requests_per_minute, config.tokens_per_minute),
        Ceilings(config.judge_requests_per_minute, config.judge_tokens_per_minute),
        most=connections_each(plan.models, config.max_connections, notices),
    )
    earlier = {judge.digest: run.price(judge.model) for judge in run.judges}
    earlier[""] = run.price(str(run.predict.model["model"]))
    ledger = open_ledger(config, plan.predictor, plan.judges, store, plan.samples.refs, earlier)
    progress.notices = [*notices, *([f"Limit: {ledger.told()}."] if ledger.limit else [])]
    progress.purse = ledger
    run_in_thread(lambda: _session(store, plan, run, patience, progress, ledger), look)
    return ledger.closing() if ledger.stopped else None


def _strays(store: Store, plan: Plan) -> Iterator[str]:
    """A line where records are of samples that the run is not about: another program wrote them, or a person."""
    known = {ref.id for ref in plan.samples.refs}
    for journal in (store.predictions, store.verdicts):
        count = sum(isinstance(key, tuple) and key[0] not in known for key in journal.keys())  # noqa: SIM118
        if count:
            yield f"{journal.path}: {count_text(count, 'record is of a sample', 'records are of samples')} that this run does not have, and left out"


def _unknown_answers(plan: Plan) -> Iterator[str]:
    """A line where replayed answers are to samples that the data do not have."""
    model = plan.predictor and plan.predictor.model
    if isinstance(model, ReplayModel):
        yield from model.unknown({ref.id for ref in plan.samples.dataset.refs}, plan.samples.tasks)


async def _session(
    store: Store, plan: Plan, run: RunRecord, patience: Patience, progress: Progress, ledger: Ledger
) -> None:
    folder = plan.config.cache
    cache = ResponseCache(expanded(folder, "--cache"), progress.notices.append) if folder else None
    pipeline = Pipeline(
        plan.samples.dataset,
        store,
        plan.predictor,
        plan.judges,
        patience,
        progress,
        epochs=epochs_asked(plan.config, run),
        repeats=repeats_asked(plan, run),
        cache=cache,
        ledger=ledger,
    )
    units, questions = pipeline.due(plan.samples.refs)
    try:
        if cache:
            await cache.open()
        progress.begin(len(units), len(questions))
        asked = [plan.predictor.model] if units and plan.predictor else []
        asked += [judge.model for judge in plan.judges if any(one.judge is judge for one in questions)]
        for model in asked:
            await model.check()
        # Only now: an address or a key that does not work leaves no trace in the run.
        stored = store.read_run()
        if units or questions or stored is None or stored.panel != run.panel:
            store.write_run(with_facts(run, plan, asked))
            store.forget_results()
        await pipeline.run(plan.samples.refs, plan.config.seed)
        ledger.left = [one.job for some in pipeline.due(plan.samples.refs) for one in some]
        if asked:
            store.write_run(with_facts(run, plan, asked))  # limits may have been learned meanwhile
    finally:
        if cache:
            await cache.close()
        for model in plan.models:
            await model.close()
