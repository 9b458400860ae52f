"""``calibrant list``."""

import json
from enum import StrEnum
from typing import Annotated, Any

import typer


class Kind(StrEnum):
    """What can be listed."""

    methods = "methods"
    objectives = "objectives"
    inferences = "inferences"
    metrics = "metrics"
    datasets = "datasets"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """List what can be named in the other commands.

    Example:  calibrant list methods
    """
    rows = _ROWS[kind]()
    if json_:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    from calibrant.cli.tables import plain_table

    typer.echo(plain_table(rows))


def _methods() -> list[dict[str, Any]]:
    from dataclasses import asdict

    from calibrant.methods import METHODS

    return [asdict(method) for method in METHODS.values()]


def _objectives() -> list[dict[str, Any]]:
    from dataclasses import fields

    from calibrant.objectives import objectives

    return [
        {
            "name": name,
            "hyper-parameters": ", ".join(f"{field.name}={field.default}" for field in fields(objective)),  # type: ignore[arg-type]
            "citation": objective.citation,
        }
        for name, objective in objectives().items()
    ]


def _inferences() -> list[dict[str, Any]]:
    from calibrant.inference import inferences

    return [{"name": name, "citation": inference.citation} for name, inference in inferences().items()]


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
    Kind.metrics: _metrics,
    Kind.datasets: _datasets,
}
