"""Prices: how they are written, what LiteLLM's table says, what an answer cost, and who is believed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.config import make_config
from agentworldbench.errors import ConfigError
from agentworldbench.models import Connection, create_model
from agentworldbench.models.chat import read_usage
from agentworldbench.models.local_tokens import local_counter
from agentworldbench.models.pricing import cost_of, reported_cost, table_price
from agentworldbench.prices import FREE, Price, parse_price, price_of
from agentworldbench.records import CallFailure, Completion, FailureKind, Usage
from tests.helpers.asking import TASKS, ask_once, set_key
from tests.helpers.scripted_server import Reply

TABLE: list[tuple[str, dict[str, Any], tuple[Any, ...] | None]] = [
    ("plain", {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}, (1e-6, 2e-6, None, None)),
    (
        "cached and written",
        {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
        | {"cache_read_input_token_cost": 1e-7, "cache_creation_input_token_cost": 1.25e-6},
        (1e-6, 2e-6, 1e-7, 1.25e-6),
    ),
    (
        "another name for cached",
        {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "input_cost_per_token_cache_hit": 1e-8},
        (1e-6, 2e-6, 1e-8, None),
    ),
    (
        "dearer reasoning",
        {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "output_cost_per_reasoning_token": 4e-6},
        (1e-6, 4e-6, None, None),
    ),
    ("cached for nothing", {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "cache_read_input_token_cost": 0.0}, (1e-6, 2e-6, 0.0, None)),
    ("zeros stand for unknown", {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}, None),
    ("no entry", {}, None),
    ("half an entry", {"input_cost_per_token": 1e-6}, None),
    ("not numbers", {"input_cost_per_token": None, "output_cost_per_token": "2e-6"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "expected"), [pytest.param(*case[1:], id=case[0]) for case in TABLE])
def test_what_the_table_says(entry: dict[str, Any], expected: tuple[Any, ...] | None) -> None:
    price = table_price(entry)
    found = price and (price.prompt, price.completion, price.cached, price.written)
    assert found == expected


def test_long_prompts_may_be_dearer() -> None:
    entry = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "cache_read_input_token_cost": 1e-7}
    entry |= {"input_cost_per_token_above_200k_tokens": 2e-6, "output_cost_per_token_above_200k_tokens": 3e-6}
    price = table_price(entry)
    assert price is not None
    assert price.cost(Usage(prompt_tokens=200_000, completion_tokens=10)) == pytest.approx(0.2 + 2e-5)
    assert price.cost(Usage(prompt_tokens=200_001, completion_tokens=10)) == pytest.approx(0.400002 + 3e-5)
    tiers = [
        {"range": [0, 32000.0], "input_cost_per_token": 1e-6, "output_cost_per_token": 5e-6},
        {"range": [32000.0, 128000.0], "input_cost_per_token": 3e-6, "output_cost_per_token": 6e-6},
    ]
    tiered = table_price({"tiered_pricing": tiers})
    assert tiered is not None
    assert tiered.cost(Usage(prompt_tokens=1000, completion_tokens=0)) == pytest.approx(1e-3)
    assert tiered.cost(Usage(prompt_tokens=40_000, completion_tokens=0)) == pytest.approx(0.12)
    assert "dearer above 32,000 prompt tokens" in tiered.described()


@pytest.mark.parametrize(
    ("text", "model", "rates"),
    [
        ("openai/x=1,2", "openai/x", (1e-6, 2e-6, None)),
        (" x = 1 , 2 , 0.25 ", "x", (1e-6, 2e-6, 0.25e-6)),
        ("a=b/c=0,0", "a=b/c", (0.0, 0.0, None)),
        ("a:b=1e1,2.5", "a:b", (1e-5, 2.5e-6, None)),
    ],
)
def test_how_a_price_is_written(text: str, model: str, rates: tuple[Any, ...]) -> None:
    name, price = parse_price(text)
    assert name == model
    assert (price.prompt, price.completion, price.cached) == pytest.approx(rates)
    assert price.source == "--price"


@pytest.mark.parametrize(
    "text",
    ["", "x", "=1,2", "x=", "x=1", "x=1,2,3,4", "x=1,b", "x=-1,2", "x=nan,1", "x=1,inf", "x=1;2", "x=2e6,1"],
)
def test_prices_that_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--price"):
        make_config({"price": text})


@pytest.mark.parametrize("other", ["x", "openai-api/x"])
def test_a_model_has_one_price(other: str) -> None:
    with pytest.raises(ConfigError, match="a model has one price"):
        make_config({"price": ["x=1,2", f"{other}=2,3"]})


@pytest.mark.parametrize("text", ["", "5-1", "-5", "1-", "x", "1-2-3", "1.5"])
def test_ranges_of_tokens_that_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--output-tokens"):
        make_config({"output_tokens": text})


def test_a_server_of_ones_own_is_priced_by_its_name_with_or_without_the_scheme() -> None:
    prices = make_config({"price": ["m=1,2", "openai/n=3,4"]}).prices
    assert price_of("openai-api/m", prices) == price_of("m", prices) is not None
    assert price_of("openai/n", prices) is not None
    assert price_of("n", prices) is None


COUNTS = st.integers(0, 10**6)


@given(COUNTS, COUNTS, COUNTS)
def test_caching_never_costs_more_than_it_saves(prompt: int, cached: int, completion: int) -> None:
    price = Price(prompt=1e-6, completion=2e-6, cached=1e-7, source="t")
    usage = Usage(prompt_tokens=prompt, completion_tokens=completion)
    mine = usage.model_copy(update={"cached_tokens": min(cached, prompt)})
    with_cache, without = price.cost(mine), price.cost(usage)
    assert with_cache is not None
    assert without is not None
    assert 0 <= with_cache <= without
    assert price.saved(mine) == pytest.approx(without - with_cache)


@pytest.mark.parametrize(
    "usage",
    [Usage(), Usage(prompt_tokens=5), Usage(completion_tokens=5)],
    ids=["nothing", "prompt", "answer"],
)
def test_what_was_not_counted_has_no_cost(usage: Usage) -> None:
    assert Price(prompt=1e-6, completion=1e-6, source="t").cost(usage) is None


def test_more_cached_tokens_than_a_prompt_has_are_not_believed() -> None:
    price = Price(prompt=1e-6, completion=1e-6, cached=0.0, source="t")
    assert price.cost(Usage(prompt_tokens=10, completion_tokens=0, cached_tokens=99)) == 0.0


@pytest.mark.parametrize("cost", [None, 0, 0.0, -1.0, True, "0.5", 1e9, {"usd": 1}])
def test_odd_reports_of_a_cost_are_none(cost: Any) -> None:
    assert reported_cost({"cost": cost}) is None
    assert reported_cost(None) is None


@pytest.mark.parametrize("tokens", [10**8, 10**15, -1, 1.5, True, "7"])
def test_counts_that_no_answer_has_are_not_priced(tokens: Any) -> None:
    usage = read_usage({"prompt_tokens": 5, "completion_tokens": tokens})
    assert usage == Usage(prompt_tokens=5)
    assert Price(prompt=1e-6, completion=1e-6, source="t").cost(usage) is None


def test_who_is_believed_about_a_cost() -> None:
    given_price = Price(prompt=1.0, completion=1.0, source="--price")
    usage = Usage(prompt_tokens=1, completion_tokens=1)
    assert cost_of({"cost": 0.5}, usage, given_price, 0.1) == 0.5
    assert cost_of({}, usage, given_price, 0.1) == 2.0
    assert cost_of({}, usage, None, 0.1) == 0.1
    assert cost_of({}, usage, None) is None


USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
USAGE |= {"prompt_tokens_details": {"cached_tokens": 400}}  # type: ignore[dict-item]


def _asked(
    monkeypatch: pytest.MonkeyPatch, name: str, reply: Reply, price: str | None
) -> Completion | CallFailure:
    set_key(monkeypatch)
    given_price = parse_price(price)[1] if price else None
    outcome, _ = ask_once(name, lambda call: reply, price=given_price)
    return outcome


@pytest.mark.parametrize("name", ["openai-api/x", "openai/x"])
def test_answers_are_priced(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    answer = _asked(monkeypatch, name, Reply(content="x", usage=USAGE), "x=10,20,1")
    assert answer.cost_usd == pytest.approx(600 * 10e-6 + 400 * 1e-6 + 100 * 20e-6)
    reported = _asked(monkeypatch, name, Reply(content="x", usage=USAGE | {"cost": 0.123}), "x=10,20,1")
    assert reported.cost_usd == 0.123
    assert _asked(monkeypatch, name, Reply(content="x", omit_usage=True), "x=10,20").cost_usd is None
    assert _asked(monkeypatch, name, Reply(content="x", usage=USAGE), None).cost_usd is None


@pytest.mark.parametrize("name", ["openai-api/x"])
def test_failures_that_cost_are_priced(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    broken = _asked(monkeypatch, name, Reply(content="", finish_reason="error", usage=USAGE), "x=10,20,1")
    assert isinstance(broken, CallFailure)
    assert broken.failure.kind is FailureKind.MALFORMED_RESPONSE
    assert broken.cost_usd == pytest.approx(0.0084)


def test_local_models_are_free() -> None:
    assert create_model("baseline/empty", Connection(), TASKS).price() == FREE


COUNTED = "The world answers: déjà vu, 你好."
COUNTERS = {
    "openai/gpt-5.4": "o200k_base",
    "openai/gpt-4o": "o200k_base",
    "openai/gpt-4-turbo": "cl100k_base",
    "deepseek/deepseek-chat": "DeepSeek's tokenizer",
    "anthropic/claude-opus-4-8": None,
    "gemini/gemini-2.5-pro": None,
    "openai/of-my-own": None,
}


@pytest.mark.parametrize("name", COUNTERS)
def test_tokenizers_at_hand(name: str) -> None:
    found = local_counter(create_model(name, Connection(), TASKS))
    assert (found and found[0]) == COUNTERS[name]
    if found:
        assert 8 <= found[1](COUNTED) <= 20


def test_a_tokenizer_that_lies_with_a_model(tmp_path: Any) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tmp_path / "tokenizer.json"))
    model = create_model(f"openai-api/{tmp_path}", Connection(base_url="http://127.0.0.1:1/v1"), TASKS)
    found = local_counter(model)
    assert found is not None
    assert found[1]("a b b c") == 4
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert local_counter(model) is None
