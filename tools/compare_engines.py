"""One model by three ways: `hf/` and `vllm/` in this process, and a vLLM server, greedy in float32.

In: the folder of a model. Out: a Markdown table of how many answers are equal, pair by pair, and for
each pair the first difference with the gap between the two best tokens there (a gap of some 1e-4 is a
near tie, which any other order of summation may flip; a large one is a fault of a backend). Each way
is a run of `awb` in a process of its own, on the same samples of the bundled data; the same command
takes up the runs that are there already. By hand only: it needs `agentworldbench[hf]` and `[vllm]` in
one environment, and many minutes on a CPU (docs/engines.md).
Run as `python tools/compare_engines.py FOLDER [--samples 20] [--max-tokens 96] [--output DIR]`.
Exit code: 0 when every answer was made, whatever the texts; 1 when a run or the server failed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from agentworldbench.config import make_config
from agentworldbench.plan import open_samples
from agentworldbench.prompts import predict_messages
from agentworldbench.records import Message, Prediction
from agentworldbench.run import load_run

SERVED: Final = "compared"
CONTEXT: Final = 4096
START_SECONDS: Final = 300.0
DOMAINS: Final = ("terminal", "swe")
ENVIRONMENT: Final = {
    "HF_HUB_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_PROXY": "127.0.0.1",
    "VLLM_NO_USAGE_STATS": "1",
    # Read by vLLM's CPU build alone: GiB of its cache, and no binding to cores that others use.
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}


@dataclass(frozen=True)
class Difference:
    """Where two texts part, and what stands there."""

    sample: str
    position: int
    first: str
    second: str


def command(model: str, options: argparse.Namespace, output: Path) -> list[str]:
    """`awb run` on the samples that are compared."""
    words = [sys.executable, "-m", "agentworldbench", "run", "--model", model, "--data", "mini"]
    words += ["--tasks", ",".join(DOMAINS), "--limit", f"1-{options.samples // len(DOMAINS)}"]
    words += ["--temperature", "0", "--max-tokens", str(options.max_tokens), "--min-output", "16"]
    words += ["--max-context", str(CONTEXT), "--output", str(output), "--display", "none"]
    return words


def ask(model: str, options: argparse.Namespace, name: str, *more: str) -> Mapping[str, Prediction]:
    """Run one way and return its predictions by sample id. Raises SystemExit when the run failed."""
    output = options.output / name
    begun = time.monotonic()
    done = subprocess.run(
        [*command(model, options, output), *more], env=os.environ | ENVIRONMENT, stdout=subprocess.DEVNULL
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{name}: awb run ended with {done.returncode}")
    made = {prediction.sample_id: prediction for prediction in load_run(output).predictions()}
    print(f"{name}: {len(made)} answers in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return made


@contextmanager
def server(folder: Path, log: Path) -> Iterator[str]:
    """A vLLM server of the model on a free loopback port; its base URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    words += ["--served-model-name", SERVED, "--dtype", "float32", "--max-model-len", str(CONTEXT)]
    words += ["--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(words, env=os.environ | ENVIRONMENT, stdout=file, stderr=file)
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(60)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers. Raises SystemExit when it does not."""
    begun = time.monotonic()
    while time.monotonic() - begun < START_SECONDS and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    raise SystemExit(f"the vLLM server did not start; see {log}")


def differences(one: Mapping[str, Prediction], other: Mapping[str, Prediction]) -> list[Difference]:
    """Samples whose texts differ."""
    found = []
    for sample in one:
        first, second = one[sample].text or "", other[sample].text or ""
        if first != second:
            parts = (
                index for index, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]
            )
            same = next(parts, min(len(first), len(second)))
            found.append(Difference(sample, same, first[same : same + 30], second[same : same + 30]))
    return found


class Gaps:
    """How near the two best tokens are where texts part, by transformers in float32."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        model = AutoModelForCausalLM.from_pretrained(self._folder, dtype="float32")
        return AutoTokenizer.from_pretrained(self._folder), model

    @cached_property
    def _messages(self) -> Mapping[str, Sequence[Message]]:
        samples = open_samples(make_config({"data": "mini", "tasks": DOMAINS}))
        return {ref.id: predict_messages(samples.dataset.load(ref)) for ref in samples.refs}

    def at(self, found: Difference, text: str) -> float:
        """Difference of the two best scores (logits) at the token that holds the position.

        `text` is encoded again, which nearly always gives the tokens that were generated.
        """
        import torch

        tokenizer, model = self._loaded
        plain = [{"role": one.role, "content": one.content} for one in self._messages[found.sample]]
        prompt = tokenizer.apply_chat_template(plain, add_generation_prompt=True, return_dict=True)
        tokens = tokenizer(text, add_special_tokens=False)["input_ids"]
        before = 0
        while len(tokenizer.decode(tokens[: before + 1])) <= found.position and before < len(tokens):
            before += 1
        with torch.inference_mode():
            scores = model(torch.tensor([prompt["input_ids"] + tokens[:before]])).logits[0, -1]
        best = torch.topk(scores, 2).values
        return float(best[0] - best[1])


def table(ways: Mapping[str, Mapping[str, Prediction]], gaps: Gaps) -> list[str]:
    """Markdown: one row a pair."""
    rows = [
        "| pair | equal texts | equal prompt tokens | equal finish | first difference | gap there |",
        "|---|---|---|---|---|---|",
    ]
    for left, right in combinations(ways, 2):
        one, other = ways[left], ways[right]
        found = differences(one, other)
        shown, gap = "–", "–"
        if found:
            first = found[0]
            shown = f"{first.sample}, character {first.position}: {first.first!r} / {first.second!r}"
            gap = ", ".join(f"{gaps.at(each, one[each.sample].text or ''):.1e}" for each in found)
        prompts = count_equal(one, other, lambda each: each.usage.prompt_tokens)
        ends = count_equal(one, other, lambda each: each.finish_reason)
        rows.append(
            f"| {left}, {right} | {len(one) - len(found)} of {len(one)} | {prompts} | {ends} | "
            f"{shown.replace('|', chr(92) + '|')} | {gap} |"
        )
    return rows


def count_equal(one: Mapping[str, Prediction], other: Mapping[str, Prediction], of: Any) -> int:
    """Samples on which two ways agree."""
    return sum(of(one[sample]) == of(other[sample]) for sample in one)


def versions() -> str:
    """What was compared."""
    names = ("torch", "transformers", "vllm", "vllm-cpu", "lm-eval")
    found = []
    for name in names:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join([*found, f"Python {platform.python_version()}"])


def main(words: Sequence[str] | None = None) -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--output", type=Path, default=Path(".demo/engines"))
    options = parser.parse_args(words)
    options.output.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    vllm_arguments = f"dtype=float32,max_model_len={CONTEXT},enforce_eager=true"
    ways = {
        "hf": ask(f"hf/{folder}", options, "hf", "-M", "dtype=float32"),
        "vllm": ask(f"vllm/{folder}", options, "vllm", "-M", vllm_arguments),
    }
    with server(folder, options.output / "server.log") as url:
        ways["vLLM server"] = ask(f"openai-api/{SERVED}", options, "server", "--base-url", url)
    ways["hf, one at a time"] = ask(
        f"hf/{folder}", options, "hf-alone", "-M", "dtype=float32", "--batch-size", "1"
    )
    print(f"{folder.name}, {options.samples} samples, at most {options.max_tokens} tokens; {versions()}\n")
    print("\n".join(table(ways, Gaps(folder))))
    made = sum(one.usage.completion_tokens or 0 for one in ways["hf"].values())
    print(f"\n{made} tokens in {len(ways['hf'])} answers of hf.")
    return 0 if all(one.text is not None for way in ways.values() for one in way.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
