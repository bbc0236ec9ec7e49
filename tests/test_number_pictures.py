"""The pictures of docs/numbers.md: as their tool draws them, legible, described, and each in its place."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from pathlib import Path

import pytest

from tools.make_number_pictures import FOLDER, PICTURES
from tools.make_readme_pictures import PICTURES as README_PICTURES
from tools.svg_picture import COLOURS, WIDTH

PAGE = FOLDER.parent / "numbers.md"
SVG = "{http://www.w3.org/2000/svg}"
LETTER = 0.6
"""Mean width of a letter of a sans serif, in parts of its size; bold ones are wider by a tenth."""


def test_no_picture_is_without_its_tool() -> None:
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)
    assert {path.name for path in FOLDER.glob("*.png")} == {f"{name}.png" for name in README_PICTURES}
    assert {path.suffix for path in FOLDER.iterdir()} == {".svg", ".png"}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_as_its_tool_draws_it(name: str) -> None:
    stored = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert stored == PICTURES[name]().svg(), "renew it: python -m tools.make_number_pictures"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_legible_and_says_what_it_shows(name: str) -> None:
    root = Xml.parse(FOLDER / f"{name}.svg").getroot()
    assert root.get("width") == str(WIDTH) == "700"
    assert len(root.findtext(f"{SVG}desc") or "") > 80, "what is seen, for those who do not see it"
    style = root.findtext(f"{SVG}style") or ""
    assert "prefers-color-scheme: dark" in style
    texts = root.findall(f"{SVG}text")
    assert texts
    for one in texts:
        size, x, words = float(one.get("font-size", 0)), float(one.get("x", 0)), one.text or ""
        assert size >= 12, words
        width = len(words) * size * LETTER * (1.1 if one.get("font-weight") else 1)
        left = x - {"start": 0, "middle": width / 2, "end": width}[one.get("text-anchor", "start")]
        assert left >= -2 and left + width <= WIDTH + 2, f"{words!r} does not fit"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_stands_on_the_page_with_its_alternative(name: str) -> None:
    (alternative,) = re.findall(rf"!\[([^\]]+)\]\(pictures/{name}\.svg\)", PAGE.read_text(encoding="utf-8"))
    assert len(alternative) > 60


def test_pictures_of_the_readme_are_small_and_described() -> None:
    readme = (FOLDER.parents[1] / "README.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"!\[([^\]]+)\]\(docs/pictures/([\w-]+)\.png\)", readme))
    assert len(shown) >= 3 and set(shown.values()) <= set(README_PICTURES)
    assert min(map(len, shown)) > 60, "what is seen, for those who do not see it"
    for name in README_PICTURES:
        content = (FOLDER / f"{name}.png").read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) < 150_000


def brightness(colour: str) -> float:
    """Relative luminance [WCAG 2.1]."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", sorted(COLOURS.keys() - {"ground", "line", "pale"}))
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_colours_of_texts_have_contrast(name: str, scheme: int) -> None:
    """At least 4.5 to 1 against the ground [WCAG 2.1, 1.4.3]."""
    dim, bright = sorted(brightness(COLOURS[one][scheme]) for one in (name, "ground"))
    assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_the_page_shows_no_other_picture() -> None:
    shown = re.findall(r"\(pictures/([^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(f"{name}.svg" for name in PICTURES)
    assert all((FOLDER / Path(one)).is_file() for one in shown)
