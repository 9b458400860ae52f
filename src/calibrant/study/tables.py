"""The paper's tables, and one more, made of the cells that are there, beside what the paper prints.

A table is data: what each entry holds, not how it looks. ``render.py`` draws it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from calibrant.data import datasets
from calibrant.study.cells import Cell
from calibrant.study.measures import DETECTIONS, Measure, measures
from calibrant.study.provenance import PARTS, doubters, hopeless, notes, sharing_members
from calibrant.study.published import published, published_sizes
from calibrant.study.rows import ROWS
from calibrant.study.seeds import RULE, Series, clear_winner, mean_and_std

PLAIN = "bert"
SMOOTHING = "manifold-smoothing"
COST = Measure("cost", f"training time, {PLAIN} = 1", higher_is_better=None, percent=False)
LEGEND = (
    "Mean ± standard deviation (number of seeds) [what the paper prints: mean of 5 seeds]; – not measured."
)


@dataclass(frozen=True)
class Column:
    """What its entries are, and how they are written."""

    title: str
    percent: bool
    digits: int


@dataclass(frozen=True)
class Entry:
    """One number of a table, as measured and as published."""

    mean: float | None = None  # None: not measured
    std: float | None = None  # None: of one seed, or not a mean
    seeds: int | None = None  # None: not a mean
    published: float | None = None
    best: bool = False  # of its column, and by more than noise


@dataclass(frozen=True)
class Row:
    """One line."""

    title: str
    entries: tuple[Entry, ...]  # one a column


@dataclass(frozen=True)
class Table:
    """A table, however it will be drawn."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


Which = tuple[str, str]  # method and variant: what a row is about
What = tuple[str, Measure]  # dataset and measure: what a column is about


def ece(cells: Sequence[Cell]) -> list[Table]:
    """ECE and accuracy."""
    return [_by_dataset(cells, measures()[name]) for name in ("ece", "accuracy")]


def nbaucc(cells: Sequence[Cell]) -> list[Table]:
    """NBAUCC of finding the misclassified and the unfamiliar."""
    return [_by_dataset(cells, measure) for measure in measures().values() if _is_nbaucc(measure)]


def ablation(cells: Sequence[Cell]) -> list[Table]:
    """One of the two regularizers alone, and both; a table for each dataset."""
    printed = dict.fromkeys(variant for *_, variant in published() if variant)
    rows = {
        f"neither ({PLAIN})": (PLAIN, ""),
        **{_alone(variant): (SMOOTHING, variant) for variant in printed},
        f"both ({SMOOTHING})": (SMOOTHING, ""),
    }
    shown = [measure for measure in measures().values() if _in_main_tables(measure)]
    with_variants = {dataset for _, dataset, _, variant in published() if variant}
    with_variants |= {cell.key.dataset for cell in cells if cell.key.variant in printed}
    return [
        _measured(cells, f"ablation-{dataset}", f"Ablation on {dataset}", rows, [(dataset, m) for m in shown])
        for dataset in _in_order(with_variants)
    ]


def more(cells: Sequence[Cell]) -> list[Table]:
    """What the paper does not print: ranking, likelihood and training cost; a table for each dataset."""
    shown = [measure for measure in measures().values() if not _in_main_tables(measure)] + [COST]
    costed = _with_cost(cells)
    tables = []
    for dataset in _in_order({cell.key.dataset for cell in _main(cells)}):
        there = {cell.key.method for cell in _main(cells) if cell.key.dataset == dataset}
        rows = {method: (method, "") for method in ROWS if method in there}
        columns = [(dataset, measure) for measure in shown]
        table = _measured(costed, f"more-{dataset}", f"More on {dataset}", rows, columns)
        if _clock(cells, dataset) == "seconds":
            told = f"{dataset}: training time by wall clock, with what else the machine did meanwhile."
            table = replace(table, notes=(*table.notes, told))
        tables.append(table)
    return tables


def dataset_sizes(cells: Sequence[Cell]) -> list[Table]:
    """How many texts each part has; a line for each record of a dataset."""
    columns = tuple(Column(title, percent=False, digits=0) for title in (*PARTS.values(), "classes"))
    records: dict[str, list[dict[str, int | None]]] = {name: [] for name in published_sizes()}
    for cell in _main(cells):
        sizes = {part: cell.data.get(part, {}).get("n") for part in PARTS}
        sizes["labels"] = cell.data.get("test", {}).get("classes")
        if sizes not in records.setdefault(cell.key.dataset, []):
            records[cell.key.dataset].append(sizes)
    rows = []
    for dataset in _in_order(records):
        paper = published_sizes().get(dataset)
        for sizes in records[dataset] or [dict.fromkeys((*PARTS, "labels"))]:
            entries = [Entry(size, published=getattr(paper, part, None)) for part, size in sizes.items()]
            rows.append(Row(f"{dataset} (unfamiliar: {_ood(dataset)})", tuple(entries)))
    legend = "Texts in each part [as the paper prints]; – not measured."
    return [Table("datasets", "Datasets", columns, tuple(rows), (legend, *notes(_main(cells))))]


TABLES: Mapping[str, Callable[[Sequence[Cell]], list[Table]]] = {
    "ece": ece,
    "nbaucc": nbaucc,
    "ablation": ablation,
    "datasets": dataset_sizes,
    "more": more,
}


def _by_dataset(cells: Sequence[Cell], measure: Measure) -> Table:
    """A column for each of the paper's datasets and those measured besides, a row for each method."""
    there = {cell.key.method for cell in _main(cells)} | {method for _, _, method, _ in published()}
    rows = {method: (method, "") for method in ROWS if method in there}
    names = _in_order({*published_sizes(), *(cell.key.dataset for cell in _main(cells))})
    table = _measured(cells, measure.name, measure.heading, rows, [(name, measure) for name in names])
    return replace(
        table, columns=tuple(replace(c, title=n) for c, n in zip(table.columns, names, strict=True))
    )


def _measured(
    cells: Sequence[Cell], name: str, title: str, rows: Mapping[str, Which], columns: Sequence[What]
) -> Table:
    """The table whose entries are where a row's method meets a column's dataset and measure."""
    by_column = [_column(cells, rows, dataset, measure) for dataset, measure in columns]
    used = [
        cell
        for cell in cells
        if _which(cell) in rows.values() and cell.key.dataset in {dataset for dataset, _ in columns}
    ]
    return Table(
        name,
        title,
        tuple(Column(m.heading, m.percent, digits=2 if m.percent or m is COST else 3) for _, m in columns),
        tuple(Row(row, tuple(column[row] for column in by_column)) for row in rows),
        (LEGEND, RULE, *notes(used)),
    )


def _column(
    cells: Sequence[Cell], rows: Mapping[str, Which], dataset: str, measure: Measure
) -> dict[str, Entry]:
    found = {row: _series(cells, dataset, *which, measure) for row, which in rows.items()}
    measured = {row: series for row, series in found.items() if series}
    winner = None
    if measure.higher_is_better is not None:
        here = [cell for cell in cells if cell.key.dataset == dataset]
        of_no_use = {_which(cell) for cell in hopeless(here)}
        of_no_use |= {_which(cell) for cell in here if ROWS[cell.key.method].instead is not None}
        if _is_nbaucc(measure):
            of_no_use |= {_which(cell) for cell in doubters(here)}
        beside = {row: series for row, series in measured.items() if rows[row] not in of_no_use}
        winner = clear_winner(beside, measure.higher_is_better)
        if winner is not None and rows[winner] in {_which(cell) for cell in sharing_members(here)}:
            winner = None
    entries = {}
    for row, which in rows.items():
        mean, std = mean_and_std(measured[row]) if row in measured else (None, None)
        printed = published().get((measure.name, dataset, *which))
        entries[row] = Entry(mean, std, len(found[row]), printed, best=row == winner)
    return entries


def _which(cell: Cell) -> Which:
    return cell.key.method, cell.key.variant


def _series(cells: Sequence[Cell], dataset: str, method: str, variant: str, measure: Measure) -> Series:
    key = (dataset, method, variant)
    here = {
        cell.key.seed: measure.of(cell)
        for cell in cells
        if (cell.key.dataset, cell.key.method, cell.key.variant) == key
    }
    return {seed: value for seed, value in here.items() if value is not None}


def _with_cost(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that also hold their training time relative to plain fine-tuning with the same data and seed."""
    clocks = {dataset: _clock(cells, dataset) for dataset in {cell.key.dataset for cell in cells}}
    seconds = {cell.key: cell.training[clocks[cell.key.dataset]] for cell in cells}
    costed = []
    for cell in cells:
        plain = seconds.get(replace(cell.key, method=PLAIN, variant=""))
        cost = {COST.name: seconds[cell.key] / plain} if plain else {}  # 0: too short to be timed
        costed.append(replace(cell, metrics=cell.metrics | cost))
    return costed


def _clock(cells: Iterable[Cell], dataset: str) -> str:
    """That of the work done, where all cells have it; else the wall's, which runs on while others work."""
    worked = all("work_seconds" in cell.training for cell in cells if cell.key.dataset == dataset)
    return "work_seconds" if worked else "seconds"


def _main(cells: Iterable[Cell]) -> list[Cell]:
    return [cell for cell in cells if not cell.key.variant]


def _is_nbaucc(measure: Measure) -> bool:
    return measure.name.startswith(tuple(f"{group}.nbaucc_" for group in DETECTIONS))


def _in_main_tables(measure: Measure) -> bool:
    return measure.name in ("ece", "accuracy") or _is_nbaucc(measure)


def _in_order(names: Iterable[str]) -> list[str]:
    """The paper's datasets first, in its order."""
    paper = list(published_sizes())
    return sorted(names, key=lambda name: (paper.index(name) if name in paper else len(paper), name))


def _alone(variant: str) -> str:
    """The paper's name of an ablation.

    >>> _alone("delta_on=0.01,lambda_off=0")
    'R_on alone, δ_on = 0.01'
    """
    settings = dict(part.split("=") for part in variant.split(","))
    return f"R_on alone, δ_on = {settings['delta_on']}" if "delta_on" in settings else "R_off alone"


def _ood(dataset: str) -> str:
    declared = datasets().get(dataset)
    return (declared.ood if declared is not None else None) or "–"
