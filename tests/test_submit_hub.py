"""Submitting to a hub: the files that arrive are the bundle, the scores are read by huggingface_hub, refusals are one line.

The hub is played on the loopback; `huggingface_hub` reads its settings at import, so commands run in processes of their own.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from huggingface_hub import HfApi, eval_result_entries_to_yaml, parse_eval_result_entries
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from agentworldbench.errors import ConfigError, CredentialsError, DataError, EndpointError
from agentworldbench.records import OFFICIAL_DOMAINS
from agentworldbench.run import evaluate
from agentworldbench.submission.hub_upload import HubTarget, eval_results
from agentworldbench.submission.manifest import CANARY
from agentworldbench.submission.pack import Prepared
from agentworldbench.submission.unpack import unpack
from tests.helpers.awb_command import run_awb_in_turn
from tests.helpers.bundles import make_bundle
from tests.helpers.official_folder import make_official_folder
from tests.helpers.scripted_server import ScriptedServer
from tests.helpers.upload_hub import TOKEN, UploadHub
from tests.helpers.whole_runs import good, options

CLIENT: Any = sys.modules[HfHubHTTPError.__bases__[0].__module__.partition(".")[0]]
"""The HTTP client of huggingface_hub, which is another one in each major version."""
REPOSITORY, REVISION = "Qwen/AgentWorldBench", "6b8d28437042434dcdd168434227ca0de408c5ba"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run over seven domains, whose data are said to come from the hub."""
    folder = tmp_path_factory.mktemp("hub")
    make_official_folder(folder / "data", trajectories=2, turns=3, observation_chars=80, special=False)
    with pytest.MonkeyPatch.context() as patch, ScriptedServer(good) as server:
        patch.setenv("AWB_API_KEY", "EMPTY")
        evaluate(**options(server, folder / "run", folder / "data"))
    for name in ("run.json", "results.json"):
        path = folder / "run" / name
        value = json.loads(path.read_text())
        value["predict"]["data"] |= {"name": "official", "repository": REPOSITORY, "revision": REVISION}
        path.write_text(json.dumps(value))
    return folder / "run"


@pytest.fixture(scope="module")
def prepared(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return make_bundle(run, tmp_path_factory.mktemp("hub") / "bundle", data=str(run.parent / "data"))


def test_scores_are_what_the_hub_reads(prepared: Prepared) -> None:
    entries = eval_results(prepared, None, "https://hub.example/datasets/a/b")
    parsed = parse_eval_result_entries(entries)
    assert eval_result_entries_to_yaml(parsed) == entries
    assert [entry.task_id for entry in parsed] == ["overall", *OFFICIAL_DOMAINS]
    assert {(entry.dataset_id, entry.dataset_revision) for entry in parsed} == {(REPOSITORY, REVISION)}
    (judge,) = prepared.results.judges
    overall = judge.macro_floor["total"]
    assert overall is not None and parsed[0].value == round(overall, 2)
    samples = judge.micro.samples
    (half,) = [one.half for one in [judge.macro_intervals.floor] if one is not None]
    assert parsed[0].notes == (
        f"judge=judge x1 T0.0; macro; protocol builtin, floor; coverage {samples}/{samples}; 95% CI ±{half:.2f}; "
        f"awb {prepared.manifest.harness.version}; bundle {prepared.sha256[:12]}"
    )
    assert parsed[1].notes and "macro" not in parsed[1].notes
    assert [entry.value for entry in parsed[1:]] == [
        round(judge.domains[name].floor["total"] or 0, 2) for name in OFFICIAL_DOMAINS
    ]


def test_only_whole_runs_on_a_data_set_of_the_hub_have_such_scores(prepared: Prepared) -> None:
    manifest, results = prepared.manifest, prepared.results
    local = manifest.model_copy(update={"data": manifest.data.model_copy(update={"repository": None})})
    with pytest.raises(DataError, match="no data set of the hub"):
        eval_results(Prepared(**{**vars(prepared), "manifest": local}), None, "https://x")
    more = {name: count + 1 for name, count in results.data_samples.items()}
    chosen = results.selection.model_copy(update={"limit": "1"})
    part = results.model_copy(update={"selection": chosen, "data_samples": more})
    with pytest.raises(DataError, match="a whole run; this one is a subset"):
        eval_results(Prepared(**{**vars(prepared), "results": part}), None, "https://x")
    unjudged = results.model_copy(update={"judges": ()})
    with pytest.raises(DataError, match="the run has no judge"):
        eval_results(Prepared(**{**vars(prepared), "results": unjudged}), None, "https://x")
    with pytest.raises(ConfigError, match=r"name the judge .*openai-api/judge"):
        eval_results(prepared, "other", "https://x")


@pytest.mark.parametrize("name", ["mine", "a/b/c", "https://hub/a/b", "a/ b", "", "a/.."])
def test_names_of_repositories(name: str) -> None:
    with pytest.raises(ConfigError, match="expected OWNER/NAME"):
        HubTarget(name).check()


def answered(status: int) -> Exception:
    request = CLIENT.Request("POST", "https://hub.example/api")
    return HfHubHTTPError("no", response=CLIENT.Response(status, request=request))


@pytest.mark.parametrize(
    ("problem", "kind", "said"),
    [
        (
            CLIENT.ConnectError("connection refused"),
            EndpointError,
            "connection refused; run the same command again",
        ),
        (KeyError("url"), EndpointError, "what answered is no hub"),
        (RuntimeError("Error while uploading 'x'"), EndpointError, "Error while uploading 'x'; run the same"),
        (answered(500), EndpointError, "answered HTTP 500"),
        (
            ConnectionError("Request error: HTTP status client error (403 Forbidden), domain: x"),
            CredentialsError,
            "hf auth login",
        ),
        (
            RuntimeError("Error: HTTP status server error (503 Service Unavailable)"),
            EndpointError,
            "answered HTTP 503",
        ),
        (answered(403), CredentialsError, "hf auth login"),
        (OfflineModeIsEnabled("offline"), EndpointError, "HF_HUB_OFFLINE is set; nothing was uploaded"),
    ],
)
def test_what_a_hub_can_answer(
    prepared: Prepared, monkeypatch: pytest.MonkeyPatch, problem: Exception, kind: type[Exception], said: str
) -> None:
    def refuse(*words: object, **more: object) -> None:
        raise problem

    monkeypatch.setattr(HfApi, "create_repo", refuse)
    with pytest.raises(kind, match=re.escape(said)) as told:
        HubTarget("me/run").deliver(prepared)
    assert str(told.value).startswith("me/run: ")


@pytest.mark.slow
def test_uploads(run: Path, prepared: Prepared, tmp_path: Path) -> None:
    data = ("--data", run.parent / "data")
    to_hub = ("submit", run, *data, "--to", "hub", "--repository", "me/awb-run")
    scored = (*to_hub, "--model-repository", "Qwen/Qwen3-8B", "--create-pr", "--submitter", "Ann")
    with UploadHub(existing=("models/Qwen/Qwen3-8B",)) as hub:
        unasked, plain, dry, pull, missing = run_awb_in_turn(
            to_hub, (*to_hub, "--yes"), (*scored, "--dry-run"), (*scored, "--yes"),
            (*to_hub, "--yes", "--model-repository", "Qwen/None"), cwd=tmp_path, env=hub.environment(),
        )  # fmt: skip
        (refused,) = run_awb_in_turn((*to_hub, "--yes"), cwd=tmp_path, env=hub.environment("hf" + "_other"))
        strangers, endpoint = hub.kept.strangers, hub.endpoint

    assert (
        unasked.code == 2
        and unasked.complaint == "awb: nobody can be asked here; look at the preview, then give --yes"
    )
    assert (plain.code, pull.code, plain.err, pull.err) == (0, 0, "", "")
    kept = hub.kept
    assert [(one["type"], one["organization"], one["name"], one.get("private")) for one in kept.created] == [
        ("dataset", "me", "awb-run", None if kept.created[0].get("visibility") else False)
    ]
    bundle, again, scores, *rest = kept.commits
    assert [(one.repository, one.pull_request) for one in (bundle, again, scores)] == [
        ("datasets/me/awb-run", False), ("datasets/me/awb-run", False), ("models/Qwen/Qwen3-8B", True),
    ]  # fmt: skip
    folder = f"bundle-{prepared.sha256[:12]}/"
    assert {name.removeprefix(folder) for name in bundle.files} == {
        "README.md",
        "manifest.json",
        *prepared.manifest.files,
    }
    fresh = tmp_path / "fetched"
    fresh.mkdir()
    for name, content in bundle.files.items():
        if name != "README.md":
            (fresh / name.removeprefix(folder)).write_bytes(content)
    assert unpack(fresh, tmp_path / "unpacked") == prepared.manifest
    assert list(kept.stored.values()) == [bundle.files[f"{folder}predictions.jsonl"]]
    card = bundle.files["README.md"].decode()
    assert yaml.safe_load(card.split("---\n")[1])["viewer"] is False
    assert CANARY in card and prepared.sha256 in card and "hf download me/awb-run" in card

    (path,) = scores.files
    assert path == f".eval_results/agentworldbench-builtin-{prepared.manifest.judges[0].digest[:8]}.yaml"
    text = scores.files[path].decode()
    (source,) = {entry.source_url for entry in parse_eval_result_entries(yaml.safe_load(text))}
    assert source == f"{endpoint}/datasets/me/awb-run"
    assert all(line in pull.out for line in text.splitlines())
    assert dry.out == pull.out[: len(dry.out)]
    assert pull.out[len(dry.out) :] == (
        f"me/awb-run: {endpoint}/datasets/me/awb-run/commit/{2:040x}\n"
        f"Qwen/Qwen3-8B: {endpoint}/models/Qwen/Qwen3-8B/discussions/3\n"
    )
    assert (missing.code, len(rest)) == (2, 1)
    assert "Qwen/None: the hub has no such repository" in missing.complaint
    assert refused.code == 2 and strangers > 0 and "hf auth login" in refused.complaint
    for done in (plain, pull, missing, refused):
        assert TOKEN not in done.out + done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("xet", "complaint"),
    [("open", ""), ("closed", "hf auth login"), ("broken", "what is there already stays")],
)
def test_uploads_in_chunks(
    run: Path, prepared: Prepared, tmp_path: Path, xet: Literal["open", "closed", "broken"], complaint: str
) -> None:
    """What huggingface_hub does by itself where hf_xet is installed, as it is by default: large files go in chunks."""
    words = (
        "submit",
        run,
        "--data",
        run.parent / "data",
        "--to",
        "hub",
        "--repository",
        "me/awb-run",
        "--yes",
    )
    large = ("predictions.jsonl", "verdicts.jsonl")
    with UploadHub(xet=xet, large=large) as hub:
        env = hub.environment() | {"HF_XET_CACHE": str(tmp_path / "xet")}
        (done,) = run_awb_in_turn(words, cwd=tmp_path, env=env)
    if complaint:
        assert (done.code, hub.kept.commits, complaint in done.complaint) == (2, [], True), done.err
        return
    assert (done.code, done.err) == (0, "")
    (commit,) = hub.kept.commits
    folder = f"bundle-{prepared.sha256[:12]}/"
    marks = prepared.manifest.files
    assert hub.kept.hashes == {folder + name: marks[name].sha256 for name in large}
    assert {name.removeprefix(folder) for name in commit.files} == {
        "README.md",
        "manifest.json",
        *marks,
    } - set(large)
    assert sum(hub.kept.blocks.values()) > 0 and hub.kept.stored == {}
