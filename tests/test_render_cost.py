"""The tables of actual cost, and the sums behind them: by stage and domain, with what is not known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.prices import MILLION, Price, dollars
from agentworldbench.records import Attempt, FailureKind, Prediction, Usage
from agentworldbench.render.cost import cost_tables, estimate_table
from agentworldbench.render.table import DASH
from agentworldbench.run import evaluate, score_run
from agentworldbench.stats.costs import Amount, charge, spending_by_domain
from tests.helpers.asking import set_key
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, options

PRICE = Price(prompt=10 / MILLION, completion=20 / MILLION, cached=1 / MILLION, source="--price")


def record(domain: str, cost: float | None, **fields: object) -> Prediction:
    values = {"sample_id": f"{domain}/1/1", "row_hash": "", "cost_usd": cost, **fields}
    return Prediction.model_validate(values)


def usage(prompt: int, completion: int, cached: int | None = None) -> Usage:
    return Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)


def test_a_record_that_knows_its_cost_is_believed() -> None:
    told = record("swe", 0.5, usage=usage(1000, 100))
    assert charge(told, PRICE).usd == charge(told, None).usd == 0.5


def test_tokens_without_a_cost_are_priced_and_the_rest_is_unknown() -> None:
    counted = record("swe", None, usage=usage(1000, 100))
    assert charge(counted, PRICE).usd == pytest.approx(0.012)
    assert (charge(counted, None).usd, charge(counted, None).unknown) == (0.0, 1)
    lost = Attempt(outcome=FailureKind.TIMEOUT, seconds=1.0)
    refused = Attempt(outcome=FailureKind.RATE_LIMIT, seconds=1.0, cost_usd=0.0)
    answered = Attempt(outcome="ok", seconds=1.0, usage=usage(1000, 100))
    mixed = charge(record("swe", None, attempts=(lost, refused, answered), usage=usage(1000, 100)), PRICE)
    assert mixed.usd == pytest.approx(0.012)
    assert mixed.unknown == 1


COSTS = st.lists(st.tuples(st.sampled_from(["swe", "mcp", "os"]), st.none() | st.floats(0, 100)), max_size=30)


@given(COSTS)
def test_domains_add_up_and_unknown_is_never_0(costs: Sequence[tuple[str, float | None]]) -> None:
    whole, domains = spending_by_domain([record(*cost) for cost in costs], None)
    assert whole.records == sum(one.records for one in domains.values()) == len(costs)
    assert (
        whole.unknown
        == sum(one.unknown for one in domains.values())
        == [cost for _, cost in costs].count(None)
    )
    assert whole.known_usd == pytest.approx(sum(one.known_usd for one in domains.values()))
    assert (whole.cost_usd is None) == (None in [cost for _, cost in costs])
    again, _ = spending_by_domain([record(*cost) for cost in reversed(costs)], None)
    assert again == whole, "whatever the order"


def cached_half(call: ChatCall) -> Reply:
    """Answers with half of the prompt from the cache; os answers come without counts."""
    reply = good(call)
    counts = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    details = {
        "prompt_tokens_details": {"cached_tokens": 500},
        "completion_tokens_details": {"reasoning_tokens": 60},
    }
    return Reply(content=reply.content, usage=counts | details)


def test_the_tables_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_key(monkeypatch)
    make_official_folder(tmp_path / "data", domains=("swe", "os"), trajectories=1, special=False)
    with ScriptedServer(cached_half) as server:
        given_options = options(server, tmp_path / "run", tmp_path / "data", price=("world=10,30,2",))
        run = evaluate(**given_options)
    assert run.results is not None
    predictions, verdicts = cost_tables(run.results)
    assert predictions.title == "Cost of predictions by openai-api/world"
    one = ("5", "5,000", "2,500", "500", "300", "0.045", "0.020", "0")
    assert predictions.rows[:2] == (("SWE", *one), ("OS", *one))
    assert predictions.rows[2] == ("All", "10", "10,000", "5,000", "1,000", "600", "0.090", "0.040", "0")
    assert verdicts.title == "Cost of verdicts by openai-api/judge"
    assert verdicts.rows[2][-3:] == (DASH, DASH, "10"), "no price is known for the judge"
    assert "All stages together: at least 0.090 USD." in verdicts.notes
    assert any("10 records have a part whose cost is unknown" in note for note in verdicts.notes)
    again = score_run(run.path).results
    assert again is not None
    assert cost_tables(again) == [predictions, verdicts], "`awb score` tells the same"


def test_nothing_is_shown_where_nobody_was_asked(tmp_path: Path) -> None:
    run = evaluate("baseline/empty", output=tmp_path / "run", limit="1", tasks="swe")
    assert run.results is not None
    assert cost_tables(run.results) == []
    assert run.results.predictions.spent.cost_usd == 0.0


def test_an_estimate_without_price_shows_dashes() -> None:
    amount = Amount(requests=1200, prompt_tokens=5000, cacheable_tokens=2000, output_low=1, output_high=2)
    table = estimate_table("T", {"mcp": amount}, amount, ("n",))
    assert table.rows[0] == ("MCP", "1,200", "5,000", "2,000", "3,000", "1", "2", DASH, DASH)
    assert table.rows[1][0] == "All"


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0.0, "0.00"),
        (12.345, "12.35"),
        (0.1, "0.10"),
        (0.0123, "0.012"),
        (0.02, "0.020"),
        (0.00001234, "1.2e-05"),
        (1234.5, "1234.50"),
    ],
)
def test_amounts(amount: float, shown: str) -> None:
    assert dollars(amount) == shown
