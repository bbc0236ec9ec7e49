"""Writes docs/pictures/*.png: what a terminal, a report and the leaderboard look like, for README.md.

In: a run over all of the bundled data in which model and judge follow a script (as in `make_example_report`), its report, the
committed leaderboard entries, and Debian's Chromium. Out: PNG files. From the repository root:
`python -m tools.make_readme_pictures` (about a minute). Browsers draw a little otherwise from version to version, so no test
compares the pictures; one holds that they are there, small, and described in README.md.
"""

from __future__ import annotations

import io
import re
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from agentworldbench.leaderboard.entries import load_entries
from agentworldbench.leaderboard.page import page_text
from agentworldbench.render.results import run_tables
from agentworldbench.report.build import build_report
from agentworldbench.run import Run, evaluate
from tests.helpers.chromium import Chromium
from tests.helpers.played_world import PlayedWorld
from tests.helpers.scripted_server import ScriptedServer
from tools.make_example_report import REMARK, settle

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"
PICTURES: Final = ("terminal", "report", "report-dark", "plots", "sample", "leaderboard")
WIDTH: Final = 1080
SAMPLE: Final = "mcp-543203506839104-12"
"""The page that is shown: a status the judge has not missed, and the rules have."""
COMMAND: Final = "awb run --model openai-api/scripted-world --judge openai-api/scripted-judge …"
COLUMNS: Final = 92
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"


def make(folder: Path) -> None:
    """Write all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, Chromium(WIDTH, 800) as browser:
        run = _run(Path(scratch) / "run")
        report = build_report([run.path], Path(scratch) / "report", remark=REMARK).index.parent
        board = Path(scratch) / "board.html"
        board.write_text(page_text(load_entries()), encoding="utf-8")
        shown = {
            "report": (report / "index.html", "light", (WIDTH, 800), ""),
            "report-dark": (report / "index.html", "dark", (WIDTH, 800), ""),
            "plots": (report / "index.html", "light", (1280, 1000), "#plots"),
            "sample": (report / "samples" / f"{SAMPLE}.html", "light", (WIDTH, 1150), ""),
            "leaderboard": (board, "light", (WIDTH, 800), ""),
        }
        for name, (page, colours, size, place) in shown.items():
            browser.prefer(colours)
            browser.resize(*size)
            browser.open("about:blank")
            browser.open(page.as_uri() + place)
            browser.picture(folder / f"{name}.png")
        drawing = Path(scratch) / "terminal.svg"
        drawing.write_text(terminal(run), encoding="utf-8")
        width, tall = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing.read_text(encoding="utf-8"))[0]
        browser.resize(1000, round(1000 * float(tall) / float(width)))
        browser.open(drawing.as_uri())
        browser.picture(folder / "terminal.png")
    for name in PICTURES:
        path = folder / f"{name}.png"
        path.write_bytes(smaller(path.read_bytes()))


def _run(path: Path) -> Run:
    with ScriptedServer(PlayedWorld()) as server:
        run = evaluate(
            model="openai-api/scripted-world",
            base_url=server.base_url,
            judge="openai-api/scripted-judge",
            judge_base_url=server.base_url,
            data="mini",
            output=path,
            display="none",
        )
    settle(path)
    return run


def terminal(run: Run) -> str:
    """The command and its first table as a terminal shows them, as SVG that names no font of a network."""
    assert run.results is not None
    console = Console(
        record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="standard"
    )
    console.print(Text(f"$ {COMMAND}"), no_wrap=True)
    console.print(Text.from_ansi(run_tables(run.results)[0].to_text(COLUMNS, colour=True)))
    drawing = console.export_svg(title="awb", unique_id="awb")
    return re.sub(r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL).replace(
        "Fira Code", "DejaVu Sans Mono"
    )


def smaller(png: bytes) -> bytes:
    """The same picture, packed as tightly as zlib can."""
    data, at = b"", len(_SIGNATURE)
    kept = {}
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        part = png[at + 8 : at + 8 + size]
        at += size + 12
        if kind == b"IDAT":
            data += part
        elif kind in (b"IHDR", b"IEND"):
            kept[kind] = part
    packed = zlib.compress(zlib.decompress(data), 9)
    parts = ((b"IHDR", kept[b"IHDR"]), (b"IDAT", packed), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
        for kind, part in parts
    )


if __name__ == "__main__":
    make(FOLDER)
    for name in PICTURES:
        print(FOLDER / f"{name}.png", (FOLDER / f"{name}.png").stat().st_size)
