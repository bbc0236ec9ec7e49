"""Whole runs, seen from the server: what was sent, how many at once, what is recorded of it.

The data has all seven domains in the official layout; one run goes through LiteLLM and must give
the same scores. No key may stand in any file or message.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agentworldbench.errors import CredentialsError
from agentworldbench.models import adapt
from agentworldbench.records import Sampling
from agentworldbench.run import evaluate
from tests.helpers.asking import KEY
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import (
    Reply,
    ScriptedServer,
    every_nth,
    refuse_parameter,
    together,
)
from tests.helpers.whole_runs import all_text, good, options, read_results

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(tmp_path_factory.mktemp("data"), trajectories=1, observation_chars=120)


def test_the_manifest_says_what_was_sent(data: Manifest, tmp_path: Path) -> None:
    more = {
        "temperature": 0.0,
        "gen_kwargs": {"top_k": 20},
        "extra_body": {"stop": ["X"]},
        "seed": 3,
        "limit": "2",
    }
    with ScriptedServer(good) as server:
        run = evaluate(**options(server, tmp_path / "run", data.folder, tasks="terminal,web", **more))
    sampling = run.record.predict.sampling
    assert sampling["terminal"] == sampling["web"] == {
        **Sampling().described(),
        "temperature": 0.0,
        "max_tokens": 32768,
        "seed": "derived from 3, sample id and epoch",
        "top_k": 20,
        "stop": ["X"],
    }  # fmt: skip
    worlds = [call.body for call in server.calls if call.model == "world"]
    sent = {"temperature", "max_tokens", "seed", "top_k", "stop"}
    assert all(body.keys() == {"model", "messages", *sent} for body in worlds)
    assert len({body["seed"] for body in worlds}) == len(worlds) == 4
    judge = run.record.judges[0].sampling
    bodies = [call.body for call in server.calls if call.model == "judge"]
    assert judge == Sampling().described() | {"temperature": 0.0, "max_tokens": 8192}
    assert all((body["temperature"], body["max_tokens"]) == (0.0, 8192) for body in bodies)
    assert all("seed" not in body and "top_p" not in body for body in bodies)


def test_connections_are_reached_and_never_exceeded(
    data: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapt, "FIRST_REQUEST_HEAD_START", 0.05)
    with ScriptedServer(together(6, good)) as server:
        run = evaluate(**options(server, tmp_path / "run", data.folder, max_connections=6, limit="3"))
    assert server.max_in_flight == 6
    assert run.results is not None
    assert run.results.judges[0].micro.coverage == 1.0


def test_the_order_of_completion_does_not_show(data: Manifest, tmp_path: Path) -> None:
    results = []
    with ScriptedServer(good) as server:
        for connections in (1, 16):
            output = tmp_path / str(connections)
            more = {"max_connections": connections, "tasks": "search,os"}
            results.append(evaluate(**options(server, output, data.folder, **more)).path)
    assert read_results(results[0]) == read_results(results[1])
    assert (results[0] / "metrics.jsonl").read_bytes() == (results[1] / "metrics.jsonl").read_bytes()


def test_adaptations_are_learned_once_and_recorded(data: Manifest, tmp_path: Path) -> None:
    script = refuse_parameter("max_tokens", "Use 'max_completion_tokens' instead.", good)
    with ScriptedServer(script) as server:
        run = evaluate(**options(server, tmp_path / "run", data.folder, limit="4", max_connections=1))
    assert run.results is not None
    note = "max_tokens sent as max_completion_tokens"
    assert run.results.predictions.notes[note] == 28
    assert all(note in record.notes for record in run.verdicts())
    refused = Counter(call.model for call in server.calls if "max_tokens" in call.body)
    assert refused == {"world": 1, "judge": 1}
    assert {record.max_tokens for record in run.predictions()} == {32768}


# LiteLLM makes its coroutine in another thread; a cancellation meanwhile leaves it without an owner.
@pytest.mark.filterwarnings(
    "ignore:coroutine 'OpenAIChatCompletion.acompletion' was never awaited:RuntimeWarning"
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_litellm_gives_the_same_scores_and_hides_the_key(data: Manifest, tmp_path: Path) -> None:
    found = {}
    with ScriptedServer(good) as server:
        for scheme in ("openai-api", "openai"):
            names = {"model": f"{scheme}/world", "judge": f"{scheme}/judge", "limit": "2"}
            run = evaluate(**options(server, tmp_path / scheme, data.folder) | names)
            assert run.results is not None
            found[scheme] = run.results
        server.script = every_nth(3, Reply(status=401, error={"message": f"Incorrect API key: {KEY}"}), good)
        with pytest.raises(CredentialsError) as caught:
            evaluate(**options(server, tmp_path / "refused", data.folder) | names)
    one, other = found["openai-api"], found["openai"]
    assert one.judges[0].domains == other.judges[0].domains
    assert one.predictions.spent.usage == other.predictions.spent.usage
    assert other.predictions.spent.cost_usd is None
    assert KEY not in all_text(tmp_path) + str(caught.value)
