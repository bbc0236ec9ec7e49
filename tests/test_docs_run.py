"""Every command of README.md and docs/ is run, page by page, as a reader would: in order, in one folder, and must succeed.

A scripted server stands for the reader's server and for OpenAI's, rows of our own for the benchmark. Commands that are only
read have their reason in `cases/docs/commands.yaml`. Blocks of Python are run in their place.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.awb_command import HereAwb
from tests.helpers.doc_rules import RULES, fits
from tests.helpers.doc_scene import KEYS, answers, make_scene, page_folder, stood_in
from tests.helpers.documents import Block, Command, Page, pages
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import few_draws

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answers) as served:
        yield served


@pytest.fixture(scope="module")
def scene(server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene") / "work"
    make_scene(folder, server)
    return folder


def steps(page: Page) -> Iterator[Command | Block]:
    """Commands that are run, and blocks of Python, in the order of the page."""
    for number, text in enumerate(RULES.before.get(page.name, ())):
        yield Command(page.name, number - len(RULES.before), tuple(shlex.split(text)))
    commands = [one for one in page.commands if one.words[0] == "awb" and not fits(one.text)]
    blocks = [one for one in page.blocks if one.language == "python" and page.name not in RULES.compiled]
    yield from sorted([*commands, *blocks], key=lambda one: one.line)


@pytest.mark.parametrize("page", [page for page in pages() if list(steps(page))], ids=lambda page: page.name)
def test_a_page_from_top_to_bottom(
    page: Page,
    scene: Path,
    server: ScriptedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    awb = HereAwb(page_folder(scene, page, tmp_path), monkeypatch, capsys)
    for name in KEYS:
        monkeypatch.setenv(name, "sk-loopback-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    use_prompts(monkeypatch)
    few_draws(monkeypatch)
    names: dict[str, object] = {}
    for step in steps(page):
        if isinstance(step, Block):
            exec(compile(step.text, f"{page.name}:{step.line}", "exec"), names)
            continue
        done = awb(*stood_in(step.text, server))
        assert done.code == RULES.codes.get(step.text, 0), f"{step.where}: {step.text}\n{done.err}{done.out}"
        assert done.out + done.err, step.where
