"""From a run directory to a bundle: a folder and, of it, a zip file whose bytes depend on nothing but its files.

In: a run and what the submitter chose. Out: `Prepared`: the folder with its manifest, and what would have to be
allowed first. The zip file has sorted names, one date, one mode, no extra fields. On machines with another zlib its
bytes may differ; the manifest's, whose hash names the bundle, do not.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentworldbench.errors import ConfigError, StoreError
from agentworldbench.leaderboard.provenance import Submitter
from agentworldbench.outcome import Scoring
from agentworldbench.resume import reopen_samples
from agentworldbench.run import load_run
from agentworldbench.run_record import RunRecord
from agentworldbench.stats.results import Results
from agentworldbench.submission.manifest import (
    MANIFEST,
    NAMES,
    Allowed,
    FileMark,
    Manifest,
    Options,
    bundle_sha256,
    make_manifest,
    write_manifest,
)
from agentworldbench.submission.public import publish
from agentworldbench.submission.secret_scan import EMAIL, Finding, machine_values, scan

SUFFIX: Final = ".awb.zip"
BLOCK: Final = 1 << 20
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644 << 16


@dataclass(frozen=True)
class Prepared:
    """A bundle as a folder. `record` and `results` are those in it, `findings` what looks like a secret, `refused` those
    of them that nobody has allowed: with one of them nothing may become public."""

    folder: Path
    record: RunRecord
    results: Results
    manifest: Manifest
    sha256: str
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> tuple[Finding, ...]:
        """Findings that were not allowed."""
        allowed = {one.id for one in self.manifest.allowed}
        return tuple(one for one in self.findings if one.id not in allowed)


def prepare(
    path: Path,
    folder: Path,
    options: Options,
    *,
    submitter: Submitter | None = None,
    allow: Collection[str] = (),
    data: str | None = None,
    scoring: Scoring | None = None,
) -> Prepared:
    """Make the bundle of the run at `path` in the empty directory `folder`.

    Raises DataError for a run that is not whole or whose data are not there, ConfigError for results that are not
    those of the stored replies or for an `allow` that is neither a finding's id nor `e-mail`, which allows all addresses. Findings that are not allowed are the
    caller's to refuse.
    """
    run = load_run(path)
    if not options.references and _is_made_of_data(str(run.record.predict.model["model"])):
        raise ConfigError(f"--no-references: the predictions of {path} are texts of the data set themselves")
    samples = reopen_samples(path, run.record, data)
    redactor = publish(run, samples, folder, options, scoring or Scoring())
    public = load_run(folder)
    assert public.results is not None, "publish has made them"
    names = [name for name in NAMES if (folder / name).is_file()]
    findings = scan(folder, names, samples, machine_values(private_hosts=redactor.private_hosts))
    if strange := sorted(set(allow) - {EMAIL, *(one.id for one in findings)}):
        raise ConfigError(f"--allow {strange[0]}: no finding has this id")
    allowed = [one for one in findings if one.id in allow or (one.kind == EMAIL and EMAIL in allow)]
    manifest = make_manifest(
        public.record,
        public.results,
        (ref.id for ref in samples.refs),
        submitter=submitter,
        options=options,
        allowed=[Allowed(id=one.id, kind=one.kind, places=one.count) for one in allowed],
        redactions=redactor.counts,
        files={name: mark(folder / name) for name in names},
    )
    raw = write_manifest(manifest)
    (folder / MANIFEST).write_bytes(raw)
    return Prepared(folder, public.record, public.results, manifest, bundle_sha256(raw), tuple(findings))


def _is_made_of_data(model: str) -> bool:
    return model.startswith("baseline/") and model != "baseline/empty"


def mark(path: Path) -> FileMark:
    """Size and hash of a file."""
    found, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
            size += len(block)
    return FileMark(sha256=found.hexdigest(), bytes=size)


def write_zip(folder: Path, target: Path) -> None:
    """Pack the files of a bundle into `target`, replaced when all is written. Raises StoreError."""
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name in _names(folder):
                with (folder / name).open("rb") as file, archive.open(_info(folder / name), "w") as packed:
                    shutil.copyfileobj(file, packed, BLOCK)
        part.replace(target)
    except OSError as problem:
        raise StoreError(f"{target}: cannot be written ({problem.strerror})") from problem
    finally:
        part.unlink(missing_ok=True)


def _names(folder: Path) -> Collection[str]:
    return [name for name in sorted(NAMES) if (folder / name).is_file()]


def _info(path: Path) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(path.name, _DATE)
    info.file_size = path.stat().st_size
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # Unix, whatever packs it
    info.external_attr = _MODE
    return info
