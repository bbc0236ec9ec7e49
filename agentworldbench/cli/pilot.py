"""What `awb estimate --pilot` says, as tables with their notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentworldbench.pilot_estimate import PilotEstimate
    from agentworldbench.render.table import Table


def pilot_tables(told: PilotEstimate) -> list[Table]:
    """Where the pilot's variance comes from, and what each mix would tell and cost."""
    from agentworldbench.render.pilot import mixes_table, shares_table

    pilot = told.pilot
    by = "by rules" if pilot.judge is None else f"by judge {pilot.scored_by}"
    return [
        shares_table(
            f"Where scores {by} vary, in the pilot {pilot.path}",
            told.domains,
            told.macro,
            pilot.judge is not None,
        ),
        mixes_table(
            f"What a run would tell: ± of its macro score {by}, in points",
            told.mixes,
            told.cheapest,
            not told.unpriced,
            list(_notes(told)),
        ),
    ]


def _notes(told: PilotEstimate) -> Iterator[str]:
    from agentworldbench.render.pilot import EFFICIENT
    from agentworldbench.render.table import DASH

    yield (
        "Mix: samples × epochs × judge repeats. Population: with other trajectories (95 %). Re-run: the same samples "
        "asked again; a run of one epoch cannot tell that of itself, the pilot can."
    )
    parts = {mix.samples: mix.selection for mix in told.mixes}
    if len(parts) > 1:
        yield "Samples: " + ", ".join(f"{n:,} are {flags or 'all'}" for n, flags in parts.items()) + "."
    if any(mix.population and mix.population.low < mix.population.high for mix in told.mixes):
        yield "Two numbers: the pilot cannot tell all sources apart; the width lies between them."
    yield f"{EFFICIENT}: no other mix here costs no more and is as narrow (population)."
    if told.target is not None:
        yield _target_line(told, told.target)
    yield from _pilot_lines(told)
    if any(mix.population is None for mix in told.mixes):
        yield f"{DASH}: there a domain has a single trajectory, and so the macro score no interval."
    yield "Cost is that of a new run. Low: all that is cacheable cached, short answers. High: nothing cached, long ones."
    yield from _length_lines(told)
    if told.unpriced:
        yield (
            f"No price is known of {', '.join(told.unpriced)}: tokens stand for USD and order the mixes; "
            "--price MODEL=IN,OUT[,CACHED] gives one."
        )
    if told.unlike:
        yield f"Unlike the pilot, so its shares need not hold: {'; '.join(told.unlike)}."


def _target_line(told: PilotEstimate, target: float) -> str:
    from agentworldbench.render.pilot import CHEAPEST, REACHES, half_cell, mix_name

    if told.cheapest is not None:
        mix = told.mixes[told.cheapest]
        flags = f"{mix.selection} --epochs {mix.epochs}".strip()
        flags += f" --judge-repeats {mix.repeats}" if told.pilot.judge else ""
        return (
            f"{REACHES}: ± {target:g} or less, as far as this pilot can tell. {CHEAPEST} the cheapest of them: {mix_name(mix)}, ± "
            f"{half_cell(mix.population)}: {flags}"
        )
    known = [mix for mix in told.mixes if mix.population is not None]
    if not known:
        return f"No mix here has an interval, so none reaches ± {target:g}."
    best = min(known, key=lambda mix: (mix.population.high if mix.population else 0.0, mix.cost))
    return (
        f"No mix here surely reaches ± {target:g}; the narrowest is {mix_name(best)} with ± {half_cell(best.population)}. "
        "More epochs and repeats narrow only what answers and verdicts add; the rest needs more trajectories."
    )


def _pilot_lines(told: PilotEstimate) -> Iterator[str]:
    """What the pilot measured against what its own shares predict, and how far predictions are to be trusted."""
    from agentworldbench.render.numbers import width
    from agentworldbench.render.pilot import half_cell

    pilot = told.pilot
    name = f"The pilot itself ({pilot.samples:,} × {pilot.epochs} × {pilot.repeats})"
    pairs = [
        f"{kind} ± {width(measured.half)} measured, {half_cell(predicted)} by its shares"
        for kind, measured, predicted in (
            ("population", pilot.population, pilot.predicted_population),
            ("re-run", pilot.rerun, pilot.predicted_rerun),
        )
        if measured is not None and measured.half is not None
    ]
    if pairs:
        yield f"{name}: {'; '.join(pairs)}."
    if pilot.precision is not None:
        yield f"A pilot of this size tells each ± to about {100 * pilot.precision:.0f} % of itself (95 %)."
    if pilot.coverage < 1:
        yield f"It has scores for {100 * pilot.coverage:.1f} % of its answers."


def _length_lines(told: PilotEstimate) -> Iterator[str]:
    """How long the pilot's answers were, as flags for the estimate."""
    flags = [
        f"{flag} {tokens}"
        for flag, tokens in (
            ("--output-tokens", told.pilot.answer_tokens),
            ("--judge-output-tokens", told.pilot.verdict_tokens),
        )
        if tokens is not None
    ]
    if flags:
        yield f"The pilot's own answers were, on average, as long as {' '.join(flags)} says: with that the range is narrower."
