"""The numbers of the page: each with what chance does to it, and which model is better beyond chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.metrics import metrics
from calibrant.metrics.base import Metric
from calibrant.metrics.bootstrap import Interval, Key, Noise
from calibrant.pages.entry import Entry

GROUPS = {  # where a number lies in what ``measure`` returns, and what the table calls it
    "": "On familiar text",
    "misclassification": "Finding its own mistakes",
    "ood": "Finding unfamiliar text",
    "abstention": "By its rule of abstention",
}


@dataclass(frozen=True)
class Row:
    """A number of the table that is no metric of the registry."""

    name: str
    title: str
    higher_is_better: bool
    percent: bool = True


RULE = (
    Row("coverage", "answered", True),
    Row("risk", "wrong among the answered", False),
    Row("ood_answered", "unfamiliar text answered", False),
)


@dataclass(frozen=True)
class Comparison:
    """Of models that were asked about the same texts."""

    entries: Sequence[Entry]
    noise: Noise

    def values(self, key: Key) -> list[float | None]:
        """Of each model; None where it has no such number."""
        group, name = key
        parts = [(entry.metrics.get(group) or {}) if group else entry.metrics for entry in self.entries]
        return [part.get(name) for part in parts]

    def interval(self, key: Key, model: int) -> Interval | None:
        """What chance does to a model's number."""
        value = self.values(key)[model]
        known = key in self.noise.deviations and value is not None
        return self.noise.interval(key, model, value) if known else None  # type: ignore[arg-type]

    def difference(self, key: Key, model: int, other: int) -> tuple[float, Interval] | None:
        """Of two models, paired, with its interval."""
        one, two = self.values(key)[model], self.values(key)[other]
        if one is None or two is None or key not in self.noise.deviations:
            return None
        interval = self.noise.difference(key, model, other, one - two)
        return None if interval is None else (one - two, interval)

    def leader(self, key: Key, higher_is_better: bool) -> int | None:
        """The model that is better than every other beyond chance; None where there is none such."""
        known = {i: value for i, value in enumerate(self.values(key)) if value is not None}
        if len(known) < 2:
            return None
        best = (max if higher_is_better else min)(known, key=lambda i: known[i])
        return best if all(self._beyond_chance(key, best, i) for i in known if i != best) else None

    def _beyond_chance(self, key: Key, model: int, other: int) -> bool:
        found = self.difference(key, model, other)
        if found is None:
            return False
        low, high = found[1]
        return low > 0 or high < 0

    def groups(self) -> list[dict[str, Any]]:
        """The table: groups of rows, each with a cell for every model."""
        groups = [{"title": title, "rows": self._rows(group)} for group, title in GROUPS.items()]
        return [group for group in groups if group["rows"]]

    def _rows(self, group: str) -> list[dict[str, Any]]:
        kind = "detection" if group else "classification"
        measured = [metric for metric in metrics().values() if metric.kind == kind]
        chosen: Sequence[Row | Metric] = RULE if group == "abstention" else measured
        return [
            self._row((group, metric.name), metric)
            for metric in chosen
            if any(value is not None for value in self.values((group, metric.name)))
        ]

    def _row(self, key: Key, metric: Row | Metric) -> dict[str, Any]:
        leader = self.leader(key, metric.higher_is_better)
        cells = []
        for i, value in enumerate(self.values(key)):
            interval, difference = self.interval(key, i), self.difference(key, i, 0) if i else None
            cells.append(
                {
                    "text": "–" if value is None else shown(value, metric.percent),
                    "interval": "" if interval is None else between(interval, metric.percent),
                    "difference": ""
                    if difference is None
                    else f"{shown(difference[0], metric.percent, sign=True)} "
                    f"({between(difference[1], metric.percent, sign=True)})",
                    "best": i == leader,
                }
            )
        return {"metric": metric, "cells": cells}


def shown(value: float, percent: bool = True, sign: bool = False) -> str:
    """With one decimal in percent, or three decimals.

    >>> shown(0.1234), shown(-0.5, percent=False, sign=True)
    ('12.3', '−0.500')
    """
    number = 100 * value if percent else value
    text = f"{number:.1f}" if percent else f"{number:.3f}"
    if float(text) == 0:
        text = text.lstrip("-")
    elif sign and number > 0:
        text = f"+{text}"
    return text.replace("-", "−")


def between(interval: Interval, percent: bool = True, sign: bool = False) -> str:
    """An interval in words.

    >>> between((0.01, 0.123))
    '1.0 to 12.3'
    """
    return " to ".join(shown(end, percent, sign) for end in interval)
