"""Screens of phones, browsers and desktops as texts, in every format that the readers of the metrics know.

Also what all generated observations are made of: names, clocks, hexadecimal numbers, lines up to a length.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tests.helpers.observation_texts import WORDS, words

Lines = Callable[[Random, int], str]
"""From random numbers and a length to a text of about that length."""
TAGS: Final = ("label", "push-button", "entry", "table-cell", "menu")
WINDOWS: Final = ("notes.txt - Editor", "Terminal")
EMPTY: Final = '"' * 6
"""What a table of a desktop writes for an empty text."""


def until(chars: int, line: Callable[[int], str], joint: str = "\n") -> str:
    """Numbered lines up to a length; at least one."""
    lines: list[str] = []
    length = 0
    while not lines or length < chars:
        lines.append(line(len(lines)))
        length += len(lines[-1]) + len(joint)
    return joint.join(lines)


def name(rng: Random) -> str:
    """Two words as one name."""
    return f"{rng.choice(WORDS)}_{rng.choice(WORDS)}"


def clock(rng: Random) -> str:
    """A time of the day."""
    return f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"


def hexadecimal(rng: Random, digits: int) -> str:
    """A number of so many digits."""
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def _box(rng: Random) -> tuple[int, int, int, int]:
    left, top = rng.randrange(900), rng.randrange(2000)
    return left, top, left + rng.randrange(20, 180), top + rng.randrange(20, 180)


def _android_list(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        a, b, c, d = _box(rng)
        kind, flags = ("EditText", "clickable editable focused") if n % 20 == 3 else ("TextView", "clickable")
        told = f'text="{words(rng, 2)}" res="org.example.notes:id/row_{n % 9}"'
        return f"[{n:3d}] | android.widget.{kind} | {told} | bounds=[{a},{b}][{c},{d}] | {flags}"

    status = f'text="{clock(rng)[:5]}" desc="" res="com.android.systemui:id/clock" | bounds=[50,1][148,128]'
    listed = until(chars, line)
    return f"{listed}\n[{listed.count(chr(10)) + 1:3d}] | android.widget.TextView | {status}"


def _android_state(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        box = ",".join(map(str, _box(rng)))
        kind = "EditText" if n % 20 == 3 else "TextView"
        return f'{n + 1}. {kind}: "org.example.notes:id/title_{n % 9}", "{words(rng, 2)}" - ({box})'

    state = "**Current Phone State:**\n• **App:** Notes (org.example.notes)\n• **Keyboard:** Hidden"
    focus = f"• **Focused Element:** '{rng.choice(WORDS)}'"
    legend = (
        "Clickable UI elements on the screen, as 'index. className: resourceId, text - bounds(x1,y1,x2,y2)':"
    )
    return f"{state}\n{focus}\n\n{legend}\n{until(chars, line)}"


def _android_tree(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        box = ",".join(map(str, _box(rng)))
        kind = "EditText" if n % 20 == 3 else "TextView"
        told = f'id="org.example.notes:id/row_{n % 9}" text="{words(rng, 2)}" flags=clickable,focusable'
        return f"{'  ' * (n % 4)}- {kind} {told} bounds={box}"

    state = "**Current Phone State:**\n• **App:** org.example.notes\n• **Activity:** org.example.notes.ListActivity"
    return f"{state}\n• **Screen:** 1080x2400\n\nAccessibility Tree:\n{until(chars, line)}"


def _web(rng: Random, chars: int) -> str:
    address = f"http://shop.example/{rng.choice(WORDS)}?proxy=shop-worker-{hexadecimal(rng, 8)}"

    def line(n: int) -> str:
        role = rng.choice(["link", "button", "textbox", "listitem", "heading"])
        deep = "  " * (1 + n % 5)
        node = f'{deep}- {role} "{words(rng, 2).title()}"{" [active]" if n == 5 else ""} [ref=e{n + 3}]'
        if role == "link":
            return f"{node} [cursor=pointer]:\n{deep}  - /url: {address}"
        return f"{node}: {rng.choice(WORDS)}" if role == "textbox" else node

    return (
        f"### Ran Playwright code\n```js\nawait page.goto('{address}');\n```\n"
        f"### Page\n- Page URL: {address}\n- Page Title: {words(rng, 2).title()}\n"
        f"### Snapshot\n```yaml\n- generic [ref=e2]:\n{until(chars, line)}\n```"
    )


def _desktop_4(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        if n < len(WINDOWS):
            return f"toggle-button\t{WINDOWS[n]}\t({100 + 200 * n}, 15)\t(200, 30)"
        return f"{rng.choice(TAGS)}\t{words(rng, 2)}\t{_place(rng)}"

    return f"tag\ttext\tposition (center x & y)\tsize (w & h)\n{until(chars, line)}"


def _desktop_7(rng: Random, chars: int) -> str:
    def line(n: int) -> str:
        if n < len(WINDOWS):
            return f"toggle-button\t{WINDOWS[n]}\t{EMPTY}\t\t\t({200 * n}, 0)\t(200, 30)"
        return f"{rng.choice(TAGS)}\t{words(rng, 1)}\t{rng.choice([EMPTY, words(rng, 2)])}\t\t\t{_place(rng)}"

    head = "tag\tname\ttext\tclass\tdescription\tposition (top-left x&y)\tsize (w&h)"
    return f"{head}\n{until(chars, line)}"


def _place(rng: Random) -> str:
    """Position and size."""
    at = f"({rng.randrange(1900)}, {rng.randrange(40, 1000)})"
    return f"{at}\t({rng.randrange(9, 300)}, {rng.randrange(9, 60)})"


SCREENS: Final[dict[str, tuple[Lines, ...]]] = {
    "android": (_android_list, _android_state, _android_tree),
    "web": (_web,),
    "os": (_desktop_4, _desktop_7),
}
"""The formats of each domain."""
