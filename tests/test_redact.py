"""What of the harness' own words becomes public: addresses and paths are replaced, all else stays (cases as data)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentworldbench.run import evaluate
from agentworldbench.run_record import RunRecord
from agentworldbench.submission.redact import Redactor, is_public

CASES: list[dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "cases/submission/redacted.yaml").read_text(encoding="utf-8")
)
HOSTS = ("gpu-7.cluster.internal", "fd00::1", "localhost")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    """A run whose session had the endpoints that the cases name."""
    run = evaluate(model="baseline/empty", limit="1", output=tmp_path_factory.mktemp("run") / "run")
    session = run.record.sessions[0].model_copy(
        update={
            "model_url": "http://gpu-7.cluster.internal:8000/v1",
            "judge_urls": {
                "a": "https://api.openai.com/v1",
                "b": "http://[fd00::1]:9/v1",
                "c": "http://localhost:4000/v1",
            },
        }
    )
    return run.record.model_copy(update={"sessions": (session,)})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_replaced(record: RunRecord, case: dict[str, str]) -> None:
    redactor = Redactor(record)
    assert redactor.text(case["text"]) == case["public"]
    assert (sum(redactor.counts.values()) > 0) == (case["text"] != case["public"])
    assert Redactor(record).text(case["public"]) == case["public"]


@given(st.text(max_size=60), st.sampled_from(HOSTS[:1]), st.integers(1, 65535))
def test_no_address_of_a_private_endpoint_is_left(record: RunRecord, text: str, host: str, port: int) -> None:
    public = Redactor(record).text(f"{text} http://{host}:{port}/v1 {text}")
    assert host not in public
    assert str(port) not in public or str(port) in text or port < 10


FRAGMENTS = (
    "http://", "https://", "gpu-7.cluster.internal", "fd00::1", "[fd00::1]", "localhost", "10.0.0.9", "api.openai.com",
    ":8000", "/v1", "/home/alice", "/mnt/x", "/", "//", " ", "'", "alice:pw@", "C:\\Users\\alice\\x", "hf", ".", "invalid",
)  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join))
def test_what_is_public_stays_as_it_is(record: RunRecord, text: str) -> None:
    """Replacing twice is replacing once: a bundle is a run that can be submitted again."""
    public = Redactor(record).text(text)
    assert Redactor(record).text(public) == public


def test_a_run_tells_names_and_no_places(record: RunRecord) -> None:
    selection = record.selection.model_copy(
        update={
            "data": "/home/alice/sets/mine",
            "tasks": ("/srv/tasks/own", "mcp"),
            "sample_id": ("mcp/x/1",),
        }
    )
    model = {**record.predict.model, "model": "hf//home/alice/ckpt"}
    private = record.model_copy(
        update={"selection": selection, "predict": record.predict.model_copy(update={"model": model})}
    )
    public = Redactor(private).run(private)
    assert (public.selection.data, public.selection.tasks) == ("mine", ("own", "mcp"))
    assert public.predict.model["model"] == "hf/ckpt"
    assert public.sessions[0].model_url == "http://endpoint-1.invalid/v1"
    assert public.sessions[0].judge_urls == {
        "a": "https://api.openai.com/v1",
        "b": "http://endpoint-2.invalid/v1",
        "c": "http://endpoint-3.invalid/v1",
    }
    text = public.model_dump_json()
    assert not [word for word in (*HOSTS, "alice", "/home", "/srv") if word in text]


def test_ids_of_samples_are_never_touched(record: RunRecord) -> None:
    odd = 'mcp/"/home/alice/x"/3'
    selection = record.selection.model_copy(update={"sample_id": (odd,)})
    public = Redactor(record).run(record.model_copy(update={"selection": selection}))
    assert public.selection.sample_id == (odd,)
    assert Redactor(record).value({"sample_id": odd, "note": odd}, {"sample_id"}) == {
        "sample_id": odd,
        "note": 'mcp/"x"/3',
    }


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("api.openai.com", True),
        ("openai.com", True),
        ("notopenai.com", False),
        ("openai.com.evil.example", False),
        ("mine.openai.azure.com", False),
        ("x1y2.us-east-1.aws.endpoints.huggingface.cloud", False),
        ("dashscope.aliyuncs.com", True),
        ("bucket.aliyuncs.com", False),
    ],
)
def test_public_hosts_are_those_of_everybody(host: str, public: bool) -> None:
    assert is_public(host) is public
