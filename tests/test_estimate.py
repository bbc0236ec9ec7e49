"""`awb estimate` and the lines before a run: the same numbers, from the texts that are really sent.

Tokens are held against what a server got in a run over the same samples; what is cacheable is computed here
again from those messages, trajectory by trajectory.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agentworldbench import estimate as module
from agentworldbench.config import make_config
from agentworldbench.dataset import Dataset
from agentworldbench.engine import expected
from agentworldbench.engine.fitting import estimate_tokens
from agentworldbench.errors import ConfigError
from agentworldbench.estimate import common_prefix, estimate
from agentworldbench.estimated import Estimate
from agentworldbench.plan import make_plan
from agentworldbench.prices import MILLION
from agentworldbench.records import Message
from agentworldbench.run import evaluate
from tests.helpers.asking import set_key
from tests.helpers.awb_command import HereAwb, run_awb_in_turn
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, options

NO_SOCKETS = """
import socket
def refuse(*words, **more):
    raise AssertionError(f"the network was asked: {words}")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
"""
NOWHERE = "http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(monkeypatch)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(tmp_path_factory.mktemp("data"), trajectories=2, special=False)


def made(data: Manifest, output: Path, **more: Any) -> Estimate:
    """The estimate of a plan that is never carried out."""
    values = {"model": "openai-api/world", "base_url": NOWHERE, "data": str(data.folder), "output": output}
    return estimate(make_plan(make_config(values | more), lambda line: None))


def messages_of(call: ChatCall) -> tuple[Message, ...]:
    return tuple(Message(role=one["role"], content=one["content"]) for one in call.messages)


def alike(one: str, other: str) -> int:
    """Characters that two texts begin with alike, one by one."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def cacheable(prompts: Sequence[tuple[Message, ...]]) -> int:
    """Tokens that the prompts of one trajectory share with the one before, message by message."""
    total = 0
    for before, now in pairwise(prompts):
        common: list[Message] = []
        for one, other in zip(before, now, strict=False):
            text = other.content[: alike(one.content, other.content)]
            common.append(Message(role=other.role, content=text))
            if text != other.content:
                break
        total += estimate_tokens(common)
    return total


def test_tokens_are_those_of_the_texts_that_are_sent(data: Manifest, tmp_path: Path) -> None:
    before = made(data, tmp_path / "none", judge="openai-api/judge", judge_base_url=NOWHERE)
    with ScriptedServer(good) as server:
        evaluate(**options(server, tmp_path / "run", data.folder, judge=(), judge_base_url=()))
    predict, judge = before.stages
    prompts = [messages_of(call) for call in server.calls]
    assert predict.total.requests == judge.total.requests == len(prompts) == 70
    assert predict.total.prompt_tokens == sum(map(estimate_tokens, prompts))
    assert {name: amount.requests for name, amount in predict.domains.items()} == dict.fromkeys(
        predict.domains, 10
    )
    assert list(predict.domains) == ["mcp", "search", "terminal", "swe", "android", "web", "os"]


def test_judge_prompts_are_rendered_as_they_will_be(data: Manifest, tmp_path: Path) -> None:
    """For predictions that equal the reference, which is what stands for those to come."""
    more = {"model": "baseline/reference", "base_url": None, "judge": "openai-api/judge"}
    before = made(data, tmp_path / "run", **more, judge_base_url=NOWHERE)
    with ScriptedServer(good) as server:
        run = evaluate(
            **options(server, tmp_path / "run", data.folder, model="baseline/reference", base_url=None)
        )
    prompts = [messages_of(call) for call in server.calls]
    assert before.stages[1].total.prompt_tokens == sum(map(estimate_tokens, prompts))
    after = made(data, run.path, **more, judge_base_url=NOWHERE)
    assert after.stages[1].total.requests == 0, "nothing is due any more"
    assert after.stored_predictions == 70


def test_what_earlier_turns_have_sent_is_cacheable(data: Manifest, tmp_path: Path) -> None:
    before = made(data, tmp_path / "run")
    with ScriptedServer(good) as server:
        run = evaluate(
            **options(server, tmp_path / "run", data.folder, judge=(), judge_base_url=(), max_connections=1)
        )
    config = make_config({"model": "baseline/empty", "data": str(data.folder)})
    clusters = {ref.id: ref.cluster for ref in make_plan(config, lambda line: None).samples.refs}
    trajectories: dict[str, list[tuple[Message, ...]]] = {}
    for call, prediction in zip(server.calls, run.predictions(), strict=True):
        trajectories.setdefault(clusters[prediction.sample_id], []).append(messages_of(call))
    total = before.stages[0].total
    assert total.cacheable_tokens == pytest.approx(sum(map(cacheable, trajectories.values())), abs=70)
    assert 0.3 * total.prompt_tokens < total.cacheable_tokens < total.prompt_tokens


def test_money_from_low_to_high(data: Manifest, tmp_path: Path) -> None:
    more = {"output_tokens": "100-400", "price": "world=10,20,1"}
    (stage,) = made(data, tmp_path / "run", **more).stages
    total = stage.total
    assert (total.output_low, total.output_high) == (70 * 100, 70 * 400)
    fresh = total.prompt_tokens - total.cacheable_tokens
    low = (10 * fresh + total.cacheable_tokens + 20 * total.output_low) / MILLION
    assert total.usd_low == pytest.approx(low)
    assert total.usd_high == pytest.approx((10 * total.prompt_tokens + 20 * total.output_high) / MILLION)


@pytest.mark.parametrize("flags", [{"max_tokens": 60}, {"gen_kwargs": {"max_tokens": 60}}])
def test_no_answer_is_longer_than_what_is_asked_for(
    data: Manifest, tmp_path: Path, flags: dict[str, Any]
) -> None:
    (stage,) = made(data, tmp_path / "run", **flags).stages
    assert stage.total.output_high == 70 * 60


def test_a_directory_of_another_configuration_is_refused_until_it_holds_nothing_good(
    data: Manifest, tmp_path: Path
) -> None:
    other = {"temperature": 0.1}
    with ScriptedServer(lambda call: Reply(content=None)) as server:
        asked = options(server, tmp_path / "run", data.folder, judge=(), judge_base_url=(), limit="1")
        evaluate(**asked)
        assert made(data, tmp_path / "run", limit="1").stages[0].total.requests == 0, "empty ones stay"
        assert made(data, tmp_path / "run", limit="1", **other).stages[0].total.requests == 7
        server.script = good
        evaluate(**asked, retry_failed=True)
    with pytest.raises(ConfigError, match="made with another configuration"):
        made(data, tmp_path / "run", limit="1", **other)


def test_an_unknown_price_is_said_and_never_0(data: Manifest, tmp_path: Path) -> None:
    more = {"judge": "openai-api/judge", "judge_base_url": NOWHERE, "price": "judge=1,1"}
    both = made(data, tmp_path / "run", **more)
    assert both.stages[0].price is None
    assert both.stages[0].total.usd_low is None
    assert both.stages[0].total.usd_high is None
    assert both.unpriced == ("openai-api/world",)
    assert both.usd_high == both.stages[1].total.usd_high


def test_a_local_model_costs_nothing_and_no_text_is_read(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dataset, "load", lambda self, ref: pytest.fail("a row was read"))
    local = made(data, tmp_path / "run", model="baseline/empty", base_url=None)
    (stage,) = local.stages
    assert (stage.local, stage.tokens_from, local.usd_high, local.unpriced) == (True, None, 0.0, ())
    assert (stage.total.requests, stage.total.prompt_tokens) == (70, 0)


def test_a_tokenizer_at_hand_counts(data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {"model": "openai/gpt-4o", "base_url": None, "tasks": "terminal"}
    whole = made(data, tmp_path / "run", **more)
    assert whole.stages[0].tokens_from == "counted with o200k_base"
    estimated = made(data, tmp_path / "run", tasks="terminal")
    assert estimated.stages[0].tokens_from == "estimated from characters"
    counted, guessed = whole.stages[0].total.prompt_tokens, estimated.stages[0].total.prompt_tokens
    assert counted != guessed
    monkeypatch.setattr(module, "COUNTED", 5000)
    part = made(data, tmp_path / "run", **more)
    assert part.stages[0].tokens_from == "counted with o200k_base, on a part of each domain"
    assert part.stages[0].total.prompt_tokens == pytest.approx(counted, rel=0.2)


@pytest.mark.parametrize(
    ("flags", "reference", "most", "found"),
    [
        ({}, 100, None, (130, 8230)),
        ({}, 100, 4000, (130, 4000)),
        ({"thinking": "off"}, 100, None, (130, 230)),
        ({"thinking": "on"}, 100, None, (1130, 16230)),
        ({"reasoning_effort": "high"}, 100, None, (1130, 16230)),
        ({"reasoning_effort": "none"}, 100, None, (130, 230)),
        ({"output_tokens": "7-9"}, 100, None, (7, 9)),
        ({"output_tokens": "7"}, 100, 5, (5, 5)),
    ],
)
def test_assumed_lengths(
    flags: dict[str, str], reference: int, most: int | None, found: tuple[int, int]
) -> None:
    assert expected.prediction_tokens(make_config(flags), reference, most) == found


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ({}, (200, 1700)),
        ({"judge_thinking": "off"}, (200, 700)),
        ({"judge_thinking": "on"}, (400, 4700)),
        ({"judge_output_tokens": "300-900"}, (300, 900)),
    ],
)
def test_assumed_lengths_of_verdicts(flags: dict[str, str], found: tuple[int, int]) -> None:
    assert expected.verdict_tokens(make_config(flags)) == found


@pytest.mark.parametrize(
    ("one", "other"), [("", ""), ("a", ""), ("abc", "abd"), ("abc", "abcd"), ("xbc", "abc"), ("aaaa", "aaab")]
)
def test_common_prefixes(one: str, other: str) -> None:
    assert common_prefix(one, other) == alike(one, other)


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_command_prints_tables_and_json_without_asking_anybody(
    fresh: bool,
    data: Manifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also where nothing has been imported yet (`fresh`): in a process of its own."""
    words = ["estimate", "--model", "openai/gpt-4o", "--judge", "openai-api/j", "--judge-base-url", NOWHERE]
    words += ["--data", str(data.folder), "--tasks", "swe,web", "--output-tokens", "100-200"]

    if fresh:
        done = run_awb_in_turn(words, [*words, "--json"], cwd=tmp_path, before=NO_SOCKETS)
    else:
        awb = HereAwb(tmp_path, monkeypatch, capsys)
        for place, name in (
            (socket.socket, "connect"),
            (socket, "getaddrinfo"),
            (socket, "create_connection"),
        ):
            monkeypatch.setattr(place, name, lambda *words, **more: pytest.fail(f"asked: {words}"))
        done = [awb(*words), awb(*words, "--json")]
    assert [one.code for one in done] == [0, 0], done
    tables = done[0].out
    assert "Predictions by openai/gpt-4o" in tables
    assert "Prompt tokens: counted with o200k_base." in tables
    assert "No price is known, so the cost is unknown; --price MODEL=IN,OUT[,CACHED] gives one." in tables
    assert "Unknown: what openai-api/j costs" in tables
    assert "(LiteLLM's table)" in tables
    found = json.loads(done[1].out)
    assert found["schema_version"] == 1
    assert [stage["stage"] for stage in found["stages"]] == ["predict", "judge"]
    swe = found["stages"][0]["domains"]["swe"]
    assert f"{swe['prompt_tokens']:,}" in tables
    assert found["unpriced"] == ["openai-api/j"]
    assert not list(tmp_path.glob("runs*")), "nothing is written"


def test_the_lines_before_a_run_hold_the_same_numbers(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    total = made(data, tmp_path / "run", price="world=10,20,1").stages[0].total
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    words = ["--model", "openai-api/world", "--base-url", NOWHERE, "--data", str(data.folder), "-o", "run"]
    done = awb("run", *words, "--price", "world=10,20,1", "--dry-run")
    assert (
        f"Estimate, predict with openai-api/world: 70 requests, about {total.prompt_tokens:,} prompt tokens "
        f"({total.cacheable_tokens:,} of them cacheable), {total.usd_low:.2f} to {total.usd_high:.2f} USD"
    ) in done.err
    done = awb("run", *words, "--dry-run")
    assert "cacheable), no price known\n" in done.err


@pytest.mark.parametrize(
    ("price", "more", "asked"),
    [
        ("world=1000,1000", [], True),
        ("world=1,1", [], False),
        ("world=1000,1000", ["--max-cost", "10"], False),
    ],
)
def test_more_than_20_usd_are_asked_for(
    data: Manifest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    price: str,
    more: list[str],
    asked: bool,
) -> None:
    questions: list[str] = []
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda text, **rest: questions.append(text))
    awb = HereAwb(tmp_path, monkeypatch, capsys)
    words = ["--model", "openai-api/world", "--base-url", NOWHERE, "--data", str(data.folder), "-o", "run"]
    done = awb("run", *words, "--price", price, *more)
    assert done.code == 2, "declined, or nobody answers there"
    assert [text.startswith("This may cost up to ") for text in questions] == [True] * asked
    assert ("not started" in done.complaint) is asked
