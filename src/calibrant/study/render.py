"""A table as Markdown, LaTeX or HTML."""

import html
from collections.abc import Callable, Mapping, Sequence

from calibrant.study.tables import Column, Entry, Row, Table

MISSING = "–"
_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*<|$~"})
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
th[scope=row] { text-align: left; font-weight: 400; }
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

    lines = []
    for table in tables:
        lines += [
            *(f"## {table.title.translate(_MARKDOWN)}", ""),
            _line(["", *(column.title.translate(_MARKDOWN) for column in table.columns)]),
            _line(["---", *("---:" for _ in table.columns)]),
            *(_line([row.title.translate(_MARKDOWN), *_cells(cell, table, row)]) for row in table.rows),
            "",
        ]
    lines += [f"- {note.translate(_MARKDOWN)}" for note in _notes(tables)]
    return "\n".join(lines) + "\n"


def latex(tables: Sequence[Table]) -> str:
    """Tables for a document that uses the packages booktabs and graphicx, as wide as its page."""

    def cell(entry: Entry, column: Column) -> str:
        here = measured(entry, column).translate(_LATEX)
        return _beside(rf"\textbf{{{here}}}" if entry.best else here, printed(entry, column))

    def line(first: str, cells: Sequence[str]) -> str:
        return rf"{' & '.join([first.translate(_LATEX), *cells])} \\"

    def heading(title: str) -> str:
        # "misclassified: AUROC, %" takes two lines.
        first, colon, rest = title.translate(_LATEX).partition(": ")
        return rf"\shortstack[r]{{{first}:\\{rest}}}" if colon else first

    lines = []
    for table in tables:
        lines += [
            *(r"\begin{table*}", r"\centering\small"),
            rf"\caption{{{table.title.translate(_LATEX)}}}",
            rf"\label{{table:{table.name}}}",
            r"\resizebox{\textwidth}{!}{%",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\toprule",
            line("", [heading(column.title) for column in table.columns]),
            r"\midrule",
            *(line(row.title, _cells(cell, table, row)) for row in table.rows),
            *(r"\bottomrule", r"\end{tabular}}", r"\end{table*}", ""),
        ]
    lines += [rf"\noindent{{\footnotesize {note.translate(_LATEX)}\par}}" for note in _notes(tables)]
    return "\n".join(lines) + "\n"


def html_page(tables: Sequence[Table]) -> str:
    """Tables on a page that needs nothing else."""

    def cell(entry: Entry, column: Column) -> str:
        here, paper = html.escape(measured(entry, column)), printed(entry, column)
        beside = _beside(f"<b>{here}</b>" if entry.best else here, paper and f"<small>{paper}</small>")
        return f"<td>{beside}</td>"

    def line(first: str, cells: Sequence[str]) -> str:
        return f'<tr><th scope="row">{html.escape(first)}</th>{"".join(cells)}</tr>'

    lines = [HEAD]
    for table in tables:
        columns = [f'<th scope="col">{html.escape(column.title)}</th>' for column in table.columns]
        lines += [
            f'<section id="{html.escape(table.name)}">',
            f"<h2>{html.escape(table.title)}</h2>",
            *("<div><table>", f"<thead><tr><td></td>{''.join(columns)}</tr></thead>", "<tbody>"),
            *(line(row.title, _cells(cell, table, row)) for row in table.rows),
            *("</tbody>", "</table></div>", "</section>"),
        ]
    notes = [f"<li>{html.escape(note)}</li>" for note in _notes(tables)]
    return "\n".join([*lines, "<ul>", *notes, "</ul>", "</body>", "</html>", ""])


FORMATS: Mapping[str, Callable[[Sequence[Table]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "html": html_page,
}


def _cells(cell: Callable[[Entry, Column], str], table: Table, row: Row) -> list[str]:
    return [cell(entry, column) for entry, column in zip(row.entries, table.columns, strict=True)]


def _notes(tables: Sequence[Table]) -> list[str]:
    """What several tables have in common is said once, below them."""
    return list(dict.fromkeys(note for table in tables for note in table.notes))


def _beside(here: str, paper: str) -> str:
    return f"{here} {paper}" if paper else here


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float, column: Column) -> str:
    return f"{100 * value if column.percent else value:,.{column.digits}f}"
