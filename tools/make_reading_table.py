"""Writes docs/readings.md: replies that the official and the strict rules read in different ways, and why.

In: `reading_table.yaml` (which replies, what each is, why the readings differ) and the replies themselves in
`tests/cases/official/`. Out: a page with both results beside each other, as the code of today gives them.
From the repository root: `python -m tools.make_reading_table`; a test fails when the page is stale.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from agentworldbench.observation import read_reply
from agentworldbench.official import extract, without_marker
from agentworldbench.records import Completion, Failure
from agentworldbench.scoring.official_verdict import read_official
from agentworldbench.scoring.verdict import read_verdict
from agentworldbench.task import load_tasks

ROOT: Final = Path(__file__).resolve().parent.parent
TABLE: Final = ROOT / "tools" / "reading_table.yaml"
PAGE: Final = ROOT / "docs" / "readings.md"
VECTORS: Final = {
    "predictions": (ROOT / "tests" / "cases" / "official" / "outputs.jsonl", "text"),
    "verdicts": (ROOT / "tests" / "cases" / "official" / "verdicts.jsonl", "reply"),
}
TASK: Final = load_tasks()["terminal"]
LONGEST: Final = 60
HEAD: Final = """# Two readings of the same reply

Published numbers of AgentWorldBench rest on the official evaluator's text rules; this harness has its own, stricter ones
(`docs/protocol.md`). Both are in the code: `official.py` and `scoring/official_verdict.py` give what the official code gives,
bit for bit; `observation.py` and `scoring/verdict.py` never make a score of a reply that has to be guessed at.

These are {count} replies on which they differ, all of our own wording, from `tests/cases/official/`. Observations are written as
JSON strings; a verdict is given as its scores for format, factuality, consistency, realism and quality, with the total where
that is not their mean, and its sentences where the scores agree. A word in code type is the class of a failure.

Written by `python -m tools.make_reading_table`; not edited by hand.
"""


@dataclass(frozen=True)
class Row:
    """One reply with both readings, as the page shows them."""

    id: str
    what: str
    official: str
    strict: str
    why: str


def groups() -> Iterator[tuple[str, str, list[Row]]]:
    """(title, what is read, rows) of every group."""
    replies = {kind: _replies(path, field) for kind, (path, field) in VECTORS.items()}
    for group in yaml.safe_load(TABLE.read_text(encoding="utf-8")):
        kind = group["of"]
        read = _prediction if kind == "predictions" else _verdict
        yield (
            group["title"],
            kind,
            [Row(one, what, *read(replies[kind][one]), why) for one, what, why in group["rows"]],
        )


def page() -> str:
    """The whole page."""
    parts: list[str] = []
    count = 0
    before = ""
    for title, kind, rows in groups():
        if kind != before:
            parts.append(f"## {kind.capitalize()}\n")
            before = kind
        count += len(rows)
        parts.append(f"### {title}\n")
        parts.append("| id | the reply | official | strict | why |\n| --- | --- | --- | --- | --- |")
        for row in rows:
            cells = (f"`{row.id}`", row.what, row.official, row.strict, row.why)
            parts.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
        parts[-1] += "\n"
    return "\n".join((HEAD.format(count=count), *parts))


def _replies(path: Path, field: str) -> Mapping[str, str | None]:
    lines = (json.loads(line) for line in path.read_bytes().split(b"\n") if line)
    return {line["id"]: line[field] for line in lines}


def _prediction(text: str | None) -> tuple[str, str]:
    """(official, strict) reading of a model's reply that ended by itself."""
    tag, marker = TASK.prediction_tag, TASK.markers.observation
    reading = read_reply(Completion(text=text, finish_reason="stop"), tag, marker, stops_sent=False)
    strict = f"`{reading.failure.kind}`" if reading.failure else _code(reading.observation)
    return _code(without_marker(extract(text or "", tag), marker)), strict


def _verdict(reply: str | None) -> tuple[str, str]:
    """(official, strict) reading of a judge's reply to a prediction that it does not quote."""
    official, strict = read_official(reply or ""), read_verdict(reply or "")
    theirs = _scores(official.scores, official.total) if official.success else "no verdict"
    if isinstance(strict, Failure):
        return theirs, f"`{strict.kind}`"
    ours = _scores(strict.scores, sum(strict.scores.values()) / len(strict.scores))
    if official.scores == strict.scores:
        theirs += f"; {_sentences(official.strengths)}"
        ours += f"; {_sentences(strict.strengths)}"
    return theirs, ours if strict.found == "tag" else f"{ours} ({strict.found})"


def _scores(scores: Mapping[str, int], total: float) -> str:
    mean = sum(scores.values()) / len(scores)
    return ", ".join(map(str, scores.values())) + ("" if total == mean else f"; total {total:.2f}")


def _sentences(texts: Sequence[str]) -> str:
    return _code(list(texts)) if texts else "no sentences"


def _code(value: object) -> str:
    """A value as JSON in code type, cut where it is long."""
    text = json.dumps(value)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{sum(len(rows) for _, _, rows in groups())} replies in {PAGE}")


if __name__ == "__main__":
    main()
