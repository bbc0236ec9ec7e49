"""`awb doctor`: what one request per model shows, by state, and the exit code; real commands, loopback servers."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.awb_command import Done, HereAwb
from tests.helpers.engine_servers import AnthropicServer, LlamaServer, OpenAIServer, VllmServer
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer

KEY = "sk-for-tests-0123456789abcdef"
Rows = dict[str, dict[str, tuple[str, str]]]


@pytest.fixture
def awb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[HereAwb]:
    command = HereAwb(tmp_path, monkeypatch, capsys)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    yield command


def tables(done: Done) -> Rows:
    """Title of each table to its rows: check to (state, found); wrapped lines are joined."""
    assert KEY not in done.out + done.err
    found: Rows = {}
    rows: dict[str, tuple[str, str]] = {}
    last = ""
    for line in done.out.splitlines():
        if line.startswith(("Machine: ", "Model: ", "Judge: ")):
            rows = found[line] = {}
            start = None
        elif line.startswith("Check"):
            start = (line.index("State"), line.index("Found"))
        elif line and not line.startswith("─"):
            assert start is not None
            check, state, text = line[: start[0]].strip(), line[start[0] : start[1]].strip(), line[start[1] :]
            if check:
                rows[check], last = (state, text.strip()), check
            else:
                rows[last] = (rows[last][0], f"{rows[last][1]} {text.strip()}")
    return found


def says(text: str, **more: object) -> Reply:
    return Reply(content=text, **more)  # type: ignore[arg-type]


def test_a_vllm_server(awb: HereAwb) -> None:
    with VllmServer(lambda call: says("ready", reasoning_content="echo prints it"), context=4096) as server:
        words = ["--model", "openai-api/served-model", "--base-url", server.base_url, "--thinking", "on"]
        done = awb("doctor", *words)
        chats = server.bodies("/v1/chat/completions")
    assert done.code == 0, done.err
    rows = tables(done)["Model: openai-api/served-model"]
    assert {check: state for check, (state, _) in rows.items() if state != "ok"} == {}
    assert rows["returned name"][1] == "served-model"
    assert rows["thinking"][1] == "comes apart from the answer (--thinking on)"
    assert rows["context"][1] == "4,096 tokens (/v1/models max_model_len)"
    assert rows["engine"][1].startswith("vllm 0.33.0")
    assert rows["prompt tokens"][1].startswith("counted by the model's tokenizer")
    told = "unknown, and so is cost; --price openai-api/served-model=IN,OUT tells it, which --max-cost needs"
    assert rows["price"][1] == told
    assert len(chats) == 1, "one cheap request"
    assert chats[0]["chat_template_kwargs"] == {"enable_thinking": True}
    assert ", 0 faults" in done.err


def test_a_cap_without_a_price_is_a_warning(awb: HereAwb) -> None:
    with VllmServer(lambda call: says("ready"), context=4096) as server:
        words = [
            "doctor",
            "--model",
            "openai-api/served-model",
            "--base-url",
            server.base_url,
            "--max-cost",
            "5",
        ]
        bare = awb(*words)
        priced = awb(*words, "--price", "openai-api/served-model=0.5,2")
    state, told = tables(bare)["Model: openai-api/served-model"]["price"]
    assert (bare.code, state) == (0, "warning")
    assert "--max-cost needs --price openai-api/served-model=IN,OUT" in told
    state, told = tables(priced)["Model: openai-api/served-model"]["price"]
    assert (state, "USD in" in told) == ("ok", True), told


def test_model_and_judge_are_looked_at_apart(awb: HereAwb) -> None:
    with LlamaServer(lambda call: says('{"printed": "ready"}'), context=2048) as server:
        done = awb(
            "doctor", "--model", "openai-api/served-model", "--base-url", server.base_url,
            "--judge", "openai-api/judge", "--judge-base-url", server.base_url,
        )  # fmt: skip
        chats = server.bodies("/v1/chat/completions")
    found = tables(done)
    assert list(found)[1:] == ["Model: openai-api/served-model", "Judge: openai-api/judge"]
    assert found["Judge: openai-api/judge"]["JSON schema"] == ("ok", "accepted and kept to")
    assert "JSON schema" not in found["Model: openai-api/served-model"]
    assert [("response_format" in chat) for chat in chats] == [False, True]
    assert [chat["temperature"] for chat in chats] == [0.6, 0.0]
    assert done.code == 0


def test_another_model_with_less_context_than_counted_on_is_a_warning(awb: HereAwb) -> None:
    """A llama.cpp server answers to every name; a recipe's context is worth nothing where the server has less."""
    with LlamaServer(lambda call: says("ready"), context=8192) as server:
        at = ["--model", "openai-api/Qwen/Qwen-AgentWorld-35B-A3B", "--base-url", server.base_url]
        done = awb("doctor", *at, "--max-context", "262144")
        name = server.bodies("/v1/chat/completions")[0]["model"]
    rows = tables(done)["Model: openai-api/Qwen/Qwen-AgentWorld-35B-A3B"]
    assert name == "Qwen/Qwen-AgentWorld-35B-A3B"
    assert rows["returned name"] == (
        "warning",
        "served-model: is that the model which you call openai-api/Qwen/Qwen-AgentWorld-35B-A3B?",
    )
    assert rows["context"][0] == "warning"
    assert rows["context"][1].startswith("8,192 tokens (/props n_ctx")
    assert rows["context"][1].endswith("and not the 262,144 of --max-context")
    assert done.code == 0
    assert ", 2 warnings, 0 faults" in done.err


def test_adapted_parameters_are_a_warning(awb: HereAwb) -> None:
    with OpenAIServer(lambda call: says("ready"), served="gpt-5") as server:
        done = awb("doctor", "--model", "openai/gpt-5", "--base-url", server.api_base)
    rows = tables(done)["Model: openai/gpt-5"]
    assert rows["parameters"][0] == "warning"
    assert "temperature left out" in rows["parameters"][1]
    assert rows["returned name"][1].startswith("gpt-5")
    assert "USD in" in rows["price"][1]
    assert done.code == 0


def test_anthropic_through_litellm(awb: HereAwb) -> None:
    with AnthropicServer(lambda call: says("ready"), served="claude-sonnet-4-5") as server:
        done = awb("doctor", "--model", "anthropic/claude-sonnet-4-5", "--base-url", server.api_base)
    rows = tables(done)["Model: anthropic/claude-sonnet-4-5"]
    assert rows["authorised"] == ("ok", "yes")
    assert rows["context"][1].endswith("(LiteLLM's table)")
    assert rows["prompt tokens"][1].startswith("estimated")
    assert done.code == 0


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_server_that_is_not_there_is_a_fault(awb: HereAwb) -> None:
    done = awb("doctor", "--model", "openai-api/m", "--base-url", f"http://127.0.0.1:{closed_port()}/v1")
    assert done.code == 2
    (row,) = tables(done)["Model: openai-api/m"].items()
    assert row[0] == "reachable"
    assert row[1][0] == "FAULT"
    assert "is the server running" in row[1][1]
    assert done.err.endswith(", 1 fault\n")


@pytest.mark.parametrize("models", [401, [{"id": "m"}]])
def test_a_refused_key_is_a_fault(awb: HereAwb, models: object) -> None:
    refused = Reply(status=401, error={"message": f"Incorrect API key provided: {KEY}"})
    with ScriptedServer(lambda call: refused, models=models) as server:  # type: ignore[arg-type]
        done = awb("doctor", "--model", "openai-api/m", "--base-url", server.base_url)
    assert done.code == 2
    rows = tables(done)["Model: openai-api/m"]
    assert rows["authorised"][0] == "FAULT"


def test_a_missing_key_is_a_fault_and_the_judge_is_looked_at_all_the_same(
    awb: HereAwb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with ScriptedServer(lambda call: says("ready")) as server:
        done = awb(
            "doctor", "--model", "anthropic/claude-sonnet-4-5",
            "--judge", "openai-api/judge", "--judge-base-url", server.base_url,
        )  # fmt: skip
    assert done.code == 2
    found = tables(done)
    assert found["Model: anthropic/claude-sonnet-4-5"]["authorised"][0] == "FAULT"
    assert "ANTHROPIC_API_KEY" in found["Model: anthropic/claude-sonnet-4-5"]["authorised"][1]
    assert found["Judge: openai-api/judge"]["answer"][0] == "ok"


@pytest.mark.parametrize(
    ("reply", "check", "state"),
    [
        (Reply(content=None), "answer", "warning"),
        (Reply(content="ready", omit_usage=True), "usage", "warning"),
        (Reply(status=404, error={"message": "The model `m` does not exist"}), "answer", "FAULT"),
        (Reply(status=500), "answer", "FAULT"),
        (Reply(raw_body=b"<html>"), "answer", "FAULT"),
    ],
)
def test_answers_that_are_none(awb: HereAwb, reply: Reply, check: str, state: str) -> None:
    def script(call: ChatCall) -> Reply:
        return reply

    with ScriptedServer(script) as server:
        done = awb("doctor", "--model", "openai-api/m", "--base-url", server.base_url)
    assert tables(done)["Model: openai-api/m"][check][0] == state
    assert done.code == (2 if state == "FAULT" else 0)


def test_without_a_model_the_machine_alone_is_looked_at(awb: HereAwb) -> None:
    done = awb("doctor")
    (title, rows), *others = tables(done).items()
    assert others == []
    assert title.startswith("Machine: ")
    assert {"versions", "disk", "clock"} == rows.keys()
    assert done.code == 0


def test_a_baseline_needs_no_server(awb: HereAwb) -> None:
    done = awb("doctor", "--model", "baseline/copy-last")
    assert tables(done)["Model: baseline/copy-last"] == {"reachable": ("ok", "needs no server")}
    assert done.code == 0
