"""On what text the figures were measured, and how that differs from the paper's, from the cells' records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

from calibrant.data import datasets
from calibrant.data.catalog.orange import ORANGE
from calibrant.inference.ensemble import DeepEnsemble
from calibrant.methods import METHODS
from calibrant.study.cells import Cell
from calibrant.study.defaults import beside_defaults
from calibrant.study.published import published_sizes
from calibrant.study.rows import ROWS
from calibrant.types import Texts

PARTS = {"train": "train", "dev": "dev", "test": "test", "ood": "unfamiliar"}
DOUBT = 0.04
"""How far a mean confidence may lie below the accuracy."""
SETTINGS = ("model", "layers", "max_length", "epochs", "batch_size", "learning_rate")


def describe(texts: Texts) -> dict[str, Any]:
    """What a cell records of its texts: where they came from, and what they look like.

    The mean number of words shows what a name does not: whether these are titles or whole questions.
    """
    return asdict(texts.provenance()) | {
        "classes": None if texts.labels is None else len(set(texts.labels)),
        "words": round(fmean(len(text.split()) for text in texts.texts), 1),
    }


def notes(cells: Sequence[Cell]) -> list[str]:
    """What a reader of these cells' numbers must know.

    For each dataset, its texts and the settings of training, which every cell should have had alike; then
    what was not as ever: hyper-parameters, and seeds that are not independent.
    """
    about = (_on_data, _on_machines, _on_hyper_parameters, _on_ensembles, _on_hopeless, _on_doubters)
    return [note for notes_of in about for note in notes_of(cells)]


def _on_data(cells: Iterable[Cell]) -> list[str]:
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        texts = {part: (about["n"], about["fingerprint"]) for part, about in cell.data.items()}
        groups.setdefault((cell.key.dataset, f"{texts}{_settings(cell)}"), []).append(cell)
    several = {dataset for dataset, _ in groups if sum(dataset == other for other, _ in groups) > 1}
    return [
        # the longest, since cells of an earlier version recorded less of the same texts
        f"{dataset}{_only(group) if dataset in several else ''}: {max(map(_data, group), key=len)}"
        f"{_settings(group[0])}"
        for (dataset, _), group in groups.items()
    ]


def _on_machines(cells: Iterable[Cell]) -> list[str]:
    """Nothing, where all cells of a dataset were measured on one machine with the same versions."""
    groups: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        used = ", ".join([cell.machine, *(f"{name} {version}" for name, version in cell.versions.items())])
        groups.setdefault(cell.key.dataset, {}).setdefault(used, []).append(cell)
    return [
        f"{dataset}{_only(group)}: measured on {used}."
        for dataset, by_use in groups.items()
        if len(by_use) > 1
        for used, group in by_use.items()
    ]


def _only(cells: Iterable[Cell]) -> str:
    return f" (NOT the same for every cell; here {', '.join(dict.fromkeys(cell.key.row for cell in cells))})"


def _on_hyper_parameters(cells: Iterable[Cell]) -> list[str]:
    """A sentence for each dataset with an objective that has not its own; a row has one for all its seeds."""
    rows: dict[str, dict[str, dict[str, list[int]]]] = {}
    for cell in cells:
        row = rows.setdefault(cell.key.dataset, {}).setdefault(cell.key.row, {})
        row.setdefault(beside_defaults(cell.objective), []).append(cell.key.seed)
    said = {
        dataset: [f"{row} with {_found(found)}" for row, found in by_row.items() if found.keys() - {""}]
        for dataset, by_row in rows.items()
    }
    return [f"{dataset}, hyper-parameters: {'; '.join(those)}." for dataset, those in said.items() if those]


def _found(found: Mapping[str, Sequence[int]]) -> str:
    if len(found) == 1:
        return next(iter(found))
    each = [f"{named or 'the defaults'} (seed {', '.join(map(str, of))})" for named, of in found.items()]
    return f"MIXED settings: {' and '.join(each)}"


def _on_ensembles(cells: Iterable[Cell]) -> list[str]:
    found = dict.fromkeys((cell.key.dataset, cell.key.method) for cell in sharing_members(cells))
    return [
        f"{dataset}: {method} of neighbouring seeds share members, so that its seeds differ by less than "
        "those of other rows, its standard deviation is too small, and it is never bold."
        for dataset, method in found
    ]


def sharing_members(cells: Iterable[Cell]) -> list[Cell]:
    """Cells of ensembles that hold a model which another of them holds too, and so are not independent.

    Member m of the ensemble of seed s is the model of seed s + m.
    """
    ensembles = [
        cell for cell in cells if METHODS[ROWS[cell.key.method].method].inference == DeepEnsemble.name
    ]
    return [
        cell
        for cell in ensembles
        if any(
            replace(cell.key, seed=other.key.seed) == other.key
            and 0 < abs(cell.key.seed - other.key.seed) < DeepEnsemble.members
            for other in ensembles
        )
    ]


def _on_hopeless(cells: Iterable[Cell]) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for cell in hopeless(cells):
        found.setdefault(cell.key.dataset, {})[cell.key.row] = None
    return [
        f"{dataset}: less than half of the best accuracy, and so never bold: {', '.join(rows)}."
        for dataset, rows in found.items()
    ]


def _on_doubters(cells: Iterable[Cell]) -> list[str]:
    found: dict[str, dict[str, None]] = {}
    for cell in doubters(cells):
        found.setdefault(cell.key.dataset, {})[cell.key.row] = None
    return [
        f"{dataset}: confidence more than {100 * DOUBT:.0f} points below accuracy, which NBAUCC rewards, and "
        f"so never bold there: {', '.join(rows)}."
        for dataset, rows in found.items()
    ]


def doubters(cells: Iterable[Cell]) -> list[Cell]:
    """Cells of rows whose mean confidence is more than ``DOUBT`` below their mean accuracy.

    NBAUCC rewards doubt as such: see ``rows.constant``.
    """
    rows: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        rows.setdefault((cell.key.dataset, cell.key.row), []).append(cell)
    return [
        cell
        for of in rows.values()
        if fmean(c.metrics["accuracy"] - c.metrics["mean_confidence_test"] for c in of) > DOUBT
        for cell in of
    ]


def hopeless(cells: Iterable[Cell]) -> list[Cell]:
    """Cells of rows with less than half of the best mean accuracy on their dataset.

    Such a model has learnt next to nothing; if it knows, it is well calibrated, and of no use.
    """
    rows: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        rows.setdefault(cell.key.dataset, {}).setdefault(cell.key.row, []).append(cell)
    found = []
    for by_row in rows.values():
        accuracy = {row: fmean(cell.metrics["accuracy"] for cell in of) for row, of in by_row.items()}
        low = [row for row in by_row if accuracy[row] < max(accuracy.values()) / 2]
        found += [cell for row in low for cell in by_row[row]]
    return found


def _data(cell: Cell) -> str:
    paper = published_sizes().get(cell.key.dataset)
    parts = []
    for part, title in PARTS.items():
        if part in cell.data:
            about = cell.data[part]
            printed = None if paper is None else getattr(paper, part)
            instead = "" if printed in (None, about["n"]) else f" instead of the paper's {printed:,}"
            of_train = part == "dev" and about["source"].startswith(cell.data["train"]["source"])
            known = [
                None if of_train else about["source"],
                f"{about['classes']} classes" if about.get("classes") is not None else None,
                f"{about['words']:.0f} words a text" if "words" in about else None,
            ]
            more = ", ".join(filter(None, known))
            parts.append(f"{title} {about['n']:,}{instead}{f' ({more})' if more else ''}")
    new = " Not in the paper." if paper is None else ""
    sources = " ".join(about["source"] for about in cell.data.values())
    orange = (
        f" {ORANGE}: lower-cased, without punctuation, digits or headers." if str(ORANGE) in sources else ""
    )
    declared = datasets().get(cell.key.dataset)
    whole = "" if declared is None or declared.text is None else f" A text as published is {declared.text}."
    return f"{'; '.join(parts)}.{new}{whole}{orange}"


def _settings(cell: Cell) -> str:
    shown = {name.replace("_", " "): cell.config.get(name) for name in SETTINGS}
    known = [f"{name} {value}" for name, value in shown.items() if value is not None]
    return f" Trained here with {', '.join(known)}." if known else ""
