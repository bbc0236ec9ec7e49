"""The same failure before and after a model's first answer, and an endpoint that fails for long.

One model on one limiter, with virtual time; then whole runs that stop and are taken up again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.engine import standing as standing_module
from agentworldbench.engine.limiter import Limiter
from agentworldbench.engine.progress import Progress
from agentworldbench.engine.retry import Answer, ask
from agentworldbench.engine.standing import ANSWERED, LEAST_FAILED, NEVER_ANSWERED, ROUNDS_FAILED, Standing
from agentworldbench.errors import AwbError, ConfigError, CredentialsError, EndpointError
from agentworldbench.records import TRANSIENT, Failure, FailureKind
from agentworldbench.run import evaluate
from tests.helpers.asking import make_request
from tests.helpers.fake_model import FakeModel, VirtualTime, fails, says
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import good, options

OK = says("fine")
BAD = fails("bad_request", status=400)
GONE = fails("unreachable")
PAGE = "<html> <head><title>404 Not Found</title></head> <center>nginx</center>"
NO_MODEL = "The model `tiny` does not exist. (NotFoundError, 404)"


@pytest.fixture(name="time", autouse=True)
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return VirtualTime(monkeypatch)


class Endpoint:
    """One model, asked again and again; each `asked` scripts the outcomes of its attempts, the last for ever."""

    def __init__(
        self, connections: int = 1, limiter: Limiter | None = None, name: str = "m", local: bool = False
    ) -> None:
        self.limiter = limiter or Limiter(connections)
        self.model = FakeModel(lambda request, number: self._next(), name, local=local)
        self._outcomes: list[Any] = []

    def _next(self) -> Any:
        return self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]

    def asked(self, *outcomes: Any, retries: int = 3) -> Answer:
        self._outcomes = list(outcomes)
        slot = self.limiter.slot()
        return asyncio.run(ask(self.model, make_request(), slot, retries, Progress()))


def missing(message: str) -> Any:
    return fails("model_missing", status=404, message=message)


# --- before the first answer, and after it -----------------------------------------------------


def test_an_endpoint_that_answered_once_may_come_back() -> None:
    endpoint = Endpoint()
    endpoint.asked(OK)
    answer = endpoint.asked(GONE, GONE, OK)
    assert answer.outcome == OK
    assert len(answer.attempts) == 3


@pytest.mark.parametrize("first", [OK, fails("provider_error", status=500), BAD])
def test_an_endpoint_that_vanished_for_good_stops_the_run(first: Any) -> None:
    endpoint = Endpoint()
    endpoint.asked(first, retries=0)
    with pytest.raises(EndpointError, match="is the server running"):
        endpoint.asked(GONE, retries=2)
    assert len(endpoint.model.requests) == 4


def test_a_model_that_refuses_all_stops_the_run_at_the_fifth() -> None:
    endpoint = Endpoint()
    for _ in range(4):
        assert isinstance(endpoint.asked(BAD).outcome, Failure)
    with pytest.raises(ConfigError, match="every request so far was refused: scripted bad_request; change"):
        endpoint.asked(BAD)


def test_a_model_that_answers_some_may_refuse_any_number() -> None:
    endpoint = Endpoint()
    for outcome in (*[BAD] * 4, OK, *[BAD] * 9):
        endpoint.asked(outcome)


def test_a_replay_of_refusals_is_no_refusing_model() -> None:
    endpoint = Endpoint(local=True)
    for _ in range(9):
        endpoint.asked(fails("bad_request"))


@pytest.mark.parametrize("name", ["m", "judge"])
def test_an_answer_of_the_model_says_nothing_about_a_judge_at_the_same_endpoint(name: str) -> None:
    """Also where both have one name: the judge is asked for other things (a schema, say)."""
    model = Endpoint()
    model.asked(OK)
    judge = Endpoint(limiter=model.limiter, name=name)
    for _ in range(4):
        judge.asked(BAD)
    model.asked(BAD)
    with pytest.raises(ConfigError, match=f"model '{name}': every request"):
        judge.asked(BAD)


def test_a_403_is_a_bad_key_before_any_answer_and_one_bad_request_after() -> None:
    forbidden = fails("authentication", status=403)
    endpoint = Endpoint()
    with pytest.raises(CredentialsError):
        endpoint.asked(forbidden)
    endpoint.asked(OK)
    answer = endpoint.asked(forbidden)
    assert isinstance(answer.outcome, Failure)
    assert (answer.outcome.kind, answer.outcome.status) == ("bad_request", 403)
    assert [attempt.outcome for attempt in answer.attempts] == ["bad_request"]
    with pytest.raises(CredentialsError):
        endpoint.asked(fails("authentication", status=401))


@pytest.mark.parametrize("message", [PAGE, "404 page not found", "Not Found"])
def test_a_404_stops_the_run_before_the_first_answer(message: str) -> None:
    endpoint = Endpoint()
    with pytest.raises(EndpointError, match="check the model's name"):
        endpoint.asked(missing(message))
    assert len(endpoint.model.requests) == 1


@pytest.mark.parametrize("message", [PAGE, "404 page not found", "Not Found"])
def test_a_404_after_an_answer_is_asked_again(message: str) -> None:
    """A gateway's page for one request."""
    endpoint = Endpoint()
    endpoint.asked(OK)
    answer = endpoint.asked(missing(message), missing(message), OK)
    assert answer.outcome == OK
    assert len(answer.attempts) == 3


def test_a_404_that_stays_is_a_gateways_fault_or_the_end() -> None:
    endpoint = Endpoint()
    endpoint.asked(OK)
    answer = endpoint.asked(missing(PAGE), retries=2)
    assert isinstance(answer.outcome, Failure)
    assert answer.outcome.kind is FailureKind.PROVIDER_ERROR
    assert answer.outcome.kind in TRANSIENT, "asked again when the run resumes"
    with pytest.raises(EndpointError, match="does not exist"):
        endpoint.asked(missing(NO_MODEL), retries=2)
    assert len(endpoint.model.requests) == 1 + 3 + 1


# --- an endpoint that fails for long -------------------------------------------------------------


KINDS = ["provider_error", "rate_limit", "overloaded", "malformed_response", "network"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "patience"), [(None, NEVER_ANSWERED), (OK, ANSWERED)])
def test_an_endpoint_that_fails_for_long_stops_the_run(
    kind: str, first: Any, patience: float, time: VirtualTime
) -> None:
    endpoint = Endpoint()
    if first:
        endpoint.asked(first)
    began, ended = time.now, 0
    with pytest.raises(EndpointError, match="nothing has succeeded for") as caught:
        for _ in range(10_000):
            assert isinstance(endpoint.asked(fails(kind)).outcome, Failure)
            ended = len(endpoint.model.requests)
    assert time.now - began >= patience
    assert time.now - began <= patience + 200, "and not much later"
    assert ended >= LEAST_FAILED - 4
    assert f"the last one: {kind}: scripted {kind}" in str(caught.value)
    assert "the same command continues" in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("good_one", [OK, BAD, fails("content_filter", status=400)])
def test_an_endpoint_that_does_something_in_between_has_not_gone(good_one: Any, time: VirtualTime) -> None:
    endpoint = Endpoint()
    began = time.now
    while time.now - began < 1.5 * ANSWERED:
        endpoint.asked(fails("provider_error"))
        endpoint.asked(
            OK if good_one is BAD and not endpoint.limiter.standing(endpoint.model).answered else good_one
        )


KNOWN = st.sampled_from([None, *FailureKind])


@given(st.lists(st.tuples(KNOWN, st.floats(0, 300)), max_size=60), st.integers(1, 8))
def test_gone_is_who_failed_often_enough_and_for_long_enough(
    outcomes: list[tuple[FailureKind | None, float]], connections: int
) -> None:
    """Against a plain reading of the whole history."""
    standing, now, history = Standing(), 1000.0, list[tuple[FailureKind | None, float]]()
    for kind, later in outcomes:
        now += later
        standing.note(kind, now)
        history.append((kind, now))
        row = list[float]()
        for one, at in reversed(history):
            if one not in {*TRANSIENT, FailureKind.UNREACHABLE}:
                break
            row.append(at)
        patience = ANSWERED if any(one is None for one, _ in history) else NEVER_ANSWERED
        often = len(row) >= max(LEAST_FAILED, ROUNDS_FAILED * connections)
        assert standing.has_gone(connections, now) == (often and now - row[-1] >= patience)


# --- whole runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answered", "status"), [(0, 503), (3, 503), (3, 429)])
def test_a_run_stops_with_one_line_and_is_taken_up_again(
    answered: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NEVER_ANSWERED", "ANSWERED"):
        monkeypatch.setattr(standing_module, name, 0.0)
    make_official_folder(tmp_path / "data", domains=["terminal"], trajectories=8, observation_chars=40)

    def script(call: ChatCall) -> Reply:
        return good(call) if call.index <= answered else Reply(status=status, error={"message": "try later"})

    run = tmp_path / "run"
    with ScriptedServer(script) as server:
        given_options = options(server, run, tmp_path / "data", no_judge=True, max_connections=2)
        with pytest.raises(AwbError, match=r"nothing has succeeded for . minutes") as caught:
            evaluate(**given_options)
        asked = len(server.calls)
        server.script = good
        done = evaluate(**given_options)
    assert caught.value.exit_code == 2
    assert asked <= answered + LEAST_FAILED + 2, "the attempts of all other samples are left"
    assert done.results is not None
    assert done.results.complete
    assert all(record.failure is None for record in done.predictions())
