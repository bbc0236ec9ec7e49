"""Tests of the loopback stand-ins in `tests/helpers`: what other tests build on must hold.

The server is driven by the real `openai` client, the hub by the real `huggingface_hub` in a
subprocess (it reads HF_ENDPOINT at import). Nothing waits for a clock: concurrency is proven by a
gate that opens when enough requests are in flight, every wait has a bound.
"""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from tests.helpers.loopback_hub import COMMIT, LoopbackHub
from tests.helpers.observation_texts import FAILURE, ODD_SEPARATORS
from tests.helpers.official_folder import DOMAINS, GUI, MARKER, SUFFIX, Manifest, make_official_folder
from tests.helpers.scripted_server import (
    DIMENSIONS,
    ChatCall,
    Reply,
    Script,
    ScriptedServer,
    asked_in_log,
    digest_of,
    echo_world,
    every_nth,
    fail_first,
    fixed_verdict,
    hash_scores,
    late,
    rate_limited,
    read_log,
    refuse_parameter,
    together,
    world_and_judge,
)

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 20.0
OLDER = "f" * 40
Result = TypeVar("Result")
OK = Reply(content="fine")


def ok(call: ChatCall) -> Reply:
    return OK


def talk(server: ScriptedServer, use: Callable[[AsyncOpenAI], Awaitable[Result]]) -> Result:
    """Runs `use` with a client that does not retry, bounded."""

    async def run() -> Result:
        async with AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as client:
            return await asyncio.wait_for(use(client), LIMIT_S)

    return asyncio.run(run())


async def ask(client: AsyncOpenAI, text: str) -> ChatCompletion:
    return await client.chat.completions.create(
        model="tiny",
        messages=[{"role": "system", "content": "You are a shell."}, {"role": "user", "content": text}],
    )


def post(server: ScriptedServer, body: bytes) -> http.client.HTTPConnection:
    """Sends a chat request on a raw connection and does not read the answer."""
    address = urlsplit(server.base_url)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=LIMIT_S)
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    return connection


def raw_answer(script: Script, body: bytes = b'{"model": "m", "messages": []}') -> tuple[int, Any, bytes]:
    with ScriptedServer(script) as server:
        connection = post(server, body)
        response = connection.getresponse()
        answer = response.status, response.headers, response.read()
        connection.close()
    return answer


def test_world_and_judge_answer_the_openai_client_deterministically() -> None:
    async def use(client: AsyncOpenAI) -> list[ChatCompletion]:
        judged = "Is it right? Answer in <final_evaluation> tags."
        return [await ask(client, "ls"), await ask(client, "ls"), await ask(client, judged)]

    with ScriptedServer() as server:
        first, again, verdict = talk(server, use)
        calls = server.calls
    text = first.choices[0].message.content or ""
    assert text == again.choices[0].message.content
    assert "<predicted_observation>\n" in text
    assert first.model == "tiny"
    assert first.usage is not None
    assert first.usage.prompt_tokens == len("You are a shell.ls") // 4
    assert first.usage.completion_tokens == len(text) // 4
    assert [(call.index, call.attempt, call.is_judge) for call in calls] == [
        (1, 1, False),
        (2, 2, False),
        (3, 1, True),
    ]
    fence = (verdict.choices[0].message.content or "").split("```json\n")[1].split("\n```")[0]
    scores = json.loads(fence)["scores"]
    assert scores == hash_scores(calls[2].last_user)
    assert tuple(scores) == DIMENSIONS
    assert all(1 <= score <= 5 for score in scores.values())
    assert calls[0].headers["authorization"] == "Bearer none"


def test_a_judge_is_known_by_the_word_or_by_the_tag() -> None:
    def judge(system: str, user: object) -> bool:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return ChatCall({"messages": messages}, {}, 1, 1).is_judge

    assert judge("You are a Judge.", "x")
    assert judge("", [{"type": "text", "text": "<final_evaluation>"}])
    assert not judge("You answer judgements.", "x")


def test_rate_limit_carries_its_header_and_ends() -> None:
    async def use(client: AsyncOpenAI) -> str | None:
        for _ in range(2):
            with pytest.raises(openai.RateLimitError) as caught:
                await ask(client, "ls")
            assert caught.value.response.headers["retry-after"] == "7"
        return (await ask(client, "ls")).choices[0].message.content

    with ScriptedServer(rate_limited(2, 7, ok)) as server:
        assert talk(server, use) == "fine"
        assert [call.attempt for call in server.calls] == [1, 2, 3]
        assert list(server.asked().values()) == [3]


def test_reasoning_usage_and_finish_reason_arrive() -> None:
    reply = Reply(
        content="fine",
        reasoning_content="so it is",
        reasoning="as it seems",
        finish_reason="length",
        cached_tokens=3,
        model="tiny-0601",
        refusal="no",
        tool_calls=[{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    )
    with ScriptedServer(lambda call: reply) as server:
        completion = talk(server, lambda client: ask(client, "ls"))
    choice = completion.choices[0]
    assert choice.finish_reason == "length"
    assert choice.message.model_extra == {"reasoning_content": "so it is", "reasoning": "as it seems"}
    assert choice.message.refusal == "no"
    assert choice.message.tool_calls is not None
    assert completion.model == "tiny-0601"
    assert completion.usage is not None
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == 3
    assert completion.usage.completion_tokens_details is not None
    assert completion.usage.completion_tokens_details.reasoning_tokens == 2


def test_broken_replies_arrive_as_scripted() -> None:
    def sent(reply: Reply) -> Any:
        return json.loads(raw_answer(lambda call: reply)[2])

    parts = [{"type": "text", "text": "fine"}]
    assert raw_answer(lambda call: Reply(raw_body=b'{"id": '))[::2] == (200, b'{"id": ')
    assert sent(Reply(choices=[]))["choices"] == []
    assert sent(Reply(choices=None))["choices"] is None
    assert sent(Reply())["choices"][0]["message"]["content"] is None
    assert sent(Reply(content=parts))["choices"][0]["message"]["content"] == parts
    assert "usage" not in sent(Reply(omit_usage=True))
    assert sent(Reply(error={"error": "plain"}, status=503)) == {"error": "plain"}
    quota = Reply(error={"message": "quota"}, headers={"X-Id": "1"})
    status, headers, body = raw_answer(lambda call: quota)
    assert (status, headers["X-Id"], json.loads(body)) == (200, "1", {"error": {"message": "quota"}})
    assert raw_answer(lambda call: Reply(status=502))[0] == 502


def test_bodies_it_cannot_answer_are_refused() -> None:
    assert raw_answer(ok, b"{")[0] == 400
    assert raw_answer(ok, b'{"messages": [], "stream": true}')[0] == 400


def test_a_dropped_connection_is_a_connection_error_and_the_next_call_works(tmp_path: Path) -> None:
    async def use(client: AsyncOpenAI) -> str | None:
        with pytest.raises(openai.APIConnectionError):
            await ask(client, "ls")
        return (await ask(client, "ls")).choices[0].message.content

    log = tmp_path / "log.jsonl"
    with ScriptedServer(fail_first(1, Reply(drop_connection=True), ok), log_path=log) as server:
        assert talk(server, use) == "fine"
        server.wait_for_answers(2)
    assert [entry["outcome"] for entry in read_log(log) if entry["event"] == "reply"] == ["dropped", "sent"]


def test_a_request_stands_in_the_log_before_it_is_answered(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    def script(call: ChatCall) -> Reply:
        return Reply(content=str(asked_in_log(log)[call.key]))

    async def use(client: AsyncOpenAI) -> list[str | None]:
        answers = [await ask(client, text) for text in ("a", "b", "a", "a")]
        return [answer.choices[0].message.content for answer in answers]

    with ScriptedServer(script, log_path=log) as server:
        assert talk(server, use) == ["1", "1", "2", "3"]
        server.wait_for_answers(4)
        assert asked_in_log(log) == server.asked()
    records = read_log(log)
    assert [record["event"] for record in records].count("reply") == 4
    assert sorted(asked_in_log(log).values()) == [1, 3]
    with log.open("ab") as file:
        file.write(b'{"event": "requ')
    assert read_log(log) == records


def test_a_client_that_went_away_is_logged_as_lost(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with ScriptedServer(together(2, ok), log_path=log) as server:
        gone = post(server, b'{"model": "m", "messages": []}')
        server.wait_for_calls(1)
        gone.close()
        stays = post(server, b'{"model": "m", "messages": []}')
        assert stays.getresponse().status == 200
        server.wait_for_answers(2)
        stays.close()
    outcomes = {entry["index"]: entry["outcome"] for entry in read_log(log) if entry["event"] == "reply"}
    assert outcomes == {1: "lost", 2: "sent"}


def test_64_requests_are_served_at_the_same_time() -> None:
    async def use(client: AsyncOpenAI) -> set[str | None]:
        answers = await asyncio.gather(*(ask(client, f"ls {number}") for number in range(256)))
        return {answer.choices[0].message.content for answer in answers}

    with ScriptedServer(together(64, echo_world)) as server:
        assert len(talk(server, use)) == 256
        assert server.max_in_flight >= 64
        assert len(server.calls) == 256


def test_sequential_requests_are_never_in_flight_together() -> None:
    async def use(client: AsyncOpenAI) -> None:
        for number in range(50):
            await ask(client, f"ls {number}")

    with ScriptedServer(ok) as server:
        talk(server, use)
        assert server.max_in_flight == 1


def test_combinators() -> None:
    bad = Reply(status=500)

    def seen(script: Script, index: int = 1, attempt: int = 1, **body: object) -> Reply:
        return script(ChatCall({"messages": [], **body}, {}, index, attempt))

    statuses = [seen(every_nth(3, bad, ok), index=n).status for n in range(1, 7)]
    assert statuses == [200, 200, 500, 200, 200, 500]
    assert seen(late(0.5, late(0.25, ok))).delay_s == 0.75
    refusing = refuse_parameter("max_tokens", "Use 'max_completion_tokens' instead.", ok)
    refused = seen(refusing, max_tokens=5)
    assert refused.status == 400
    assert refused.error is not None
    assert refused.error["code"] == "unsupported_parameter"
    assert "Use 'max_completion_tokens' instead." in str(refused.error["message"])
    assert seen(refusing, max_completion_tokens=5) is OK
    only_one = refuse_parameter("temperature", "Only the default (1) value is supported.", ok, allowed=(1,))
    assert seen(only_one, temperature=0.6).status == 400
    assert seen(only_one, temperature=1) is OK
    assert '"format": 6' in str(seen(fixed_verdict({"format": 6})).content)
    assert seen(world_and_judge) == seen(echo_world)


def test_a_failing_script_fails_the_test() -> None:
    def script(call: ChatCall) -> Reply:
        raise AssertionError("unexpected call")

    with pytest.raises(RuntimeError, match="script failed"):
        assert raw_answer(script)[0] == 500
    with pytest.raises(TimeoutError), ScriptedServer(ok) as server:
        server.wait_for_calls(1, timeout_s=0.01)


def test_the_model_list_can_be_scripted() -> None:
    async def use(client: AsyncOpenAI) -> list[Any]:
        return [model async for model in client.models.list()]

    with ScriptedServer(ok, models=[{"id": "tiny", "max_model_len": 4096}]) as server:
        (model,) = talk(server, use)
        assert (model.id, model.max_model_len) == ("tiny", 4096)
        server.models = 404
        with pytest.raises(openai.NotFoundError):
            talk(server, use)
        assert server.model_requests == 2


def test_the_server_runs_as_a_process(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    options = ["--log", str(log), "--delay", "0.001", "--max-model-len", "99"]

    async def run() -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.helpers.scripted_server", "--port", "0", *options),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            base_url = (await asyncio.wait_for(process.stdout.readline(), LIMIT_S)).decode().strip()
            async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as client:
                answer = await asyncio.wait_for(ask(client, "ls"), LIMIT_S)
                assert "<predicted_observation>" in (answer.choices[0].message.content or "")
            process.terminate()
            return await asyncio.wait_for(process.wait(), LIMIT_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    assert asyncio.run(run()) == 0
    assert list(asked_in_log(log).values()) == [1]


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(tmp_path_factory.mktemp("official"), seed=3)


def read_rows(manifest: Manifest, domain: str) -> list[dict[str, Any]]:
    text = (manifest.folder / f"{domain}_test.jsonl").read_bytes().decode()
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def both(manifest: Manifest) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Manifest entries with their rows as read from the files."""
    for domain in DOMAINS:
        yield from zip(manifest.of(domain), read_rows(manifest, domain), strict=True)


def test_rows_have_the_official_shape(manifest: Manifest) -> None:
    fields = ["task", "id", "prompt", "response", "current_prompt", "system_str", "turn_idx", "total_turns"]
    for entry, row in both(manifest):
        assert list(row) == fields
        assert len(row["prompt"]) == len(row["response"]) == row["turn_idx"] <= row["total_turns"]
        assert row["prompt"][-1] == row["current_prompt"] + SUFFIX
        assert not any(text.endswith(SUFFIX) for text in [*row["prompt"][:-1], row["current_prompt"]])
        assert all(response.startswith(f"{MARKER}\n") for response in row["response"])
        assert (entry.id, type(entry.id), entry.turn_idx) == (row["id"], type(row["id"]), row["turn_idx"])
        assert row["task"].split("/")[-1] == entry.domain
        assert "judge" not in row["system_str"].lower()


def test_ordinary_trajectories_are_sampled_first_last_and_between(manifest: Manifest) -> None:
    for domain in DOMAINS:
        for number in range(3):
            name = f"{domain}/plain-{number}"
            turns = {row.turn_idx for row in manifest.of(domain) if row.trajectory == name}
            assert {1, 6} < turns
            assert len(turns) == 5
    assert sum(manifest.row_counts.values()) == len(manifest.rows)
    assert set(manifest.cluster_counts) == set(DOMAINS)


def chain(row: dict[str, Any]) -> list[str]:
    """Running hashes of a row; the last one is its end."""
    hashes = [digest_of(row["system_str"])]
    for text, response in zip([*row["prompt"][:-1], row["current_prompt"]], row["response"], strict=True):
        hashes.append(digest_of([hashes[-1], text, response]))
    return hashes[1:]


@pytest.mark.parametrize("domain", DOMAINS)
def test_the_expected_clusters_are_those_of_the_chain_hashes(manifest: Manifest, domain: str) -> None:
    chains = [chain(row) for row in read_rows(manifest, domain)]
    ends = {hashes[-1] for hashes in chains}
    leader = {end: end for end in ends}

    def find(end: str) -> str:
        while leader[end] != end:
            end = leader[end]
        return end

    for hashes in chains:
        for passed in (link for link in hashes if link in ends):
            leader[find(passed)] = find(hashes[-1])
    groups: dict[str, set[int]] = {}
    for line, hashes in enumerate(chains, start=1):
        groups.setdefault(find(hashes[-1]), set()).add(line)
    assert manifest.partition(domain) == {frozenset(lines) for lines in groups.values()}


@pytest.mark.parametrize(
    ("trait", "domain", "clusters"),
    [
        ("fork_early", "mcp", 2),
        ("fork_early", "android", 2),
        ("fork_late", "swe", 1),
        ("fork_late", "web", 1),
        ("fork_unsampled", "os", 2),
        ("fork_unsampled", "terminal", 2),
    ],
)
def test_forks(manifest: Manifest, trait: str, domain: str, clusters: int) -> None:
    pairs = [
        (entry, row) for entry, row in both(manifest) if trait in entry.traits and entry.domain == domain
    ]
    assert len({entry.trajectory for entry, _ in pairs}) == 2
    assert len({entry.cluster for entry, _ in pairs}) == clusters
    assert len({row["system_str"] for _, row in pairs}) == 1
    first_actions = {[*row["prompt"][:-1], row["current_prompt"]][0] for _, row in pairs}
    assert len(first_actions) == 1
    assert len({row["response"][0] for _, row in pairs}) == (2 if trait == "fork_early" else 1)
    assert (1 in {entry.turn_idx for entry, _ in pairs}) == (trait != "fork_unsampled")


def test_ids_collide_and_keep_their_type(manifest: Manifest) -> None:
    for domain in DOMAINS:
        ids = {entry.id for entry in manifest.of(domain)}
        assert len({type(value) for value in ids}) == (2 if domain in GUI else 1)
        assert domain in GUI or all(len(str(value)) == 15 for value in ids)
    repeated = [entry for entry in manifest.rows if entry.ordinal > 1]
    assert [(entry.domain, entry.id, entry.turn_idx, entry.ordinal) for entry in repeated] == [
        ("android", 7, 3, 2)
    ]
    seven = [entry for entry in manifest.of("android") if entry.id == 7]
    assert len({entry.cluster for entry in seven}) == 2
    typed = {(entry.id, entry.turn_idx) for entry in manifest.having("typed_id")}
    assert typed == {(1, 1), (1, 3), ("1", 1), ("1", 3)}


def test_texts_with_traps_are_there(manifest: Manifest) -> None:
    raw = (manifest.folder / "search_test.jsonl").read_bytes()
    assert ODD_SEPARATORS.encode() in raw
    assert len(raw.decode().splitlines()) > raw.count(b"\n") == manifest.row_counts["search"]
    rows = {(entry.domain, entry.line): row for entry, row in both(manifest)}
    by_trait = {
        trait: [rows[entry.domain, entry.line] for entry in manifest.having(trait)]
        for trait in ("environment_failure", "path_task", "no_system", "single_turn")
    }
    assert [row["response"][-1] for row in by_trait["environment_failure"]] == [f"{MARKER}\n{FAILURE}"]
    assert [row["task"] for row in by_trait["path_task"]] == ["x/terminal"]
    assert {row["system_str"] for row in by_trait["no_system"]} == {""}
    assert [row["total_turns"] for row in by_trait["single_turn"]] == [1]
    assert any("\u4e00" <= char <= "\u9fff" for char in raw.decode())


def test_equal_arguments_give_equal_bytes_and_size_follows_scale(tmp_path: Path) -> None:
    def digest(name: str, **scale: Any) -> tuple[str, int]:
        folder = make_official_folder(tmp_path / name, **scale).folder
        content = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
        return hashlib.sha256(content).hexdigest(), len(content)

    base = digest("a", seed=1)
    assert base == digest("b", seed=1)
    assert base[0] != digest("c", seed=2)[0]
    assert digest("d", seed=1, observation_chars=4000)[1] > 5 * base[1]
    few = make_official_folder(tmp_path / "e", seed=1, domains=["os"], trajectories=8, turns=3, special=False)
    assert [path.name for path in few.folder.iterdir()] == ["os_test.jsonl"]
    assert (dict(few.row_counts), dict(few.cluster_counts)) == ({"os": 24}, {"os": 8})
    with pytest.raises(ValueError, match="3 turns"):
        make_official_folder(tmp_path / "f", seed=1, turns=2)


FIRST_VISIT = """
import json, sys
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError
repo, pinned = sys.argv[1:]
where = dict(repo_id=repo, repo_type="dataset")
read = lambda path: open(path, encoding="utf-8").read()
def error(**changes):
    try:
        hf_hub_download(**{"filename": "os_test.jsonl", **where, **changes})
    except (EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError) as caught:
        return type(caught).__name__
info = HfApi().dataset_info(repo, files_metadata=True)
print(json.dumps({
    "main": read(hf_hub_download(**where, filename="os_test.jsonl")),
    "pinned": read(hf_hub_download(**where, filename="os_test.jsonl", revision=pinned)),
    "again": read(hf_hub_download(**where, filename="os_test.jsonl", revision=pinned)),
    "snapshot": snapshot_download(**where),
    "sha": info.sha,
    "siblings": {file.rfilename: [file.size, file.lfs and file.lfs.sha256] for file in info.siblings},
    "tree": [entry.path for entry in HfApi().list_repo_tree(**where, recursive=True)],
    "top": [entry.path for entry in HfApi().list_repo_tree(**where)],
    "paths": [entry.path for entry in HfApi().get_paths_info(**where, paths=["os_test.jsonl", "none"])],
    "errors": [error(revision="e" * 40), error(filename="none.jsonl"), error(repo_id="some/other")],
}))
"""
OFFLINE_VISIT = """
import json, sys
from huggingface_hub import hf_hub_download, snapshot_download
repo, pinned = sys.argv[1:]
where = dict(repo_id=repo, repo_type="dataset")
read = lambda path: open(path, encoding="utf-8").read()
print(json.dumps({
    "main": read(hf_hub_download(**where, filename="os_test.jsonl")),
    "pinned": read(hf_hub_download(**where, filename="os_test.jsonl", revision=pinned)),
    "snapshot": snapshot_download(**where),
}))
"""


def visit(code: str, hub: LoopbackHub, home: Path, **changes: str) -> dict[str, Any]:
    environment = {**os.environ, **hub.environment(home), **changes}
    done = subprocess.run(
        [sys.executable, "-c", code, hub.repo_id, OLDER],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    for name, text in (("new", "new \u2028 text\n"), ("old", "old text\n")):
        (tmp_path / name / "data").mkdir(parents=True)
        (tmp_path / name / "os_test.jsonl").write_text(text, encoding="utf-8")
        (tmp_path / name / "data" / "README.md").write_text("about\n", encoding="utf-8")
    with LoopbackHub(tmp_path / "new", other_commits={OLDER: tmp_path / "old"}) as served:
        yield served


def test_huggingface_hub_downloads_pins_caches_and_works_offline(hub: LoopbackHub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = visit(FIRST_VISIT, hub, home)
    content = (tmp_path / "new" / "os_test.jsonl").read_bytes()
    assert first["main"] == "new \u2028 text\n"
    assert first["pinned"] == first["again"] == "old text\n"
    assert first["sha"] == COMMIT
    assert first["siblings"] == {
        "data/README.md": [6, None],
        "os_test.jsonl": [len(content), hashlib.sha256(content).hexdigest()],
    }
    assert first["tree"] == ["data", "data/README.md", "os_test.jsonl"]
    assert first["top"] == ["data", "os_test.jsonl"]
    assert first["paths"] == ["os_test.jsonl"]
    assert [name.removeprefix("Remote") for name in first["errors"]] == [
        "RevisionNotFoundError",
        "EntryNotFoundError",
        "RepositoryNotFoundError",
    ]
    assert (Path(first["snapshot"]) / "data" / "README.md").read_text() == "about\n"
    files = [request for request in hub.requests if "/resolve/" in request.path]
    gets = [request.path for request in files if request.method == "GET"]
    assert len(gets) == len(set(gets)) == 3
    assert not any(request.authorized for request in hub.requests)

    before = len(hub.requests)
    offline = visit(OFFLINE_VISIT, hub, home, HF_HUB_OFFLINE="1")
    assert offline == {name: first[name] for name in ("main", "pinned", "snapshot")}
    assert len(hub.requests) == before


def test_the_hub_serves_ranges_and_scripted_failures(hub: LoopbackHub, tmp_path: Path) -> None:
    address = urlsplit(hub.endpoint)
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=LIMIT_S)

    def get(method: str = "GET", **headers: str) -> tuple[int, Any, bytes]:
        connection.request(method, f"/datasets/{hub.repo_id}/resolve/main/os_test.jsonl", headers=headers)
        response = connection.getresponse()
        return response.status, response.headers, response.read()

    content = (tmp_path / "new" / "os_test.jsonl").read_bytes()
    status, headers, body = get("HEAD")
    assert (status, body, headers["X-Repo-Commit"]) == (200, b"", COMMIT)
    assert headers["Content-Length"] == headers["X-Linked-Size"] == str(len(content))
    assert headers["ETag"] == headers["X-Linked-Etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    status, headers, body = get(Range="bytes=4-")
    assert (status, body) == (206, content[4:])
    assert headers["Content-Range"] == f"bytes 4-{len(content) - 1}/{len(content)}"
    assert get(Range="bytes=0-2")[2] == content[:3]
    assert get(Range="bytes=-2")[2] == content[-2:]
    assert get(Range="bytes=999-")[0] == 416
    hub.fail_with = 503
    assert get()[0] == 503
    connection.close()
