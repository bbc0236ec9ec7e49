"""Public bug reports about judges of other harnesses: what both readings make of their triggers.

Cases: `cases/judge_bugs/*.yaml`, numbered JP-… as collected. The default is the strict reading
(`Judge.read`: failures in front, then `read_verdict`); beside it stands what the official rules give, which
is checked so that the difference stays known.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from agentworldbench.models import Connection, create_model
from agentworldbench.official_files import OfficialPrompts
from agentworldbench.prompts import judge_messages
from agentworldbench.prompts_official import official_judge_messages
from agentworldbench.protocol import PROTOCOLS
from agentworldbench.records import OFFICIAL_DOMAINS, Completion, Failure, FailureKind, Sampling
from agentworldbench.resources import asset
from agentworldbench.scoring.judge import ASK_AGAIN, Judge
from agentworldbench.scoring.official_verdict import read_official
from agentworldbench.scoring.verdict import ReadVerdict, read_verdict
from agentworldbench.task import load_tasks
from tests.test_judge import sample_of
from tests.test_verdict import block, written_out

CASES = Path(__file__).parent / "cases" / "judge_bugs"
TASKS = load_tasks()
FORM = asset("tasks", "prompts", "builtin", "answer_text.md").read_text(encoding="utf-8")
REPORTS = {
    f"JP-{n:02}" for n in (1, 2, 5, 6, 7, 8, 9, 10, 14, 15, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 30)
}


def cases(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


def in_full(text: str) -> str:
    return written_out(text).replace("{form}", FORM.replace("<integer 1-5>", "5"))


def judge() -> Judge:
    backend = create_model("openai-api/m", Connection(base_url="http://127.0.0.1:9/v1"), TASKS)
    return Judge(backend, Sampling(max_tokens=100), PROTOCOLS["builtin"], TASKS, as_json=False, attempts=3)


def check_strict(read: ReadVerdict | Failure, case: dict[str, Any]) -> None:
    if isinstance(case["strict"], str):
        assert isinstance(read, Failure), read
        assert read.kind == case["strict"]
        assert read.kind in ASK_AGAIN
        assert case.get("says", "") in read.message
    else:
        assert isinstance(read, ReadVerdict), read
        assert list(read.scores.values()) == case["strict"]
        assert read.strengths == tuple(case.get("strengths", ()))
        assert read.weaknesses == tuple(case.get("weaknesses", ()))
        assert read.found.endswith(case.get("says", ""))


def check_official(reply: str, case: dict[str, Any]) -> None:
    read = read_official(reply)
    wanted = case["official"]
    assert read.success == (wanted is not None)
    if wanted is not None:
        assert list(read.scores.values()) == wanted["scores"]
        assert read.total == wanted["total"]
        for field in ("strengths", "weaknesses"):
            assert list(getattr(read, field)) == wanted.get(field, list(getattr(read, field)))


@pytest.mark.parametrize("case", cases("replies"), ids=lambda case: case["id"])
def test_replies(case: dict[str, Any]) -> None:
    reply = in_full(case["reply"])
    sample, _ = sample_of("terminal", 1)
    prediction = "\n".join(in_full(text) for text in case.get("shown", ()))
    completion = Completion(text=reply, finish_reason="stop")
    check_strict(judge().read(completion, sample, prediction), case)
    check_official(reply, case)


@pytest.mark.parametrize("case", cases("cut"), ids=lambda case: case["id"])
def test_cut_replies(case: dict[str, Any]) -> None:
    reply = None if case["reply"] is None else in_full(case["reply"])
    sample, prediction = sample_of("terminal", 1)
    completion = Completion(text=reply, finish_reason=case["finish"])
    check_strict(judge().read(completion, sample, in_full(case.get("prediction", prediction))), case)
    check_official(reply or "", case)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("case", cases("sizes"), ids=lambda case: case["id"])
def test_sizes(case: dict[str, Any]) -> None:
    reply = "".join(text * times for text, times in case["parts"])
    assert isinstance(read_verdict(reply), Failure)
    assert not read_official(reply).success


@pytest.mark.parametrize("case", cases("predictions"), ids=lambda case: case["id"])
def test_predictions_stay_text(case: dict[str, Any]) -> None:
    sample, _ = sample_of("terminal", 2)
    plain, shown = "@@@", case["prediction"]
    template = "{context}\n\n{world_model_input}\n\n{predicted_observation}\n\n{ground_truth}"
    prompts = OfficialPrompts(
        "c" * 40, Path("nowhere"), dict.fromkeys(OFFICIAL_DOMAINS, "Judge."), template, {}
    )
    task = TASKS["terminal"]
    builtin = [judge_messages(task, sample, text, as_json=False)[-1].content for text in (plain, shown)]
    official = [official_judge_messages(prompts, task, sample, text)[-1].content for text in (plain, shown)]
    assert official[1] == official[0].replace(plain, shown)
    assert builtin[0].count(plain) == 1
    before, behind = (part.strip() for part in builtin[0].split(plain))
    assert before.splitlines()[0] == builtin[1].splitlines()[0]
    assert shown in builtin[1]
    assert len(builtin[1]) == len(builtin[0]) - len(plain) + len(shown)
    assert behind.splitlines()[-1] == builtin[1].splitlines()[-1]


def test_three_odd_replies_cost_three_samples() -> None:
    """JP-23: of ten replies three have a shape that is no verdict; the other seven count."""
    replies = [block([3, 3, 3, 3, n % 5 + 1]) for n in range(10)]
    replies[6:9] = ["[]", '"ok"', '{"scores":[{"dimension":"format","score":4}]}']
    sample, prediction = sample_of("terminal", 1)
    read = [judge().read(Completion(text=text, finish_reason="stop"), sample, prediction) for text in replies]
    assert [isinstance(one, ReadVerdict) for one in read] == [True] * 6 + [False] * 3 + [True]
    failures = [one for one in read if isinstance(one, Failure)]
    assert {one.kind for one in failures} == {FailureKind.JUDGE_UNPARSED}
    assert all(one.message for one in failures)


def test_every_report_has_its_cases() -> None:
    every = [case["id"] for path in CASES.glob("*.yaml") for case in cases(path.stem)]
    assert len(set(every)) == len(every)
    assert {name[:5] for name in every} == REPORTS
