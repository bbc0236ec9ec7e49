"""The speed of the engine beside other harnesses, in one run: the same prompts, the same server, 64 at once.

A loopback server in its own process answers every request 200 ms after it came. Each client is a process of
its own: `awb run` with its journal (`openai-api`, and through LiteLLM), lm-evaluation-harness, Inspect AI, a
sequential loop, and the floor: a bare aiohttp loop that keeps nothing. Measured is the time from the first
request to the last reply, as the server saw it, and the CPU that the client used between the two; what comes
before and after stands apart. Clients take turns, the first of each round another one; medians count, and the
times over the floor are those of one round. Prints Markdown tables and ends with an error where awb is slower
than it is meant to be. From the repository root: `python -m benchmarks.engine` (ten minutes). `--install` makes
the environments of the other harnesses in `.demo/`; what is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentworldbench.dataset import open_dataset
from agentworldbench.prompts import predict_messages
from agentworldbench.sources import resolve_source
from benchmarks._rows import prompts_of

LATENCY: Final = 0.2
CONNECTIONS: Final = 64
SEQUENTIAL: Final = 100
"""Requests of the sequential loop; its time is scaled up."""
SIZES: Final = {"1 KB": (2000, 1_000), "140 KB": (500, 140_000)}
"""Requests, and characters of each prompt."""
SLOWEST: Final = {"1 KB": 1.10, "140 KB": 1.30}
BEHIND: Final = 1.03
FASTER: Final = 50
"""awb `openai-api` may take so many times the floor, and the best other harness; the sequential loop takes so
many times what awb does."""
HARNESSES: Final = {"lm-eval": ("lm-eval[api]", "lm_eval"), "inspect": ("inspect-ai", "inspect")}
"""What to install, and the program that it brings."""
WHERE: Final = Path(".demo/harnesses")
AWB: Final = "awb `openai-api`"
LITELLM: Final = "awb through LiteLLM"
FLOOR: Final = "floor: aiohttp, keeps nothing"
LOOP: Final = "sequential loop, scaled up"
OTHERS: Final = {"lm-eval": "lm-evaluation-harness", "inspect": "Inspect AI"}

Command = Callable[[str, Path], list[str]]
"""From the server's URL and a fresh folder to the words of a client's command line."""


@dataclass(frozen=True)
class Prompts:
    """One size: the rows that awb reads, and files with the same messages for the others."""

    name: str
    requests: int
    rows: Path
    messages: Path
    joined: Path

    @classmethod
    def make(cls, folder: Path, name: str, requests: int, chars: int) -> Prompts:
        """Write rows and files below `folder`."""
        made = cls(name, requests, folder / "rows", folder / "messages.jsonl", folder / "joined.jsonl")
        prompts_of(made.rows, requests, chars)
        source = resolve_source(str(made.rows))
        dataset = open_dataset(source.files, source.tasks)
        with made.messages.open("w") as messages, made.joined.open("w") as joined:
            for ref in dataset.refs:
                asked = [one.model_dump() for one in predict_messages(dataset.load(ref))]
                messages.write(json.dumps({"messages": asked}) + "\n")
                text = "\n\n".join(one["content"] for one in asked)
                joined.write(json.dumps({"prompt": text, "target": ""}) + "\n")
        return made


@dataclass(frozen=True)
class Measured:
    """Of one client: seconds from first request to last reply, CPU between, both of the whole process."""

    seconds: float
    cpu: float | None
    whole: float
    whole_cpu: float


@contextmanager
def server(latency: float = LATENCY) -> Iterator[str]:
    """The loopback server as a process; yields its base URL."""
    command = [sys.executable, str(Path(__file__).with_name("_server.py")), str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def measure(command: Sequence[str], requests: int, url: str, scratch: Path) -> Measured:
    """Run a client to its end. Raises SystemExit with its output when it fails or asks another number."""
    begun = time.perf_counter()
    with (scratch / "output").open("w+b") as output:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env=_environment(url),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        _tell(url, "begin", f"?pid={process.pid}&requests={requests}")
        _, status, usage = os.wait4(process.pid, 0)
        whole = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        seen = json.loads(_tell(url, "measured"))
        if process.returncode or seen.get("replies") != requests or seen.get("requests") != requests:
            output.seek(0)
            told = output.read().decode(errors="replace")[-3000:]
            sys.exit(f"{' '.join(command)} ended with {process.returncode}, {seen}:\n{told}")
    cpu = None if seen.get("cpu_last") is None else seen["cpu_last"] - seen["cpu_first"]
    return Measured(seen["last"] - seen["first"], cpu, whole, usage.ru_utime + usage.ru_stime)


def _tell(url: str, what: str, query: str = "") -> bytes:
    address = f"{url.removesuffix('/v1')}/{what}{query}"
    method = "POST" if query else "GET"
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        urllib.request.Request(address, method=method)
    ) as reply:
        return bytes(reply.read())


def _environment(url: str) -> dict[str, str]:
    """This process's, without proxies and keys; the project can be imported from any folder."""
    kept = {
        name: value for name, value in os.environ.items() if not name.lower().endswith(("_proxy", "_key"))
    }
    ours = {"OPENAI_API_KEY": "none", "BENCH_API_KEY": "none", "BENCH_BASE_URL": url, "HF_HUB_OFFLINE": "1"}
    ours |= {"PYTHONPATH": str(Path.cwd()), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return kept | ours


def clients(prompts: Prompts, others: Mapping[str, Path], quick: bool) -> dict[str, Command]:
    """Every client's command by its name in the table; `quick`: without those that take long."""
    awb = [sys.executable, "-m", "agentworldbench", "run", "--no-judge", "--data", str(prompts.rows)]
    awb += ["--max-connections", str(CONNECTIONS), "--output", "run"]
    loops = [sys.executable, "-m", "benchmarks._loops"]
    made: dict[str, Command] = {
        AWB: lambda url, scratch: [*awb, "--model", "openai-api/bench", "--base-url", url],
        LITELLM: lambda url, scratch: [*awb, "--model", "openai/bench", "--base-url", url],
        FLOOR: lambda url, scratch: [*loops, "floor", url, str(prompts.messages), str(CONNECTIONS)],
    }
    if "lm-eval" in others:
        made[OTHERS["lm-eval"]] = lambda url, scratch: _lm_eval(others["lm-eval"], prompts, url, scratch)
    if quick:
        del made[LITELLM]
    elif "inspect" in others:
        made[OTHERS["inspect"]] = lambda url, scratch: _inspect(others["inspect"], prompts, scratch)
    return made


def _lm_eval(program: Path, prompts: Prompts, url: str, scratch: Path) -> list[str]:
    """lm-evaluation-harness sends one user message, so the same text in one piece."""
    task = f"""task: bench
dataset_path: json
dataset_kwargs: {{data_files: {{test: {prompts.joined}}}}}
test_split: test
output_type: generate_until
doc_to_text: prompt
doc_to_target: target
generation_kwargs: {{until: [], max_gen_toks: 32768, temperature: 0.6, do_sample: true}}
metric_list: [{{metric: bypass, aggregation: bypass, higher_is_better: true}}]
"""
    (scratch / "bench.yaml").write_text(task)
    arguments = f"model=bench,base_url={url}/chat/completions,num_concurrent={CONNECTIONS}"
    return [
        *(
            str(program),
            "--model",
            "local-chat-completions",
            "--model_args",
            f"{arguments},max_length=262144",
        ),
        *(
            "--tasks",
            "bench",
            "--include_path",
            ".",
            "--apply_chat_template",
            "--log_samples",
            "--output_path",
            "results",
        ),
    ]


def _inspect(program: Path, prompts: Prompts, scratch: Path) -> list[str]:
    """Inspect AI, whose task files must lie in the working directory."""
    shutil.copy(Path(__file__).with_name("_inspect_task.py"), scratch / "bench.py")
    return [
        *(str(program), "eval", "bench.py", "--model", "openai-api/bench/bench", "--display", "plain"),
        *("-T", f"file={prompts.messages}", "--max-connections", str(CONNECTIONS)),
    ]


def sequential(prompts: Prompts, url: str, scratch: Path) -> Measured:
    """The loop over the first rows, scaled up to all of them."""
    few = scratch / "few.jsonl"
    with prompts.messages.open() as lines, few.open("w") as some:
        some.writelines(line for _, line in zip(range(SEQUENTIAL), lines, strict=False))
    command = [sys.executable, "-m", "benchmarks._loops", "sequential", url, str(few), "1"]
    one = measure(command, SEQUENTIAL, url, scratch)
    scale = prompts.requests / SEQUENTIAL
    return Measured(
        one.seconds * scale, one.cpu and one.cpu * scale, one.whole * scale, one.whole_cpu * scale
    )


def rounds(
    prompts: Prompts, commands: Mapping[str, Command], url: str, repeats: int
) -> dict[str, list[Measured]]:
    """Every client `repeats` times, in turns; the sequential loop once."""
    names = list(commands)
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for number in range(repeats):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            with tempfile.TemporaryDirectory() as folder:
                scratch = Path(folder)
                one = measure(commands[name](url, scratch), prompts.requests, url, scratch)
            found[name].append(one)
            print(
                f"  {prompts.name}, round {number + 1}, {name}: {one.seconds:.2f} s",
                file=sys.stderr,
                flush=True,
            )
    with tempfile.TemporaryDirectory() as folder:
        found[LOOP] = [sequential(prompts, url, Path(folder))]
    return found


def table(prompts: Prompts, found: Mapping[str, list[Measured]]) -> Iterator[str]:
    """The measurements of one size as Markdown."""
    yield "| client | repeats | first request to last reply, s | × floor | CPU per request, ms | whole process, s | its CPU, s |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for name, some in found.items():
        cpus = [one.cpu for one in some if one.cpu is not None]
        cpu = f"{statistics.median(cpus) / prompts.requests * 1000:.2f}" if cpus else "–"
        whole, whole_cpu = (
            statistics.median(getattr(one, f) for one in some) for f in ("whole", "whole_cpu")
        )
        seconds = [one.seconds for one in some]
        span = f" ({min(seconds):.2f}–{max(seconds):.2f})" if len(seconds) > 1 else ""
        yield (
            f"| {name} | {len(some)} | {statistics.median(seconds):.2f}{span} | {over(found, name, FLOOR):.2f} "
            f"| {cpu} | {whole:.1f} | {whole_cpu:.1f} |"
        )


def over(found: Mapping[str, list[Measured]], name: str, other: str) -> float:
    """How many times as long as `other` a client took: the median over rounds."""
    pairs = zip(found[name], found[other], strict=False)
    return statistics.median(one.seconds / base.seconds for one, base in pairs)


def misses(prompts: Prompts, found: Mapping[str, list[Measured]]) -> Iterator[str]:
    """What awb was meant to reach and did not."""
    ratio = over(found, AWB, FLOOR)
    if ratio > SLOWEST[prompts.name]:
        yield f"{prompts.name}: {ratio:.2f} times the floor, meant {SLOWEST[prompts.name]}"
    others = {name: over(found, AWB, name) for name in OTHERS.values() if name in found}
    for name, ratio in others.items():
        if ratio > BEHIND:
            yield f"{prompts.name}: {ratio:.2f} times {name}, meant {BEHIND}"
    faster = found[LOOP][0].seconds / statistics.median(one.seconds for one in found[AWB])
    if faster < FASTER:
        yield f"{prompts.name}: {faster:.1f} times as fast as the sequential loop, meant {FASTER}"


def installed(given: Mapping[str, Path | None], install: bool) -> dict[str, Path]:
    """The programs of the other harnesses that are there, made where asked for."""
    found: dict[str, Path] = {}
    for name, (package, program) in HARNESSES.items():
        folder = given[name] or WHERE / name
        path = folder.absolute() / "bin" / program
        if install and not path.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            subprocess.run(
                [str(folder / "bin/python"), "-m", "pip", "install", "-q", package, "openai"], check=True
            )
        if path.exists():
            found[name] = path
        else:
            print(f"{OTHERS[name]}: not installed ({path}); --install makes it", file=sys.stderr)
    return found


def versions(others: Mapping[str, Path]) -> str:
    """Of the harnesses and of what they ask with."""
    code = "import importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in %r), sep=', ')"
    packages = {"lm-eval": ("lm_eval", "aiohttp"), "inspect": ("inspect-ai", "openai")}
    told = [("awb", Path(sys.executable), ("openai", "aiohttp", "litellm"))]
    told += [(OTHERS[name], path.with_name("python"), packages[name]) for name, path in others.items()]
    lines = []
    for name, python, some in told:
        done = subprocess.run(
            [str(python), "-c", code % (some,)], capture_output=True, encoding="utf-8", check=True
        )
        lines.append(f"{name} with {done.stdout.strip()}")
    return "; ".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Speed of awb beside other harnesses on a loopback server.")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; medians count (default: 3)")
    parser.add_argument("--size", choices=tuple(SIZES), action="append", help="only this size")
    parser.add_argument("--quick", action="store_true", help="without the slow ones: LiteLLM and Inspect AI")
    parser.add_argument("--install", action="store_true", help=f"make the environments in {WHERE}")
    for name in HARNESSES:
        parser.add_argument(f"--{name}", type=Path, metavar="VENV", help="an environment that has it already")
    given: dict[str, Any] = vars(parser.parse_args())
    others = installed({name: given[name.replace("-", "_")] for name in HARNESSES}, given["install"])
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}; {versions(others)}"
    )
    missed: list[str] = []
    for name in given["size"] or SIZES:
        requests, chars = SIZES[name]
        folder = Path(tempfile.mkdtemp())
        try:
            prompts = Prompts.make(folder, name, requests, chars)
            with server() as url:
                found = rounds(prompts, clients(prompts, others, given["quick"]), url, given["repeats"])
        finally:
            shutil.rmtree(folder)
        print(f"\n{requests} requests of {name}, {CONNECTIONS} at once, {LATENCY * 1000:.0f} ms each\n")
        print("\n".join(table(prompts, found)), flush=True)
        missed += misses(prompts, found)
    print(f"\nLoad at the end: {os.getloadavg()[0]:.1f}.")
    if missed:
        sys.exit("slower than meant: " + "; ".join(missed))


if __name__ == "__main__":
    main()
