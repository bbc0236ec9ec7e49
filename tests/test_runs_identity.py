"""What makes a run the same run: addresses may change, hashes may not; what never worked leaves no trace.

Real servers on loopback; each test looks at `run.json`, at the journals and at what was asked.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentworldbench import evaluate, load_run
from agentworldbench.config import make_config
from agentworldbench.errors import AwbError, ConfigError, EndpointError, StoreError
from agentworldbench.resources import asset
from agentworldbench.run import judge_run, score_run
from tests.helpers.official_folder import Manifest, make_official_folder
from tests.helpers.scripted_server import Reply, ScriptedServer, by_role, echo_world
from tests.helpers.whole_runs import good, options

DEAD = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    return make_official_folder(tmp_path_factory.mktemp("data"), domains=("terminal", "web"), seed=5)


def test_a_server_may_move_between_sessions(data: Manifest, tmp_path: Path) -> None:
    """Slurm gives each job another node: same model, same run; both addresses are recorded."""
    output = tmp_path / "run"
    with ScriptedServer(good) as first:
        evaluate(**options(first, output, data.folder, limit="2"))
    with ScriptedServer(good) as second:
        run = evaluate(**options(second, output, data.folder, limit="3"))
        assert sum(call.model == "world" for call in second.calls) == 2, "one more sample in each domain"
        assert sum(call.model == "judge" for call in second.calls) == 2
    assert [session.model_url for session in run.record.sessions] == [first.base_url, second.base_url]
    assert len(run.record.judges) == 1


def test_a_dead_address_leaves_no_trace(data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    with ScriptedServer(good) as server:
        evaluate(**options(server, output, data.folder, limit="1"))
        before = (output / "run.json").read_bytes()
        wrong = options(server, output, data.folder, limit="2") | {"base_url": DEAD}
        with pytest.raises(EndpointError):
            evaluate(**wrong)
        with pytest.raises(EndpointError):
            judge_run(output, make_config({"judge": "openai-api/other", "judge_base_url": DEAD}))
        assert (output / "run.json").read_bytes() == before
        run = evaluate(**options(server, output, data.folder, limit="1"))
    assert run.results is not None and len(run.results.judges) == 1


def test_a_judge_that_never_judged_is_forgotten(data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    missing = Reply(status=404, error={"message": "no such model", "code": "model_not_found"})
    with ScriptedServer(good) as server:
        evaluate(**options(server, output, data.folder, limit="1"))
        server.script = lambda call: missing if call.model == "mistyped" else good(call)
        with pytest.raises(EndpointError):
            judge_run(
                output, make_config({"judge": "openai-api/mistyped", "judge_base_url": server.base_url})
            )
        run = judge_run(
            output, make_config({"judge": "openai-api/second", "judge_base_url": server.base_url})
        )
    assert [judge.model for judge in run.record.judges] == ["openai-api/judge", "openai-api/second"]
    assert run.results is not None and run.results.complete


def test_a_directory_without_a_good_answer_takes_another_configuration(
    data: Manifest, tmp_path: Path
) -> None:
    output = tmp_path / "run"
    empty = by_role(lambda call: Reply(content=None, finish_reason="length"), good)
    with ScriptedServer(empty) as server:
        evaluate(**options(server, output, data.folder, limit="2", max_tokens=16))
        server.script = good
        run = evaluate(**options(server, output, data.folder, limit="2", max_tokens=4096))
    assert run.results is not None and sum(run.results.predictions.predicted.values()) == 4
    assert (output / "predictions.jsonl.old").read_bytes().count(b'"truncated"') == 4
    with pytest.raises(ConfigError, match=r"predict\.sampling"):
        evaluate(**options(server, output, data.folder, limit="2", max_tokens=16))


def test_a_verdict_on_an_older_prediction_does_not_count(data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    with ScriptedServer(good) as server:
        evaluate(**options(server, output, data.folder, limit="2"))
        journal = output / "predictions.jsonl"
        changed, failed = (json.loads(line) for line in journal.read_bytes().splitlines()[:2])
        failed |= {"failure": {"kind": "timeout", "message": "late"}}
        del failed["observation"]
        lines = [json.dumps(changed | {"observation": "another text"}), json.dumps(failed)]
        journal.write_bytes(journal.read_bytes() + "".join(f"{line}\n" for line in lines).encode())
        run = score_run(output)
        assert run.results is not None
        (judge,) = run.results.judges
        assert (judge.micro.scored, judge.micro.asked, judge.micro.samples) == (2, 3, 4)
        stages = [stage for counts in judge.failures.values() for stage in counts.items() if stage[1]]
        assert sorted(stages) == [("pending", {"not_run": 1}), ("prediction", {"timeout": 1})]
        assert not run.results.complete
        calls = len(server.calls)
        evaluate(**options(server, output, data.folder, limit="2"))
        # The changed text needs a verdict; the failed sample's new answer is the one already judged.
        assert sorted(call.model for call in server.calls[calls:]) == ["judge", "world"]


def test_an_edited_judge_prompt_asks_its_own_domain_again(data: Manifest, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    for domain in ("terminal", "web"):
        text = asset("tasks", f"{domain}.yaml").read_text(encoding="utf-8")
        (tasks / f"{domain}.yaml").write_text(text.replace("prompts/builtin/", ""), encoding="utf-8")
        prompt = asset("tasks", "prompts", "builtin", f"{domain}.md").read_text(encoding="utf-8")
        (tasks / f"{domain}.md").write_text(prompt, encoding="utf-8")
    with ScriptedServer(good) as server:
        opts = options(server, tmp_path / "run", data.folder, limit="2", tasks=str(tasks))
        evaluate(**opts)
        (tasks / "web.md").write_text("Judge anew.\n" + (tasks / "web.md").read_text(encoding="utf-8"))
        calls = len(server.calls)
        run = evaluate(**opts)
        asked = server.calls[calls:]
    assert [call.model for call in asked] == ["judge"] * 2
    assert all(call.system.startswith("Judge anew.") for call in asked)
    assert len(run.record.judges) == 1 and run.results is not None and run.results.complete


def test_money_of_superseded_records_counts(data: Manifest, tmp_path: Path) -> None:
    mute = by_role(echo_world, lambda call: Reply("no verdict at all"))
    with ScriptedServer(mute) as server:
        opts = options(server, tmp_path / "run", data.folder, limit="1", tasks="web", judge_attempts=3)
        evaluate(**opts)
        run = evaluate(**opts, retry_failed=True)
        prompts = sum(
            sum(len(message["content"]) for message in call.messages) // 4
            for call in server.calls
            if call.model == "judge"
        )
        assert sum(call.model == "judge" for call in server.calls) == 6
    assert run.results is not None
    assert run.results.judges[0].spent.usage.prompt_tokens == prompts


def test_a_run_of_another_version_is_refused(data: Manifest, tmp_path: Path) -> None:
    output = tmp_path / "run"
    evaluate("baseline/empty", data=str(data.folder), output=output)
    journal = output / "predictions.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"sample_id"', b'"new_field":1,"sample_id"', 1))
    with pytest.raises(StoreError, match=r"predictions\.jsonl:1: written by another version"):
        evaluate("baseline/empty", data=str(data.folder), output=output)


def test_results_are_never_stale(data: Manifest, tmp_path: Path) -> None:
    """A session that is stopped leaves no results of an earlier, smaller run."""
    output = tmp_path / "run"
    with ScriptedServer(good) as server:
        evaluate(**options(server, output, data.folder, limit="1"))
        stop = Reply(status=401, error={"message": "bad key"})
        server.script = lambda call: stop
        with pytest.raises(AwbError):
            evaluate(**options(server, output, data.folder, limit="2"))
    assert load_run(output).results is None
    results = score_run(output).results
    assert results is not None and not results.complete
    assert results.judges[0].micro.coverage == 0.5
