"""What the paper prints, typed in once: ``published.csv`` and ``published_sizes.csv``.

The values are those of Kong et al. (2020), tables 1 to 3 and the appendix's tables for NBAUCC at 0.7 and 1:
means in percent, over five seeds as the captions of the main tables say. Standard deviations are not printed
there. The rows of plain fine-tuning and of both regularizers in the ablation tables repeat those of the main
tables.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

Where = tuple[str, str, str, str]
"""Name of the measure, dataset, method and variant, as a cell has them."""


@dataclass(frozen=True)
class Sizes:
    """Texts in each part of a dataset, and its classes."""

    train: int
    dev: int
    test: int
    labels: int
    ood: int


@cache
def published() -> dict[Where, float]:
    """Every printed figure, as a fraction.

    >>> published()["ece", "20ng-15", "bert", ""]
    0.0924
    """
    return {
        (row["metric"], dataset, row["method"], row["variant"]): round(float(row[dataset]) / 100, 4)
        for row in _rows("published.csv")
        for dataset in published_sizes()
        if row[dataset]
    }


@cache
def published_sizes() -> dict[str, Sizes]:
    """The paper's datasets in its order.

    >>> published_sizes()["wos"].test
    18794
    """
    return {
        row.pop("dataset"): Sizes(**{name: int(value) for name, value in row.items()})
        for row in _rows("published_sizes.csv")
    }


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = files("calibrant.study").joinpath(name).read_text(encoding="utf-8")
    return csv.DictReader(text.splitlines())
