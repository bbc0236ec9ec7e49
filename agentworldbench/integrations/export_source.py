"""A run as its exporters read it, and files as they write them.

In: a run directory with results. Out: a `Source`: its samples in file order, each with all its answers (one an
epoch), and with each answer the verdicts of the judges that were chosen, by the reading that each judge's protocol is
headed by. Nothing is asked and nothing is computed that `results.json` holds. What is missing (samples not asked yet,
lines that cannot be read) is said in `Source.notes`, so that no file looks whole that is not. `replacing` writes a
file atomically, and never over one of somebody else's.
"""

from __future__ import annotations

import filecmp
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.plan import Samples
from agentworldbench.protocol import PROTOCOLS, Policy
from agentworldbench.readings import NOT_RUN, BothReadings, Outcome, both_readings, epochs_of, of_prediction
from agentworldbench.records import Prediction, SampleMetrics, SampleRef
from agentworldbench.resources import expanded
from agentworldbench.resume import reopen_samples
from agentworldbench.run import load_run
from agentworldbench.run_record import JudgeRecord, RunRecord, check_times, judge_names
from agentworldbench.stats.aggregate import by_domain, value_of
from agentworldbench.stats.panel import PanelScore
from agentworldbench.stats.results import JudgeResults, Results
from agentworldbench.store import Store, open_store
from agentworldbench.texts import count_text, scrub

BENCHMARK = "agentworldbench"


@dataclass(frozen=True)
class Written:
    """The files that an export wrote, and lines for the user about what is not in them or not yet certain."""

    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """What one judge made of one answer: its verdicts in the order of its repeats."""

    readings: tuple[BothReadings, ...]
    official: bool

    @property
    def outcomes(self) -> list[Outcome]:
        """Each repeat by the reading that the judge's protocol is headed by."""
        return [one.official if self.official else one.strict for one in self.readings]

    @property
    def outcome(self) -> Outcome:
        """What became of the answer: values where any repeat has some, else the failure that kept it from them."""
        return of_prediction(self.outcomes)

    @property
    def score(self) -> PanelScore:
        """Its scores, 0-100, with repeats averaged."""
        return epochs_of([self.outcomes]).score


@dataclass(frozen=True)
class Answer:
    """One (sample, epoch): prediction and metrics (None: not asked yet), and each judge's verdicts by digest."""

    ref: SampleRef
    epoch: int
    prediction: Prediction | None
    metrics: SampleMetrics | None
    judged: Mapping[str, Judged]

    def rule_score(self, primary: Sequence[str]) -> float | None:
        """Its rule score, 0-1; None where it failed or no metric of `primary` applies."""
        return None if self.metrics is None else value_of(self.metrics, primary)


@dataclass(frozen=True)
class Source:
    """A run with results, open for reading. `judges` are those whose verdicts are wanted."""

    path: Path
    record: RunRecord
    results: Results
    store: Store
    samples: Samples
    judges: tuple[JudgeResults, ...]

    @cached_property
    def groups(self) -> dict[str, list[SampleRef]]:
        """The selected samples by domain."""
        return by_domain(self.samples.refs)

    @cached_property
    def names(self) -> dict[str, str]:
        """What each judge of the run is called, by digest."""
        return judge_names(self.record.judges)

    @cached_property
    def metrics(self) -> dict[tuple[str, int], SampleMetrics]:
        """Stored rule metrics by sample id and epoch."""
        return {(one.sample_id, one.epoch): one for one in self.store.read_metrics()}

    @property
    def repository(self) -> str:
        """Where the data come from, for people: the repository, else the data's name."""
        data = self.record.predict.data
        return data.repository or data.name

    @property
    def backend(self) -> str:
        """How the model was reached: `openai-api`, `litellm`, `hf`, `vllm`, `replay` or `baseline`."""
        return str(self.record.predict.model.get("backend"))

    @property
    def model_name(self) -> str:
        """The model without its backend. Where weights lie on somebody's disk is not part of it, and a replay is
        named by the first digits of its hash."""
        name = str(self.record.predict.model.get("name", self.results.model)).strip()
        if self.backend == "replay":
            return f"replay-{name[:12]}"
        if self.backend in ("hf", "vllm") and (name.startswith(("/", ".", "~")) or name.count("/") > 1):
            return Path(name).name
        return name.strip("/")

    def sampling(self, domain: str) -> dict[str, Any]:
        """The sampling parameters that requests of a domain named; the others are the server's own."""
        described = self.record.predict.sampling.get(domain, {})
        return {name: value for name, value in described.items() if value != "server default"}

    def repeats(self, judge: JudgeRecord) -> int:
        """How many verdicts the judge gives on each answer."""
        return self.record.repeats.get(judge.digest, 1)

    def answers(self, domain: str) -> Iterator[tuple[SampleRef, list[Answer]]]:
        """Each sample of a domain with its answers, epoch after epoch, one sample in memory at a time."""
        every = {
            one.judge.digest: groupby(
                both_readings(
                    self.store,
                    {domain: self.groups[domain]},
                    one.judge,
                    self.record.epochs,
                    self.repeats(one.judge),
                ),
                lambda both: (both.ref.id, both.epoch),
            )
            for one in self.judges
        }
        parse = {one.judge.digest: one.judge.parse == "official" for one in self.judges}
        for ref in self.groups[domain]:
            found = []
            for epoch in range(1, self.record.epochs + 1):
                key = (ref.id, epoch)
                judged = {
                    digest: Judged(tuple(next(readings)[1]), parse[digest])
                    for digest, readings in every.items()
                }
                found.append(
                    Answer(ref, epoch, self.store.predictions.get(key), self.metrics.get(key), judged)
                )
            yield ref, found

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines about what the run lacks, and what of its results no format has."""
        return (*self.store.notices(), *_missing(self), *self._panel())

    def _panel(self) -> Iterator[str]:
        """The panel's score, which is none of any one judge, where several judges are written."""
        panel = self.results.panel
        if panel is not None and len(self.judges) > 1:
            policy = PROTOCOLS[panel.protocol].policy
            macro = getattr(panel.reading, f"macro_{policy}")["total"]
            score = "not available" if macro is None else f"{macro:.2f}"
            yield (
                f"the panel's score ({panel.combine} of {len(self.judges)} judges: {score}) is not in these files, which hold "
                "each judge by itself; `awb report` and `awb leaderboard add` have it"
            )


def open_source(path: Path, judge: str | None = None, data: str | None = None) -> Source:
    """Open a run that has results. `judge` names one judge by model, name or digest (None: all of them), `data`
    says where the data are now. Raises ConfigError where there are no results yet, or no such judge, and DataError
    where a time of the run, which most formats hold, is none."""
    run = load_run(path)
    if run.results is None:
        raise ConfigError(f"{path}: has no results yet; `awb score {path}` makes them")
    check_times(path, run.record)
    wanted = (
        {chosen_judge(path, run.record.judges, judge).digest}
        if judge
        else set(judge_names(run.record.judges))
    )
    return Source(
        path=path,
        record=run.record,
        results=run.results,
        store=open_store(path),
        samples=reopen_samples(path, run.record, data),
        judges=tuple(one for one in run.results.judges if one.judge.digest in wanted),
    )


def chosen_judge(path: Path, judges: Iterable[JudgeRecord], name: str | None) -> JudgeRecord:
    """The one judge that `name` means, or the only one. Raises ConfigError with all of them listed."""
    known = list(judges)
    names = judge_names(known)
    fitting = [one for one in known if name in (None, one.model, one.digest, names[one.digest])]
    if len(fitting) == 1:
        return fitting[0]
    if not known:
        raise ConfigError(f"--judge {name}: {path} has no judge")
    listed = ", ".join(f"{one.model} ({one.digest})" for one in known)
    problem = (
        f"--judge {name}: no such judge in {path}" if name and not fitting else f"{path}: has several judges"
    )
    raise ConfigError(f"{problem}; name one with --judge, by its digest if need be: {listed}")


def policy_of(judge: JudgeResults) -> Policy:
    """The failure policy that the judge's protocol is headed by."""
    return PROTOCOLS[judge.judge.protocol].policy


def failure_of(answer: Answer, judge: JudgeRecord | None) -> Outcome | None:
    """What kept an answer from a score: by one judge, or without judge its own failure; None where nothing did."""
    if judge is not None:
        outcome = answer.judged[judge.digest].outcome
        return outcome if outcome.values is None else None
    if answer.prediction is None:
        return Outcome(None, "pending", NOT_RUN)
    failure = answer.prediction.failure
    return None if failure is None else Outcome(None, "prediction", failure.kind.value, failure.message)


def told(outcome: Outcome) -> str:
    """A failure in one line: stage, class and message."""
    return ": ".join(filter(None, (outcome.stage, outcome.kind, outcome.message)))


def reply_of(prediction: Prediction) -> str:
    """The reply as it came; a baseline has none, its observation stands for it."""
    return (prediction.observation if prediction.text is None else prediction.text) or ""


def _missing(source: Source) -> Iterator[str]:
    results = source.results
    if results.complete:
        return
    count = sum(results.predictions.samples.values())
    open_predictions = sum(some.get(NOT_RUN, 0) for some in results.predictions.failures.values())
    parts = [f"{open_predictions:,} of {count_text(count, 'prediction')}"] if open_predictions else []
    for one in source.judges:
        waiting = sum(some["pending"].get(NOT_RUN, 0) for some in one.failures.values())
        if waiting:
            parts.append(
                f"{waiting:,} of {count_text(count, 'verdict')} by {source.names[one.judge.digest]} "
                f"(coverage {100 * one.micro.coverage:.1f} %)"
            )
    what = " and ".join(parts) or "some verdicts of a judge that is not exported"
    yield f"{source.path}: the run is not complete: not asked yet are {what}; the export is as incomplete"


def check_folder(path: Path, folder: Path | None, name: str) -> tuple[Path, bool]:
    """(where to write, whether files there are ours to replace): `name` in the run directory unless a folder is given.

    Raises ConfigError for a folder that is a run directory itself.
    """
    target = expanded(folder, "--output") if folder else path / name
    if (target / "run.json").exists():
        raise ConfigError(
            f"--output {target}: a run directory, whose journals have the same names; choose another"
        )
    return target, folder is None


@contextmanager
def replacing(target: Path, ours: bool) -> Iterator[Path]:
    """A path to write to, which becomes `target` when all went well; what has other contents stays unless `ours`.

    Raises ConfigError for such a file, StoreError when the disk refuses.
    """
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
        if target.exists() and not ours and not filecmp.cmp(part, target, shallow=False):
            raise ConfigError(f"{target}: exists with other contents; remove it or choose another --output")
        part.replace(target)
    except OSError as problem:
        raise StoreError(f"{target}: cannot be written ({problem.strerror})") from problem
    finally:
        part.unlink(missing_ok=True)


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """JSON as UTF-8 that every reader takes: no NaN, no half of a surrogate pair."""
    return scrub(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)).encode()
