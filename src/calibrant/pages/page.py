"""One HTML page that needs nothing else: models side by side, their numbers, their answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from calibrant._system.atomic import check_folder, write_text
from calibrant.errors import UserError, visible
from calibrant.metrics import metrics
from calibrant.metrics.base import Metric
from calibrant.pages.plots import confidence_histogram, figure_svg, histogram_top, reliability_diagram
from calibrant.types import Prediction

GROUPS = {  # where a number lies in what ``evaluate`` returns, and what the table calls it
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


RULE = (Row("coverage", "answered", True), Row("risk", "wrong among the answered", False))


@dataclass(frozen=True)
class Entry:
    """A model on the page."""

    name: str
    test: Prediction  # familiar text, with labels
    ood: Prediction | None  # unfamiliar text, where there is any
    metrics: dict[str, Any]  # what ``evaluate(test, ood)`` gave


def write_report(
    path: str | Path,
    title: str,
    entries: Sequence[Entry],
    *,
    examples: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    provenance: Mapping[str, str] | None = None,
) -> Path:
    """Write the page and return its path. The file is complete or not there at all.

    Args:
        path: an ``.html`` file; missing directories are made.
        title: the heading.
        entries: the models, one column each, in this order; names must differ.
        examples: texts with each model's answer: ``{"kind": "unfamiliar", "text": …, "truth": … or None,
            "answers": {entry name: {"label": …, "confidence": …}}}``.
        notes: sentences on what data, from where, by which command.
        provenance: name → value for the foot of the page: versions, seeds, fingerprints.
    """
    names = [entry.name for entry in entries]
    if not names or len(set(names)) < len(names):
        raise UserError(f"A report needs one or more models with different names, got {names}.")
    unknown = {name for example in examples for name in example["answers"]} - set(names)
    if unknown:
        raise UserError(f"Examples may only hold answers of {names}, got {sorted(unknown)} as well.")
    template = files("calibrant.pages").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown_data
    )
    html = environment.from_string(template).render(
        title=title,
        entries=entries,
        reliability=[_reliability_figure(entry, f"r{i}-") for i, entry in enumerate(entries)],
        histograms=_histograms(entries),
        groups=[group for group in map(partial(_group, entries), GROUPS) if group["rows"]],
        examples=examples,
        notes=notes,
        provenance=provenance or {},
    )
    return _write(Path(path), html)


def _reliability_figure(entry: Entry, prefix: str) -> Markup:
    label = (
        f"Reliability diagram of {entry.name} on {len(entry.test)} familiar texts: expected calibration "
        f"error {_shown(entry.metrics.get('ece'))}, accuracy {_shown(entry.metrics.get('accuracy'))}."
    )
    draw = partial(reliability_diagram, confidence=entry.test.confidence, correct=entry.test.correct)
    return _svg(draw, prefix, label)


def _histograms(entries: Sequence[Entry]) -> list[Markup | None]:
    """One figure per entry, None where there is no unfamiliar text; nothing at all if no entry has any."""
    given = [entry.ood for entry in entries if entry.ood is not None]
    if not given:
        return []
    top = 1.05 * max(histogram_top(ood.confidence) for ood in given)  # one scale, so that they compare
    return [
        None if entry.ood is None else _histogram(entry.name, entry.ood, top, prefix=f"h{i}-")
        for i, entry in enumerate(entries)
    ]


def _histogram(name: str, ood: Prediction, top: float, prefix: str) -> Markup:
    label = (
        f"Histogram of the confidence of {name} on {len(ood)} unfamiliar texts: "
        f"mean {float(ood.confidence.mean()):.1%}."
    )
    guess = 1 / ood.probabilities.shape[1]
    draw = partial(confidence_histogram, confidence=ood.confidence, guess=guess, top=top)
    return _svg(draw, prefix, label)


def _svg(draw: Any, prefix: str, label: str) -> Markup:
    figure = Figure(figsize=(3.6, 3.2), layout="constrained")
    axes: Axes = figure.add_subplot()
    draw(axes)
    return Markup(figure_svg(figure, prefix, label))  # nosec B704  matplotlib escapes its text, figure_svg the label


def _group(entries: Sequence[Entry], key: str) -> dict[str, Any]:
    """The table's rows of one kind of number, with the best value of each marked."""
    kind = "detection" if key else "classification"
    measured = [metric for metric in metrics().values() if metric.kind == kind]
    chosen: Sequence[Row | Metric] = RULE if key == "abstention" else measured
    rows = []
    for metric in chosen:
        sources = [(entry.metrics.get(key) or {}) if key else entry.metrics for entry in entries]
        values = [source.get(metric.name) for source in sources]
        numbers = [round(value, 4) for value in values if value is not None]
        if not numbers:
            continue
        # Compared as shown, so that two cells that look alike are both marked; one model beats nobody.
        best = (max if metric.higher_is_better else min)(numbers) if len(entries) > 1 else None
        cells = [
            {"text": _shown(value), "best": value is not None and round(value, 4) == best} for value in values
        ]
        rows.append({"metric": metric, "cells": cells})
    return {"title": GROUPS[key], "rows": rows}


def _shown_data(value: Any) -> Any:
    """What the template puts in, before it is escaped; a line break is a space to HTML."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "\n".join(map(visible, value.splitlines()))


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def check_place(path: Path) -> None:
    """Refuse a place that no page can be written to; for those who do long work first."""
    if path.is_dir():
        raise UserError(f"The report is one file, but {path} is a directory; give a name ending in .html.")
    check_folder(path.parent, "the report")


def _write(path: Path, text: str) -> Path:
    check_place(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
