"""`replay/RUN` or `replay/FILE`: answers that already exist, read again instead of asked for.

In: the run directory of an earlier evaluation, or a JSONL file of `{"sample_id", "text"}` (read
like a model's reply; `"finish_reason"` is "stop" unless it is given, null where it is not known) or
`{"sample_id", "observation"}` (taken as it is). Out: the stored answer, or
a failure `not_in_replay`, also where the sample's row has changed since. What the earlier run made of
a reply does not count: it is read again under the rules of now. Where no reply came, its failure stays.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from agentworldbench.dataset import lines_of
from agentworldbench.errors import ConfigError, DataError
from agentworldbench.journal import Journal
from agentworldbench.models.base import LocalAnswers, one_line
from agentworldbench.models.failures import failed
from agentworldbench.records import (
    OFFICIAL_DOMAINS,
    TRANSIENT,
    CallFailure,
    Completion,
    FailureKind,
    Prediction,
    Request,
)
from agentworldbench.resources import expanded
from agentworldbench.store import open_store
from agentworldbench.texts import count_text, scrub, sha256_file


class ReplayModel(LocalAnswers):
    """Stored answers by sample id. Raises ConfigError or DataError when they cannot be read."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        path = expanded(Path(name.partition("/")[2]), f"model '{name}'")
        self._replayed = _replayed_model(path / "run.json")
        if path.is_dir():
            self._run: Journal[Prediction] | None = open_store(path).predictions
            source = path / "predictions.jsonl"
            self._file: dict[tuple[str, int], Completion] = {}
            lines = self._run.lines(self._run.keys())
            self._places = [(line, key[0]) for key, line in lines.items() if isinstance(key, tuple)]
        elif path.is_file():
            self._run, source = None, path
            self._file, self._places = _read_file(path)
        else:
            raise ConfigError(f"model '{name}': no run directory or file at {path}")
        self._source = source
        try:
            self._sha256 = sha256_file(source)
        except OSError as problem:
            raise ConfigError(f"model '{name}': {source} cannot be read ({problem.strerror})") from problem

    def identity(self) -> dict[str, Any]:
        """Backend, the hash of the stored answers, and whose they are where a run says so."""
        return {"backend": "replay", "name": self._sha256, "replayed": self._replayed}

    def unknown(self, samples: Collection[str], domains: Collection[str]) -> Iterator[str]:
        """A line where answers are to samples that the data do not have: they are left out, and a misspelt id is seen.

        `samples` are all ids of the data, `domains` those that are evaluated; answers to the other official domains
        are none of this run's.
        """
        elsewhere = set(OFFICIAL_DOMAINS) - set(domains)
        lost = [
            (line, sample_id)
            for line, sample_id in self._places
            if sample_id not in samples and sample_id.partition("/")[0] not in elsewhere
        ]
        if lost:
            line, first = min(lost)
            yield (
                f"{self._source}:{line}: no sample {one_line(first, limit=80)!r} in this data; {len(lost)} of "
                f"{count_text(len(self._places), 'answer is', 'answers are')} to unknown samples and are left out"
            )

    async def generate(self, request: Request) -> Completion | CallFailure:
        """The stored answer of (sample, epoch)."""
        key = (request.sample.id, request.epoch)
        if self._run is None:
            return self._file.get(key) or _missing("the file has no such sample")
        stored = self._run.get(key)
        if stored is None:
            return _missing("the run has no such sample")
        if stored.row_hash != request.sample.ref.row_hash:
            return _missing("the run's answer belongs to another row: the data has changed since")
        return _from_prediction(stored)


def _from_prediction(stored: Prediction) -> Completion | CallFailure:
    """The stored reply, or the failure of a request that had none. Its usage was counted then."""
    replied = stored.text is not None or stored.finish_reason is not None
    if stored.failure is not None and not replied:
        if stored.failure.kind in TRANSIENT:
            return _missing(f"the run had {stored.failure.kind}: {stored.failure.message}")
        return CallFailure(failure=stored.failure, cost_usd=0.0)
    return Completion(
        text=stored.text,
        observation=stored.observation if stored.text is None else None,
        reasoning=stored.reasoning,
        finish_reason=stored.finish_reason,
        refusal=stored.refusal,
        tool_calls=stored.tool_calls,
        cost_usd=0.0,
        model_served=stored.model_served,
        response_id=stored.response_id,
        fingerprint=stored.fingerprint,
        adapted=stored.adapted,
    )


def _missing(message: str) -> CallFailure:
    return failed(FailureKind.NOT_IN_REPLAY, message)


def _replayed_model(run_file: Path) -> str | None:
    """The model that a run asked, from its `run.json`; None where that does not say."""
    try:
        model = json.loads(run_file.read_bytes())["predict"]["model"]["model"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return scrub(model) if isinstance(model, str) else None


def _read_file(path: Path) -> tuple[dict[tuple[str, int], Completion], list[tuple[int, str]]]:
    """Answers by sample and epoch; and of every line its number and sample."""
    answers: dict[tuple[str, int], Completion] = {}
    places: list[tuple[int, str]] = []
    for number, _, line in lines_of(path):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise DataError(f"{path}:{number}: not a JSON object on one line ({problem})") from None
        good = isinstance(row, dict) and isinstance(row.get("sample_id"), str)
        kinds = [name for name in ("text", "observation") if good and isinstance(row.get(name), str)]
        if len(kinds) != 1:
            raise DataError(
                f'{path}:{number}: expected "sample_id" and one of "text" and "observation", as strings'
            )
        epoch = row.get("epoch", 1)
        if not isinstance(epoch, int) or epoch < 1:
            raise DataError(f'{path}:{number}: "epoch" is {str(epoch)[:40]!r}, not a number from 1')
        reason = row.get("finish_reason", "stop")
        if reason is not None and not isinstance(reason, str):
            raise DataError(f'{path}:{number}: "finish_reason" is neither a string nor null')
        places.append((number, row["sample_id"]))
        answers[(row["sample_id"], epoch)] = Completion(
            **{kinds[0]: scrub(row[kinds[0]])}, finish_reason=reason, cost_usd=0.0
        )
    return answers, places
