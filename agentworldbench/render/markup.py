"""A `Table` as LaTeX (booktabs) and as an HTML fragment, for papers and for pages of one's own.

In: a table. Out: text in which every cell from a model or user is escaped: it cannot end its cell, run a command
or open a tag.
"""

from __future__ import annotations

import re
from html import escape
from typing import Final

from agentworldbench.render.table import Table, printable

_LATEX: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "−": "$-$", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}", "–": "--", "—": "---", "·": r"$\cdot$",
}  # fmt: skip
"""What LaTeX would read otherwise, or cannot set with its own fonts."""
_SPECIAL: Final = re.compile("[" + re.escape("".join(_LATEX)) + "]")


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return _SPECIAL.sub(lambda found: _LATEX[found[0]], printable(" ".join(text.split("\n"))))


def to_latex(table: Table) -> str:
    """A `table` environment with the title as caption and the notes below; needs the package booktabs."""
    columns = "".join("l" if name in table.left else "r" for name in table.columns)
    rows = []
    for number, row in enumerate(table.rows):
        cells = [latex_text(cell) for cell in row]
        if number in table.strong:
            cells = [rf"\textbf{{{cell}}}" if cell else "" for cell in cells]
        rows.append(" & ".join(cells) + r" \\")
    notes = [rf"\par\footnotesize {latex_text(note)}" for note in table.notes]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(table.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(map(latex_text, table.columns)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )


def to_html(table: Table) -> str:
    """A `<table>` with caption and headers, notes below; without any style of its own, but cells of columns that are
    no numbers have the class `text`, and rows that sum up the others `summary`."""
    head = table.columns.index(table.left[0]) if table.left else 0
    kinds = [' class="text"' if name in table.left else "" for name in table.columns]
    columns = "".join(
        f'<th scope="col"{kind}>{_html(name)}</th>' for kind, name in zip(kinds, table.columns, strict=True)
    )
    lines = ["<table>", f"<caption>{_html(table.title)}</caption>"]
    lines += [f"<thead><tr>{columns}</tr></thead>", "<tbody>"]
    for number, row in enumerate(table.rows):
        cells = (
            f'<th scope="row"{kinds[place]}>{_html(cell)}</th>'
            if place == head
            else f"<td{kinds[place]}>{_html(cell)}</td>"
            for place, cell in enumerate(row)
        )
        summary = ' class="summary"' if number in table.strong else ""
        lines.append(f"<tr{summary}>{''.join(cells)}</tr>")
    lines += ["</tbody>", "</table>", *(f"<p>{_html(note)}</p>" for note in table.notes)]
    return "\n".join(lines) + "\n"


def _html(text: str) -> str:
    return escape(printable(text))
