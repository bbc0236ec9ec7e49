"""Reading bundles of others: the honest one passes as file and as folder, forged ones are refused by the right kind.

Archives are data (`tests/cases/submission/archives.yaml`); bombs are made here, sparse or out of zeros. Whatever is
refused leaves nothing behind, inside the target or beside it.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentworldbench.errors import BundleError, ConfigError
from agentworldbench.run import load_run
from agentworldbench.submission.manifest import MANIFEST, NAMES, bundle_sha256
from agentworldbench.submission.pack import Prepared, write_zip
from agentworldbench.submission.unpack import Limits, opened, unpack
from tests.helpers.bundles import Entry, make_bundle, make_run, write_archive

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "cases/submission/archives.yaml").read_text(encoding="utf-8")
)
TYPES = {
    "file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK, "pipe": stat.S_IFIFO, "device": stat.S_IFCHR,
    "socket": stat.S_IFSOCK,
}  # fmt: skip


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("honest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWB_API_KEY", "EMPTY")
        return make_bundle(make_run(folder / "run", limit="1", tasks="swe,os"), folder / "bundle")


@pytest.fixture
def packed(honest: Prepared, tmp_path: Path) -> Path:
    write_zip(honest.folder, tmp_path / "honest.awb.zip")
    return tmp_path / "honest.awb.zip"


def refusal(source: Path, target: Path, limits: Limits | None = None) -> BundleError:
    """The error of a refused bundle, which has left nothing behind."""
    before = sorted(target.parent.rglob("*"))
    with pytest.raises(BundleError) as refused:
        unpack(source, target, limits or Limits())
    assert sorted(target.parent.rglob("*")) == before
    return refused.value


@pytest.mark.parametrize("form", ["zip", "folder"])
def test_an_honest_bundle_is_a_run_directory_again(honest: Prepared, packed: Path, form: str) -> None:
    target = packed.parent / "fresh"
    manifest = unpack(packed if form == "zip" else honest.folder, target)
    assert manifest == honest.manifest
    assert bundle_sha256((target / MANIFEST).read_bytes()) == honest.sha256
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        path.name: path.read_bytes() for path in honest.folder.iterdir()
    }
    assert {stat.S_IMODE(path.stat().st_mode) & 0o111 for path in target.iterdir()} == {0}
    run = load_run(target)
    assert run.results == honest.results
    assert len(list(run.predictions())) == len(list(run.verdicts())) == manifest.samples


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_an_unpacked_bundle_has_the_rights_that_the_umask_leaves(
    packed: Path, tmp_path: Path, mask: int
) -> None:
    before = os.umask(mask)
    try:
        unpack(packed, tmp_path / "fresh")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o777 & ~mask


def test_an_opened_bundle_is_gone_afterwards(packed: Path) -> None:
    with opened(packed) as (folder, manifest):
        assert {path.name for path in folder.iterdir()} == {MANIFEST, *manifest.files}
    assert not folder.exists()


@pytest.mark.parametrize("name", CASES)
def test_forged_archives_are_refused(honest: Prepared, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    source = forged(case, honest.folder, tmp_path / "forged.zip")
    refused = refusal(source, tmp_path / "target")
    assert refused.kind == case["kind"], refused
    assert case.get("says", "") in str(refused)


def with_second_name(path: Path, honest: Path) -> None:
    """An extra field under which Info-ZIP unpacks the file elsewhere."""
    name = b"../../evil"
    field = struct.pack("<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(b"NOTICE")) + name
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(honest.iterdir()):
            info = zipfile.ZipInfo(one.name)
            info.extra = field if one.name == "NOTICE" else b""
            archive.writestr(info, one.read_bytes())


def with_notes(path: Path, honest: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(honest.iterdir()):
            info = zipfile.ZipInfo(one.name)
            info.comment = b"what no check reads"
            archive.writestr(info, one.read_bytes())


def with_padding(path: Path, honest: Path) -> None:
    """More in the extra fields of the entries than times and owners take."""
    with zipfile.ZipFile(path, "w") as archive:
        for one in sorted(honest.iterdir()):
            info = zipfile.ZipInfo(one.name)
            info.extra = struct.pack("<HH", 0xCAFE, 2000) + b"x" * 2000
            archive.writestr(info, one.read_bytes())


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda path, honest: path.write_bytes(path.read_bytes()[:-2] + b"\x04\x00note"), "hidden"),
        (lambda path, honest: path.write_bytes(path.read_bytes() + b"more"), "hidden"),
        (lambda path, honest: path.write_bytes(path.read_bytes() * 2), "hidden"),
        (lambda path, honest: path.write_bytes(fewer(path.read_bytes())), "hidden"),
        (with_notes, "hidden"),
        (with_padding, "hidden"),
        (with_second_name, "name"),
    ],
    ids=["comment", "behind", "twice", "count", "notes", "padding", "second name"],
)
def test_what_no_check_would_read_is_refused(
    honest: Prepared, packed: Path, make: Callable[[Path, Path], Any], kind: str
) -> None:
    make(packed, honest.folder)
    assert refusal(packed, packed.parent / "target").kind == kind


def fewer(data: bytes) -> bytes:
    """An archive whose end names two files."""
    place = data.rindex(b"PK\x05\x06")
    return data[: place + 8] + struct.pack("<HH", 2, 2) + data[place + 12 :]


def forged(case: dict[str, Any], honest: Path, path: Path) -> Path:
    """The archive that a case describes."""
    left_out = case.get("without", [])
    instead = {name: changed(honest / name, how) for name, how in case.get("instead", {}).items()}
    if mark := case.get("drop_mark"):
        manifest = json.loads((honest / MANIFEST).read_bytes())
        del manifest["files"][mark]
        instead[MANIFEST] = json.dumps(manifest).encode()
    names = [name for name in sorted(NAMES) if (honest / name).exists() and name not in left_out]
    entries = [Entry(name, instead.get(name)) for name in names]
    entries += [
        Entry(one["name"], one["text"].encode(), kind=TYPES[one.get("type", "file")], flags=one.get("flags", 0),
              method=one.get("method", zipfile.ZIP_DEFLATED))
        for one in case.get("with", [])
    ]  # fmt: skip
    entries += [Entry(f"{number}.json", b"") for number in range(case.get("many", 0))]
    with pytest.warns(UserWarning, match="Duplicate") if case["kind"] == "duplicate" else nothing():
        write_archive(path, entries, honest)
    path.write_bytes(damaged(path.read_bytes(), case.get("damage")))
    return path


def nothing() -> Any:
    return pytest.MonkeyPatch.context()


def changed(path: Path, how: str) -> bytes:
    """The contents of an honest file, changed as the case says; else `how` itself."""
    raw = path.read_bytes()
    if how == "flipped":
        return raw.replace(b"1", b"2", 1)
    if how == "longer":
        return raw + b"\n"
    if how in ("extra", "later"):
        value = json.loads(raw)
        return json.dumps(
            {**value, "surprise": 1} if how == "extra" else {**value, "schema_version": 2}
        ).encode()
    if how == "twice":
        return raw.replace(b'"schema_version": 1,', b'"schema_version": 1, "schema_version": 1,', 1)
    if how == "nested":
        return b"[" * 100_000
    return how.encode()


def damaged(raw: bytes, how: str | None) -> bytes:
    if how == "middle":
        place = raw.index(b"predictions.jsonl") + 200
        return raw[:place] + bytes(255 - byte for byte in raw[place : place + 40]) + raw[place + 40 :]
    if how == "end":
        return raw[: len(raw) // 2]
    if how == "page":
        return b"<!DOCTYPE html><p>Please log in."
    if how == "zip64":
        place = raw.rindex(b"PK\x05\x06")
        return raw[:place] + b"PK\x06\x07" + bytes(16) + raw[place:]
    return b"" if how == "empty" else raw


def test_a_sparse_file_of_ten_gigabytes_is_not_read(honest: Prepared, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    unpack(honest.folder, folder)
    with (folder / "references.jsonl").open("r+b") as file:
        file.truncate(10 << 30)
    assert refusal(folder, tmp_path / "target").kind == "too_large"


def test_an_archive_that_says_ten_gigabytes_is_not_inflated(packed: Path, tmp_path: Path) -> None:
    raw = bytearray(packed.read_bytes())
    place = raw.index(b"PK\x01\x02", raw.index(b"PK\x01\x02") + 1)
    raw[place + 24 : place + 28] = ((4 << 30) - 1).to_bytes(4, "little")
    packed.write_bytes(bytes(raw))
    assert refusal(packed, tmp_path / "target").kind == "too_large"


def test_zeros_that_pack_to_nothing_are_a_bomb(honest: Prepared, tmp_path: Path) -> None:
    limits = Limits(small=1 << 20)
    entries = [Entry(name) for name in sorted(NAMES) if name != "references.jsonl"]
    bomb = write_archive(
        tmp_path / "bomb.zip", [*entries, Entry("references.jsonl", bytes(64 << 20))], honest.folder
    )
    refused = refusal(bomb, tmp_path / "target", limits)
    assert (refused.kind, bomb.stat().st_size < 1 << 18) == ("bomb", True), refused


def test_an_archive_inside_an_archive_is_not_opened(honest: Prepared, packed: Path, tmp_path: Path) -> None:
    entries = [*(Entry(name) for name in sorted(NAMES)), Entry("inner.zip", packed.read_bytes())]
    assert (
        refusal(write_archive(tmp_path / "o.zip", entries, honest.folder), tmp_path / "t").kind == "unlisted"
    )


def test_sizes_that_lie_are_found_out(packed: Path, tmp_path: Path) -> None:
    """More bytes than the list of entries and the manifest state are never written."""
    raw = packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        info = archive.getinfo("predictions.jsonl")
    place = raw.rindex(b"predictions.jsonl") - 46
    assert raw[place : place + 4] == b"PK\x01\x02"
    short = raw[: place + 24] + (info.file_size - 9).to_bytes(4, "little") + raw[place + 28 :]
    packed.write_bytes(short)
    assert refusal(packed, tmp_path / "target").kind == "changed"


@pytest.mark.parametrize("limits", [Limits(archive=1000), Limits(manifest=100), Limits(bytes=5000)])
def test_limits_hold(packed: Path, tmp_path: Path, limits: Limits) -> None:
    assert refusal(packed, tmp_path / "target", limits).kind == "too_large"


@pytest.mark.parametrize("what", ["link", "folder", "pipe", "stranger", "case"])
def test_folders_are_read_as_strictly(honest: Prepared, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "folder"
    unpack(honest.folder, folder)
    if what == "link":
        (folder / "references.jsonl").unlink()
        (folder / "references.jsonl").symlink_to(honest.folder / "references.jsonl")
    elif what == "folder":
        (folder / "sub").mkdir()
    elif what == "pipe":
        os.mkfifo(folder / "pipe")
    else:
        (folder / {"stranger": "notes.txt", "case": "Run.json"}[what]).write_text("{}")
    kinds = {"pipe": "device", "stranger": "unlisted", "case": "case_collision"}
    assert refusal(folder, tmp_path / "target").kind == kinds.get(what, what)


def test_a_target_that_exists_is_left_alone(packed: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("kept")
    with pytest.raises(ConfigError, match="exists already"):
        unpack(packed, target)
    assert [path.name for path in target.iterdir()] == ["mine"]


def test_a_source_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.zip: cannot be read"):
        unpack(tmp_path / "none.zip", tmp_path / "target")


@settings(max_examples=50)
@given(st.binary(max_size=400), st.integers(0, 10_000))
def test_no_bytes_make_it_fail_otherwise(
    honest: Prepared, tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int
) -> None:
    """Noise anywhere in an archive is refused as a bundle, or harms nothing: never another exception."""
    folder = tmp_path_factory.mktemp("noise")
    write_zip(honest.folder, folder / "x.zip")
    raw = (folder / "x.zip").read_bytes()
    place %= len(raw)
    (folder / "x.zip").write_bytes(raw[:place] + noise + raw[place + len(noise) :])
    try:
        assert unpack(folder / "x.zip", folder / "target").files.keys() >= {"run.json"}
    except BundleError:
        assert not (folder / "target").exists()
