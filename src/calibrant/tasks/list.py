"""``calibrant list``: what can be named elsewhere. Each kind imports what it lists and no more."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from calibrant.registry import pick

Rows = list[dict[str, Any]]


def list_(kind: str) -> Rows:
    """A row for each entry of a kind: "methods", "objectives", "solvers", "inferences", …"""
    return pick("kind", kind, KINDS)()


def _methods() -> Rows:
    from calibrant.calibrators import new_calibrator
    from calibrant.inference import inferences
    from calibrant.methods import METHODS, Method
    from calibrant.objectives import objectives

    def citation(method: Method) -> str:
        """Of what it adds to plain fine-tuning."""
        if method.calibrator is not None:
            return new_calibrator(method.calibrator).citation
        if method.inference != "single":
            return inferences()[method.inference].citation
        return objectives()[method.objective].citation

    return [asdict(method) | {"citation": citation(method)} for method in METHODS.values()]


def _objectives() -> Rows:
    from calibrant.objectives import objectives

    return _with_hyper_parameters(objectives())


def _inferences() -> Rows:
    from calibrant.inference import inferences

    return _with_hyper_parameters(inferences())


def _solvers() -> Rows:
    from calibrant.objectives.solvers import solvers

    return [{"name": name, "citation": solver.citation} for name, solver in solvers().items()]


def _calibrators() -> Rows:
    from calibrant.calibrators import calibrators

    return [{"name": name, "citation": calibrator.citation} for name, calibrator in calibrators().items()]


def _scores() -> Rows:
    from calibrant.scores import scores

    return [
        {
            "name": name,
            "fitted on": "training texts" if score.learns else None,
            "citation": score.citation,
        }
        for name, score in scores().items()
    ]


def _with_hyper_parameters(entries: Mapping[str, Any]) -> Rows:
    return [
        {
            "name": name,
            "hyper-parameters": ", ".join(f"{field.name}={field.default}" for field in fields(entry)),
            "citation": entry.citation,
        }
        for name, entry in entries.items()
    ]


def _metrics() -> Rows:
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


def _datasets() -> Rows:
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


KINDS: dict[str, Callable[[], Rows]] = {
    "methods": _methods,
    "objectives": _objectives,
    "solvers": _solvers,
    "inferences": _inferences,
    "calibrators": _calibrators,
    "scores": _scores,
    "metrics": _metrics,
    "datasets": _datasets,
}
