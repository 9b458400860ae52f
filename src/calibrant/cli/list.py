"""``calibrant list``."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer


class Kind(StrEnum):
    """What can be listed."""

    methods = "methods"
    objectives = "objectives"
    inferences = "inferences"
    calibrators = "calibrators"
    scores = "scores"
    metrics = "metrics"
    datasets = "datasets"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """List what can be named in the other commands.

    \b
    Example:  calibrant list methods
    """
    rows = _ROWS[kind]()
    if json_:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    from calibrant.cli.tables import plain_table

    # Who and when are enough for a table; --json has the titles.
    short = [
        {name: value.split(")")[0] + ")" if name == "citation" else value for name, value in row.items()}
        for row in rows
    ]
    typer.echo(plain_table(short))


def _methods() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from calibrant.calibrators import calibrators
    from calibrant.inference import inferences
    from calibrant.methods import METHODS, Method
    from calibrant.objectives import objectives

    def citation(method: Method) -> str:
        """Of what it adds to plain fine-tuning."""
        if method.calibrator is not None:
            return calibrators()[method.calibrator].citation
        if method.inference != "single":
            return inferences()[method.inference].citation
        return objectives()[method.objective].citation

    return [asdict(method) | {"citation": citation(method)} for method in METHODS.values()]


def _objectives() -> list[dict[str, Any]]:
    from calibrant.objectives import objectives

    return _with_hyper_parameters(objectives())


def _inferences() -> list[dict[str, Any]]:
    from calibrant.inference import inferences

    return _with_hyper_parameters(inferences())


def _calibrators() -> list[dict[str, Any]]:
    from calibrant.calibrators import calibrators

    return [{"name": name, "citation": calibrator.citation} for name, calibrator in calibrators().items()]


def _scores() -> list[dict[str, Any]]:
    from calibrant.scores import FeatureScore, scores

    return [
        {
            "name": name,
            "fitted on": "training texts" if issubclass(score, FeatureScore) else None,
            "citation": score.citation,
        }
        for name, score in scores().items()
    ]


def _with_hyper_parameters(entries: Mapping[str, Any]) -> list[dict[str, Any]]:
    from dataclasses import fields

    return [
        {
            "name": name,
            "hyper-parameters": ", ".join(f"{field.name}={field.default}" for field in fields(entry)),
            "citation": entry.citation,
        }
        for name, entry in entries.items()
    ]


def _metrics() -> list[dict[str, Any]]:
    from calibrant.metrics import metrics

    return [
        {
            "name": metric.name,
            "title": metric.title,
            "kind": metric.kind,
            "better": "higher" if metric.higher_is_better else "lower",
        }
        for metric in metrics().values()
    ]


def _datasets() -> list[dict[str, Any]]:
    from calibrant.data import datasets

    return [
        {
            "name": dataset.name,
            "unfamiliar text": dataset.ood or "–",
            "sources": ", ".join(map(str, dataset.sources)),
            "licence": dataset.licence,
            "citation": dataset.citation,
        }
        for dataset in datasets().values()
    ]


_ROWS = {
    Kind.methods: _methods,
    Kind.objectives: _objectives,
    Kind.inferences: _inferences,
    Kind.calibrators: _calibrators,
    Kind.scores: _scores,
    Kind.metrics: _metrics,
    Kind.datasets: _datasets,
}
