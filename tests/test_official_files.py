"""Tests of `official_files.py`: folders with the official prompt files, read and checked by hash.

The files are a look-alike of our own wording. With the marker `shared`, by hand, the real files are
compared with the manifest (`AWB_SHARED=FOLDER pytest -m shared`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.errors import ConfigError, DataError
from agentworldbench.official_files import (
    OFFICIAL,
    PARTS,
    OfficialFile,
    cache_root,
    constant_of,
    missing_files,
    official_prompts,
    prompts_folder,
)
from agentworldbench.records import OFFICIAL_DOMAINS
from tests.helpers.loopback_repository import (
    CODE,
    DOMAINS,
    FLAT_TEMPLATE,
    TEMPLATE,
    TRACE,
    hostile,
    look_alike,
    write_checkout,
    write_flat,
)

MADE = look_alike()
SYSTEMS = {path.split("/")[1]: data.decode() for path, data in MADE.files.items() if path != CODE}
ALL_PARTS = "".join(f"{{{name}}}" for name in PARTS)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_the_manifest_is_whole() -> None:
    assert tuple(OFFICIAL.systems) == OFFICIAL_DOMAINS
    assert len(OFFICIAL.files) == 8
    hashes = [file.sha256 for file in (*OFFICIAL.files, OFFICIAL.template)]
    assert len(set(hashes)) == 9
    assert all(re.fullmatch("[0-9a-f]{64}", sha256) for sha256 in hashes)
    assert re.fullmatch("[0-9a-f]{40}", OFFICIAL.commit)
    for domain, file in OFFICIAL.systems.items():
        assert file.path == f"prompts/{domain}/judge_system_prompt.txt"


def test_a_checkout_is_read_as_it_stands(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path / "repo", MADE.files)
    prompts = official_prompts(folder, MADE.manifest)
    assert dict(prompts.systems) == SYSTEMS
    assert prompts.user == TEMPLATE
    assert (prompts.commit, prompts.folder) == (MADE.manifest.commit, folder)
    assert set(prompts.sha256) == {*DOMAINS, "user"}
    assert prompts.sha256["user"] == MADE.manifest.template.sha256
    assert not (tmp_path / TRACE).exists()


def test_a_folder_of_prompts_is_read_as_it_stands(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "flat", MADE)
    assert official_prompts(folder, MADE.manifest) == replace(
        official_prompts(write_checkout(tmp_path / "repo", MADE.files), MADE.manifest), folder=folder
    )


def test_layouts_may_be_mixed(tmp_path: Path) -> None:
    folder = write_flat(tmp_path / "flat", MADE)
    shutil.move(folder / "web", folder / "prompts" / "web")
    (folder / FLAT_TEMPLATE).unlink()
    (folder / "task_configs.py").write_bytes(MADE.files[CODE])
    prompts = official_prompts(folder, MADE.manifest)
    assert (dict(prompts.systems), prompts.user) == (SYSTEMS, TEMPLATE)


def test_without_a_folder_the_cache_is_read(tmp_path: Path) -> None:
    folder = prompts_folder(MADE.manifest)
    assert folder == tmp_path / "cache" / "official" / MADE.manifest.commit
    with pytest.raises(
        DataError,
        match=r"official files are missing: prompts/\{mcp,.*,os\}/.*txt, eval/.*data pull official-prompts",
    ):
        official_prompts(None, MADE.manifest)
    write_checkout(folder, MADE.files)
    assert official_prompts(None, MADE.manifest).user == TEMPLATE


@pytest.mark.parametrize("flat", [False, True], ids=["checkout", "flat"])
@pytest.mark.parametrize("file", MADE.manifest.files, ids=lambda file: file.path)
def test_any_other_hash_is_refused(tmp_path: Path, file: OfficialFile, flat: bool) -> None:
    folder = write_flat(tmp_path, MADE) if flat else write_checkout(tmp_path, MADE.files)
    assert official_prompts(folder, MADE.manifest)
    expected = file
    if flat and file.path == CODE:
        expected = MADE.manifest.template
    place = tmp_path / (expected.flat if flat else expected.path)
    # The second reading is checked as the first was.
    place.write_bytes(place.read_bytes().replace(b"e", b"E", 1))
    with pytest.raises(DataError) as refusal:
        official_prompts(folder, MADE.manifest)
    message = str(refusal.value)
    assert message.startswith(f"{place}: SHA-256 is ")
    assert expected.sha256 in message
    assert len(re.findall(r"\b[0-9a-f]{64}\b", message)) == 2
    assert f"of commit {MADE.manifest.commit[:12]}" in message
    assert "--prompts DIR" in message


def test_line_ends_of_windows_are_named(tmp_path: Path) -> None:
    files = {**MADE.files, CODE: MADE.files[CODE].replace(b"\n", b"\r\n")}
    with pytest.raises(DataError, match=r"only its line ends differ.*core\.autocrlf"):
        official_prompts(write_checkout(tmp_path, files), MADE.manifest)


@pytest.mark.parametrize("file", MADE.manifest.files, ids=lambda file: file.path)
def test_a_missing_file_is_named(tmp_path: Path, file: OfficialFile) -> None:
    folder = write_checkout(tmp_path, MADE.files)
    (folder / file.path).unlink()
    assert missing_files(folder, MADE.manifest) == [file]
    with pytest.raises(DataError) as refusal:
        official_prompts(folder, MADE.manifest)
    assert f"{folder}: official files are missing: {file.path}; " in str(refusal.value)


def test_a_part_of_a_checkout_lacks_the_template(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path, MADE.files) / "prompts"
    assert missing_files(folder, MADE.manifest) == [MADE.manifest.code]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--prompts nowhere: no such folder"):
        official_prompts(Path("nowhere"), MADE.manifest)
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="no such folder"):
        official_prompts(tmp_path / "file", MADE.manifest)


def test_a_folder_in_the_place_of_a_file_is_no_file(tmp_path: Path) -> None:
    folder = write_checkout(tmp_path, MADE.files)
    (folder / CODE).unlink()
    (folder / CODE).mkdir()
    assert missing_files(folder, MADE.manifest) == [MADE.manifest.code]


def test_the_constant_is_checked_too(tmp_path: Path) -> None:
    other = look_alike(TEMPLATE.replace("near", "far"))
    # A manifest whose Python file is right and holds another text than the manifest says.
    manifest = replace(other.manifest, template=MADE.manifest.template)
    with pytest.raises(DataError, match=r"task_configs\.py: JUDGE_USER_PROMPT: SHA-256 is .*, expected "):
        official_prompts(write_checkout(tmp_path, other.files), manifest)


@pytest.mark.parametrize(
    "template",
    [
        ALL_PARTS.replace("{ground_truth}", ""),
        ALL_PARTS + "{context}",
        ALL_PARTS + "{system}",
        ALL_PARTS + "{}",
        ALL_PARTS.replace("{context}", "{context!r}"),
        ALL_PARTS.replace("{context}", "{context:>9}"),
        ALL_PARTS.replace("{context}", "{context.x}"),
        ALL_PARTS.replace("{context}", "{{context}}"),
        ALL_PARTS + "}",
        ALL_PARTS + "{",
    ],
)
@pytest.mark.parametrize("flat", [False, True], ids=["checkout", "flat"])
def test_a_template_that_cannot_be_filled(tmp_path: Path, template: str, flat: bool) -> None:
    made = look_alike(template)
    folder = write_flat(tmp_path, made) if flat else write_checkout(tmp_path, made.files)
    with pytest.raises(DataError, match=r"(prompt\.txt|configs\.py): the user template "):
        official_prompts(folder, made.manifest)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    data = b"\xff" * 9
    file = replace(MADE.manifest.systems["os"], size=9, sha256=hashlib.sha256(data).hexdigest())
    manifest = replace(MADE.manifest, systems={**MADE.manifest.systems, "os": file})
    with pytest.raises(DataError, match=r"os/judge_system_prompt\.txt: not UTF-8 .* at byte 0"):
        official_prompts(write_checkout(tmp_path, {**MADE.files, file.path: data}), manifest)


CONSTANTS = {
    "plain": ("NAME = 'x'", "x"),
    "annotated": ("NAME: str = 'x'", "x"),
    "several targets": ("OTHER = NAME = 'x'", "x"),
    "the last one": ("NAME = 'a'\nNAME = 'x'", "x"),
    "joined literals": ("NAME = ('x'\n 'y')", "xy"),
    "raw, tripled": ('NAME = r"""\\n\n{a}"""', "\\n\n{a}"),
    "beside code": ("import os\nos.abort()\nNAME = 'x'\nos.abort()", "x"),
}
REFUSED = {
    "nothing": ("", "assigns no constant NAME"),
    "another name": ("NAMES = 'x'", "assigns no constant NAME"),
    "in a function": ("def f():\n NAME = 'x'", "assigns no constant NAME"),
    "in a class": ("class C:\n NAME = 'x'", "assigns no constant NAME"),
    "of something": ("a.NAME = 'x'", "assigns no constant NAME"),
    "unpacked": ("NAME, B = 'x', 'y'", "assigns no constant NAME"),
    "declared only": ("NAME: str", "assigns no constant NAME"),
    "number": ("NAME = 1", ":1: NAME is not a plain string"),
    "bytes": ("\nNAME = b'x'", ":2: NAME is not a plain string"),
    "none": ("NAME = None", "is not a plain string"),
    "call": ("NAME = open('trace', 'w').name", "is not a plain string"),
    "computed": ("NAME = 'a' + 'b'", "is not a plain string"),
    "formatted": ("NAME = f'{1}'", "is not a plain string"),
    "list": ("NAME = ['x']", "is not a plain string"),
    "unhashable key": ("NAME = {[]: 1}", "is not a plain string"),
    "no Python": ("NAME = ", "cannot be read as Python"),
    "null byte": ("NAME = 'x'\0", "cannot be read as Python"),
    "too deep": ("NAME = " + "(" * 5000, "cannot be read as Python"),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_is_read(name: str) -> None:
    source, value = CONSTANTS[name]
    assert constant_of(source, "NAME", Path("f.py")) == value


@pytest.mark.parametrize("name", REFUSED)
def test_no_constant_is_a_clear_error(tmp_path: Path, name: str) -> None:
    source, message = REFUSED[name]
    with pytest.raises(DataError) as refusal:
        constant_of(source, "NAME", Path("f.py"))
    assert str(refusal.value).startswith("f.py:")
    assert message in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_the_way_through_a_module(text: str) -> None:
    assert constant_of(hostile(text), "JUDGE_USER_PROMPT", Path("f.py")) == text


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"AWB_CACHE": "/a/b"}, "/a/b"),
        ({"AWB_CACHE": "~/b"}, "{home}/b"),
        ({"AWB_CACHE": "b"}, "{here}/b"),
        ({"AWB_CACHE": "/a", "XDG_CACHE_HOME": "/c"}, "/a"),
        ({"AWB_CACHE": " ", "XDG_CACHE_HOME": "/c"}, "/c/agentworldbench"),
        ({"XDG_CACHE_HOME": "c"}, "{home}/.cache/agentworldbench"),
        ({}, "{home}/.cache/agentworldbench"),
    ],
)
def test_where_the_cache_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name in ("AWB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache_root()) == expected.format(home=tmp_path / "home", here=tmp_path)


def test_no_home_and_no_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("AWB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(ConfigError, match="set AWB_CACHE to a folder"):
        cache_root()


def test_a_domain_without_official_prompt(tmp_path: Path) -> None:
    prompts = official_prompts(write_flat(tmp_path, MADE), MADE.manifest)
    assert prompts.system("os") == SYSTEMS["os"]
    with pytest.raises(
        ConfigError, match=r"no judge prompt for domain 'shop' \(it has mcp, .*--protocol builtin"
    ):
        prompts.system("shop")


def shared_folder() -> Path:
    """The folder with the maintainers' local copies, named by AWB_SHARED."""
    return Path(os.environ["AWB_SHARED"]) / "official"


@pytest.mark.shared
def test_the_manifest_is_that_of_the_maintainers() -> None:
    stated = json.loads((shared_folder() / "manifest.json").read_text(encoding="utf-8"))
    assert (OFFICIAL.repository, OFFICIAL.commit) == (stated["repository"], stated["commit"])
    assert {file.path: (file.size, file.sha256) for file in OFFICIAL.files} == {
        file["path"]: (file["bytes"], file["sha256"]) for file in stated["files"]
    }
    (constant,) = (entry for entry in stated["constants"] if entry["name"] == OFFICIAL.constant)
    assert (constant["in"], constant["sha256_utf8"]) == (OFFICIAL.code.path, OFFICIAL.template.sha256)


@pytest.mark.shared
def test_the_official_files_are_those_of_the_manifest() -> None:
    prompts = official_prompts(shared_folder() / "prompts")
    assert set(prompts.systems) == set(OFFICIAL_DOMAINS)
    assert len(prompts.user) == 1871
    assert len(prompts.user.encode()) == OFFICIAL.template.size


def test_look_alikes_differ_from_the_real_files() -> None:
    real = {file.sha256 for file in OFFICIAL.files}
    assert real.isdisjoint(file.sha256 for file in MADE.manifest.files)
