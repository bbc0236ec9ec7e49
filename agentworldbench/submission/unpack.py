"""Reading a bundle that somebody else made: a zip file or a folder into a fresh directory, or a refusal.

Nothing of the input decides where bytes go: only the names of `manifest.NAMES` are written, each once, as plain
files, with as many bytes as the manifest states and with its SHA-256. What is refused is refused by a kind
(`BundleError.kind`): traversal, absolute, name, folder, link, device, duplicate, case_collision, encrypted, compression,
too_many_files, too_large, bomb, hidden, unlisted, missing, changed, damaged, version, manifest, not_a_bundle.
Sizes are checked before anything is inflated, and once more while it is.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from agentworldbench.errors import BundleError, ConfigError
from agentworldbench.submission.manifest import MANIFEST, NAMES, REQUIRED, FileMark, Manifest, read_manifest
from agentworldbench.texts import count_text

BLOCK: Final = 1 << 20
_DRIVE: Final = re.compile(r"^[A-Za-z]:")
_END: Final = struct.Struct("<4s4H2LH")
"""The record at the end of a zip file: signature, disks, entries here and in all, size and place of the list of
entries, length of the comment [zip, APPNOTE 4.3.16]."""
_UNICODE_PATH: Final = 0x7075
BESIDE: Final = 512
"""Bytes that the archive's own words on a file may take: two headers, its name twice, its times."""
_FLAGS_ENCRYPTED: Final = 0x1 | 0x40 | 0x2000


@dataclass(frozen=True)
class Limits:
    """What a bundle may have: entries, bytes of the archive, of all files and of the manifest, and how many times
    smaller the archive may be than `bytes` where they are more than `small`. The largest honest bundle known (2,170
    samples, five epochs, with reasoning) has 1.5 GB; JSON of real answers packs 4 to 30 times smaller."""

    entries: int = 32
    archive: int = 1 << 31
    bytes: int = 4 << 30
    manifest: int = 4 << 20
    ratio: int = 200
    small: int = 64 << 20


LIMITS: Final = Limits()


@dataclass(frozen=True)
class _Entry:
    """One file of the input: its name as it stands there and its size."""

    name: str
    size: int


def unpack(source: Path, target: Path, limits: Limits = LIMITS) -> Manifest:
    """Read the bundle `source` (a zip file or a folder) into the new directory `target`.

    Raises BundleError for a bundle that is refused, after which `target` does not exist, and ConfigError when
    `source` cannot be read or `target` exists.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target}: exists already; give a directory that does not")
    target.parent.mkdir(parents=True, exist_ok=True)
    around = Path(tempfile.mkdtemp(prefix=".bundle-", dir=target.parent))
    fresh = around / "bundle"
    try:
        fresh.mkdir()  # with the rights that the umask leaves; a temporary directory is its owner's alone
        manifest = (
            _from_folder(source, fresh, limits) if source.is_dir() else _from_zip(source, fresh, limits)
        )
        fresh.replace(target)
    except OSError as problem:
        raise ConfigError(f"{problem.filename or source}: cannot be read ({problem.strerror})") from problem
    finally:
        shutil.rmtree(around, ignore_errors=True)
    return manifest


@contextmanager
def opened(source: Path, limits: Limits = LIMITS) -> Iterator[tuple[Path, Manifest]]:
    """A bundle unpacked for as long as the context lasts. Raises as `unpack`."""
    with tempfile.TemporaryDirectory(prefix="awb-bundle-") as folder:
        path = Path(folder) / "bundle"
        yield path, unpack(source, path, limits)


def _from_folder(source: Path, target: Path, limits: Limits) -> Manifest:
    entries = []
    for path in sorted(source.iterdir()):
        mode = path.lstat().st_mode
        _check_type(path.name, mode)
        entries.append(_Entry(path.name, path.lstat().st_size))
    _check_names(entries, limits)
    _check_sizes(entries, sum(entry.size for entry in entries), limits)

    def reader(name: str) -> IO[bytes]:
        # Not followed and not waited for, should a link or a pipe have come in its place meanwhile.
        return os.fdopen(os.open(source / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")

    with reader(MANIFEST) as file:
        raw = file.read(limits.manifest + 1)
    manifest = _manifest(raw, entries, limits)
    (target / MANIFEST).write_bytes(raw)
    for name, mark in manifest.files.items():
        with reader(name) as file:
            _copy(file, target / name, name, mark)
    return manifest


def _from_zip(source: Path, target: Path, limits: Limits) -> Manifest:
    size = source.stat().st_size
    if size > limits.archive:
        raise BundleError(
            "too_large", f"{source.name}: {count_text(size, 'byte')}; at most {limits.archive} are read"
        )
    count = _check_end(source, size, limits)
    try:
        with zipfile.ZipFile(source) as archive:
            infos = archive.infolist()
            _check_gaps(source, infos, size, count)
            for info in infos:
                _check_info(info)
            entries = [_Entry(info.orig_filename, info.file_size) for info in infos]
            _check_names(entries, limits)
            _check_sizes(entries, size, limits)
            with archive.open(MANIFEST) as packed:
                raw = packed.read(limits.manifest + 1)
            manifest = _manifest(raw, entries, limits)
            (target / MANIFEST).write_bytes(raw)
            for name, mark in manifest.files.items():
                with archive.open(name) as packed:
                    _copy(packed, target / name, name, mark)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        struct.error,
        NotImplementedError,
        ValueError,
    ) as problem:
        raise BundleError("damaged", f"{source.name}: a damaged archive ({problem})") from problem
    return manifest


def _check_end(source: Path, size: int, limits: Limits) -> int:
    """How many files the end of the archive names. Refuses what is no plain zip file, a list of entries too long to be
    worth reading, and whatever stands before the first file or behind the list."""
    with source.open("rb") as file:
        start = file.read(4)
        file.seek(max(0, size - (1 << 16) - _END.size))
        tail = file.read()
    place = tail.rfind(b"PK\x05\x06")
    if start != b"PK\x03\x04" or place < 0 or len(tail) - place < _END.size:
        raise BundleError(
            "not_a_bundle", f"{source.name}: not a zip file as `awb submit` writes, or cut off at its end"
        )
    _, _, _, _, count, length, start_of_list, comment = _END.unpack_from(tail, place)
    # Files of this size need no zip64, whose second list of entries would go unseen here.
    zip64 = tail[max(0, place - 20) : place].startswith(b"PK\x06\x07")
    if zip64 or count > limits.entries or length > 1 << 16:
        raise BundleError("too_many_files", f"{source.name}: more files than a bundle has")
    # What stands elsewhere in the file no check would read, and other programs might.
    here = size - len(tail) + place
    if comment or size != here + _END.size or here != start_of_list + length:
        told = "has a comment, or bytes in front of its files or behind them"
        raise BundleError("hidden", f"{source.name}: {told}")
    return int(count)


def _check_gaps(source: Path, infos: Sequence[zipfile.ZipInfo], size: int, count: int) -> None:
    """Refuse an archive with more in it than its files: notes of a file, or bytes between two of them."""
    if len(infos) != count:
        raise BundleError(
            "hidden", f"{source.name}: {count_text(len(infos), 'file')}, where its end says {count}"
        )
    beside = size - sum(info.compress_size for info in infos)
    if beside > BESIDE * (len(infos) + 1):
        raise BundleError("hidden", f"{source.name}: {count_text(beside, 'byte')} beside those of its files")


def _check_info(info: zipfile.ZipInfo) -> None:
    _check_type(info.orig_filename, info.external_attr >> 16)
    if info.comment:
        raise BundleError("hidden", f"'{info.orig_filename}': has a comment, which no check reads")
    if _second_name(info.extra):
        raise BundleError(
            "name", f"'{info.orig_filename}': has a second name, which other programs unpack it under"
        )
    if info.flag_bits & _FLAGS_ENCRYPTED:
        raise BundleError("encrypted", f"'{info.orig_filename}': encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BundleError(
            "compression",
            f"'{info.orig_filename}': compressed by method {info.compress_type}; only deflate is read",
        )


def _second_name(extra: bytes) -> bool:
    """Whether an entry's extra fields hold a name: programs that know the field write the file there."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == _UNICODE_PATH:
            return True
        extra = extra[4 + length :]
    return False


def _check_type(name: str, mode: int) -> None:
    """Refuse what is no plain file; archives made on other systems state no type."""
    kind = stat.S_IFMT(mode)
    if kind in (0, stat.S_IFREG):
        return
    words = {stat.S_IFLNK: ("link", "a link"), stat.S_IFDIR: ("folder", "a folder")}
    label, what = words.get(kind, ("device", "a device, pipe or socket"))
    raise BundleError(label, f"'{name}': {what}; a bundle holds plain files alone")


def _check_names(entries: Iterable[_Entry], limits: Limits) -> None:
    """Refuse names that could lead elsewhere, that two programs could take for different files, or that no bundle
    has."""
    seen: dict[str, str] = {}
    names = [entry.name for entry in entries]
    if len(names) > limits.entries:
        raise BundleError(
            "too_many_files", f"{count_text(len(names), 'file')}; a bundle has at most {limits.entries}"
        )
    for name in names:
        kind, why = _fault(name)
        if kind:
            raise BundleError(kind, f"{name!r:.200}: {why}")
        folded = unicodedata.normalize("NFKC", name).casefold()
        if folded in seen:
            kind = "duplicate" if seen[folded] == name else "case_collision"
            raise BundleError(kind, f"'{name}': there already as '{seen[folded]}'")
        seen[folded] = name
    for name in names:
        if name not in NAMES:
            raise BundleError("unlisted", f"{name!r:.200}: no file of a bundle ({', '.join(NAMES)})")
    if MANIFEST not in names:
        raise BundleError("not_a_bundle", f"no {MANIFEST} in it")


def _fault(name: str) -> tuple[str, str]:
    """Kind and reason why a name is refused, or two empty texts."""
    parts = re.split(r"[/\\]", name)
    if name.startswith(("/", "\\")) or _DRIVE.match(name):
        return "absolute", "an absolute name"
    if ".." in parts:
        return "traversal", "leads out of the bundle"
    if len(parts) > 1:
        return "folder", "lies in a folder; a bundle has none"
    if not name or not name.isprintable() or name != name.strip(" .") or not name.isascii():
        return "name", "a name that systems read differently"
    return "", ""


def _check_sizes(entries: Iterable[_Entry], packed: int, limits: Limits) -> None:
    total = 0
    for entry in entries:
        total += entry.size
        if entry.name == MANIFEST and entry.size > limits.manifest:
            raise BundleError(
                "too_large",
                f"{MANIFEST}: {count_text(entry.size, 'byte')}; at most {limits.manifest} are read",
            )
    if total > limits.bytes:
        raise BundleError("too_large", f"{count_text(total, 'byte')} in all; at most {limits.bytes} are read")
    if total > limits.small and total > limits.ratio * packed:
        raise BundleError(
            "bomb", f"{count_text(total, 'byte')} from {packed}: no text of a run packs so small"
        )


def _manifest(raw: bytes, entries: Iterable[_Entry], limits: Limits) -> Manifest:
    """The manifest, which must name exactly the other files, with their sizes."""
    if len(raw) > limits.manifest:
        raise BundleError("too_large", f"{MANIFEST}: more than {limits.manifest} bytes")
    manifest = read_manifest(raw)
    there = {entry.name: entry.size for entry in entries if entry.name != MANIFEST}
    for name in there.keys() - manifest.files.keys():
        raise BundleError("unlisted", f"'{name}': not in {MANIFEST}")
    for name in sorted(manifest.files.keys() - there.keys()) + sorted(
        set(REQUIRED) - {MANIFEST} - there.keys()
    ):
        raise BundleError("missing", f"'{name[:100]}': is missing")
    for name, mark in manifest.files.items():
        if there[name] != mark.bytes:
            raise BundleError(
                "changed", f"'{name}': {count_text(there[name], 'byte')}, {MANIFEST} states {mark.bytes}"
            )
    return manifest


def _copy(source: IO[bytes], target: Path, name: str, mark: FileMark) -> None:
    """Write a file of the size and hash that the manifest states, and not a byte more than that."""
    found, left = hashlib.sha256(), mark.bytes
    with target.open("xb") as file:
        while block := source.read(min(BLOCK, left + 1)):
            left -= len(block)
            if left < 0:
                raise BundleError("bomb", f"'{name}': longer than it says")
            found.update(block)
            file.write(block)
    if left or found.hexdigest() != mark.sha256:
        raise BundleError("changed", f"'{name}': not the content whose SHA-256 {MANIFEST} states")
