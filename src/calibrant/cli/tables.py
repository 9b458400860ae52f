"""Tables for the terminal."""

from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from calibrant.errors import visible


def plain_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line a row, columns from the keys."""
    table = _table(*rows[0]) if rows else _table("none")
    for row in rows:
        table.add_row(*("–" if value is None else visible(value) for value in row.values()))
    return _text(table)


def blocks(rows: Sequence[Mapping[str, Any]]) -> str:
    """A few lines a row, each no wider than the terminal: its name, what it does, and the rest by key."""
    return "\n\n".join(map(_block, rows))


def _block(row: Mapping[str, Any]) -> str:
    known = {key: value for key, value in row.items() if value not in (None, "")}
    name, about = known.pop("name"), known.pop("about", "–")
    lines = [about, *(f"{key.replace('_', ' ')}: {value}" for key, value in known.items())]
    wrap = partial(
        fill,
        width=Console().width,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    return "\n".join([visible(name), *(wrap(visible(line)) for line in lines)])


def metric_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """What ``evaluate`` measured, one column per model."""
    from calibrant.metrics import metrics

    table = _table("", *results)
    for group, heading in (("", ""), ("misclassification", "misclassified: "), ("ood", "unfamiliar: ")):
        for metric in metrics().values():
            parts = [(result.get(group) or {}) if group else result for result in results.values()]
            values = [part.get(metric.name) for part in parts]
            if (metric.kind == "detection") == bool(group) and any(value is not None for value in values):
                shown = (_shown(value, metric.percent) for value in values)
                table.add_row(f"{heading}{metric.title} {metric.arrow}", *shown)
    for key, title in (
        ("mean_confidence_test", "mean confidence"),
        ("mean_confidence_ood", "mean confidence, unfamiliar"),
    ):
        values = [result[key] for result in results.values()]
        if any(value is not None for value in values):
            table.add_row(title, *map(_shown, values))
    return _text(table)


def score_table(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """How well each score finds what it should, one row a score, in percent."""
    from calibrant.metrics import metrics

    ranking = [metric for metric in metrics().values() if metric.ranks]
    groups = {"misclassification": "misclassified", "ood": "unfamiliar"}
    rows = [
        {"score": name}
        | {
            f"{heading}: {metric.title} {metric.arrow}": _shown(found[group][metric.name], metric.percent)
            for group, heading in groups.items()
            if found[group] is not None
            for metric in ranking
        }
        for name, found in scores.items()
    ]
    return plain_table(rows)


def _shown(value: float | None, percent: bool = True) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f} %" if percent else f"{value:.3f}"


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="none")  # ``say`` prints no codes
    for i, column in enumerate(columns):
        table.add_column(visible(column), overflow="fold", no_wrap=i == 0)
    return table


def _text(table: Table) -> str:
    console = Console()
    if not console.is_terminal:  # a file or a pipe has room for whole names
        console.width = 10_000
    with console.capture() as capture:
        console.print(table, markup=False, highlight=False, emoji=False)
    return capture.get().rstrip("\n")
