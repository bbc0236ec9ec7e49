"""An audit with a judge that wavers: a claim raised by hand is rejected, the honest one is accepted.

The forger is a careful one. Every verdict's reply and grades are raised by one or two grades (5 or 10 points, 6 on
average), and results, metrics, claims, hashes and manifest are made anew, so that all that can be read is as in an
honest bundle. The judge's five grades scatter around what it thinks of a prediction each time it is asked.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest

from agentworldbench.records import DIMENSIONS
from agentworldbench.run import evaluate
from agentworldbench.verification.findings import Report
from agentworldbench.verification.verify import verify
from tests.helpers.awb_command import HereAwb
from tests.helpers.honest_bundle import Lines, bundle_folder, edit_lines, packed, rescored
from tests.helpers.scripted_server import ChatCall, Reply, Script, ScriptedServer, echo_world, verdict_text
from tests.helpers.whole_runs import options

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_retries")]
MINI = Path("mini")


def wavering(salt: str) -> Script:
    """A world and a judge that thinks the same of a prediction each time, and grades it a little otherwise by `salt`."""

    def answer(call: ChatCall) -> Reply:
        if call.model != "judge":
            return echo_world(call)
        thought, mood = random.Random(call.last_user), random.Random(f"{salt} {call.last_user}")
        scores = {
            name: min(5, max(1, thought.choice((2, 3, 3, 4)) + mood.choice((-1, 0, 0, 0, 1))))
            for name in DIMENSIONS
        }
        return Reply(content=f"Case {call.key[:10]} was looked at line by line. {verdict_text(scores)}")

    return answer


def raised(lines: Lines) -> None:
    """One grade more in a dimension, every fifth time in two of them: where five is the top, in another one."""
    for number, line in enumerate(lines):
        left = 2 if number % 5 == 0 else 1
        for name in DIMENSIONS:
            if left and line["scores"][name] < 5:
                line["scores"][name] += 1
                left -= 1
        scores = json.dumps(line["scores"], indent=4).replace("\n", "\n    ")
        line["reply"] = re.sub(r'(?<="scores": )\{[^}]*\}', scores, line["reply"])


@pytest.fixture(scope="module")
def home(quick_retries: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`honest.awb.zip` on the bundled data, and `forged.awb.zip` made of it."""
    folder = tmp_path_factory.mktemp("noise")
    with ScriptedServer(wavering("once")) as server:
        run = evaluate(**options(server, folder / "run", "mini", max_retries=0))
    bundle_folder(run.path, folder / "honest", MINI)
    packed(folder / "honest", folder / "honest.awb.zip")
    shutil.copytree(folder / "honest", folder / "forged")
    edit_lines(folder / "forged", "verdicts.jsonl", raised)
    rescored(folder / "forged", MINI)
    packed(folder / "forged", folder / "forged.awb.zip")
    return folder


@pytest.fixture
def awb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> HereAwb:
    return HereAwb(tmp_path, monkeypatch, capsys)


def test_reading_alone_cannot_tell(home: Path) -> None:
    honest, forged = verify(home / "honest.awb.zip"), verify(home / "forged.awb.zip")
    assert (honest.verdict, forged.verdict) == ("accepted", "accepted")
    before, after = honest.judges[0].macro, forged.judges[0].macro
    assert before is not None and after is not None and 5 <= after - before <= 8


@pytest.mark.parametrize(("name", "decision", "code"), [("honest", "accepted", 0), ("forged", "rejected", 6)])
def test_its_judge_can(home: Path, awb: HereAwb, name: str, decision: str, code: int) -> None:
    with ScriptedServer(wavering("again")) as server:
        done = awb(
            *("verify", home / f"{name}.awb.zip", "--audit", "230", "--audit-seed", "1", "--json"),
            *("--judge", "openai-api/judge", "--judge-base-url", server.base_url),
        )
    report = Report.model_validate_json(done.out)
    audit = report.audit
    assert audit is not None and audit.mean_difference is not None and audit.noise is not None
    assert (done.code, audit.decision) == (code, decision), audit
    assert 4 < audit.noise < 15, "the judge does waver"
    assert audit.judged < 230, "decided before all was asked"
