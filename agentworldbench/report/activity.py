"""What a run is doing, counted from its journals while another process may be writing them.

In: `run.json`, and each record once, in the order of the files. Out: an `Activity`, which is what `/progress.json` of
`awb view` says. It counts as results do: the last record of a key, a verdict only on the prediction that it was given on,
money over all records. Whether somebody works on the run is told by `run.owner`, never by trying to take the lock.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Final, Literal

from agentworldbench.engine.pace import Speed
from agentworldbench.journal import is_unfinished
from agentworldbench.prices import Price
from agentworldbench.records import TRANSIENT, Asked, Failure, Prediction, Record, Usage, Verdict
from agentworldbench.render.scores import judge_letters
from agentworldbench.report.owner import worker_of
from agentworldbench.run_record import JudgeRecord, RunRecord, judge_names
from agentworldbench.stats.costs import charge
from agentworldbench.texts import moment, sha256_text, time_text

State = Literal["running", "elsewhere", "stopped", "finished"]
"""`elsewhere`: a process of another machine signed the directory, and nobody can tell from here whether it lives."""
LAST_FAILURES: Final = 5
_VERDICTS: Final = "verdicts"
"""The pace of all judges together; no digest is such a word."""


class StageCounts(Record):
    """Predictions, or the verdicts of one judge: `done` of `total` have a record, `failed` of those no good one.
    `per_minute` is the recent rate of a run under way, None where it is not known."""

    name: str
    total: int
    done: int
    failed: int
    failures: dict[str, int]
    per_minute: float | None = None


class DomainCounts(Record):
    """One domain: predictions asked for, done and failed, and verdicts done by judge."""

    domain: str
    total: int
    done: int
    failed: int
    verdicts: tuple[int, ...]


class LastFailure(Record):
    """A failure that was written lately."""

    stage: str
    sample_id: str
    kind: str
    message: str


class Activity(Record):
    """The state of a run. Seconds are those of the last session, as far as it has come; `seconds_left` is rough and None
    where no rate is known. `cost_usd` None: a part is unknown, `known_usd` is the rest. `attempts` counts requests that
    failed, by class; most were sent again. `unread` lines of the journals are no records."""

    schema_version: Literal[1] = 1
    run: str
    model: str
    state: State
    worker: str | None
    started_at: str
    last_record_at: str | None
    seconds: float
    seconds_left: float | None
    stages: tuple[StageCounts, ...]
    domains: tuple[DomainCounts, ...]
    cost_usd: float | None
    known_usd: float
    prompt_tokens: int | None
    completion_tokens: int | None
    attempts: dict[str, int]
    last_failures: tuple[LastFailure, ...]
    unread: int


@dataclass(frozen=True)
class _Answer:
    """`again`: an earlier session left a failure of a moment, which this one asks again."""

    failure: str | None
    again: bool
    strict: str | None
    official: str | None


@dataclass(frozen=True)
class _Judged:
    failure: str | None
    again: bool
    observation: str
    system: str | None


class Counts:
    """Counts of one run, fed record by record."""

    def __init__(self, run: RunRecord) -> None:
        self.run = run
        self._answers: dict[tuple[str, int], _Answer] = {}
        self._judged: dict[tuple[str, int, str, int], _Judged] = {}
        self._prices: dict[str, Price | None] = {one.digest: run.price(one.model) for one in run.judges}
        self._prices[""] = run.price(str(run.predict.model["model"]))
        self._names = judge_names(run.judges)
        self._since = _moment(self._session)
        self._paces = {name: Speed() for name in (*self._prices, _VERDICTS)}
        for pace in self._paces.values():
            pace.begin(self._since or 0.0)
        self._usd: list[float] = []
        self._unknown = 0
        self._usage = Usage()
        self._attempts: Counter[str] = Counter()
        self._failures: deque[LastFailure] = deque(maxlen=LAST_FAILURES)

    def add(self, record: Prediction | Verdict) -> None:
        """Count a record that stands behind all those before."""
        judge = record.judge if isinstance(record, Verdict) else ""
        if judge not in self._prices:
            return  # of a judge that the run has forgotten
        cost = charge(record, self._prices[judge])
        self._usd.append(cost.usd)
        self._unknown += cost.unknown > 0
        self._usage += record.usage
        self._attempts.update(str(one.outcome) for one in record.attempts if one.outcome != "ok")
        if is_unfinished(record):
            return
        new = self._in_session(record)
        if new is not None:
            for name in (judge, _VERDICTS) if judge else ("",):
                self._paces[name].note(new)
        again = new is None and record.failure is not None and record.failure.kind in TRANSIENT
        failure = record.failure.kind.value if record.failure else None
        if record.failure is not None:
            self._note(record.sample_id, self._names.get(judge, "prediction"), record.failure)
        if isinstance(record, Verdict):
            self._judged[record.key] = _Judged(
                failure, again, record.observation_sha256, record.system_sha256
            )
        else:
            strict = None if record.observation is None else sha256_text(record.observation)
            self._answers[record.key] = _Answer(failure, again, strict, record.official_sha256)

    @property
    def _session(self) -> str:
        """When the last session began; of a run whose record names none, when it was made."""
        return self.run.sessions[-1].started_at if self.run.sessions else self.run.created_at

    def _in_session(self, record: Asked) -> float | None:
        """When a record was finished, in seconds since 1970; None before the last session, and where nobody knows.
        What waited between attempts was finished later; in the order of the file its moment is that of the one before."""
        began = _moment(record.started_at)
        if began is None or self._since is None or began + (record.seconds or 0.0) < self._since:
            return None
        return min(began + (record.seconds or 0.0), time.time())

    def _note(self, sample_id: str, stage: str, failure: Failure) -> None:
        text = " ".join(failure.message.split())[:300]
        self._failures.append(
            LastFailure(stage=stage, sample_id=sample_id, kind=failure.kind.value, message=text)
        )

    def activity(self, path: Path, unread: int = 0) -> Activity:
        """What is known now of the run in the directory `path`."""
        worker, working = worker_of(path)
        now, written = time.time(), _written(path)
        since = self._since or now
        running = working is not False and worker is not None
        found = list(self._stages(now if running else None))
        stages = tuple(stage for stage, _ in found)
        done = all(one.done >= one.total for one in stages)
        state: State = "finished" if done else "stopped"
        if running:
            state = "running" if working else "elsewhere"
        return Activity(
            run=path.resolve().name,
            model=str(self.run.predict.model["model"]),
            state=state,
            worker=worker if running else None,
            started_at=self._session,
            last_record_at=None if written is None else time_text(datetime.fromtimestamp(written, UTC)),
            seconds=max(0.0, (now if running else (written or since)) - since),
            seconds_left=self._seconds_left(found, now) if running else None,
            stages=stages,
            domains=tuple(self._domains()),
            cost_usd=None if self._unknown else fsum(self._usd),
            known_usd=fsum(self._usd),
            prompt_tokens=self._usage.prompt_tokens,
            completion_tokens=self._usage.completion_tokens,
            attempts=dict(self._attempts.most_common()),
            last_failures=tuple(reversed(self._failures)),
            unread=unread,
        )

    def _seconds_left(self, stages: Sequence[tuple[StageCounts, int]], now: float) -> float | None:
        """As `Progress.seconds_left` tells it on the terminal: the verdicts of all judges are one stage."""
        left = [sum(one.total - one.done + again for one, again in some) for some in (stages[:1], stages[1:])]
        rates = (self._paces[name].rate(now) for name in ("", _VERDICTS))
        known = [many / rate if rate else None for many, rate in zip(left, rates, strict=True) if many > 0]
        found = [seconds for seconds in known if seconds is not None]
        return max(found) if found and len(found) == len(known) else None

    def _stages(self, now: float | None) -> Iterator[tuple[StageCounts, int]]:
        """Each stage, and how many of its failures this session asks again."""
        total = sum(self.run.selection.samples.values()) * self.run.epochs
        failures = Counter(one.failure for one in self._answers.values() if one.failure)
        again = sum(one.again for one in self._answers.values())
        yield self._stage("", "Predictions", (total, len(self._answers), failures), now), again
        for letter, judge in zip(judge_letters(len(self.run.judges)), self.run.judges, strict=True):
            given = list(self._given(judge))
            repeats = self.run.repeats.get(judge.digest, 1)
            domains = judge.system_prompts.keys() & self.run.selection.samples.keys()
            fit = sum(self.run.selection.samples[one] for one in domains) * self.run.epochs
            unfit = sum(_shown(one, judge) is None and key[0].partition("/")[0] in domains for key, one in self._answers.items())  # fmt: skip
            wrong = Counter(one.failure for _, one in given if one.failure)
            counted = ((fit - unfit) * repeats, len(given), wrong)
            name = f"Verdicts{letter} of {self._names[judge.digest]}"
            yield self._stage(judge.digest, name, counted, now), sum(one.again for _, one in given)

    def _stage(
        self, judge: str, name: str, counted: tuple[int, int, Counter[str]], now: float | None
    ) -> StageCounts:
        total, done, failures = counted
        rate = None if now is None else self._paces[judge].rate(now)
        return StageCounts(
            name=name,
            total=total,
            done=done,
            failed=failures.total(),
            failures=dict(failures.most_common()),
            per_minute=None if rate is None else 60 * rate,
        )

    def _given(self, judge: JudgeRecord) -> Iterator[tuple[str, _Judged]]:
        """The verdicts of a judge that count, by sample: on the prediction that stands there, under the prompt in force."""
        for (sample_id, epoch, digest, _), one in self._judged.items():
            answer = self._answers.get((sample_id, epoch))
            if digest != judge.digest or answer is None or one.observation != _shown(answer, judge):
                continue
            if one.system == judge.system_prompts.get(sample_id.partition("/")[0]):
                yield sample_id, one

    def _domains(self) -> Iterator[DomainCounts]:
        done = Counter(key[0].partition("/")[0] for key in self._answers)
        failed = Counter(key[0].partition("/")[0] for key, one in self._answers.items() if one.failure)
        given = [
            Counter(name.partition("/")[0] for name, _ in self._given(judge)) for judge in self.run.judges
        ]
        for domain, count in self.run.selection.samples.items():
            if count:
                yield DomainCounts(
                    domain=domain,
                    total=count * self.run.epochs,
                    done=done[domain],
                    failed=failed[domain],
                    verdicts=tuple(some[domain] for some in given),
                )


def _shown(answer: _Answer, judge: JudgeRecord) -> str | None:
    """The hash of what the judge is shown of a prediction; None where there is nothing to show."""
    return answer.strict if judge.parse == "strict" else answer.official


def _moment(text: str | None) -> float | None:
    """Seconds since 1970; a time without a zone is UTC."""
    found = None if text is None else moment(text)
    with suppress(ValueError, OverflowError):
        return None if found is None else found.timestamp()
    return None


def _written(path: Path) -> float | None:
    """When a journal was written last."""
    moments = []
    for name in ("predictions.jsonl", "verdicts.jsonl"):
        with suppress(OSError):
            moments.append((path / name).stat().st_mtime)
    return max(moments, default=None)
