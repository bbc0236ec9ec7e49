"""Tests of the recipes in `tasks/models/` and of `docs/models.md`: complete, consistent, sourced.

A recipe is a configuration file; the harness's own loader reads it here. What its server would do
is not tested (no accelerators), but its command must say what the settings say: the same model,
port and context length, and a reasoning parser.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from agentworldbench.config import RunConfig, make_config
from agentworldbench.leaderboard.entries import load_entries
from agentworldbench.models import create_model
from agentworldbench.models.base import Connection
from agentworldbench.models.litellm_api import LiteLLMModel, load_litellm
from agentworldbench.recipe import Recipe
from agentworldbench.resources import asset

FILES = sorted(asset("tasks", "models").glob("*.yaml"))
PAGE = Path(__file__).parents[1] / "docs" / "models.md"
PREFIX = "openai-api/"
NOT_RUNNABLE = {"Qwen-AgentWorld-397B-A17B"}
"""Published models that nobody outside can run: their weights are not released and no API has them."""
MAY_HAVE_SOURCE = {"model", "weights", "server"}
PROTOCOL_TEMPERATURE = 0.6
CONTEXT_FLAGS = {"--max-model-len", "--context-length"}


@cache
def config(path: Path) -> RunConfig:
    return make_config({}, path)


def recipe(path: Path) -> Recipe:
    found = config(path).recipe
    assert found is not None, "no recipe block"
    return found


def settings(path: Path) -> set[str]:
    """Names that the file sets, those of its recipe block left out."""
    return config(path).model_fields_set - {"recipe"}


def need_sources(path: Path) -> set[str]:
    return settings(path) - {"model", "base_url"}


def served(path: Path) -> bool:
    return config(path).base_url is not None


def commands(path: Path) -> list[list[str]]:
    """The alternatives of `recipe.server` as words; each begins with a comment that names the engine."""
    alternatives = (recipe(path).server or "").strip().split("\n\n")
    assert all(text.startswith("# ") for text in alternatives)
    return [shlex.split(text.replace("\\\n", " "), comments=True) for text in alternatives]


def value(words: list[str], flag: str) -> str:
    assert words.count(flag) == 1, f"{flag} stands {words.count(flag)} times in {words}"
    return words[words.index(flag) + 1]


def row(published: str) -> list[str]:
    """The cells of a model in the page's table."""
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {published} |")]
    assert len(rows) == 1, f"{len(rows)} rows for {published}"
    return [cell.strip() for cell in rows[0].strip("|").split("|")]


OWN = [path for path in FILES if served(path)]
HOSTED = [path for path in FILES if not served(path)]
each = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
each_own = pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
each_hosted = pytest.mark.parametrize("path", HOSTED, ids=lambda path: path.stem)


def test_every_published_model_has_a_recipe_or_cannot_be_run() -> None:
    published = {entry.model for entry in load_entries()}
    assert {recipe(path).published for path in FILES} == published - NOT_RUNNABLE
    assert published >= NOT_RUNNABLE


@each
def test_the_file_is_named_after_its_model_and_says_how_to_use_it(path: Path) -> None:
    slug = recipe(path).published.lower().replace(" ", "-")
    both = {file.stem for file in FILES} >= {slug, f"{slug}-api"}
    assert path.stem == (f"{slug}-api" if both and not served(path) else slug)
    comment = "".join(line for line in path.read_text("utf-8").splitlines(True) if line.startswith("#"))
    assert f"awb run -C tasks/models/{path.name} " in comment


@each
def test_a_recipe_sets_the_model_alone(path: Path) -> None:
    faces: dict[str, Any] = {
        name: field.json_schema_extra["cli"]["panel"]  # type: ignore[index, call-overload]
        for name, field in RunConfig.model_fields.items()
        if field.json_schema_extra
    }
    strange = {name for name in settings(path) if faces[name] != "Model"}
    assert strange <= {"model", "timeout"}
    assert {"model", "temperature", "max_tokens", "thinking"} <= settings(path)


@each
def test_every_setting_has_a_source(path: Path) -> None:
    sources = recipe(path).sources
    needed = need_sources(path)
    assert needed <= sources.keys() <= needed | MAY_HAVE_SOURCE
    assert all(len(text) > 15 for text in sources.values())
    assert recipe(path).unknown, "no run of the paper is disclosed in full"


@each
def test_the_protocols_temperature_is_kept_unless_the_model_forbids_it(path: Path) -> None:
    forbidden = "forbids the protocol's 0.6" in recipe(path).sources["temperature"]
    assert (config(path).temperature == PROTOCOL_TEMPERATURE) is not forbidden
    assert forbidden or "official inference code" in recipe(path).sources["temperature"]


@each
def test_the_model_is_told_to_think_where_it_can_be_told(path: Path) -> None:
    made = config(path)
    always = "always think" in recipe(path).sources["thinking"]
    assert made.thinking == ("default" if always else "on")
    assert made.model is not None
    connection = Connection(made.base_url)
    model = create_model(made.model, connection, {})
    assert bool(model.switches(made.thinking, made.reasoning_effort)) is not always


@each_own
def test_a_server_of_ones_own_serves_what_the_settings_say(path: Path) -> None:
    made, weights = config(path), recipe(path).weights
    assert made.model == f"{PREFIX}{weights}"
    assert made.base_url is not None
    assert made.max_context is not None
    for words in commands(path):
        flag = next(word for word in words if word in CONTEXT_FLAGS)
        assert value(words, flag) == str(made.max_context)
        assert weights in words
        assert value(words, "--port") == str(urlsplit(made.base_url).port)
        assert value(words, "--reasoning-parser")
        assert words[0] in ("vllm", "python")
    assert recipe(path).sources["server"]


@each_own
def test_the_context_leaves_room_for_an_average_prompt_beside_the_longest_answer(path: Path) -> None:
    average_mcp_prompt = 59_300
    made = config(path)
    assert made.max_context is not None
    assert made.max_tokens is not None
    assert made.max_tokens + average_mcp_prompt <= made.max_context


@each_hosted
def test_a_hosted_model_is_known_to_litellm_or_says_that_it_is_not(path: Path) -> None:
    made, about = config(path), recipe(path)
    assert (about.server, about.weights) == (None, None)
    assert made.model is not None
    table = load_litellm().model_cost
    listed = table.get(made.model) or table.get(made.model.partition("/")[2])
    says = about.sources["model"]
    assert says.startswith("listed in LiteLLM" if listed else "not listed in LiteLLM")
    assert (made.max_context is None) is bool(listed)
    limits = LiteLLMModel(made.model, Connection(max_context=made.max_context)).limits
    assert limits.context is not None
    assert made.max_tokens is not None
    assert made.max_tokens <= (limits.max_output or limits.context)
    if listed:
        assert f"{limits.context:,}" in says
        assert f"{limits.max_output:,}" in says


@each
def test_the_page_says_what_the_recipe_says(path: Path) -> None:
    made = config(path)
    model, _, link, _, context, longest, temperature, _ = row(recipe(path).published)
    assert model == recipe(path).published
    assert f"[{path.stem}](../tasks/models/{path.name})" in link
    assert f"{made.max_tokens:,}" in longest
    assert str(made.temperature) in temperature
    if made.max_context:
        assert f"{made.max_context:,}" in context


def test_the_page_lists_every_published_model_and_links_nothing_that_is_missing() -> None:
    text = PAGE.read_text("utf-8")
    for entry in load_entries():
        assert row(entry.model)
    links = re.findall(r"\]\((\.\.?/[^)#]+)\)", text)
    assert len(links) >= len(FILES)
    assert [link for link in links if not (PAGE.parent / link).is_file()] == []


def test_the_pages_example_is_a_recipe(tmp_path: Path) -> None:
    examples = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 1
    file = tmp_path / "example.yaml"
    file.write_text(examples[0], "utf-8")
    assert need_sources(file) == recipe(file).sources.keys()
