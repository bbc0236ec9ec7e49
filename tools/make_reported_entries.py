"""Makes the `reported` leaderboard entries from the two published tables.

In: `leaderboards/published/{judge_scores,rule_accuracy}.csv` (numbers as printed). Out: one JSON
file a row in `leaderboards/entries/`. Run from the repository root: `python -m
tools.make_reported_entries`; a test fails when entries and tables differ.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Final, Literal

from agentworldbench.leaderboard.entries import Entry, EntrySource, Group, entry_text
from agentworldbench.records import OFFICIAL_DOMAINS

ROOT: Final = Path(__file__).resolve().parent.parent
PAPER: Final = "Qwen-AgentWorld paper"
IDENTIFIER: Final = "arXiv 2606.24597"
URL: Final = "https://arxiv.org/abs/2606.24597"
TABLES: Final[dict[Literal["judge", "rules"], tuple[str, str, str | None, str]]] = {
    "judge": ("judge_scores.csv", "Table 5", "gpt-5.2-2025-12-11", "paper"),
    "rules": ("rule_accuracy.csv", "Appendix C", None, "paper-rules"),
}


def entries() -> list[Entry]:
    """All reported entries, in the order of the tables."""
    made = []
    for kind, (name, location, judge, protocol) in TABLES.items():
        # Rule checks ran on cases of their own, which are not released: other data, other group.
        data = "official" if kind == "judge" else "paper's rule cases (not released)"
        group = Group(score=kind, data=data, data_revision=None, protocol=protocol, judge=judge)
        with (ROOT / "leaderboards" / "published" / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                made.append(_entry(row, group, location))
    return made


def _entry(row: dict[str, str], group: Group, location: str) -> Entry:
    scores = {domain: float(row[domain]) for domain in OFFICIAL_DOMAINS}
    stated = float(row["stated_overall"])
    computed = round(sum(scores.values()) / len(scores), 2)
    note = None
    if abs(stated - computed) > 0.011:
        note = (
            f"the source prints {stated:.2f} as overall; the mean of its seven printed domain scores is "
            f"{computed:.2f}. No source explains the difference."
        )
    slug = re.sub(r"[^a-z0-9]+", "-", row["model"].lower()).strip("-")
    return Entry(
        slug=f"reported-{group.score}-{slug}",
        model=row["model"],
        status="reported",
        group=group,
        scores=scores,
        coverage=None,
        stated_overall=stated,
        computed_overall=computed,
        note=note,
        source=EntrySource(title=PAPER, identifier=IDENTIFIER, location=location, url=URL),
    )


def main() -> None:
    """Write every entry to its file."""
    folder = ROOT / "leaderboards" / "entries"
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries():
        (folder / f"{entry.slug}.json").write_text(entry_text(entry), encoding="utf-8")
    print(f"{len(entries())} entries in {folder}")


if __name__ == "__main__":
    main()
