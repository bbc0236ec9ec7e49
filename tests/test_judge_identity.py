"""What names a judge: what its digest covers, what it leaves out, and what is recorded of it.

A verdict carries the judge's digest and the hash of the system prompt it was given under. What changes
the answer to a given text changes one of the two; how and where a judge is reached changes neither.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import agentworldbench.prompts as prompts_module
import agentworldbench.scoring.judge as judge_module
from agentworldbench.config import RunConfig
from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, create_model
from agentworldbench.plan import make_judges
from agentworldbench.prompts import VERDICT_SCHEMA, judge_prompt_hashes
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import OFFICIAL_DOMAINS, Sampling
from agentworldbench.resources import asset
from agentworldbench.scoring.judge import Judge
from agentworldbench.task import load_task, load_tasks
from agentworldbench.texts import digest, sha256_text

TASKS = load_tasks()
URL = "http://127.0.0.1:9/v1"
SHARED = {False: ("user", "answer_text"), True: ("user", "answer_json")}
"""The prompt files of all domains, without and with a JSON schema."""


def judge_of(model: str = "openai-api/m", url: str = URL, as_json: bool = False, **sampling: Any) -> Judge:
    settings: dict[str, Any] = {"temperature": 0.0, "max_tokens": 100} | sampling
    backend = create_model(model, Connection(base_url=url), TASKS)
    return Judge(backend, Sampling(**settings), PROTOCOLS["builtin"], TASKS, as_json, attempts=3)


@pytest.fixture
def own_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the prompts, a copy that may be edited."""
    shutil.copytree(asset("tasks"), tmp_path / "tasks")
    monkeypatch.setattr(prompts_module, "asset", lambda *parts: tmp_path.joinpath(*parts))
    prompts_module._template.cache_clear()
    yield tmp_path / "tasks" / "prompts" / "builtin"
    prompts_module._template.cache_clear()


@pytest.mark.parametrize("as_json", [False, True])
def test_a_changed_prompt_file_changes_its_hash_alone(own_prompts: Path, as_json: bool) -> None:
    before = judge_prompt_hashes(as_json)
    digest_before = judge_of(as_json=as_json).digest()
    assert tuple(before) == SHARED[as_json]
    for path in sorted(own_prompts.iterdir()):
        old = path.read_bytes()
        path.write_bytes(old + b"!")
        prompts_module._template.cache_clear()
        after = judge_prompt_hashes(as_json)
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {path.stem} & set(SHARED[as_json])
        assert (judge_of(as_json=as_json).digest() != digest_before) == bool(changed)
        path.write_bytes(old)
    prompts_module._template.cache_clear()
    assert judge_prompt_hashes(as_json) == before


@pytest.mark.parametrize(
    "change",
    [
        {"model": "openai-api/n"},
        {"temperature": 0.1},
        {"temperature": None},
        {"top_p": 0.9},
        {"seed": 1},
        {"max_tokens": 101},
        {"extra": {"top_k": 1}},
        {"as_json": True},
    ],
    ids=str,
)
def test_the_digest_covers_what_changes_an_answer(change: dict[str, Any]) -> None:
    assert judge_of().digest() == judge_of().digest()
    assert judge_of(**change).digest() != judge_of().digest()


def test_the_digest_covers_the_protocol() -> None:
    judge = judge_of()
    for change in ({"name": "other"}, {"version": 2}):
        other = replace(judge, protocol=replace(judge.protocol, **change))
        assert other.digest() != judge.digest()


def test_the_digest_covers_the_schema_where_one_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {as_json: judge_of(as_json=as_json).digest() for as_json in (False, True)}
    monkeypatch.setattr(judge_module, "VERDICT_SCHEMA", VERDICT_SCHEMA | {"title": "Verdict"})
    assert judge_of(as_json=True).digest() != before[True]
    assert judge_of(as_json=False).digest() == before[False]


@pytest.mark.parametrize(
    "change",
    [
        {"max_connections": 3},
        {"judge_attempts": 5},
        {"max_retries": 1},
        {"timeout": 9.0},
        {"judge_max_context": 9000},
        {"judge_base_url": ["http://127.0.0.1:8/v1"]},
        {"judge_base_url": ["https://example.org/v1/chat/completions"]},
    ],
    ids=str,
)
def test_how_and_where_a_judge_is_reached_is_not_part_of_it(change: dict[str, Any]) -> None:
    settings = {"judge": ["openai-api/m"], "judge_base_url": [URL]}
    plain, driven = (RunConfig.model_validate(settings | more) for more in ({}, change))
    protocol = PROTOCOLS["builtin"]
    assert [one.digest() for one in make_judges(driven, protocol, TASKS, print)] == [
        one.digest() for one in make_judges(plain, protocol, TASKS, print)
    ]


def test_one_model_at_two_addresses_is_one_judge() -> None:
    config = RunConfig(judge=("openai-api/m", "openai-api/m"), judge_base_url=(URL, "http://127.0.0.1:8/v1"))
    with pytest.raises(ConfigError, match="the same judge is given twice"):
        make_judges(config, PROTOCOLS["builtin"], TASKS, print)


def test_the_domains_of_a_run_are_not_part_of_a_judge() -> None:
    judge = judge_of()
    for domain in OFFICIAL_DOMAINS:
        one = replace(judge, tasks={domain: TASKS[domain]})
        assert one.digest() == judge.digest()
        assert one.record().system_prompts == {domain: judge.system_sha256(domain)}


def test_a_system_prompt_is_named_beside_the_digest(own_prompts: Path) -> None:
    def judge_now() -> Judge:
        folder = own_prompts.parents[1]
        tasks = {domain: load_task(folder / f"{domain}.yaml") for domain in OFFICIAL_DOMAINS}
        return replace(judge_of(), tasks=tasks)

    before = judge_now()
    for domain in OFFICIAL_DOMAINS:
        assert before.system_sha256(domain) == sha256_text(TASKS[domain].judge_system_prompt)
    (own_prompts / "web.md").write_text("Other words.", encoding="utf-8")
    after = judge_now()
    assert after.digest() == before.digest()
    old, new = before.record().system_prompts, after.record().system_prompts
    assert {domain for domain in OFFICIAL_DOMAINS if old[domain] != new[domain]} == {"web"}
    assert new["web"] == after.system_sha256("web") == sha256_text("Other words.")


DEFAULTS = Sampling().described()
"""Every parameter as the server's default."""


def test_what_is_recorded_of_a_judge() -> None:
    judge = judge_of(as_json=True, top_p=0.5, extra={"top_k": 1})
    record = judge.record()
    assert record.model_dump() == {
        "digest": judge.digest(),
        "model": "openai-api/m",
        "identity": {"backend": "openai-api", "name": "m"},
        "protocol": "builtin",
        "protocol_version": 1,
        "sampling": DEFAULTS | {"temperature": 0.0, "top_p": 0.5, "max_tokens": 100, "top_k": 1},
        "schema_sha256": digest(VERDICT_SCHEMA),
        "prompts": judge_prompt_hashes(True),
        "system_prompts": {domain: judge.system_sha256(domain) for domain in TASKS},
        "parse": "strict",
        "attempts": 3,
        "min_output": 512,
        "max_context": None,
    }  # fmt: skip
    assert judge_of().record().schema_sha256 is None
    assert "127.0.0.1" not in record.model_dump_json(), "addresses belong to sessions"
    covered = ("identity", "protocol", "protocol_version", "sampling", "schema_sha256", "prompts")
    assert record.digest == digest({name: getattr(record, name) for name in covered})[:16]
