"""Every command of README.md and docs/ is run, page by page, as a reader would: in order, in one folder, and must succeed.

A scripted server stands for the reader's server and for OpenAI's, rows of our own for the benchmark. Commands that are only
read have their reason in `cases/docs/commands.yaml`. Blocks of Python are run in their place.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworldbench.models.litellm_api import load_litellm
from agentworldbench.render.cost import cost_tables
from agentworldbench.render.results import run_tables
from agentworldbench.run import load_run
from tests.helpers.awb_command import HereAwb
from tests.helpers.doc_rules import RULES, fits
from tests.helpers.doc_scene import KEYS, answers, make_scene, page_folder, stood_in
from tests.helpers.documents import ROOT, Block, Command, Page, pages
from tests.helpers.own_prompts import use_prompts
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.several_judges import few_draws

SAMPLES = 2170
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


def test_the_costs_in_reproduce_follow_from_tokens_and_prices() -> None:
    """The page's table is arithmetic: benchmark facts times the prices that the installed LiteLLM lists."""
    prices = load_litellm().model_cost
    text = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")

    def usd(model: str, millions: float, out: int) -> tuple[str, str]:
        price = prices[model]
        told = millions * 1e6 * price["input_cost_per_token"], SAMPLES * out * price["output_cost_per_token"]
        return f"{told[0]:.0f}", f"{told[1]:.0f}"

    for model, millions, low, high in (
        ("gpt-5.2-2025-12-11", 42, 200, 1700),
        ("gpt-5-mini", 42, 200, 1700),
        ("gpt-5.4", 73, 0, 8000),
    ):
        (row,) = re.findall(rf"^\|.*{re.escape(model)}.*\|$", text, re.MULTILINE | re.IGNORECASE)
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        (tokens_in, least), (_, most) = usd(model, millions, low), usd(model, millions, high)
        assert cells[1:3] == [f"{millions} M", tokens_in]
        assert cells[4] == (f"{least} to {most}" if low else f"up to {most}")


@pytest.mark.parametrize("judge", ["gpt-5.2-2025-12-11", "gpt-5-mini"])
def test_what_a_judge_costs_in_judges_follows_too(judge: str) -> None:
    """42 million tokens of prompts and verdicts of 200 to 1,700 tokens, as the table in reproduce.md has them."""
    price = load_litellm().model_cost[judge]
    prompts = 42e6 * price["input_cost_per_token"]
    low, high = (prompts + SAMPLES * out * price["output_cost_per_token"] for out in (200, 1700))
    (row,) = re.findall(
        rf"^\|.*{re.escape(judge)}.*\|$", (ROOT / "docs/judges.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert f"{low:.0f} to {high:.0f} USD" in row


@pytest.mark.parametrize("name", ["docs/results.md", "docs/walk.md", "docs/demo-llm.md"])
def test_printed_tables_have_the_columns_of_today(name: str, scene: Path) -> None:
    """A table in a block, recorded once, has the columns that the same table of a run of today has."""
    results = load_run(scene / "RUN").results
    assert results is not None
    today = {
        table.title.split(" of ")[0]: table.columns for table in [*run_tables(results), *cost_tables(results)]
    }
    seen = []
    for block in Page(name).blocks:
        lines = block.text.split("\n")
        for number, line in enumerate(lines):
            kind = line.split(" of ")[0]
            if kind not in today or not line.startswith(("Scores of", "Judge scores of", "Cost of")):
                continue
            head = next(index for index in range(number, len(lines)) if lines[index].startswith("──")) - 1
            assert re.split(r"\s{2,}", lines[head].strip()) == list(today[kind]) or "baseline/" in line, (
                name,
                line,
            )
            seen.append(kind)
    assert "Scores" in seen
