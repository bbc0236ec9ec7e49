"""The bundled data set: all seven domains, the official form, nothing that should not be public.

In: `agentworldbench/data/mini`. That recording again gives the same rows is tested for each recorder by
itself (`test_record*.py`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from agentworldbench.dataset import Dataset, open_dataset
from agentworldbench.prompts import previous_observation, reference_observation
from agentworldbench.provenance import read_origins
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.resources import mini_folder
from agentworldbench.sources import resolve_source
from agentworldbench.task import load_tasks

MOST_BYTES = 6_000_000
TASKS = load_tasks()
SNAPSHOTS = [domain for domain, task in TASKS.items() if task.observation == "snapshot"]
FIELDS = ["task", "id", "prompt", "response", "current_prompt", "system_str", "turn_idx", "total_turns"]
MARKER = "**Environment Observation:**\n"
HOST_TEXT = re.compile(
    r"(?<![\w/])/(?:tmp|root|work|var|opt|mnt|srv|private|Users|github)(?:/|\b)|(?<![\w/])/usr/(?!bin/env\b)"
    r"|site-packages|\.pyenv|\.demo\b|\bawb\w{8}\b|\broot\b|localhost"
)
SECRET = re.compile(
    r"(?i)\b(?:sk-\w{8,}|hf_\w{8,}|gh[pousr]_\w{8,}|AKIA\w{12,}|eyJ\w{10,}|api[_-]?key|password\s*[=:]\s*\S|bearer )"
)
ADDRESS = re.compile(r"\b[\w.+-]+@([\w-]+(?:\.[\w-]+)+)\b")
IP = re.compile(r"(?<![\d.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\d.])")
URL = re.compile(r"https?://([\w.-]+)")
PUBLIC_HOST = re.compile(r"(?:.*\.)?(?:example|test|invalid)|(?:.*\.)?example\.(?:com|org|net)")
DOCUMENTED_IP = re.compile(r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d+")
HOME = re.compile(r"/home/(\w+)")


@cache
def load(domain: str) -> list[dict[str, Any]]:
    text = (mini_folder() / f"{domain}_test.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n") and "\r" not in text
    return [json.loads(line) for line in text[:-1].split("\n")]


@cache
def dataset() -> Dataset:
    source = resolve_source("mini")
    return open_dataset(source.files, source.tasks)


def trajectories(domain: str) -> list[list[dict[str, Any]]]:
    groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in load(domain):
        groups[row["id"]].append(row)
    return list(groups.values())


def row_text(row: dict[str, Any]) -> str:
    return "\n".join([row["system_str"], *row["prompt"], *row["response"]])


each_domain = pytest.mark.parametrize("domain", OFFICIAL_DOMAINS)


def test_all_domains_are_there_and_small() -> None:
    assert tuple(dataset().files) == OFFICIAL_DOMAINS
    files = [path for path in mini_folder().iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert {path.name for path in files} == {
        "NOTICE", "provenance.json", *(f"{domain}_test.jsonl" for domain in OFFICIAL_DOMAINS)
    }  # fmt: skip


@each_domain
def test_rows_have_the_benchmark_shape(domain: str) -> None:
    for row in load(domain):
        assert list(row) == FIELDS
        assert row["task"] == domain
        assert isinstance(row["id"], int) and len(str(row["id"])) == 15
        assert len(row["prompt"]) == len(row["response"]) == row["turn_idx"] <= row["total_turns"]
        for number, prompt in enumerate([*row["prompt"][:-1], row["current_prompt"]], 1):
            assert prompt.startswith(f"### Turn {number}\n")
            assert ("**Task Instruction:**" in prompt) == (number == 1)
            assert re.search(r"\*\*Action:\*\*\n```\n(?s:.+)\n```\Z", prompt)
        for response in row["response"]:
            assert response.startswith(MARKER)
            observation = response.removeprefix(MARKER)
            assert 1 <= len(observation) <= 16_000
            assert observation == observation.rstrip("\n")


@each_domain
def test_suffix_only_in_the_last_prompt(domain: str) -> None:
    suffixes = set()
    for row in load(domain):
        assert row["prompt"][-1].startswith(row["current_prompt"])
        suffixes.add(row["prompt"][-1].removeprefix(row["current_prompt"]))
        rest = [row["current_prompt"], row["system_str"], *row["prompt"][:-1], *row["response"]]
        assert not any("predicted_observation" in text for text in rest)
    (suffix,) = suffixes
    assert "<predicted_observation>" in suffix and "</predicted_observation>" in suffix


@each_domain
def test_trajectories(domain: str) -> None:
    groups = trajectories(domain)
    assert len(groups) >= 4 and len(load(domain)) >= 20
    assert [row["id"] for group in groups for row in group] == [row["id"] for row in load(domain)]
    for group in groups:
        turns = [row["turn_idx"] for row in group]
        longest = group[-1]
        assert 5 <= longest["total_turns"] <= 15
        assert len(turns) == 5 and turns == sorted(set(turns))
        assert turns[0] == 1 and turns[-1] == longest["total_turns"]
        for row in group:
            assert row["system_str"] == longest["system_str"]
            texts = [*row["prompt"][:-1], row["current_prompt"]]
            full = [*longest["prompt"][:-1], longest["current_prompt"]]
            assert texts == full[: len(texts)]
            assert row["response"] == longest["response"][: len(texts)]


@each_domain
def test_clusters_are_the_trajectories(domain: str) -> None:
    pairs = {(ref.cluster, ref.row_id) for ref in dataset().refs if ref.domain == domain}
    assert len(pairs) == len({cluster for cluster, _ in pairs}) == len(trajectories(domain))
    assert not any(ref.flags for ref in dataset().refs)


@pytest.mark.parametrize("domain", SNAPSHOTS)
def test_snapshots_have_a_screen_before_and_actions_without_effect(domain: str) -> None:
    still = 0
    for ref in dataset().refs:
        if ref.domain == domain:
            sample = dataset().load(ref)
            before = previous_observation(sample, TASKS[domain])
            assert before, ref.id
    for group in trajectories(domain):
        still += sum(one == other for one, other in pairwise(group[-1]["response"]))
    changed = [
        ref.id
        for ref in dataset().refs
        if ref.domain == domain
        and previous_observation(dataset().load(ref), TASKS[domain])
        != reference_observation(dataset().load(ref), TASKS[domain])
    ]
    assert len(changed) >= 15
    assert still >= 1


@each_domain
def test_nothing_private(domain: str) -> None:
    for row in load(domain):
        text = row_text(row)
        assert not HOST_TEXT.search(text), HOST_TEXT.search(text)
        assert not SECRET.search(text), SECRET.search(text)
        hosts = [*ADDRESS.findall(text), *URL.findall(text)]
        assert not [host for host in hosts if not PUBLIC_HOST.fullmatch(host.rstrip("."))]
        assert not [ip for ip in IP.findall(text) if not DOCUMENTED_IP.fullmatch(ip)]
        homes = set(HOME.findall(text))
        assert homes <= set(HOME.findall(row["system_str"]))


def test_provenance_says_where_every_text_comes_from() -> None:
    origins = read_origins(mini_folder())
    document = json.loads((mini_folder() / "provenance.json").read_text(encoding="utf-8"))
    assert tuple(sorted(origins)) == tuple(sorted(OFFICIAL_DOMAINS))
    for domain, origin in origins.items():
        assert origin.kind == ("simulated" if domain == "android" else "real")
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", origin.recorded)
        assert origin.licence and origin.how and origin.texts and origin.programs["python"]
        assert len(document["domains"][domain]["trajectories"]) == len(trajectories(domain))
    assert resolve_source("mini").simulated == ("android",)
