"""A table as Markdown, LaTeX or HTML."""

import html
from collections.abc import Callable, Mapping, Sequence

from calibrant.study.tables import Column, Entry, Row, Table

MISSING = "–"
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*<|$"})
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": "$<$",
        ">": "$>$",
        "|": "$|$",
        "±": r"$\pm$",
        "δ": r"$\delta$",
        "−": "$-$",
        "√": r"$\surd$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "–": "--",
        "…": r"\dots{}",
    }
)
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>calibrant: study</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .9rem .2rem 0; text-align: right; border-bottom: 1px solid #ccc; }
td { white-space: nowrap; }
th:first-child { text-align: left; font-weight: 400; }
div { overflow-x: auto; }
small { color: #666; }
</style>
</head>
<body>"""


def measured(entry: Entry, column: Column) -> str:
    """``9.10 ± 0.31 (3)``: mean, standard deviation, seeds, as far as there are any.

    >>> measured(Entry(0.091, 0.0031, 3), Column("ECE", percent=True, digits=2))
    '9.10 ± 0.31 (3)'
    """
    if entry.mean is None:
        return MISSING
    spread = "" if entry.std is None else f" ± {_number(entry.std, column)}"
    seeds = "" if entry.seeds is None else f" ({entry.seeds})"
    return f"{_number(entry.mean, column)}{spread}{seeds}"


def printed(entry: Entry, column: Column) -> str:
    """``[9.24]``, what the paper has there, or nothing."""
    return "" if entry.published is None else f"[{_number(entry.published, column)}]"


def markdown(tables: Sequence[Table]) -> str:
    """Tables as GitHub draws them."""

    def cell(entry: Entry, column: Column) -> str:
        here = measured(entry, column)
        return _beside(f"**{here}**" if entry.best else here, printed(entry, column))

    blocks = []
    for table in tables:
        lines = [
            _line(["", *(column.title.translate(_MARKDOWN) for column in table.columns)]),
            _line(["---", *("---:" for _ in table.columns)]),
            *(_line([row.title.translate(_MARKDOWN), *_cells(cell, table, row)]) for row in table.rows),
        ]
        notes = [f"- {note.translate(_MARKDOWN)}" for note in table.notes]
        blocks.append("\n".join([f"## {table.title.translate(_MARKDOWN)}", "", *lines, "", *notes]))
    return "\n\n".join(blocks) + "\n"


def latex(tables: Sequence[Table]) -> str:
    """Tables for a document that uses the package booktabs."""

    def cell(entry: Entry, column: Column) -> str:
        here = measured(entry, column).translate(_LATEX)
        return _beside(rf"\textbf{{{here}}}" if entry.best else here, printed(entry, column))

    blocks = []
    for table in tables:
        head = ["", *(column.title.translate(_LATEX) for column in table.columns)]
        lines = [
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            rf"\toprule {' & '.join(head)} \\ \midrule",
            *(
                rf"{' & '.join([row.title.translate(_LATEX), *_cells(cell, table, row)])} \\"
                for row in table.rows
            ),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        notes = " ".join(note.translate(_LATEX) for note in table.notes)
        blocks.append(
            "\n".join(
                [
                    r"\begin{table*}",
                    r"\centering\small",
                    *lines,
                    rf"\caption{{{table.title.translate(_LATEX)}. {notes}}}",
                    rf"\label{{table:{table.name}}}",
                    r"\end{table*}",
                ]
            )
        )
    return "\n\n".join(blocks) + "\n"


def html_page(tables: Sequence[Table]) -> str:
    """Tables on a page that needs nothing else."""

    def cell(entry: Entry, column: Column) -> str:
        here, paper = html.escape(measured(entry, column)), printed(entry, column)
        beside = _beside(f"<b>{here}</b>" if entry.best else here, paper and f"<small>{paper}</small>")
        return f"<td>{beside}</td>"

    blocks = []
    for table in tables:
        head = "".join(f'<th scope="col">{html.escape(column.title)}</th>' for column in table.columns)
        body = "\n".join(
            f'<tr><th scope="row">{html.escape(row.title)}</th>{"".join(_cells(cell, table, row))}</tr>'
            for row in table.rows
        )
        notes = "\n".join(f"<li>{html.escape(note)}</li>" for note in table.notes)
        blocks.append(
            f'<section id="{html.escape(table.name)}">\n<h2>{html.escape(table.title)}</h2>\n<div><table>\n'
            f"<thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>\n"
            f"<ul>\n{notes}\n</ul>\n</section>"
        )
    return "\n".join([HEAD, *blocks, "</body>\n</html>\n"])


FORMATS: Mapping[str, Callable[[Sequence[Table]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "html": html_page,
}


def _cells(cell: Callable[[Entry, Column], str], table: Table, row: Row) -> list[str]:
    return [cell(entry, column) for entry, column in zip(row.entries, table.columns, strict=True)]


def _beside(here: str, paper: str) -> str:
    return f"{here} {paper}" if paper else here


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float, column: Column) -> str:
    return f"{100 * value if column.percent else value:,.{column.digits}f}"
