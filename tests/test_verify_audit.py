"""`awb verify --audit`: the claimed judge is asked again, step by step, and the claim stands or falls.

The bundle that is forged here is one that no reading can tell from an honest one: the judge's replies were rewritten,
grades and results with them. Only its judge, asked again, says otherwise.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentworldbench.stats.sequential import ASSUMED_NOISE
from agentworldbench.verification.audit import noise_of
from agentworldbench.verification.findings import Report
from agentworldbench.verification.material import open_material
from agentworldbench.verification.verify import verify
from tests.helpers.awb_command import HereAwb
from tests.helpers.honest_bundle import bundle_folder, edit_lines, made_run, packed, rescored, script
from tests.helpers.scripted_server import ChatCall, Reply, ScriptedServer, hash_scores, verdict_text

pytestmark = pytest.mark.usefixtures("quick_retries", "few_draws")


@pytest.fixture(scope="module")
def home(quick_retries: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `rows` and `honest.awb.zip`, and `forged.awb.zip` in which every verdict is better by a point."""
    folder = tmp_path_factory.mktemp("audit")
    bundle_folder(made_run(folder), folder / "bundle", folder / "rows")
    packed(folder / "bundle", folder / "honest.awb.zip")

    def better(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            line["scores"] = {name: min(5, score + 1) for name, score in line["scores"].items()}
            scores = json.dumps(line["scores"], indent=4).replace("\n", "\n    ")
            line["reply"] = re.sub(r'(?<="scores": )\{[^}]*\}', scores, line["reply"])

    shutil.copytree(folder / "bundle", folder / "forged")
    edit_lines(folder / "forged", "verdicts.jsonl", better)
    rescored(folder / "forged", folder / "rows")
    packed(folder / "forged", folder / "forged.awb.zip")
    return folder


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def audited(
    awb: HereAwb, home: Path, name: str, server: ScriptedServer, *more: str
) -> tuple[int, Report, str]:
    """Exit code, report and standard error of an audit."""
    words = ["verify", home / name, "--data", home / "rows", "--judge", "openai-api/judge", "--json"]
    done = awb(*words, "--judge-base-url", server.base_url, *more)
    assert done.out, done.err
    return done.code, Report.model_validate_json(done.out), done.err


def test_a_careful_forgery_passes_all_reading(home: Path) -> None:
    assert verify(home / "forged.awb.zip", data=str(home / "rows")).verdict == "accepted"


def test_its_judge_says_otherwise(home: Path, awb: HereAwb) -> None:
    with ScriptedServer(script) as server:
        code, report, told = audited(
            awb, home, "forged.awb.zip", server, "--audit", "40", "--audit-seed", "7"
        )
    assert (code, report.verdict) == (6, "refused")
    audit = report.audit
    assert audit is not None and (audit.decision, audit.seed) == ("rejected", 7)
    assert audit.mean_difference is not None and audit.mean_difference < -10
    assert audit.drawn == audit.judged == len(server.calls) <= 40
    assert report.findings[0].check == "audit"
    assert "Estimate, judge with openai-api/judge" in told
    assert told.index("Estimate") < told.index("judged again"), "what it may cost is told before"


@pytest.mark.slow
def test_an_honest_judge_says_the_same(home: Path, awb: HereAwb) -> None:
    with ScriptedServer(script) as server:
        code, report, _ = audited(awb, home, "honest.awb.zip", server, "--audit", "100")
    audit = report.audit
    assert audit is not None and audit.mean_difference == 0
    assert audit.judged == len(server.calls) == len({call.key for call in server.calls})
    # 38 equal verdicts are too few to accept, however equal: what is not decided is not accepted.
    assert (code, report.verdict, audit.decision) == (7, "incomplete", "undecided")
    assert "all 38 scored samples" in report.unchecked[0].why


@pytest.mark.slow
def test_the_draw_is_that_of_its_seed(home: Path, awb: HereAwb) -> None:
    asked = []
    for seed in ("1", "1", "2"):
        with ScriptedServer(script) as server:
            audited(awb, home, "honest.awb.zip", server, "--audit", "5", "--audit-seed", seed)
        asked.append({call.key for call in server.calls})
    assert asked[0] == asked[1] != asked[2]
    assert len(asked[0]) == 5


@pytest.mark.slow
def test_it_keeps_to_its_limit(home: Path, awb: HereAwb) -> None:
    money = ("--price", "openai-api/judge=100,100", "--max-cost", "5")
    with ScriptedServer(script) as server:
        code, report, told = audited(awb, home, "honest.awb.zip", server, "--audit", "40", *money)
    audit = report.audit
    assert audit is not None and audit.stopped is not None
    assert "--max-cost" in audit.stopped
    assert (code, audit.decision) == (7, "undecided")
    assert audit.cost_usd is not None and 0 < audit.cost_usd <= 5
    assert 0 < len(server.calls) < 38
    assert "USD" in told


@pytest.mark.slow
def test_its_noise_is_that_of_the_repeats(tmp_path: Path) -> None:
    def wavering(call: ChatCall) -> Reply:
        reply = script(call)
        if call.model != "judge":
            return reply
        grades = verdict_text(hash_scores(f"{call.last_user}{call.attempt}"))
        return Reply(content=f"Case {call.key[:10]}, attempt {call.attempt}. {grades}")

    once = open_material(made_run(tmp_path / "once", wavering), str(tmp_path / "once/rows"))
    assert noise_of(once, once.record.judges[0]) == ASSUMED_NOISE
    twice = open_material(
        made_run(tmp_path / "twice", wavering, judge_repeats=2), str(tmp_path / "twice/rows")
    )
    assert 5 < noise_of(twice, twice.record.judges[0]) < 50
    assert noise_of(twice, twice.record.judges[0]) != ASSUMED_NOISE


@pytest.mark.slow
def test_judgings_that_fail_are_counted(home: Path, awb: HereAwb) -> None:
    def silent(call: ChatCall) -> Reply:
        return Reply(content="I would rather not say.")

    with ScriptedServer(silent) as server:
        code, report, _ = audited(awb, home, "honest.awb.zip", server, "--audit", "5")
    audit = report.audit
    assert audit is not None
    assert (code, audit.decision, audit.judged, audit.failed) == (7, "undecided", 0, 5)


def test_another_judge_is_not_asked(home: Path, awb: HereAwb) -> None:
    with ScriptedServer(script) as server:
        words = [
            "verify",
            home / "honest.awb.zip",
            "--data",
            home / "rows",
            "--audit",
            "5",
            "--judge",
            "openai-api/other",
        ]
        done = awb(*words, "--judge-base-url", server.base_url)
        assert server.calls == ()
    assert done.code == 2
    assert "not one judge of the run by this name; it has openai-api/judge" in done.complaint


def test_an_audit_needs_the_data_and_a_judge(home: Path, awb: HereAwb) -> None:
    done = awb("verify", home / "honest.awb.zip", "--audit", "5", "--judge", "openai-api/judge")
    assert (done.code, "prompts are rendered from the data" in done.complaint) == (2, True)
    done = awb("verify", home / "honest.awb.zip", "--data", home / "rows", "--audit", "5")
    assert (done.code, "--audit needs --judge" in done.complaint) == (2, True)


@pytest.mark.slow
def test_what_is_refused_is_not_audited(home: Path, tmp_path: Path, awb: HereAwb) -> None:
    shutil.copytree(home / "bundle", tmp_path / "bundle")
    edit_lines(tmp_path / "bundle", "verdicts.jsonl", lambda lines: lines.pop())
    rescored(tmp_path / "bundle", home / "rows")
    shutil.copytree(tmp_path / "bundle", tmp_path / "forged")
    with ScriptedServer(script) as server:
        words = [
            "verify",
            tmp_path / "forged",
            "--data",
            home / "rows",
            "--audit",
            "5",
            "--judge",
            "openai-api/judge",
        ]
        done = awb(*words, "--judge-base-url", server.base_url)
    assert (done.code, server.calls) == (6, ())
