"""Record the `web` trajectories: browser calls through the Playwright MCP server, its answers out.

In: `trajectories/web/*.yaml`, each with a site, a start page, steps before the first turn, and the
calls of every turn, elements named by role and name (`web_snapshot`). Out: `web_test.jsonl` and the
web entry of `provenance.json`. The sites are our own (`sites/`), a fresh one for each
trajectory, in a fresh profile of Debian's Chromium.
Run from the repository root: `python -m tools.record.web [--output DIR]`, after `setup/web.sh`.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tools.record import common
from tools.record.browser.client import ACTION_SECONDS, CHROMIUM, SERVER, Browser, missing
from tools.record.browser.snapshot import action_text, snapshot_of, with_refs
from tools.record.sites.evening_school import EveningSchool
from tools.record.sites.lending_desk import LendingDesk
from tools.record.sites.seed_shop import SeedShop
from tools.record.sites.server import Site, serving

DOMAIN = "web"
SITES: dict[str, Callable[[], Site]] = {
    "courses": EveningSchool,
    "lending": LendingDesk,
    "seeds": SeedShop,
}


class Agent:
    """A scripted agent in a browser; it knows the last snapshot that an answer showed."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.snapshot = ""

    def act(self, step: dict[str, dict[str, Any] | None]) -> common.Turn:
        """Do one step of a script, `{tool: arguments}`."""
        ((tool, arguments),) = step.items()
        call = with_refs(arguments or {}, self.snapshot)
        observation = self.browser.call(tool, call)
        self.snapshot = snapshot_of(observation) or self.snapshot
        return common.Turn(action_text(tool, call), observation)


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script on a fresh site in a fresh browser."""
    site = SITES[script["site"]]()
    with serving(site) as port, Browser(site.host, port) as browser:
        agent = Agent(browser)
        start = {"browser_navigate": {"url": f"http://{site.host}{script['start']}"}}
        for step in [start, *script.get("before", [])]:
            agent.act(step)
        state = agent.act({"browser_snapshot": None}).observation
        turns = tuple(agent.act(step) for step in script["turns"])
    return common.Trajectory(script["name"], script["task"], system_text(script), turns, state=state)


def system_text(script: dict[str, Any]) -> str:
    """What the world model is told: the tools, how they answer, and the site."""
    return common.prompt_text(
        DOMAIN,
        seconds=str(ACTION_SECONDS),
        site=common.prompt_text(f"{DOMAIN}_{script['site']}"),
        note=script.get("note", "").strip(),
    )


def provenance() -> dict[str, Any]:
    """What was used, and what of the text was changed on the way into the data."""
    server = json.loads((SERVER / "package.json").read_text(encoding="utf-8"))
    return {
        "kind": "real",
        "how": "scripted calls of the Playwright MCP server, which drives a headless Chromium on small sites "
        "of our own; tools/record/web.py",
        "programs": {
            "python": platform.python_version(),
            "node": version("node"),
            "@playwright/mcp": server["version"],
            "playwright": server["dependencies"]["playwright"],
            "chromium": version(str(CHROMIUM)),
        },
        "mapped": "Chromium resolves the host name of a site to the loopback port where it is served; "
        "blanks at the end of an observation cut",
        "volatile": "times in the names of console logs; how often a click on a covered element was tried again",
        "texts": "tasks, sites and actions: our own; outputs: of the programs run on them",
    }


def version(program: str) -> str:
    """What a program prints about its version."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    if reason := missing():
        sys.exit(f"tools.record.web: {reason}")
    common.main(DOMAIN, record, provenance)
