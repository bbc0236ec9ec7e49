"""Tables as the output of a notebook's cell: HTML that takes the colours of the notebook, light or dark.

In: tables. Out: a fragment without scripts, in which all text is escaped. A notebook that is not trusted leaves the style
out: what is said does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from agentworldbench.render.markup import to_html
from agentworldbench.render.results import failure_table
from agentworldbench.render.scores import scores_table
from agentworldbench.render.table import Table, printable
from agentworldbench.stats.results import Results

_STYLE: Final = """\
.awb-cell { overflow-x: auto; }
.awb-cell table { border-collapse: collapse; margin: 0.4em 0; font-variant-numeric: tabular-nums; }
.awb-cell caption { caption-side: top; text-align: left; font-weight: 600; color: inherit; padding: 0.3em 0; }
.awb-cell th, .awb-cell td { padding: 0.15em 0.7em; text-align: right; white-space: nowrap; color: inherit; }
.awb-cell th.text, .awb-cell td.text { text-align: left; }
.awb-cell tbody th { font-weight: 400; }
.awb-cell thead th { border-bottom: 1px solid currentColor; }
.awb-cell tr.summary th, .awb-cell tr.summary td { font-weight: 600; }
.awb-cell p { margin: 0.1em 0; max-width: 60em; font-size: 0.9em; opacity: 0.85; }
"""


def cell_html(tables: Iterable[Table], said: Iterable[str] = ()) -> str:
    """The tables one below the other, then what is `said`, a paragraph each."""
    parts = [f"<style>\n{_STYLE}</style>", *map(to_html, tables), *(f"<p>{_html(line)}</p>" for line in said)]
    return f'<div class="awb-cell">{"".join(parts)}</div>'


def run_html(results: Results | None, path: str, stopped: str | None) -> str:
    """A run: scores with intervals, coverage, judge and protocol, failures by class, warnings, and where it is stored."""
    said = [f"Run directory: {path}", *([f"Stopped: {stopped}"] if stopped else [])]
    if results is None:
        return cell_html((), [*said, "No results yet: score_run(path) makes them of what is stored."])
    tables = [scores_table(results), *filter(None, (failure_table(results),))]
    return cell_html(tables, [*(f"Warning: {text}" for text in results.warnings), *said])


def pre_html(lines: Iterable[str]) -> str:
    """Lines as they stand, in letters of one width."""
    return f'<pre style="color:inherit;background:none;margin:0;white-space:pre-wrap">{escape(chr(10).join(map(printable, lines)))}</pre>'


def _html(text: str) -> str:
    return escape(printable(text))
