"""`--protocol official` as a whole: what is sent, shown, read, recorded, and asked again.

Rows meet the kinds of `helpers/failing_world.py` one after the other, so each kind of reply is a case; the
official prompts are stand-ins of our own wording. `test_protocol_official_cli.py` goes the same way through
the command line, `test_reproduction.py` at full size.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.config import make_config
from agentworldbench.records import Prediction, Verdict
from agentworldbench.run import Run, evaluate, judge_run, score_run
from agentworldbench.store import open_store
from tests.helpers.failing_world import JUDGINGS, LOW, QUOTES, WORLDS, Judging, World, own_text, scores_of
from tests.helpers.official_folder import MARKER, SUFFIX, make_official_folder
from tests.helpers.own_prompts import TEMPLATE, judge_texts, own_prompts, row_messages, use_prompts
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer
from tests.helpers.whole_runs import asked, by_prompt, good, options

TAGGED = WORLDS[0]
CLEAN = JUDGINGS[0]
KINDS: tuple[tuple[World, Judging], ...] = (
    *((world, QUOTES if "forged" in world.name else CLEAN) for world in WORLDS),
    *((TAGGED, judging) for judging in JUDGINGS[1:]),
)
"""What the rows of the folder meet, in file order."""
NAMES = [f"{world.name} | {judging.name}" for world, judging in KINDS]


@dataclass(frozen=True)
class Case:
    """One row, the kinds that it meets, and what the run has of it."""

    row: dict[str, Any]
    world: World
    judging: Judging
    prediction: Prediction
    verdict: Verdict | None
    calls: tuple[ChatCall, ...]

    @property
    def text(self) -> str:
        return own_text(self.row["prompt"][-1])

    @property
    def shown(self) -> str | None:
        return self.world.official(self.text)


def asked_about(call: ChatCall) -> str:
    """What names the row that a call is about: its history and current turn."""
    if call.model == "judge":
        texts = judge_texts(call)
        return f"{texts.history}{texts.current}"
    told = [str(message["content"]) for message in call.messages if message["role"] != "system"]
    ends = ("\n", "\n\n")
    history = "".join(f"{text}{ends[place % 2]}" for place, text in enumerate(told[:-1]))
    return history + told[-1].removesuffix(SUFFIX)


def name_of(row: dict[str, Any]) -> str:
    told = zip(row["prompt"][:-1], row["response"][:-1], strict=True)
    return "".join(f"{prompt}\n{response}\n\n" for prompt, response in told) + str(row["current_prompt"])


class Script:
    """Model and judge by the kind of each row."""

    def __init__(self, folder: Path) -> None:
        lines = [line for path in sorted(folder.iterdir()) for line in path.read_bytes().splitlines()]
        self.rows = [json.loads(line) for line in lines]
        self.kinds = {name_of(row): kind for row, kind in zip(self.rows, KINDS, strict=True)}
        assert len(self.kinds) == len(KINDS)

    def __call__(self, call: ChatCall) -> Reply:
        world, judging = self.kinds[asked_about(call)]
        kind: World | Judging = world
        if call.model == "judge":
            kind = judging
            texts = judge_texts(call)
            reply = judging.reply(scores_of(texts.current, texts.prediction))
        else:
            reply = world.reply(own_text(call.last_user))
        return kind.first if kind.first and call.attempt == 1 else reply


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten trajectories of two domains, as many rows as there are kinds."""
    data = tmp_path_factory.mktemp("data")
    made: dict[str, Any] = {"seed": 3, "special": False, "observation_chars": 60}
    make_official_folder(data, domains=("swe",), trajectories=5, **made)
    rest = len(KINDS) - 25
    make_official_folder(data, domains=("terminal",), trajectories=-(-rest // 5), **made)
    path = data / "terminal_test.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:rest]))
    return data


@pytest.fixture(autouse=True)
def prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    use_prompts(monkeypatch)


@pytest.fixture(scope="module")
def cases(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    script = Script(folder)
    path = tmp_path_factory.mktemp("official") / "run"
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(script) as server:
        use_prompts(patch)
        evaluate(**options(server, path, folder, protocol="official", max_retries=1))
        calls = server.calls
    store = open_store(path)
    found = {}
    for name, row, (world, judging) in zip(NAMES, script.rows, KINDS, strict=True):
        sample = f"{row['task']}/{row['id']}/{row['turn_idx']}"
        prediction = store.predictions.get((sample, 1))
        assert prediction is not None
        verdicts = [verdict for verdict in store.verdicts if verdict.sample_id == sample]
        own = tuple(call for call in calls if asked_about(call) == name_of(row))
        found[name] = Case(row, world, judging, prediction, verdicts[0] if verdicts else None, own)
    return found


@pytest.fixture(params=NAMES)
def case(cases: dict[str, Case], request: pytest.FixtureRequest) -> Case:
    return cases[request.param]


def test_the_model_is_asked_as_the_official_code_asks(case: Case) -> None:
    calls = [call for call in case.calls if call.model == "world"]
    assert len(calls) == case.world.calls or (case.world.calls is None and len(calls) > 1)
    assert calls[0].messages == row_messages(case.row)
    assert (calls[0].body["temperature"], calls[0].body["max_tokens"]) == (0.6, 32768)
    assert calls[0].body.keys() == {"model", "messages", "temperature", "max_tokens"}, "MO-09: no stop string"


def test_the_judge_is_asked_about_the_official_extraction(case: Case) -> None:
    calls = [call for call in case.calls if call.model == "judge"]
    assert len(calls) == (0 if case.shown is None else case.judging.calls)
    history = name_of(case.row).removesuffix(case.row["current_prompt"])
    user = TEMPLATE.format(
        context=f"# Context (Historical Interactions):\n\n{history}" if history else "",
        world_model_input=f"# Current Turn:\n\n{case.row['current_prompt']}",
        predicted_observation=f"**World Model Output (Simulated):**\n```\n{case.shown}\n```",
        ground_truth="**Ground Truth (Real Output):**\n```\n"
        + case.row["response"][-1].removeprefix(MARKER).strip()
        + "\n```",
    )
    for call in calls:
        assert call.messages == [
            {"role": "system", "content": f"You judge {case.row['task']} by these rules.\n"},
            {"role": "user", "content": user.strip()},
        ]
        assert (call.body["temperature"], call.body["max_tokens"]) == (0.6, 32768)


def test_both_readings_of_a_reply_are_kept(case: Case) -> None:
    prediction = case.prediction
    failure = prediction.failure
    assert (failure and failure.kind) == case.world.failure
    assert (prediction.official_sha256 is None) is (case.shown is None)
    assert prediction.observation == case.world.strict(case.text), "MO-17: a failure is no text"
    if case.shown is None:
        assert case.verdict is None
        return
    scores = LOW if case.shown == "No output" else scores_of(case.row["current_prompt"], case.shown)
    assert case.verdict is not None
    assert case.verdict.scores == case.judging.strict(scores)
    assert len(case.verdict.attempts or [None]) == case.judging.calls
    if case.verdict.scores is None:
        assert case.verdict.failure is not None
        assert case.verdict.failure.kind == case.judging.failure


@pytest.fixture
def steady(folder: Path) -> Script:
    """The script of `cases` with the servers that were down for good up again."""
    script = Script(folder)
    script.kinds = {
        text: (
            replace(TAGGED, first=None) if kinds[0].failure == "provider_error" else kinds[0],
            CLEAN if kinds[1].failure == "provider_error" else kinds[1],
        )
        for text, kinds in script.kinds.items()
    }
    return script


def test_a_resumed_run_asks_nothing_again_and_retry_what_failed_officially(
    steady: Script, folder: Path, tmp_path: Path
) -> None:
    words = {"protocol": "official", "max_retries": 1}
    with ScriptedServer(steady) as server:
        first = evaluate(**options(server, tmp_path / "run", folder, **words))
        calls = len(server.calls)
        again = evaluate(**options(server, tmp_path / "run", folder, **words))
        assert len(server.calls) == calls
        assert replace_made_at(again) == replace_made_at(first)
        evaluate(**options(server, tmp_path / "run", folder, **words, retry_failed=True))
        retried = server.calls[calls:]
    worlds, judgings = zip(*steady.kinds.values(), strict=True)
    unjudged = [world for world in worlds if world.official("text") is None]
    assert [world.failure for world in unjudged].count("empty") == 3
    unread = [judging for judging in judgings if judging.official(LOW) is None]
    assert len(unread) == 5
    assert {asked_about(call) for call in retried if call.model == "world"} == {
        text for text, (world, _) in steady.kinds.items() if world in unjudged
    }
    assert sum(call.model == "judge" for call in retried) == sum(judging.calls for judging in unread)
    shown = {judge_texts(call).prediction for call in retried if call.model == "judge"}
    assert "No output" not in shown


def replace_made_at(run: Run) -> Any:
    assert run.results is not None
    return run.results.model_copy(update={"made_at": ""})


def test_what_is_recorded(folder: Path, tmp_path: Path) -> None:
    with ScriptedServer(good) as server:
        run = evaluate(**options(server, tmp_path / "run", folder, protocol="official", limit="1"))
    (judge,) = run.record.judges
    prompts = own_prompts()
    assert (run.record.protocol, judge.protocol, judge.parse) == ("official", "official", "official")
    assert (judge.sampling["temperature"], judge.sampling["max_tokens"]) == (0.6, 32768)
    assert (judge.attempts, judge.schema_sha256) == (3, None)
    assert judge.prompts == {"user": prompts.sha256["user"]}
    assert judge.system_prompts == {domain: prompts.sha256[domain] for domain in ("swe", "terminal")}
    assert run.record.predict.sampling["swe"]["temperature"] == 0.6
    assert run.record.predict.sampling["swe"]["max_tokens"] == 32768
    assert run.results is not None
    assert (run.results.protocol, run.results.policy) == ("official", "exclude")
    for verdict in run.verdicts():
        assert verdict.system_sha256 == judge.system_prompts[verdict.sample_id.partition("/")[0]]
        assert verdict.prompt_sha256 in by_prompt(server, judge=True)


def judge_words(server: ScriptedServer, **more: Any) -> Any:
    return make_config({"judge": "openai-api/judge", "judge_base_url": server.base_url, **more})


def test_an_official_judge_beside_a_builtin_one(steady: Script, folder: Path, tmp_path: Path) -> None:
    """The same predictions; each judge is asked about its own reading and headed by it."""
    with ScriptedServer(steady) as server:
        path = evaluate(**options(server, tmp_path / "run", folder, max_retries=1)).path
        journal = (path / "predictions.jsonl").read_bytes()
        calls = len(server.calls)
        run = judge_run(path, judge_words(server, protocol="official", max_retries=1))
        official = server.calls[calls:]
        builtin = [call for call in server.calls[:calls] if call.model == "judge"]
        same = judge_run(path, judge_words(server, max_retries=1))
        assert len(server.calls) == calls + len(official), "both judges have been asked"
    assert (path / "predictions.jsonl").read_bytes() == journal
    worlds = [world for world, _ in steady.kinds.values()]
    assert len({asked_about(call) for call in builtin}) == sum(not world.failure for world in worlds)
    assert len({asked_about(call) for call in official}) == sum(
        world.official("text") is not None for world in worlds
    )
    assert run.results is not None
    first, second = run.results.judges
    assert [one.judge.protocol for one in (first, second)] == ["builtin", "official"]
    assert first.judge.digest != second.judge.digest
    assert (first.headline, second.headline) == (first.strict, second.official)
    assert first.strict.domains == second.strict.domains, (
        "they say the same, and strictly it is read the same"
    )
    assert first.official.micro.scored < second.official.micro.scored
    assert same.results is not None
    assert same.results.judges == run.results.judges
    assert score_run(path).results is not None


def test_other_prompts_are_another_judge(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(good) as server:
        path = evaluate(
            **options(server, tmp_path / "run", folder, protocol="official", limit="2", tasks="swe")
        ).path
        use_prompts(monkeypatch, own_prompts("Anew.\n" + TEMPLATE))
        run = judge_run(path, judge_words(server, protocol="official"))
        assert len(run.record.judges) == len({judge.digest for judge in run.record.judges}) == 2
        assert asked(server) == {"world": 2, "judge": 4}
        # A domain's own prompt is named by its hash: the verdicts under the other one do not count.
        use_prompts(monkeypatch, own_prompts("Anew.\n" + TEMPLATE, word="other rules"))
        run = judge_run(path, judge_words(server, protocol="official"))
        assert asked(server) == {"world": 2, "judge": 6}
    assert len(run.record.judges) == 2
    assert run.record.judges[1].system_prompts == {"swe": own_prompts(word="other rules").sha256["swe"]}
    assert run.results is not None and run.results.complete


@pytest.mark.parametrize(("protocol", "worlds"), [("builtin", 2), ("official", 1)])
def test_tokens_that_arrive_as_no_text(protocol: str, worlds: int, folder: Path, tmp_path: Path) -> None:
    """The script asks its model once, whatever comes, and its judge three times."""
    lost = Reply(None, usage={"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16})

    def script(call: ChatCall) -> Reply:
        first = call.model == "world" and len(call.messages) == 2
        return lost if first or call.model == "judge" else good(call)

    with ScriptedServer(script) as server:
        words = options(server, tmp_path / "run", folder, protocol=protocol, tasks="swe")
        run = evaluate(**words, limit_trajectories=1)
        assert asked(server) == {"world": 4 + worlds, "judge": 4 * 3}
    (empty,) = [one for one in run.predictions() if one.failure]
    assert empty.failure is not None and empty.failure.kind == "empty"
    assert (len(empty.attempts), empty.usage.completion_tokens) == (worlds, 7 * worlds)
    for verdict in run.verdicts():
        assert (verdict.failure and verdict.failure.kind, verdict.reply) == ("empty", None)
        assert [attempt.outcome for attempt in verdict.attempts] == ["empty"] * 3
        assert verdict.usage.completion_tokens == 21


@pytest.mark.parametrize("model", ["baseline/reference", "baseline/empty"])
def test_baselines_are_judged_by_what_they_hand_over(model: str, folder: Path, tmp_path: Path) -> None:
    with ScriptedServer(good) as server:
        words = options(server, tmp_path / "run", folder, protocol="official", limit="2")
        run = evaluate(**words | {"model": model, "base_url": None})
        texts = [judge_texts(call) for call in server.calls]
        evaluate(**words | {"model": model, "base_url": None})
        assert len(server.calls) == len(texts) == 4
    for one in texts:
        assert one.prediction == (one.reference if model == "baseline/reference" else "")
    assert run.results is not None
    assert run.results.judges[0].official == run.results.judges[0].strict


def test_a_replayed_run_is_read_the_same(
    cases: dict[str, Case], steady: Script, folder: Path, tmp_path: Path
) -> None:
    with ScriptedServer(steady) as server:
        words = options(server, tmp_path / "first", folder, protocol="official", max_retries=1)
        first = evaluate(**words)
        again = evaluate(
            **words | {"model": f"replay/{first.path}", "base_url": None, "output": tmp_path / "second"}
        )
    readings = [one.results.judges[0] for one in (first, again) if one.results]
    assert readings[0].official.domains == readings[1].official.domains
    assert readings[0].strict.domains == readings[1].strict.domains
