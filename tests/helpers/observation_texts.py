"""Texts shaped like the actions and observations of the seven domains, all of our own wording.

In: a seeded `random.Random`, a turn number and a rough length in characters. Out: the body of
one observation (without its marker) or of one action fence. The shapes follow the formats that
the benchmark's description names (numbered search blocks, accessibility tables, Playwright
snapshots, ...); no text is taken from the data set. Equal random states give equal texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Final

WORDS: Final = tuple(
    word
    for line in (
        "amber basin cedar delta ember fjord grove harbor inlet juniper kelp lagoon",
        "meadow nectar orchard pebble quarry ridge summit tundra upland valley willow yarrow",
    )
    for word in line.split()
)
CHINESE: Final = "北岸灯塔建于山谷河流湖泊车站线路图书馆博物院城市公园记录长度年份开放时间地址说明"
FAILURE: Final = 'Tool request failed: HTTP 422 {"detail":[{"loc":["body","query"],"msg":"Field required"}]}'
# str.splitlines() splits at each of these, JSON Lines must not.
ODD_SEPARATORS: Final = "one\u2028two\u2029three\u0085four"


def words(rng: Random, count: int) -> str:
    """`count` plain words."""
    return " ".join(rng.choice(WORDS) for _ in range(count))


def observation(domain: str, rng: Random, turn: int, chars: int) -> str:
    """An observation of at least `chars` characters (give or take its frame)."""
    return _OBSERVATIONS[domain](rng, turn, chars)


def action(domain: str, rng: Random, turn: int) -> str:
    """The text inside the action fence of one turn."""
    return _ACTIONS[domain](rng, turn)


def _lines(chars: int, line: Callable[[int], str], joint: str = "\n") -> str:
    lines: list[str] = []
    length = 0
    while length < chars or not lines:
        lines.append(line(len(lines)))
        length += len(lines[-1]) + len(joint)
    return joint.join(lines)


def _mcp(rng: Random, turn: int, chars: int) -> str:
    listing = _lines(chars // 2, lambda n: f"[FILE] {n:03d}_{rng.choice(WORDS)}.csv {rng.randrange(9000)}")
    part = {"type": "text", "text": listing, "annotations": None, "meta": None}
    result = {
        "meta": None,
        "content": [part],
        "structuredContent": {"content": listing},
        "isError": False,
    }
    outer = {"type": "text", "text": json.dumps(result), "annotations": None, "meta": None}
    return json.dumps(outer)


def _search(rng: Random, turn: int, chars: int) -> str:
    def chinese(count: int) -> str:
        return "".join(rng.choice(CHINESE) for _ in range(count))

    def block(n: int) -> str:
        address = f"https://{rng.choice(WORDS)}.example/{rng.randrange(10**6)}.html"
        date = rng.choice(["N/A", "Jan 5, 2025", "2024-11-30"])
        title, snippet = chinese(8), f"{chinese(24)} {words(rng, 4)}"
        return f"[{n + 1}] {address}\nTitle: {title}\nSnippet: {snippet}\nDate: {date}"

    if turn % 3 == 2:
        evidence = _lines(chars, lambda n: f"| {chinese(4)} | {rng.randrange(2000)} |")
        start = f"The useful information in https://{rng.choice(WORDS)}.example/ for user goal {chinese(10)}"
        return f"{start} as follows: \n\nEvidence in page: \n{evidence}\n\nSummary: \n{chinese(30)}"
    return f"```\n{_lines(chars, block, chr(10) * 2)}\n```"


def _terminal(rng: Random, turn: int, chars: int) -> str:
    def entry(n: int) -> str:
        size = rng.randrange(10**5)
        return f"-rw-r--r-- 1 root root {size:5d} Mar  4 09:{n % 60:02d} {rng.choice(WORDS)}.txt"

    prompt = "root@5f0c2e9b71aa:/srv#"
    end = ">" if turn % 4 == 3 else prompt
    return f"{prompt} ls -l {rng.choice(WORDS)}\ntotal {turn}\n{_lines(chars, entry)}\n{end}"


def _swe(rng: Random, turn: int, chars: int) -> str:
    if turn == 1:
        return f"The list of open steps was stored ({words(rng, 3)}). Go on with the first one."
    if turn % 2:
        output = _lines(chars, lambda n: f"tests/test_{rng.choice(WORDS)}.py::test_{n} PASSED")
        where = f"/srv/{WORDS[turn % 9]}"
        return f"Command: pytest -q\nDirectory: {where}\nOutput: {output}\nError: (none)\nExit Code: 0"
    return _lines(chars, lambda n: f"{n + 1:6d}→{'    ' * (n % 3)}{rng.choice(WORDS)} = {rng.randrange(100)}")


def _android(rng: Random, turn: int, chars: int) -> str:
    def box() -> tuple[int, int, int, int]:
        left, top = rng.randrange(900), rng.randrange(2000)
        return left, top, left + rng.randrange(20, 180), top + rng.randrange(20, 180)

    def listed(n: int) -> str:
        a, b, c, d = box()
        text = f'text="{rng.choice(WORDS)}" res="org.example.notes:id/row_{n}"'
        return f"[{n:3d}] | android.widget.TextView | {text} | bounds=[{a},{b}][{c},{d}] | clickable"

    def numbered(n: int) -> str:
        name, text = "org.example.notes:id/title", rng.choice(WORDS)
        return f'{n + 1}. TextView: "{name}", "{text}" - ({",".join(map(str, box()))})'

    if rng.random() < 0.5:
        return _lines(chars, listed)
    state = "**Current Phone State:**\n• **App:** Notes (org.example.notes)\n• **Keyboard:** Hidden"
    return f"{state}\n\nCurrent Clickable UI elements:\n{_lines(chars, numbered)}"


def _web(rng: Random, turn: int, chars: int) -> str:
    address = f"http://shop.example/{rng.choice(WORDS)}?proxy=shop-worker-{rng.randrange(16**8):08x}"
    title = words(rng, 2).title()
    tree = _lines(chars, lambda n: f'  - link "{words(rng, 2)}" [ref=e{n + 3}] [cursor=pointer]')
    return (
        f"### Ran Playwright code\n```js\nawait page.goto('{address}');\n```\n"
        f"### Page\n- Page URL: {address}\n- Page Title: {title}\n"
        f"### Snapshot\n```yaml\n- generic [ref=e2]:\n{tree}\n```"
    )


def _os(rng: Random, turn: int, chars: int) -> str:
    def place() -> tuple[str, str]:
        at = f"({rng.randrange(1900)}, {rng.randrange(1000)})"
        return at, f"({rng.randrange(9, 300)}, {rng.randrange(9, 60)})"

    def four(n: int) -> str:
        return "\t".join(("label", words(rng, 2), *place()))

    def seven(n: int) -> str:
        return "\t".join(("entry", words(rng, 1), '"' * 6, "", "", *place()))

    if rng.random() < 0.5:
        return f"tag\ttext\tposition (center x & y)\tsize (w & h)\n{_lines(chars, four)}"
    head = "tag\tname\ttext\tclass\tdescription\tposition (top-left x&y)\tsize (w&h)"
    return f"{head}\n{_lines(chars, seven)}"


def _json_call(names: tuple[str, ...]) -> Callable[[Random, int], str]:
    def make(rng: Random, turn: int) -> str:
        arguments = {"path": f"/srv/{rng.choice(WORDS)}", "turn": turn}
        return json.dumps({"name": names[turn % len(names)], "arguments": arguments})

    return make


_OBSERVATIONS: Final[dict[str, Callable[[Random, int, int], str]]] = {
    "mcp": _mcp,
    "search": _search,
    "terminal": _terminal,
    "swe": _swe,
    "android": _android,
    "web": _web,
    "os": _os,
}
_ACTIONS: Final[dict[str, Callable[[Random, int], str]]] = {
    "mcp": _json_call(("list_directory", "read_file", "write_file")),
    "search": _json_call(("web_search", "web_extractor")),
    "terminal": lambda rng, turn: json.dumps([f"ls -l {rng.choice(WORDS)}", "Enter"]),
    "swe": _json_call(("todo_write", "read_file", "run_command")),
    "android": lambda rng, turn: json.dumps({"action_type": "click", "index": rng.randrange(40)}),
    "web": lambda rng, turn: f'browser_navigate(url="http://shop.example/{rng.choice(WORDS)}")',
    "os": lambda rng, turn: f"pyautogui.click({rng.randrange(1900)}, {rng.randrange(1000)})",
}
