"""Observations in all the shapes that the readers of the metrics know, of a wanted size and of our own wording.

`observation(domain, rng, chars)` makes one; `screens(domain, rng, turns, chars)` those of a trajectory: lengths differ as
real ones do, from a short notice to 16 KB, and a screen follows from the one before: a part of its lines
changes, every few turns all of them. `damaged(text, rng)` is a prediction: some numbers, lines and words are wrong.
Equal random states give equal texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any, Final

from benchmarks._screens import SCREENS, Lines, clock, hexadecimal, name, until
from tests.helpers.observation_texts import CHINESE, FAILURE, WORDS, words
from tests.helpers.official_folder import GUI

LONGEST: Final = 16_000
SHORTEST: Final = 90
SPREAD: Final = 0.8
"""Of the logarithm of an observation's length."""
STAYS: Final = 4
"""Turns after which everything on a screen is another."""


def chinese(rng: Random, count: int) -> str:
    """`count` Chinese characters."""
    return "".join(rng.choice(CHINESE) for _ in range(count))


# --- mcp


def _envelope(text: str, structured: Any, failed: bool = False) -> str:
    part = {"type": "text", "text": text, "annotations": None, "meta": None}
    result = {"meta": None, "content": [part], "structuredContent": structured, "isError": failed}
    return json.dumps({"type": "text", "text": json.dumps(result), "annotations": None, "meta": None})


def _tree(rng: Random, chars: int) -> str:
    """A directory tree as JSON; the text stands twice in the envelope and is escaped twice."""
    folders = []
    for n in range(max(1, chars // 1_500)):
        files = [{"name": f"{m:03d}_{name(rng)}.csv", "type": "file"} for m in range(rng.randrange(3, 9))]
        folders.append({"name": f"{n}_{name(rng)}", "type": "directory", "children": files})
    text = json.dumps(folders, indent=2)
    return _envelope(text, {"content": text})


def _table(rng: Random, chars: int) -> str:
    """Rows of a query, as Python writes them."""
    rows = [
        {
            "id": n,
            "name": name(rng),
            "price": rng.randrange(10**5) / 100,
            "sold": rng.choice([True, False, None]),
        }
        for n in range(max(1, chars // 90))
    ]
    return _envelope(str(rows), None)


def _page(rng: Random, chars: int) -> str:
    """Objects of a web service: ids, times, nested properties."""
    results = [
        {
            "object": "page",
            "id": f"{hexadecimal(rng, 8)}-{hexadecimal(rng, 4)}-4{hexadecimal(rng, 3)}-8{hexadecimal(rng, 3)}-{hexadecimal(rng, 12)}",
            "created_time": f"2026-03-{rng.randrange(1, 29):02d}T{clock(rng)}.000Z",
            "archived": False,
            "properties": {"Name": {"type": "title", "title": [{"plain_text": words(rng, 3)}]}, "Count": rng.randrange(99)},
        }
        for _ in range(max(1, chars // 500))
    ]  # fmt: skip
    body = {"object": "list", "results": results, "next_cursor": None, "has_more": False}
    return _envelope(json.dumps(body), body if rng.random() < 0.5 else None)


def _file(rng: Random, chars: int) -> str:
    text = until(chars // 2, lambda n: f"{n},{name(rng)},{rng.randrange(9999)},{words(rng, 3)}")
    return _envelope(text, {"content": text})


def _failed(rng: Random, chars: int) -> str:
    if rng.random() < 0.5:
        return _envelope(f"ENOENT: no such file or directory, open '/srv/{name(rng)}.csv'", None, failed=True)
    return f"MCP error -32602: Invalid arguments for tool read_file: {name(rng)} is required"


# --- search


def _results(rng: Random, chars: int) -> str:
    def block(n: int) -> str:
        date = rng.choice(["N/A", f"Dec {rng.randrange(1, 29)}, 2025", "2024-11-30"])
        known = "" if rng.random() < 0.1 else f"/{rng.randrange(10**5)}.html"
        return (
            f"[{n + 1}] https://{rng.choice(WORDS)}.example{known}\nTitle: {chinese(rng, 9)} - {words(rng, 2)}\n"
            f"Snippet: {chinese(rng, 60)}{rng.randrange(99)}公里，{words(rng, 9)} ...\nDate: {date}"
        )

    return f"```\n{until(chars, block, chr(10) * 2)}\n```"


def _extraction(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        if n % 3 == 2:
            return f"{words(rng, 9).capitalize()} {rng.choice(WORDS).title()} Hall, {rng.randrange(3000):,} km, 2{rng.randrange(10)} May 2025."
        day = f"20{rng.randrange(10, 26)}年{rng.randrange(1, 13)}月{rng.randrange(1, 29)}日"
        return f"| {chinese(rng, 4)}线 | {day} | {rng.randrange(90)}.{rng.randrange(100)}公里 | {chinese(rng, 6)} |"

    asked = f"The useful information in https://{rng.choice(WORDS)}.example/ for user goal {chinese(rng, 12)}"
    summary = f"{chinese(rng, 40)}{rng.randrange(99)}站，{chinese(rng, 20)}。"
    return f"{asked} as follows: \n\nEvidence in page: \n{until(chars, line)}\n\nSummary: \n{summary}"


def _note(rng: Random, chars: int) -> str:
    return rng.choice(
        [f"Note '{rng.choice(WORDS)}' stored ({rng.randrange(99)} characters).", FAILURE, f"No results found for '{words(rng, 2)}'."]
    )  # fmt: skip


# --- terminal and swe


def _prompt(rng: Random) -> str:
    return f"root@{hexadecimal(rng, 11)}a:/srv#"


def _listing(rng: Random, chars: int) -> str:
    size = chars // 2
    lines = until(
        size,
        lambda n: (
            f"-rw-r--r-- 1 root root {rng.randrange(10**5):5d} Mar {n % 28 + 1:2d} 09:{n % 60:02d} {name(rng)}.txt"
        ),
    )
    return f"total {rng.randrange(900)}\n{lines}"


def _installing(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        version = f"{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(9)}"
        return (
            f"Collecting {name(rng)}=={version}\n  Downloading {name(rng)}-{version}-py3-none-any.whl ({rng.randrange(900)} kB)\n"
            f"     ━━━━━━━━━━ {rng.randrange(900)}/900 kB {rng.randrange(90)}.{n % 10} MB/s eta 0:00:0{n % 10}"
        )

    return until(chars, line)


def _log(rng: Random, chars: int) -> str:
    levels = ("INFO", "WARN", "ERROR")
    return until(
        chars,
        lambda n: (
            f"2026-03-11 {clock(rng)},{n % 1000:03d} {rng.choice(levels)} worker-{n % 7}: {words(rng, 5)} took {n % 90}.{n % 10} ms (pid {2000 + n})"
        ),
    )


def _tests(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        return f"tests/test_{name(rng)}.py::test_{n} {'FAILED' if n % 9 == 8 else 'PASSED'}"

    lines = until(chars, line)
    failed, passed = lines.count("FAILED"), lines.count("PASSED")
    return f"============ test session starts ============\n{lines}\n====== {failed} failed, {passed} passed in {rng.randrange(90)}.{rng.randrange(100):02d}s ======"


def _diff(rng: Random, chars: int) -> str:
    def hunk(n: int) -> str:
        path = f"src/{name(rng)}.py"
        return (
            f"diff --git a/{path} b/{path}\nindex {hexadecimal(rng, 7)}..{hexadecimal(rng, 7)} 100644\n--- a/{path}\n+++ b/{path}\n"
            f"@@ -{n + 1},4 +{n + 1},4 @@ def {name(rng)}(self):\n     {name(rng)} = {n}\n-    return {rng.randrange(99)}\n+    return {rng.randrange(99)}\n     # {words(rng, 4)}"
        )

    return until(chars, hunk)


def _source(rng: Random, chars: int, number: Callable[[int], str] = lambda n: "") -> str:
    return until(
        chars,
        lambda n: (
            f'{number(n)}{"    " * (n % 4)}{name(rng)} = {rng.choice(WORDS)}({rng.randrange(100)}, key="{rng.choice(WORDS)}")'
        ),
    )


def _screen(rng: Random, chars: int) -> str:
    """Several commands on one screen, the last of them not always finished."""
    prompt = _prompt(rng)
    outputs: tuple[tuple[str, Lines], ...] = (
        ("ls -la", _listing), ("pip install -r requirements.txt", _installing), ("tail -f app.log", _log),
        ("pytest -v", _tests), ("git diff", _diff), ("cat app.py", _source),
    )  # fmt: skip
    parts = []
    for _ in range(rng.randrange(1, 4)):
        command, output = rng.choice(outputs)
        parts.append(f"{prompt} {command}\n{output(rng, chars // 3)}")
    failure = f"{prompt} make {name(rng)}\nmake: *** No rule to make target '{name(rng)}'.  Stop."
    return "\n".join([*parts, *([failure] if rng.random() < 0.3 else []), rng.choice([prompt, prompt, ">"])])


def _envelope_of(output: Lines) -> Lines:
    def made(rng: Random, chars: int) -> str:
        code = rng.choice([0, 0, 0, 1, 2])
        text = output(rng, chars)
        if rng.random() < 0.5:
            return f"Output: {text}\nExit Code: {code}"
        return f"Command: {words(rng, 2)} -v\nDirectory: /srv/{rng.choice(WORDS)}\nOutput: {text}\nError: (none)\nExit Code: {code}"

    return made


def _numbered(rng: Random, chars: int) -> str:
    first = rng.randrange(1, 300)
    return _source(rng, chars, lambda n: f"{first + n:6d}→")


def _todo(rng: Random, chars: int) -> str:
    return rng.choice(
        [f"Todo list saved: {rng.randrange(5)} done, 1 in progress.", f"API Error: 422 {FAILURE}"]
    )


OBSERVATIONS: Final[dict[str, tuple[Lines, ...]]] = {
    "mcp": (_tree, _table, _page, _file, _failed),
    "search": (_results, _results, _extraction, _extraction, _note),
    "terminal": (_screen,),
    "swe": (_envelope_of(_tests), _envelope_of(_diff), _envelope_of(_log), _numbered, _numbered, _todo),
    **SCREENS,
}
"""The shapes of each domain, by how often they occur."""


def observation(domain: str, rng: Random, chars: int) -> str:
    """An observation of about `chars` characters on average, at most about `LONGEST`."""
    wanted = chars * rng.lognormvariate(-(SPREAD**2) / 2, SPREAD)
    return rng.choice(OBSERVATIONS[domain])(rng, round(min(LONGEST, max(SHORTEST, wanted))))[: 2 * LONGEST]


def screens(domain: str, rng: Random, turns: int, chars: int) -> list[str]:
    """Observations of a trajectory's turns; those of screens follow from one another."""
    found: list[str] = []
    shape = rng.choice(OBSERVATIONS[domain])
    for turn in range(turns):
        if domain not in GUI:
            found.append(observation(domain, rng, chars))
        elif turn % STAYS == 0:
            wanted = chars * rng.lognormvariate(-(SPREAD**2) / 2, SPREAD)
            found.append(shape(rng, round(min(LONGEST, max(SHORTEST, wanted)))))
        else:
            found.append(damaged(found[-1], rng))
    return found


def keys(text: str) -> str:
    """The action that typed the commands of a terminal's screen."""
    return json.dumps([f"{command}\n" for command in re.findall(r"(?m)^root@\S+ (.+)$", text)])


def damaged(text: str, rng: Random) -> str:
    """The text with about one line of ten missing, doubled, or with another number or word in it."""
    if "\n" not in text:
        for word in rng.sample(WORDS, 5):
            text = text.replace(word, rng.choice(WORDS), 3)
        return text
    lines = []
    for line in text.split("\n"):
        chance = rng.random()
        if chance < 0.02:
            continue
        if chance < 0.04:
            lines.append(line)
        elif chance < 0.07:
            line = "".join(str((int(char) + 4) % 9 + 1) if char in "0123456789" else char for char in line)
        elif chance < 0.1:
            line = line.replace(rng.choice(WORDS), rng.choice(WORDS))
        lines.append(line)
    return "\n".join(lines)
