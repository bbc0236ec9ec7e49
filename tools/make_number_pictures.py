"""Writes docs/pictures/*.svg: one picture for each number that docs/numbers.md explains.

In: seeded simulations, put through the functions that make the real numbers. Out: SVG files. From the repository root:
`python -m tools.make_number_pictures`; a test fails when a picture is stale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

from tools.number_comparison_pictures import difference, rank, smallest
from tools.number_judge_pictures import agreeing, panel
from tools.number_pilot_pictures import mixes, variance
from tools.number_scenes import drawn, ends, interval_of, place
from tools.svg_picture import Picture

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def score() -> Picture:
    """Dots of samples, ticks of domain means, one macro mean."""
    random = Random(2)
    levels = {"MCP": 62, "Search": 48, "Terminal": 55, "SWE": 66, "Android": 38, "Web": 45, "OS": 52}
    at = place(0, 100, 110, 600)
    picture = Picture(
        340, "A score: the mean of the samples, domain by domain",
        "Seven rows of dots, one a domain; each dot is a sample's score from 0 to 100. A bar marks the mean of each row. "
        "Below, the seven means are averaged into one macro score.",
    )  # fmt: skip
    means = []
    for row, (name, level) in enumerate(levels.items()):
        y = 62 + 28 * row
        values = [value for _, value in drawn(random, 6, 4, level)]
        means.append(fmean(values))
        picture.text(100, y + 5, name, anchor="end")
        picture.line(at(0), y, at(100), y, "line")
        for value in values:
            picture.dot(at(value), y, "first", 4, faint=True)
        picture.box(at(means[-1]) - 2, y - 10, 4, 20, "ink")
        picture.text(612, y + 5, f"{means[-1]:.1f}")
    y = 62 + 28 * len(levels) + 12
    picture.text(100, y + 5, "Macro", anchor="end", bold=True)
    picture.line(at(0), y, at(100), y, "line")
    for mean in means:
        picture.box(at(mean) - 1.5, y - 7, 3, 14, "ink")
    picture.box(at(fmean(means)) - 3, y - 12, 6, 24, "second")
    picture.text(612, y + 5, f"{fmean(means):.1f}", "second", bold=True)
    picture.scale(at(0), at(100), y + 22, [(at(n), str(n)) for n in (0, 25, 50, 75, 100)])
    return picture


def population() -> Picture:
    """Twenty draws of trajectories with their intervals, and the value of endlessly many."""
    random, truth, at = Random(17), 50.0, place(25, 75, 40, 660)
    picture = Picture(
        400, "± population: twenty draws of 12 trajectories",
        "Twenty horizontal intervals around a vertical line at the true value. Nineteen cross the line; one does not.",
    )  # fmt: skip
    top, step, missed = 78, 13.4, 0
    picture.line(at(truth), 62, at(truth), top + 20 * step, "ink", 1.5, dashed=True)
    picture.text(at(truth), 56, "what endlessly many trajectories would give", anchor="middle")
    for row in range(20):
        mean, interval = interval_of(drawn(random, 12, 5, truth))
        low, high = ends(interval)
        missing = not low <= truth <= high
        missed += missing
        picture.line(
            at(low), top + row * step, at(high), top + row * step, "second" if missing else "first", 2.5
        )
        picture.dot(at(mean), top + row * step, "second" if missing else "first", 3.5)
    picture.scale(at(25), at(75), top + 20 * step, [(at(n), str(n)) for n in (30, 40, 50, 60, 70)])
    picture.text(350, 394, f"{20 - missed} of 20 hold it, {missed} (orange) does not: that is what 95 % means", "soft", anchor="middle")  # fmt: skip
    return picture


def rerun() -> Picture:
    """Scores of the same samples asked again, and of other trajectories."""
    random, at = Random(5), place(30, 70, 170, 640)
    picture = Picture(
        300, "Two questions, two intervals",
        "Two rows of dots. Thirty scores of the same samples asked again lie close together; thirty scores of other "
        "trajectories lie far apart.",
    )  # fmt: skip
    truth = drawn(random, 12, 5, 50)
    same = [fmean(random.gauss(value, 9) for _, value in truth) for _ in range(30)]
    other = [fmean(random.gauss(value, 9) for _, value in drawn(random, 12, 5, 50)) for _ in range(30)]
    for y, name, lines, values, kind in (
        (105, "re-run", ("the same samples,", "asked again"), same, "third"),
        (205, "population", ("other trajectories",), other, "first"),
    ):
        ordered = sorted(values)
        picture.text(20, y - 8, name, kind, 15, bold=True)
        for number, words in enumerate(lines):
            picture.text(20, y + 11 + 17 * number, words, "soft")
        picture.box(at(ordered[0]), y - 34, at(ordered[-1]) - at(ordered[0]), 58, kind, 0.14)
        for number, value in enumerate(values):
            picture.dot(at(value), y - 24 + 38 * (number % 5) / 4, kind, 4)
    picture.text(405, 62, "each dot: the score of one whole run", "soft", anchor="middle")
    picture.scale(at(30), at(70), 255, [(at(n), str(n)) for n in (30, 40, 50, 60, 70)])
    return picture


def skill() -> Picture:
    """A rule score between copying and the reference."""
    copying, model, at = 0.42, 0.71, place(0, 1, 40, 660)
    value = (model - copying) / (1 - copying)
    picture = Picture(
        230, "Skill: how much of the way from copying to the reference",
        "A line from 0 to 1 of the rule score. Copying stands at 0.42, the model at 0.71, the reference at 1. Skill is the "
        "model's part of the way between: 0.50.",
    )  # fmt: skip
    picture.line(at(0), 110, at(1), 110, "line", 3)
    picture.line(at(copying), 110, at(1), 110, "soft", 3)
    picture.line(at(copying), 110, at(model), 110, "first", 9)
    for x, name, kind, above in (
        (copying, "copying the screen before", "second", True), (model, "the model", "first", False),
        (1.0, "the reference", "third", True),
    ):  # fmt: skip
        picture.dot(at(x), 110, kind, 8)
        words, y = f"{name}: {x:.2f}", 84 if above else 142
        if x < 1:
            picture.text(at(x), y, words, kind, anchor="middle", bold=True)
        else:
            picture.text(at(x) + 10, y, words, kind, anchor="end", bold=True)
    picture.scale(at(0), at(1), 165, [(at(n / 4), f"{n / 4:g}") for n in range(5)])
    picture.text(350, 216, f"({model:.2f} − {copying:.2f}) / (1 − {copying:.2f}) = {value:.2f}", anchor="middle", size=15)  # fmt: skip
    return picture


def coverage() -> Picture:
    """What became of the samples of three domains, and what that does to the two means."""
    rows: Mapping[str, tuple[int, int, int]] = {"SWE": (100, 0, 0), "Web": (88, 12, 0), "OS": (70, 6, 24)}
    picture = Picture(
        260, "Coverage: how many of the samples have a score",
        "Three bars of 100 samples. SWE: all scored. Web: 88 scored and 12 failed. OS: 70 scored, 6 failed, 24 not asked yet. "
        "Beside each the mean of the scored ones and the mean with failures as 0.",
    )  # fmt: skip
    picture.text(470, 62, "coverage", "soft", anchor="middle")
    picture.text(562, 62, "exclude", "soft", anchor="middle")
    picture.text(642, 62, "floor", "soft", anchor="middle")
    for number, (name, (scored, failed, pending)) in enumerate(rows.items()):
        y, x = 80 + 44 * number, 80.0
        picture.text(70, y + 18, name, anchor="end", bold=True)
        for count, kind, opacity in (
            (scored, "first", 0.75),
            (failed, "second", 0.75),
            (pending, "line", 0.6),
        ):
            if count:
                picture.box(x, y, 3.4 * count - 1, 26, kind, opacity)
                x += 3.4 * count
        picture.text(470, y + 18, f"{scored} %", anchor="middle")
        picture.text(562, y + 18, "60.0", anchor="middle")
        picture.text(642, y + 18, f"{60 * scored / (scored + failed):.1f}", anchor="middle")
    for x, name, kind, opacity in (
        (80, "scored, 60.0 on average", "first", 0.75), (275, "failed", "second", 0.75), (365, "not asked yet", "line", 0.6),
    ):  # fmt: skip
        picture.box(x, 222, 16, 16, kind, opacity)
        picture.text(x + 24, 235, name)
    picture.text(680, 235, "a rank asks for 99 %", "soft", anchor="end")
    return picture


PICTURES: Final[Mapping[str, Callable[[], Picture]]] = {
    "score": score,
    "population": population,
    "rerun": rerun,
    "skill": skill,
    "difference": difference,
    "detectable": smallest,
    "rank": rank,
    "variance": variance,
    "mixes": mixes,
    "agreement": agreeing,
    "panel": panel,
    "coverage": coverage,
}


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name, make in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(make().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
