"""The numbers of a cell by name: ``ece``, ``ood.nbaucc_0.5``, …, and which way each should go."""

from dataclasses import dataclass

from calibrant.metrics import Metric, metrics
from calibrant.study.cells import Cell

DETECTIONS = {"misclassification": "misclassified", "ood": "unfamiliar"}
"""Where detection metrics lie in a cell, and what they find."""


@dataclass(frozen=True)
class Measure:
    """One number of a cell."""

    name: str
    title: str
    higher_is_better: bool | None  # None: neither way is meant
    percent: bool = True

    @property
    def heading(self) -> str:
        """The title, its unit, and an arrow to where it is better."""
        arrow = {True: " ↑", False: " ↓", None: ""}[self.higher_is_better]
        return f"{self.title}{', %' if self.percent else ''}{arrow}"

    def of(self, cell: Cell) -> float | None:
        """None where it is not defined: no unfamiliar text, nothing misclassified."""
        *group, name = self.name.split(".", 1)
        numbers = cell.metrics[group[0]] if group else cell.metrics
        value: float | None = None if numbers is None else numbers.get(name)
        return value


def measures() -> dict[str, Measure]:
    """All that the registry of metrics has, detection metrics once for each of the two detections."""
    found = [_measure(metric, "") for metric in metrics().values() if metric.kind == "classification"]
    for group in DETECTIONS:
        found += [_measure(metric, group) for metric in metrics().values() if metric.kind == "detection"]
    return {measure.name: measure for measure in found}


def _measure(metric: Metric, group: str) -> Measure:
    name = f"{group}.{metric.name}" if group else metric.name
    title = f"{DETECTIONS[group]}: {metric.title}" if group else metric.title
    return Measure(name, title, metric.higher_is_better, metric.percent)
