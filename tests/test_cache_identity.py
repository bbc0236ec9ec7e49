"""Runs with `--cache`: which questions are one question, and which answers are good enough to be kept.

Every parameter that can change an answer makes another question, and nothing else does; a failure of
any kind is never stored. What is asked is counted at the server.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentworldbench import evaluate
from agentworldbench.response_cache import NAME
from agentworldbench.run_record import PROMPT_CUT
from tests.helpers.asking import TASKS
from tests.helpers.caching import by_key, entries, one_of_many
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import (
    ChatCall,
    Reply,
    ScriptedServer,
)
from tests.helpers.whole_runs import asked, kind_of_call, options

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("data")
    return make_official_folder(
        folder, domains=("terminal", "web"), trajectories=2, observation_chars=80, special=False
    )


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(one_of_many) as running:
        yield running


@pytest.fixture
def opts(server: ScriptedServer, data: Manifest, tmp_path: Path) -> dict[str, Any]:
    return options(server, tmp_path / "first", data.folder, cache=tmp_path / "cache")


# --- what counts as the same question ----------------------------------------------------------

SAME: dict[str, dict[str, Any]] = {
    "connections": {"max_connections": 1},
    "timeout and retries": {"timeout": 99.0, "max_retries": 1},
    "order of work": {"seed": None, "limit": "1.0"},
}
OTHER: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 0.1},
    "top_p": {"top_p": 0.5},
    "seed": {"seed": 1},
    "max_tokens": {"max_tokens": 77},
    "extra body": {"extra_body": {"top_k": 3}},
    "sampling": {"gen_kwargs": {"min_p": 0.1}},
    "thinking": {"thinking": "off"},
    "model": {"model": "openai-api/earth"},
}
OTHER_JUDGE: dict[str, dict[str, Any]] = {
    "temperature": {"judge_temperature": 0.3},
    "max_tokens": {"judge_max_tokens": 1000},
    "schema": {"judge_json_schema": True},
    "extra body": {"judge_extra_body": {"top_k": 3}},
}


@pytest.mark.parametrize("name", SAME)
def test_what_cannot_change_an_answer_is_no_part_of_the_question(
    server: ScriptedServer, opts: dict[str, Any], tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(**opts)
    since = len(server.calls)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another-key-0123456789")
    evaluate(**opts | {"output": tmp_path / "second"} | SAME[name])
    assert len(server.calls) == since


@pytest.mark.parametrize("name", OTHER)
def test_what_can_change_an_answer_is(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path, name: str
) -> None:
    evaluate(**opts, no_judge=True)
    since = len(server.calls)
    evaluate(**opts | {"output": tmp_path / "second", "no_judge": True} | OTHER[name])
    assert len(server.calls) - since == len(data.rows)


@pytest.mark.parametrize("name", OTHER_JUDGE)
def test_what_can_change_a_verdict_is(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path, name: str
) -> None:
    evaluate(**opts)
    since = len(server.calls)
    evaluate(**opts | {"output": tmp_path / "second"} | OTHER_JUDGE[name])
    assert asked(server, since) == {"world": 0, "judge": len(data.rows)}


def test_another_server_and_other_weights_are_other_models(
    opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    once = {**opts, "no_judge": True}
    evaluate(**once)
    listed: list[tuple[dict[str, Any], int]] = [
        ({"root": "weights-1"}, 1),
        ({"root": "weights-2", "created": 1}, 2),
        ({"root": "weights-2", "created": 2, "max_model_len": 99_999}, 2),
        ({"meta": {"size": 1, "n_ctx": 50_000}}, 3),
        ({"meta": {"size": 1, "n_ctx": 60_000}}, 3),
        ({"meta": {"size": 2, "n_ctx": 60_000}}, 4),
        ({"quantization": "fp8"}, 5),
    ]
    with ScriptedServer(one_of_many) as other:
        for number, (entry, times) in enumerate(listed):
            other.models = [{"id": "world", **entry}]
            evaluate(**once | {"base_url": other.base_url, "output": tmp_path / f"other-{number}"})
            assert asked(other)["world"] == times * len(data.rows), entry


def test_another_query_of_an_address_is_another_question_and_its_keys_are_not(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    """Gateways choose a version or a deployment by it; some also take the key there."""
    queries = ("", "?v=1", "?v=2", "?v=1&b=2", "?b=2&v=1&api-key=one", "?api-key=two&v=1&b=2", "?key=three")
    asked_for = list[int]()
    for number, query in enumerate(queries):
        since = len(server.calls)
        once = {**opts, "no_judge": True, "output": tmp_path / f"run-{number}"}
        evaluate(**once | {"base_url": server.base_url + query})
        asked_for.append(len(server.calls) - since)
    every = len(data.rows)
    assert asked_for == [every, every, every, every, 0, 0, 0]
    kept = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    assert b"three" not in kept


def test_an_address_in_the_environment_counts_too(
    server: ScriptedServer, data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentworldbench.models import Connection, create_model

    names = []
    for url in ("", "http://127.0.0.1:1/v1", "http://user:secret-of-mine@127.0.0.1:2/v1?key=1"):
        monkeypatch.setenv("OPENAI_API_BASE", url)
        names.append(create_model("openai/gpt-5.4", Connection(), TASKS).url)
    assert names == [None, "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]


# --- what is good ------------------------------------------------------------------------------


def test_failures_are_asked_again_by_every_run(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    replies = {
        0: Reply(content=None),
        1: Reply(content="<predicted_observation>half", finish_reason="length"),
        2: Reply(content="No.", refusal="No."),
        3: Reply(content="", finish_reason="content_filter"),
        4: Reply(status=500),
    }

    def failing(call: ChatCall) -> Reply:
        return replies.get(kind_of_call(call)) or one_of_many(call)

    server.script = failing
    more = {"max_retries": 0, "judge_attempts": 1}
    first = evaluate(**opts, **more)
    bad = [record.failure.kind for record in first.predictions() if record.failure]
    unread = [record for record in first.verdicts() if record.failure]
    assert len(set(bad)) >= 4, "the script's kinds occur in this data"
    assert unread
    assert all(record.draw is None for record in first.predictions() if record.failure)
    server.script, since = one_of_many, len(server.calls)
    second = evaluate(**opts | {"output": tmp_path / "second"}, **more)
    assert asked(server, since) == {"world": len(bad), "judge": len(bad) + len(unread)}
    assert second.results is not None
    assert second.results.judges[0].micro.coverage == 1.0
    assert all(one["completion"]["finish_reason"] == "stop" for one in entries(tmp_path / "cache"))


def test_a_reply_without_a_verdict_is_not_stored_and_the_attempt_after_it_is(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    def at_second(call: ChatCall) -> Reply:
        unread = call.model == "judge" and call.attempt == 1
        return Reply(content="Four out of five, I would say.") if unread else one_of_many(call)

    server.script = at_second
    first = evaluate(**opts)
    assert asked(server)["judge"] == 2 * len(data.rows)
    since = len(server.calls)
    second = evaluate(**opts | {"output": tmp_path / "second"})
    assert asked(server, since) == {"world": 0, "judge": 0}
    here, there = by_key(first.verdicts()), by_key(second.verdicts())
    assert [one.scores for one in here.values()] == [there[key].scores for key in here]
    assert all(len(one.attempts) == 2 for one in here.values())
    assert all(one.attempts == () and one.cost_usd == 0.0 for one in there.values())


def test_an_answer_to_a_cut_prompt_is_not_stored(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest
) -> None:
    cut = {"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6}
    server.script = lambda call: Reply(content="<predicted_observation>x</predicted_observation>", usage=cut)
    run = evaluate(**opts, no_judge=True)
    records = list(run.predictions())
    noted = [record for record in records if PROMPT_CUT in record.notes]
    assert noted
    assert all(record.draw is None for record in noted)
    assert len(entries(opts["cache"])) == len(records) - len(noted)


def test_what_was_good_by_other_rules_is_asked_for_anew_and_replaced(
    server: ScriptedServer, opts: dict[str, Any], data: Manifest, tmp_path: Path
) -> None:
    evaluate(**opts, no_judge=True)
    file = sqlite3.connect(opts["cache"] / NAME)
    for key, body in file.execute("SELECT key, body FROM answers").fetchall():
        entry = json.loads(zlib.decompress(body))
        entry["completion"] |= {"text": "<think>never ended", "finish_reason": "length"}
        stale = zlib.compress(json.dumps(entry).encode())
        sha256 = hashlib.sha256(key.encode() + stale).digest()
        file.execute("UPDATE answers SET body = ?, sha256 = ? WHERE key = ?", (stale, sha256, key))
    file.commit()
    file.close()
    for output, calls in (("second", len(data.rows)), ("third", 0)):
        since = len(server.calls)
        run = evaluate(**opts | {"output": tmp_path / output}, no_judge=True)
        assert len(server.calls) - since == calls
        assert not [record for record in run.predictions() if record.failure or not record.draw]
