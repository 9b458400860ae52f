"""``calibrant list``: what can be named elsewhere. Each kind imports what it lists and no more."""

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from calibrant.registry import pick

Rows = list[dict[str, Any]]


def list_(kind: str) -> Rows:
    """A row for each entry of a kind ("methods", "objectives", …): its name, what it does, and more."""
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

    return [_first(method) | asdict(method) | {"citation": citation(method)} for method in METHODS.values()]


def _objectives() -> Rows:
    from calibrant.methods import METHODS
    from calibrant.objectives import objectives

    costs = {row.objective: row.cost for row in METHODS.values() if row.inference == "single" and row.cost}
    return [_first(entry) | {"cost": costs.get(name)} | _more(entry) for name, entry in objectives().items()]


def _inferences() -> Rows:
    from calibrant.inference import inferences

    return [_first(entry) | _more(entry) for entry in inferences().values()]


def _solvers() -> Rows:
    from calibrant.objectives.solvers import solvers

    return [_first(solver) | {"citation": solver.citation} for solver in solvers().values()]


def _calibrators() -> Rows:
    from calibrant.calibrators import calibrators

    return [_first(calibrator) | {"citation": calibrator.citation} for calibrator in calibrators().values()]


def _scores() -> Rows:
    from calibrant.scores import scores

    return [
        _first(score) | {"fitted on": "training texts" if score.learns else None, "citation": score.citation}
        for score in scores().values()
    ]


def _first(entry: Any) -> dict[str, Any]:
    """What every row begins with."""
    return {"name": entry.name, "about": entry.about or None}


def _more(entry: Any) -> dict[str, Any]:
    defaults = ", ".join(f"{field.name}={field.default}" for field in fields(entry))
    return {"hyper-parameters": defaults, "citation": entry.citation}


def _metrics() -> Rows:
    from calibrant.metrics import metrics

    return [
        _first(metric)
        | {
            "title": metric.title,
            "kind": metric.kind,
            "better": "higher" if metric.higher_is_better else "lower",
        }
        for metric in metrics().values()
    ]


def _datasets() -> Rows:
    from calibrant.data import datasets

    return [
        _first(dataset)
        | {
            "unfamiliar text": dataset.ood,
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
