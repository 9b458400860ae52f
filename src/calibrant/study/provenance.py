"""On what text the figures were measured, and how that differs from the paper's, from the cells' records."""

from collections.abc import Iterable
from statistics import fmean
from typing import Any

from calibrant.data.orange import ORANGE
from calibrant.study.cells import Cell
from calibrant.study.published import published_sizes
from calibrant.types import Texts

PARTS = {"train": "train", "dev": "dev", "test": "test", "ood": "unfamiliar"}
SETTINGS = ("model", "layers", "max_length", "epochs", "batch_size", "learning_rate")


def describe(texts: Texts) -> dict[str, Any]:
    """What a cell records of its texts: where they came from, and what they look like.

    The mean number of words shows what a name does not: whether these are titles or whole questions.
    """
    return texts.provenance() | {
        "classes": None if texts.labels is None else len(set(texts.labels)),
        "words": round(fmean(len(text.split()) for text in texts.texts), 1),
    }


def notes(cells: Iterable[Cell]) -> list[str]:
    """A sentence for each dataset and each record of its data: every method should have had the same."""
    found: dict[tuple[str, str], list[str]] = {}
    for cell in cells:
        about = f"{_data(cell)}{_settings(cell)}"
        found.setdefault((cell.key.dataset, about), []).append(cell.key.method)
    several = {dataset for dataset, _ in found if sum(dataset == other for other, _ in found) > 1}
    return [
        f"{dataset}{_only(methods) if dataset in several else ''}: {about}"
        for (dataset, about), methods in found.items()
    ]


def _only(methods: list[str]) -> str:
    return f" (NOT the same for every cell; here {', '.join(dict.fromkeys(methods))})"


def _data(cell: Cell) -> str:
    paper = published_sizes().get(cell.key.dataset)
    parts = []
    for part, title in PARTS.items():
        if part in cell.data:
            about = cell.data[part]
            printed = None if paper is None else getattr(paper, part)
            instead = "" if printed in (None, about["n"]) else f" instead of the paper's {printed:,}"
            words = f", {about['words']:.0f} words a text" if "words" in about else ""
            of_train = part == "dev" and about["source"].startswith(cell.data["train"]["source"])
            source = "" if of_train else f" ({about['source']}{words})"
            parts.append(f"{title} {about['n']:,}{instead}{source}")
    new = " Not in the paper." if paper is None else ""
    sources = " ".join(about["source"] for about in cell.data.values())
    orange = (
        f" {ORANGE}: lower-cased, without punctuation, digits or headers." if str(ORANGE) in sources else ""
    )
    return f"{'; '.join(parts)}.{new}{orange}"


def _settings(cell: Cell) -> str:
    shown = {name.replace("_", " "): cell.config.get(name) for name in SETTINGS}
    known = [f"{name} {value}" for name, value in shown.items() if value is not None]
    return f" Trained here with {', '.join(known)}." if known else ""
