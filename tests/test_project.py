"""Tests of the project itself: one version, small documented modules, and a wheel that is complete.

The wheel is built by hatchling from the checkout, without a network, and used from a folder of its
own, so that nothing of the checkout can stand in for what the wheel lacks.
"""

from __future__ import annotations

import ast
import configparser
import email
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agentworldbench.models.litellm_api import load_litellm
from agentworldbench.models.providers import LITELLM_PROVIDERS
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.version import __version__
from tests.helpers.awb_command import clean_environment

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "agentworldbench").rglob("*.py"))
MAX_LINES, MAX_DOCSTRING_LINES = 350, 12
# Put together here, so that this file does not hold what it looks for.
FOREIGN_PATHS = tuple("/".join(("", *parts, "")) for parts in (("work",), ("tmp", "v")))
PUBLIC_HOSTS = frozenset(
    {".".join(("pypi", "org")), ".".join(("files", "pythonhosted", "org")), "localhost", "127.0.0.1"}
)
FROM_WHEEL = """
import json, sys
from pathlib import Path
import agentworldbench
from agentworldbench.leaderboard.entries import load_entries
from agentworldbench.leaderboard.page import page_text
from agentworldbench.resources import asset, mini_folder
from agentworldbench.task import load_tasks
print(json.dumps({
    "package": agentworldbench.__file__,
    "tasks": str(asset("tasks")),
    "domains": list(load_tasks()),
    "prompts": [len(task.judge_system_prompt) for task in load_tasks().values()],
    "entries": len(load_entries()),
    "page": page_text(load_entries()).count("<tr"),
    "mini": sorted(path.name for path in mini_folder().iterdir()),
}))
"""


def committed() -> list[Path]:
    """Files that are in the repository or would be added to it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]  # both: the sdist too
    done = subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, encoding="utf-8", timeout=100
    )
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def test_the_version_stands_in_one_place(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "agentworldbench/version.py"
    assigned = [
        module.name
        for module in MODULES
        if re.search(r"^__version__\s*=", module.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert assigned == ["version.py"]
    repeated = [module for module in MODULES if f'"{__version__}"' in module.read_text(encoding="utf-8")]
    assert [module.name for module in repeated] == ["version.py"]
    assert wheel.name.startswith(f"agentworldbench-{__version__}-py3-")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_small_and_say_what_they_do(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    docstring = ast.get_docstring(ast.parse(text))
    assert docstring, "a module opens with its job"
    assert 1 <= len(docstring.splitlines()) <= MAX_DOCSTRING_LINES


def test_the_wheel_holds_what_is_no_code(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"agentworldbench", f"agentworldbench-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assets = "agentworldbench/_assets"
    for folder in ("tasks", "leaderboards", "reports/templates"):
        stored = {str(path.relative_to(ROOT)) for path in committed() if path.is_relative_to(ROOT / folder)}
        assert stored
        assert {f"{assets}/{name}" for name in stored} <= names
    mini = {
        f"agentworldbench/data/mini/{path.name}" for path in (ROOT / "agentworldbench/data/mini").iterdir()
    }
    assert mini <= names
    modules = {str(path.relative_to(ROOT)) for path in MODULES}
    assert modules <= names
    assert "agentworldbench/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("licenses/agentworldbench/data/mini/NOTICE") for name in names)


def test_the_source_distribution_holds_what_the_wheel_is_made_of(wheel: Path) -> None:
    (made,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(made) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    said = {"PKG-INFO", ".gitignore", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    tops = {name.partition("/")[0] for name in names}
    assert tops - said == {"agentworldbench", "leaderboards", "reports", "tasks"}
    folders = [ROOT / name for name in ("agentworldbench", "leaderboards", "reports/templates", "tasks")]
    stored = [path for path in committed() if any(path.is_relative_to(folder) for folder in folders)]
    assert {str(path.relative_to(ROOT)) for path in stored} <= names
    assert not [name for name in names if name.startswith("reports/example")]


def test_the_wheel_says_what_it_is(unpacked: Path) -> None:
    (info,) = unpacked.glob("*.dist-info")
    metadata = email.message_from_string((info / "METADATA").read_text(encoding="utf-8"))
    assert (metadata["Name"], metadata["Version"]) == ("agentworldbench", __version__)
    points = configparser.ConfigParser()
    points.read(info / "entry_points.txt")
    assert dict(points["console_scripts"]) == {"awb": "agentworldbench.cli.main:command"}


def test_an_unpacked_wheel_finds_its_files(unpacked: Path, tmp_path: Path) -> None:
    env = clean_environment({"PYTHONPATH": str(unpacked)})
    done = subprocess.run(
        [sys.executable, "-c", FROM_WHEEL],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["package"] == str(unpacked / "agentworldbench" / "__init__.py")
    assert found["tasks"] == str(unpacked / "agentworldbench" / "_assets" / "tasks")
    assert found["domains"] == list(OFFICIAL_DOMAINS)
    assert min(found["prompts"]) > 200
    assert found["entries"] == 31
    assert found["page"] == 31 + 2, "a row an entry, a head a table"
    files = ["NOTICE", "provenance.json", *(f"{domain}_test.jsonl" for domain in OFFICIAL_DOMAINS)]
    assert found["mini"] == sorted(files)

    words = ("run", "--model", "baseline/copy-last", "--limit", "1", "-o", "out")
    done = subprocess.run(
        [sys.executable, "-m", "agentworldbench", *words],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    run = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    (session,) = run["sessions"]
    assert session["harness"] == __version__
    assert (session["git_commit"], session["git_dirty"]) == (None, None), "a wheel has no commit"
    assert {"python", "pydantic", "numpy"} <= set(session["packages"])


def test_the_table_of_providers_is_that_of_the_installed_library() -> None:
    names = {getattr(name, "value", name) for name in load_litellm().provider_list}
    assert names == set(LITELLM_PROVIDERS)


def test_no_committed_file_names_a_private_path() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {private}"
        for path in committed()
        for private in FOREIGN_PATHS
        if private.encode() in path.read_bytes()
    ]
    assert found == []


def index_hosts() -> set[str]:
    """Hosts of the package indexes that this machine is set up with."""
    places = [Path("/etc/pip.conf"), Path("/etc/uv/uv.toml")]
    places += [Path.home() / name for name in (".pip/pip.conf", ".config/pip/pip.conf", ".config/uv/uv.toml")]
    texts = [path.read_text(encoding="utf-8") for path in places if path.is_file()]
    texts += [value for name, value in os.environ.items() if "INDEX" in name.upper()]
    urls = re.findall(r"https?://[^\s\"',]+", "\n".join(texts))
    return {host for url in urls if (host := urlsplit(url).hostname)} - PUBLIC_HOSTS


def test_no_committed_file_names_a_package_index() -> None:
    hosts = {host.encode() for host in index_hosts()}
    pattern = re.compile(
        rb"index[-_]url[\"' ]*[=:]?[\"' ]*https?://([\w.-]+)|https?://([\w.-]+)[\w.:/-]*/simple\b"
    )
    found = []
    for path in committed():
        content = path.read_bytes()
        named = {host for pair in pattern.findall(content) for host in pair if host}
        named = {host for host in named if host.decode() not in PUBLIC_HOSTS}
        named |= {host for host in hosts if host in content}
        found += [f"{path.relative_to(ROOT)}: {host.decode()}" for host in named]
    assert found == []
