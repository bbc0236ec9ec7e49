"""A run directory: everything one evaluation produced, safe against kill -9.

    run.json            the `RunRecord`: what was asked of whom; replaced atomically
    predictions.jsonl   append-only journal of `Prediction` records
    verdicts.jsonl      append-only journal of `Verdict` records
    metrics.jsonl       derived: `SampleMetrics`, made again by `awb score`
    results.json        derived: what leaderboards read
    run.lock            held by the one process that writes, which `run.owner` names

`journal.py` says how journals are read and written.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout
from pydantic import ValidationError

from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.journal import Journal
from agentworldbench.protocol import PROTOCOLS, Parse
from agentworldbench.records import Prediction, SampleMetrics, Verdict
from agentworldbench.run_record import RunRecord
from agentworldbench.texts import sha256_text

MOST_NAMED: Final = 5
"""Runs in a folder that a complaint names."""


class Store:
    """The files of one run directory, as `open_store` (reading) or `locked_store` (writing) gave it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.predictions: Journal[Prediction] = Journal(path / "predictions.jsonl", Prediction)
        self.verdicts: Journal[Verdict] = Journal(path / "verdicts.jsonl", Verdict)

    def read_run(self) -> RunRecord | None:
        """`run.json`, or None when it does not exist. Raises StoreError when it cannot be understood."""
        path = self.path / "run.json"
        if not path.exists():
            return None
        value = self._read("run.json")
        if isinstance(value, dict) and value.get("schema_version", 1) != 1:
            raise StoreError(f"{path}: written by another version of awb; use that one")
        below: tuple[str, ...] = ()
        try:
            run = RunRecord.model_validate_json(json.dumps(value))
            below = ("selection",)
            RunConfig.model_validate(
                run.selection.model_dump(exclude={"samples"})
            )  # what its samples are found by
        except ValidationError as problem:
            raise _no_record(path, (*below, *problem.errors()[0]["loc"])) from problem
        if not any(run.selection.samples.values()):
            raise _no_record(path, ("selection", "samples"))
        named = run.predict.model.get("model")
        if not isinstance(named, str) or not named.strip():
            raise _no_record(path, ("predict", "model", "model"))
        if len({one.digest for one in run.judges}) < len(run.judges):
            raise _no_record(path, ("judges",))  # one stands there twice
        of_judges = {f"judges.{number}.protocol": one.protocol for number, one in enumerate(run.judges)}
        check_protocols(path, {"protocol": run.protocol, **of_judges})
        return run

    def write_run(self, run: RunRecord) -> None:
        """Replace `run.json` atomically."""
        self.write_json("run.json", run.model_dump(mode="json"))

    def read_results(self) -> Any:
        """`results.json` as JSON, or None when there is none. Raises StoreError when it is damaged."""
        return self._read("results.json")

    def _read(self, name: str) -> Any:
        path = self.path / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (ValueError, OSError, RecursionError) as problem:
            raise StoreError(f"{path}: cannot be read ({problem}); move it away to start anew") from problem

    def has_answers(self) -> bool:
        """Whether any prediction or verdict is stored that is no failure, or a line that cannot be read."""
        if self.predictions.bad_lines or self.verdicts.bad_lines or len(self.verdicts):
            return True
        return any(prediction.failure is None for prediction in self.predictions)

    def judges_with_verdicts(self) -> set[str]:
        """Digests of the judges that gave at least one verdict record."""
        return {key[2] for key in self.verdicts.keys() if isinstance(key, tuple)}  # noqa: SIM118

    def verdict_on(
        self, prediction: Prediction, judge: str, parse: Parse, system_sha256: str | None, repeat: int = 1
    ) -> Verdict | None:
        """The judge's verdict on this very observation under this system prompt, or None.

        `parse` says which reading of the prediction the judge is shown.
        """
        verdict = self.verdicts.get((prediction.sample_id, prediction.epoch, judge, repeat))
        shown = prediction.official_sha256
        if parse == "strict":
            shown = None if prediction.observation is None else sha256_text(prediction.observation)
        if verdict is None or shown is None or verdict.observation_sha256 != shown:
            return None
        return verdict if verdict.system_sha256 == system_sha256 else None

    def set_aside(self) -> None:
        """Move journals without a good answer out of the way (`<name>.old`)."""
        for name in ("predictions.jsonl", "verdicts.jsonl"):
            path = self.path / name
            if path.exists():
                with path.with_name(name + ".old").open("ab") as old:
                    old.write(path.read_bytes())
                path.unlink()
        self.predictions = Journal(self.path / "predictions.jsonl", Prediction)
        self.verdicts = Journal(self.path / "verdicts.jsonl", Verdict)

    def notices(self) -> list[str]:
        """Lines for the user about records that could not be read."""
        found = []
        for journal in (self.predictions, self.verdicts):
            if journal.bad_lines:
                lines = ", ".join(map(str, journal.bad_lines[:5]))
                more = "" if len(journal.bad_lines) <= 5 else f" and {len(journal.bad_lines) - 5} more"
                found.append(f"{journal.path}: line {lines}{more} cannot be read and is left out")
        return found

    def forget_results(self) -> None:
        """Remove `results.json` before work that makes it untrue."""
        (self.path / "results.json").unlink(missing_ok=True)

    def write_json(self, name: str, value: Any) -> None:
        """Replace a small file atomically: unique temporary file, fsync, rename."""
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        self._replace(name, [text.encode("utf-8")])

    def replace_journal(self, name: str, lines: Iterable[bytes]) -> None:
        """Replace a journal by whole lines, atomically; the directory must be opened again to read it."""
        self._replace(name, lines)

    def write_metrics(self, records: Iterable[SampleMetrics]) -> None:
        """Replace `metrics.jsonl` atomically."""
        self._replace(
            "metrics.jsonl", (record.model_dump_json().encode("utf-8") + b"\n" for record in records)
        )

    def read_metrics(self) -> Iterator[SampleMetrics]:
        """The derived metrics, in sample order."""
        path = self.path / "metrics.jsonl"
        if path.exists():
            with path.open("rb") as file:
                for line in file:
                    yield SampleMetrics.model_validate_json(line)

    def _replace(self, name: str, chunks: Iterable[bytes]) -> None:
        temporary = self.path / f".{name}.{os.getpid()}.tmp"
        try:
            with temporary.open("wb") as file:
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except OSError as problem:
            raise StoreError(f"{self.path / name}: cannot be written ({problem.strerror})") from problem
        finally:
            temporary.unlink(missing_ok=True)  # still there when the disk refused, or the user interrupted

    def close(self) -> None:
        """Force the journals to the disk and close them; reading stays possible."""
        self.predictions.close()
        self.verdicts.close()


def check_protocols(path: Path, named: Mapping[str, str], remedy: str = "") -> None:
    """Raises StoreError for a protocol in the file `path`, named by its field, that this harness does not know."""
    for field, name in named.items():
        if name not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            raise StoreError(
                f"{path}: field '{field}': protocol {name!r:.60} is none of this harness ({known}){remedy}"
            )


def _no_record(path: Path, field: Sequence[str | int]) -> StoreError:
    """A `run.json` that was changed by hand, or is somebody else's; `field` says where it shows, if anywhere."""
    where = f" (field '{'.'.join(map(str, field))}')" if field else ""
    return StoreError(f"{path}: not the record of a run{where}; move it away to start anew")


def _sign(owner: Path) -> None:
    """Say whose directory it is now. Raises StoreError when the disk refuses."""
    try:
        owner.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")
    except OSError as problem:
        raise StoreError(f"{owner}: cannot be written ({problem.strerror})") from problem


def open_store(path: Path) -> Store:
    """Open a run directory for reading. Raises ConfigError when it is none."""
    try:
        found = (path / "run.json").is_file()
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be a run directory ({problem.strerror})") from problem
    if not found:
        raise no_run(path)
    return Store(path)


def no_run(path: Path) -> ConfigError:
    """What to say of a path that is no run directory: what is there instead, and what to give."""
    what = ""
    with suppress(OSError):  # a name that no file can have, or a folder that may not be looked into
        if not path.exists():
            what = " (no such folder)"
        elif path.is_file() and (path.parent / "run.json").is_file():
            what = f" (its folder, {path.parent}, is one)"
        elif path.suffix == ".zip" and path.is_file():
            what = " (a bundle or another archive: `awb verify` takes a bundle as it is, other commands its unpacked folder)"
        elif inside := sorted(one.parent.name for one in path.glob("*/run.json"))[:MOST_NAMED]:
            what = f" (runs in it: {', '.join(inside)})"
    return ConfigError(f"{path}: no run.json there{what}; give the directory of a run")


@contextmanager
def locked_store(path: Path) -> Iterator[Store]:
    """Open a run directory as its one writer, making it when it does not exist.

    The journals are read after the lock is held. Raises ConfigError when another process holds it
    or when it cannot be a run directory, StoreError when the disk refuses.
    """
    made = not path.exists()
    try:
        path.mkdir(parents=True, exist_ok=True)
        ours = {"run.json", "run.lock"} & {entry.name for entry in path.iterdir()}
        if not ours and any(path.iterdir()):
            raise ConfigError(f"{path}: not empty and not a run directory; choose another --output")
        lock = FileLock(path / "run.lock")
        lock.acquire(timeout=0)
    except Timeout:
        owner = path / "run.owner"
        who = owner.read_text(encoding="utf-8").strip() if owner.exists() else "another process"
        raise ConfigError(f"{path}: in use by {who}; wait for it or choose another --output") from None
    except (FileExistsError, NotADirectoryError, FileNotFoundError, PermissionError) as problem:
        why = "it is a file" if path.is_file() else problem.strerror
        raise ConfigError(f"{path}: cannot be a run directory ({why}); choose another --output") from problem
    except OSError as problem:
        raise StoreError(f"{path}: cannot be used as a run directory ({problem.strerror})") from problem
    try:
        owner = path / "run.owner"
        try:
            _sign(owner)
            store = Store(path)
            try:
                yield store
            finally:
                store.close()
        finally:
            owner.unlink(missing_ok=True)
    finally:
        lock.release()
        if made and {entry.name for entry in path.iterdir()} <= {"run.lock"}:
            # Nothing was begun: a mistyped address or a missing key leaves no directory behind.
            with suppress(OSError):
                (path / "run.lock").unlink(missing_ok=True)
                path.rmdir()
