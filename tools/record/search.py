"""Record the `search` trajectories: a real engine over pages of our own, an extractor, a note store.

In: `trajectories/search/*.yaml` (the sites of its corpus, pages known in full, calls of every turn) and
`corpus/*.yaml`. Out: `search_test.jsonl` and the search entry of `provenance.json`.
Run from the repository root: `python -m tools.record.search [--output DIR]`. Needs a Python whose SQLite
has FTS5; nothing else, no network. The engine is in `finder/engine.py`, the extractor in `finder/extract.py`.
"""

from __future__ import annotations

import json
import platform
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

from tools.record import common
from tools.record.finder import corpus, engine, extract
from tools.record.finder.corpus import CHINESE, Page, Site

DOMAIN = "search"
MAX_QUERIES = 4


class CallError(Exception):
    """A call that cannot be done; its text becomes the observation."""


class Tools:
    """The three tools of one agent; notes live as long as the object."""

    def __init__(self, pages: list[Page]) -> None:
        """Index `pages`; the notes are empty."""
        self._engine = engine.Engine(pages)
        self._pages = {corpus.address(page.url): page for page in pages}
        self._notes: dict[str, str] = {}

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The observation that a call brings; failures are answers."""
        tools: dict[str, Callable[..., str]] = {
            "web_search": self.web_search,
            "web_extractor": self.web_extractor,
            "dict_memory": self.dict_memory,
        }
        try:
            if name not in tools:
                raise CallError(f"unknown tool {name!r}, there are {', '.join(tools)}")
            return tools[name](arguments)
        except CallError as error:
            return f"Error: {error}"

    def web_search(self, arguments: dict[str, Any]) -> str:
        """Numbered blocks in a bare fence, on over all queries; a line for a query that finds nothing."""
        queries = arguments.get("queries")
        usable = isinstance(queries, list) and 0 < len(queries) <= MAX_QUERIES
        if not usable or not all(isinstance(query, str) and query.strip() for query in queries or []):
            raise CallError(f'web_search needs "queries", a list of 1 to {MAX_QUERIES} texts')
        blocks: list[str] = []
        number = 0
        for query in queries or []:
            results = self._engine.search(query)
            if not results:
                blocks.append(f"No results found for query: {query}")
            for result in results:
                number += 1
                blocks.append(
                    f"[{number}] {result.url}\nTitle: {result.title}\n"
                    f"Snippet: {result.snippet}\nDate: {result.date}"
                )
        return "```\n" + "\n\n".join(blocks) + "\n```"

    def web_extractor(self, arguments: dict[str, Any]) -> str:
        """What a page says on a goal; URL and goal are repeated as they were given."""
        url, goal = (text_argument("web_extractor", arguments, name) for name in ("url", "goal"))
        page = self._pages.get(corpus.address(url))
        if page is None:
            raise CallError(f"web_extractor could not read {url}: HTTP 404 Not Found")
        if page.status != "200 OK":
            raise CallError(f"web_extractor could not read {url}: HTTP {page.status}")
        found = extract.extract(page, goal)
        return (
            f"The useful information in {url} for user goal {goal} as follows: \n\n"
            f"Evidence in page: \n{found.evidence}\n\nSummary: \n{found.summary}"
        )

    def dict_memory(self, arguments: dict[str, Any]) -> str:
        """Keep, show, list or delete a note."""
        operation = text_argument("dict_memory", arguments, "operation")
        if operation == "list":
            names = "".join(f"\n- {key} ({len(value)} characters)" for key, value in self._notes.items())
            return f"{count(len(self._notes))} in memory" + (f":{names}" if names else ", nothing to list.")
        if operation not in ("set", "get", "delete"):
            raise CallError(f"dict_memory has no operation {operation!r}, only set, get, list and delete")
        key = text_argument("dict_memory", arguments, "key")
        if operation == "set":
            value = text_argument("dict_memory", arguments, "value")
            word = "replaced" if key in self._notes else "stored"
            self._notes[key] = value
            return f"Note {key!r} {word} ({len(value)} characters). {count(len(self._notes))} in memory."
        if key not in self._notes:
            known = ", ".join(self._notes) or "none"
            raise CallError(f"dict_memory has no note {key!r}. Notes in memory: {known}")
        if operation == "get":
            return f"Note {key!r}:\n{self._notes[key]}"
        del self._notes[key]
        return f"Note {key!r} deleted. {count(len(self._notes))} in memory."

    def close(self) -> None:
        """Free the index."""
        self._engine.close()


def text_argument(tool: str, arguments: dict[str, Any], name: str) -> str:
    """A text among the arguments; missing or blank is a `CallError`."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise CallError(f'{tool} needs "{name}", a text')
    return value


def count(notes: int) -> str:
    """`1 note`, `2 notes`."""
    return f"{notes} note{'' if notes == 1 else 's'}"


def record(script: dict[str, Any]) -> common.Trajectory:
    """Play one script on a fresh index over its sites."""
    sites = corpus.load_sites(script["sites"])
    tools = Tools([page for site in sites for page in site.pages])
    try:
        turns = tuple(
            common.Turn(action_text(call), tools.call(call["tool"], call["arguments"]))
            for call in script["turns"]
        )
    finally:
        tools.close()
    return common.Trajectory(script["name"], script["task"], system_text(script, sites), turns)


def action_text(call: dict[str, Any]) -> str:
    """The call as JSON with name and arguments."""
    return json.dumps({"name": call["tool"], "arguments": call["arguments"]}, ensure_ascii=False)


def system_text(script: dict[str, Any], sites: list[Site]) -> str:
    """What the world model is told: tools, ranking, snippets, all pages by name, some in full."""
    name = "search_zh" if script["language"] == CHINESE else "search"
    return common.prompt_text(
        name,
        stop_words=" ".join(sorted(engine.STOP_WORDS)),
        stop_characters=" ".join(engine.STOP_CHARACTERS),
        catalogue="\n\n".join(catalogue(site) for site in sites),
        pages="\n\n".join(full_page(sites, path) for path in script["known"]),
        note=script.get("note", "").strip(),
    )


def catalogue(site: Site) -> str:
    """The pages of a site, one a line: path, title, date, and the status of one that cannot be read."""
    lines = [f"https://{site.host} ({site.name})"]
    for page in site.pages:
        refused = "" if page.status == "200 OK" else f" | HTTP {page.status}"
        lines.append(
            f"- {page.url.removeprefix(f'https://{site.host}')} | {page.title} | {page.date}{refused}"
        )
    return "\n".join(lines)


def full_page(sites: list[Site], path: str) -> str:
    """The text of the page whose URL, without escapes, ends in `path`, under its URL."""
    end = path.rstrip("/")
    (page,) = [page for site in sites for page in site.pages if corpus.address(page.url).endswith(end)]
    return f"=== {page.url}\n{page.text}"


def has_fts5() -> bool:
    """Can this Python's SQLite do the work?"""
    base = sqlite3.connect(":memory:")
    try:
        base.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
    except sqlite3.OperationalError:
        return False
    finally:
        base.close()
    return True


def provenance() -> dict[str, Any]:
    """What was used, and what of it is our own."""
    return {
        "kind": "real",
        "how": "scripted tool calls on a search engine over tools/record/corpus; tools/record/search.py",
        "programs": {
            "python": platform.python_version(),
            "sqlite": f"{engine.sqlite_version()} with FTS5 ({engine.TOKENIZER})",
        },
        "mapped": "zero-width spaces around Chinese characters, which make each a token, leave the snippets",
        "volatile": "nothing",
        "texts": "tasks, pages and actions: our own, the sites are invented; ranking (bm25) and snippets: of "
        "SQLite FTS5; evidence and summary of web_extractor: by rule (most different words of the goal), no "
        "language model; note store: our own implementation",
    }


def main(argv: list[str] | None = None) -> None:
    """The command."""
    if not has_fts5():
        sys.exit("tools.record.search: the SQLite of this Python has no FTS5; use a Python that has it")
    common.main(DOMAIN, record, provenance, argv)


if __name__ == "__main__":
    main()
