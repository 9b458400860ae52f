"""What a figure of the study is, and the measured cells that it is drawn from."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from calibrant.errors import UserError
from calibrant.metrics.base import Floats
from calibrant.study.cells import Cell, Confidences, read_cells, read_confidences


class NotMeasured(UserError):
    """Cells that a figure needs are not there yet; other figures may have theirs."""


@dataclass(frozen=True)
class Drawing:
    """A figure that is drawn, and what it shows in words."""

    name: str  # of its files, without the ending
    figure: Figure
    caption: str


@dataclass(frozen=True)
class DatasetCells:
    """All that was measured on one dataset."""

    study: "Study"
    dataset: str
    cells: Sequence[Cell]

    def of(self, method: str, variant: str = "") -> dict[int, Cell]:
        """The cells of a method by seed, in their order; none where none is finished."""
        found = {c.key.seed: c for c in self.cells if (c.key.method, c.key.variant) == (method, variant)}
        return dict(sorted(found.items()))

    def confidences(self, cell: Cell) -> Confidences:
        """What lies beside the cell."""
        return read_confidences(cell, self.study.path)

    def lacks(self, what: Iterable[str], options: str) -> NotMeasured:
        """The error that says which cells are missing, and what command makes them."""
        command = self.study.command(f"--datasets {self.dataset} {options}")
        cells = ", nor of ".join(what)
        return NotMeasured(
            f"{self.study.path} has no cells of {cells} on {self.dataset}; get them with {command}."
        )


@dataclass(frozen=True)
class Study:
    """A study on disk, read when a figure asks for it."""

    path: Path
    only: Sequence[str] = ()  # datasets that are asked for; empty: all that it has

    @cached_property
    def preset(self) -> str | None:
        """What ``calibrant study run`` was told; None of cells that were made otherwise."""
        record = self.path / "study.json"
        try:
            return str(json.loads(record.read_text(encoding="utf-8"))["preset"]) if record.exists() else None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{record} is damaged; remove it and run the study's command again.") from error

    @cached_property
    def datasets(self) -> list[DatasetCells]:
        """Each with its cells, in the order asked for or by name."""
        cells = read_cells(self.path)
        measured = sorted({cell.key.dataset for cell in cells})
        if not measured:
            raise UserError(f"{self.path} has no cells yet; get them with {self.command()}.")
        for name in self.only:
            if name not in measured:
                raise UserError(
                    f"{self.path} has no cells of {name!r}, only of {', '.join(measured)}; get them with "
                    f"{self.command(f'--datasets {name}')}."
                )
        return [
            DatasetCells(self, name, [cell for cell in cells if cell.key.dataset == name])
            for name in self.only or measured
        ]

    def command(self, options: str = "") -> str:
        """What a user types for cells that are missing."""
        preset = "" if self.preset is None else f"--preset {self.preset}"
        words = filter(None, ("calibrant study run", preset, options, f"--out {self.path}"))
        return f"`{' '.join(words)}`"


@dataclass(frozen=True)
class StudyFigure(ABC):
    """An entry of the registry."""

    name: str

    @abstractmethod
    def jobs(self, study: Study) -> list[Callable[[], Drawing]]:
        """What is to be drawn; each may raise ``NotMeasured``."""


@dataclass(frozen=True)
class FigureOfCells(StudyFigure):
    """One drawing for each dataset."""

    draw: Callable[[DatasetCells], Drawing]

    def jobs(self, study: Study) -> list[Callable[[], Drawing]]:
        """One for each dataset."""
        return [partial(self.draw, cells) for cells in study.datasets]


@dataclass(frozen=True)
class FigureOfItsOwn(StudyFigure):
    """One drawing that needs no study."""

    draw: Callable[[], Drawing]

    def jobs(self, study: Study) -> list[Callable[[], Drawing]]:
        """A single one."""
        return [self.draw]


def mean_and_deviation(values: Sequence[Floats] | Sequence[float]) -> tuple[Floats, Floats]:
    """Over the first axis, the seeds: the mean, and the standard deviation (n − 1), NaN for one seed alone.

    >>> [round(float(number), 3) for number in mean_and_deviation([1.0, 2.0])]
    [1.5, 0.707]
    """
    stacked = np.asarray(values, dtype=np.float64)
    mean = stacked.mean(axis=0)
    return mean, stacked.std(axis=0, ddof=1) if len(stacked) > 1 else np.full_like(mean, np.nan)
