"""`--max-cost` in whole runs: how much is spent, what is left, what is balanced, and how it goes on.

The server keeps the bill (`Meter`); the harness's own sums are held against it. The data has all seven
domains in the official layout. Nothing may be lost where the limit is reached while requests are under way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.errors import ConfigError
from agentworldbench.run import Run, evaluate
from agentworldbench.store import open_store
from tests.helpers.awb_command import HereAwb
from tests.helpers.metered import LONGEST, PRICE_FLAGS, PRICES, Meter
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, Script, ScriptedServer
from tests.helpers.whole_runs import good, kind_of_call, options, read_results

CONNECTIONS = 8
RANGES = {"output_tokens": f"50-{LONGEST}", "judge_output_tokens": f"50-{LONGEST}"}


pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(
        tmp_path_factory.mktemp("data"), trajectories=4, observation_chars=200, special=False
    )


def limited(server: ScriptedServer, output: Path, data: Manifest, max_cost: float | None, **more: Any) -> Run:
    """One session with a limit; prices for model and judge."""
    given = {"price": PRICE_FLAGS, "max_connections": CONNECTIONS, **RANGES, **more}
    if max_cost is not None:
        given["max_cost"] = max_cost
    return evaluate(**options(server, output, data.folder, **given))


@pytest.fixture(scope="module")
def whole(data: Manifest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, float]:
    """A run without a limit, and its bill."""
    meter = Meter(good)
    with ScriptedServer(meter) as server:
        run = limited(server, tmp_path_factory.mktemp("whole") / "run", data, None)
    assert run.stopped is None
    return run, meter.usd


def spent(run: Run) -> float:
    """USD by the results."""
    assert run.results is not None
    stages = [run.results.predictions.spent, *(judge.spent for judge in run.results.judges)]
    assert not any(stage.unknown for stage in stages)
    return sum(stage.known_usd for stage in stages)


def test_a_run_without_limit_costs_what_the_server_billed(whole: tuple[Run, float]) -> None:
    run, bill = whole
    assert spent(run) == pytest.approx(bill)
    results = run.results
    assert results is not None
    assert results.complete
    by_domain = results.predictions.spent_by_domain
    assert set(by_domain) == set(results.predictions.samples)
    assert sum(one.known_usd for one in by_domain.values()) == pytest.approx(
        results.predictions.spent.known_usd
    )
    assert sum(one.records for one in by_domain.values()) == 140
    (session,) = run.record.sessions
    assert session.max_cost is None
    assert {name: price.source for name, price in session.prices.items()} == {
        "openai-api/world": "--price",
        "openai-api/judge": "--price",
    }


@pytest.mark.parametrize("share", [0.2, 0.4, 0.8])
def test_the_limit_holds_and_is_used(
    data: Manifest, tmp_path: Path, whole: tuple[Run, float], share: float
) -> None:
    limit = share * whole[1]
    meter = Meter(good)
    with ScriptedServer(meter) as server:
        run = limited(server, tmp_path / "run", data, limit)
    sample = 2 * meter.dearest
    assert spent(run) == pytest.approx(meter.usd)
    assert meter.usd <= limit + CONNECTIONS * sample, "what is documented as the bound"
    assert meter.usd <= limit + sample, "likely costs err on the dear side, so it is hardly ever exceeded"
    assert meter.usd >= limit - 3 * sample, "money that is there is used"
    assert run.stopped is not None
    assert run.record.sessions[-1].max_cost == limit
    assert run.results is not None
    assert not run.results.complete


def test_what_is_predicted_is_judged_and_domains_are_balanced(
    data: Manifest, tmp_path: Path, whole: tuple[Run, float]
) -> None:
    with ScriptedServer(Meter(good)) as server:
        run = limited(server, tmp_path / "run", data, 0.5 * whole[1])
    results = run.results
    assert results is not None
    predicted = results.predictions.predicted
    assert 35 <= sum(predicted.values()) <= 105
    assert {name: block.scored for name, block in results.judges[0].domains.items()} == predicted
    assert not any(counts["pending"].get("judge") for counts in results.judges[0].failures.values())
    # Whole trajectories of five samples, CONNECTIONS of them under way.
    assert max(predicted.values()) - min(predicted.values()) <= 10
    assert min(predicted.values()) >= 5


def test_sessions_together_keep_to_the_limit_and_lose_nothing(
    data: Manifest, tmp_path: Path, whole: tuple[Run, float]
) -> None:
    output = tmp_path / "run"
    meter = Meter(good)
    with ScriptedServer(meter) as server:
        limited(server, output, data, 0.3 * whole[1])
        first, calls = meter.usd, len(server.calls)
        again = limited(server, output, data, 0.3 * whole[1])
        assert (meter.usd, len(server.calls)) == (first, calls), "nothing is asked for when all is spent"
        assert again.stopped is not None
        more = limited(server, output, data, 0.6 * whole[1])
        assert first < meter.usd <= 0.6 * whole[1] + 2 * meter.dearest
        assert spent(more) == pytest.approx(meter.usd)
        last = limited(server, output, data, None)
        assert set(server.asked().values()) == {1}, "no question was asked twice"
    assert last.stopped is None
    assert meter.usd == pytest.approx(whole[1])
    mine, theirs = read_results(output), read_results(whole[0].path)
    assert mine == theirs


def malformed_tenth(call: ChatCall) -> Reply:
    """Every tenth question is first answered with an error inside a reply that is billed."""
    if kind_of_call(call) == 3 and call.attempt == 1:
        return Reply(content="", finish_reason="error")
    return good(call)


def third_verdict_counts(call: ChatCall) -> Reply:
    """A judge whose first two replies hold no verdict."""
    if call.model == "judge" and call.attempt < 3:
        return Reply(content="Let me think about it.")
    return good(call)


def refuses_a_tenth(call: ChatCall) -> Reply:
    """Every tenth question is refused once without being billed."""
    if kind_of_call(call) == 3 and call.attempt == 1:
        error = {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}
        return Reply(status=429, headers={"retry-after-ms": "1"}, error=error)
    return good(call)


@pytest.mark.parametrize("script", [malformed_tenth, third_verdict_counts, refuses_a_tenth])
def test_failures_and_further_attempts_count(
    data: Manifest, tmp_path: Path, whole: tuple[Run, float], script: Script
) -> None:
    meter = Meter(script)
    limit = 0.4 * whole[1]
    with ScriptedServer(meter) as server:
        run = limited(server, tmp_path / "run", data, limit)
    sample = 4 * meter.dearest
    assert run.stopped is not None
    assert spent(run) == pytest.approx(meter.usd), "each billed attempt is counted, and no other"
    assert limit - 3 * sample <= meter.usd <= limit + CONNECTIONS * sample
    judged = {record.sample_id for record in run.verdicts() if record.failure is None}
    assert judged == {record.sample_id for record in run.predictions() if record.failure is None}
    answered = Counter(call.model for call in server.calls)
    records = {"world": list(run.predictions()), "judge": list(run.verdicts())}
    attempts = {name: sum(len(one.attempts) or 1 for one in some) for name, some in records.items()}
    assert attempts == answered, "no answer that was under way is lost"


def test_an_unknown_cost_is_assumed_against_the_limit_and_told(
    data: Manifest, tmp_path: Path, whole: tuple[Run, float]
) -> None:
    meter = Meter(good)
    limit = 0.4 * whole[1]

    def silent_tenth(call: ChatCall) -> Reply:
        """Every tenth answer comes without token counts: nobody knows what it cost."""
        if kind_of_call(call) != 3:
            return meter(call)
        return replace(good(call), omit_usage=True)

    with ScriptedServer(silent_tenth) as server:
        run = limited(server, tmp_path / "run", data, limit)
    assert run.stopped is not None
    assert "assumed for requests whose cost is unknown" in run.stopped
    assert run.results is not None
    stages = [run.results.predictions.spent, run.results.judges[0].spent]
    assert sum(stage.unknown for stage in stages) > 0
    assert None in [stage.cost_usd for stage in stages]
    assert sum(stage.known_usd for stage in stages) == pytest.approx(meter.usd)
    assert meter.usd < limit - 2 * meter.dearest, "what is not known is not taken for 0"


def test_costs_that_the_provider_reports_count_and_are_learned(
    data: Manifest, tmp_path: Path, whole: tuple[Run, float]
) -> None:
    meter = Meter(good)

    def reporting(call: ChatCall) -> Reply:
        """A gateway whose bill is five times what `--price` says."""
        reply = meter(call)
        into, out = PRICES[call.model]
        counts = reply.usage or {}
        cost = 5 * (counts["prompt_tokens"] * into + counts["completion_tokens"] * out) / 1e6
        return replace(reply, usage={**counts, "cost": cost})

    limit = 2 * whole[1]
    with ScriptedServer(reporting) as server:
        run = limited(server, tmp_path / "run", data, limit)
    assert spent(run) == pytest.approx(5 * meter.usd)
    assert limit - 15 * meter.dearest <= spent(run) <= limit + 10 * meter.dearest
    assert run.stopped is not None
    left = float(run.stopped.rpartition(" for about ")[2].split()[0])
    assert left == pytest.approx(5 * whole[1] - spent(run), rel=0.25), (
        "what is left is told at the real price"
    )


def test_a_price_given_later_prices_what_came_before(data: Manifest, tmp_path: Path) -> None:
    meter = Meter(good)
    output = tmp_path / "run"
    with ScriptedServer(meter) as server:
        first = evaluate(**options(server, output, data.folder, limit="1", max_connections=4))
        assert first.results is not None
        assert first.results.predictions.spent.unknown == 7
        assert first.results.predictions.spent.cost_usd is None
        before, calls = meter.usd, len(server.calls)
        later = limited(server, output, data, before / 2, limit="3")
        assert len(server.calls) == calls, "the first session is priced, and has spent more than that"
    assert later.stopped is not None
    assert spent(later) == pytest.approx(before)


def test_judging_alone_keeps_to_the_limit(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meter = Meter(good)
    output = tmp_path / "run"
    with ScriptedServer(meter) as server:
        limited(server, output, data, None, judge=(), judge_base_url=(), price=PRICE_FLAGS[:1])
        predicted = meter.usd
        awb = HereAwb(tmp_path, monkeypatch, capsys)
        words = ["judge", str(output), "--judge", "openai-api/judge", "--judge-base-url", server.base_url]
        prices = [word for flag in PRICE_FLAGS for word in ("--price", flag)]
        done = awb(*words, *prices, "--max-cost", f"{predicted + 3:.3f}", "--judge-output-tokens", "50-450")
    assert done.code == 4, done.err
    assert "verdicts are left" in done.complaint
    assert 0 < meter.billed["judge"] < 140
    assert meter.usd <= predicted + 3 + 2 * meter.dearest


def test_the_command_ends_with_one_line_and_4(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    meter = Meter(good)
    with ScriptedServer(meter) as server:
        awb = HereAwb(tmp_path, monkeypatch, capsys)
        words = [
            "run",
            "--model",
            "openai-api/world",
            "--base-url",
            server.base_url,
            "--data",
            str(data.folder),
        ]
        words += ["--output", "run", "--price", "world=100,200", "--output-tokens", "50-450", "-j", "4"]
        done = awb(*words, "--max-cost", "3", "--fail-on-error", "0.01")
        assert done.code == 4, done.err
        assert done.complaint.startswith("awb: budget reached: 2.")
        assert " of 3.00 USD spent (--max-cost), the next sample may cost 0." in done.complaint
        assert "PARTIAL" in done.out
        assert "Cost of predictions by openai-api/world" in done.out
        assert "as long as no answer has come" not in done.complaint
        enough = done.complaint.rpartition("--max-cost ")[2].split()[0]
        assert awb(*words, "--max-cost", enough).code == 0, "what the line says to type goes on to the end"
        assert set(server.asked().values()) == {1}


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"max_cost": 1.0}, "--max-cost: the price of 'openai-api/world' is not known"),
        (
            {"max_cost": 1.0, "price": ("world=1,2",)},
            "--max-cost: the price of 'openai-api/judge' is not known; give it in USD per million tokens: --price "
            "openai-api/judge=IN,OUT",
        ),
        ({"price": ("wrld=1,2",)}, "--price wrld: no model or judge of this run; did you mean 'world'?"),
        (
            {"price": ("x=1,2",)},
            "--price x: no model or judge of this run; it has openai-api/judge, openai-api/world",
        ),
    ],
)
def test_what_cannot_be_priced_is_refused(
    data: Manifest, tmp_path: Path, more: dict[str, Any], complaint: str
) -> None:
    with ScriptedServer(good) as server, pytest.raises(ConfigError) as refused:
        evaluate(**options(server, tmp_path / "run", data.folder, **more))
    assert complaint in str(refused.value)
    assert not server.calls
    assert not (tmp_path / "run").exists()


def test_a_limit_below_the_first_sample_says_that_it_only_assumes(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer(good) as server:
        awb = HereAwb(tmp_path, monkeypatch, capsys)
        words = ["--model", "openai-api/world", "--base-url", server.base_url, "--data", str(data.folder)]
        words += ["--judge", "openai-api/judge", "--judge-base-url", server.base_url, "-o", "run"]
        done = awb("run", *words, "--price", "world=100,200", "--price", "judge=1,1", "--max-cost", "0.5")
    assert done.code == 4
    assert "(as long as no answer has come; --output-tokens LOW-HIGH narrows it)" in done.complaint
    assert "Note:" not in done.err, "nobody was asked, so nobody failed"
    assert not server.calls


def test_a_local_model_needs_no_price(data: Manifest, tmp_path: Path) -> None:
    run = evaluate("baseline/copy-last", data=str(data.folder), output=tmp_path / "run", max_cost=0.01)
    assert run.stopped is None
    assert len(open_store(run.path).predictions) == 140
