"""``calibrant list``: what can be named elsewhere. Each kind imports what it lists and no more."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from calibrant.registry import pick

Row = dict[str, Any]


def list_(kind: str, *, details: bool = False) -> list[Row]:
    """A row for each entry of a kind ("methods", "objectives", …): its name and what it does.

    With ``details`` all that is known of it, which may take the import of torch.
    """
    listed = pick("kind", kind, KINDS)
    return [
        {"name": entry.name, "about": entry.about or None} | (listed.details(entry) if details else {})
        for entry in listed.entries().values()
    ]


@dataclass(frozen=True)
class Kind:
    """Where its entries are, and what is known of one beside its name and what it does."""

    entries: Callable[[], Mapping[str, Any]]
    details: Callable[[Any], Row]


def _methods() -> Mapping[str, Any]:
    from calibrant.methods import METHODS

    return METHODS


def _of_method(method: Any) -> Row:
    return asdict(method) | {"citation": _of_what_it_adds(method).citation}


def _of_what_it_adds(method: Any) -> Any:
    """To plain fine-tuning."""
    if method.calibrator is not None:
        from calibrant.calibrators import new_calibrator

        return new_calibrator(method.calibrator)
    if method.inference != "single":
        return _inferences()[method.inference]
    return _objectives()[method.objective]


def _objectives() -> Mapping[str, Any]:
    from calibrant.objectives import objectives

    return objectives()


def _of_objective(objective: Any) -> Row:
    costs = {row.objective: row.cost for row in _methods().values() if row.inference == "single" and row.cost}
    return {"cost": costs.get(objective.name)} | _hyper_parameters(objective)


def _inferences() -> Mapping[str, Any]:
    from calibrant.inference import inferences

    return inferences()


def _hyper_parameters(entry: Any) -> Row:
    defaults = ", ".join(f"{field.name}={field.default}" for field in fields(entry))
    return {"hyper-parameters": defaults, "citation": entry.citation}


def _solvers() -> Mapping[str, Any]:
    from calibrant.objectives.solvers import solvers

    return solvers()


def _calibrators() -> Mapping[str, Any]:
    from calibrant.calibrators import calibrators

    return calibrators()


def _cited(entry: Any) -> Row:
    return {"citation": entry.citation}


def _scores() -> Mapping[str, Any]:
    from calibrant.scores import scores

    return scores()


def _of_score(score: Any) -> Row:
    return {"fitted on": "training texts" if score.learns else None, "citation": score.citation}


def _metrics() -> Mapping[str, Any]:
    from calibrant.metrics import metrics

    return metrics()


def _of_metric(metric: Any) -> Row:
    better = "higher" if metric.higher_is_better else "lower"
    return {"title": metric.title, "kind": metric.kind, "better": better}


def _datasets() -> Mapping[str, Any]:
    from calibrant.data import datasets

    return datasets()


def _of_dataset(dataset: Any) -> Row:
    return {
        "unfamiliar text": dataset.ood,
        "sources": ", ".join(map(str, dataset.sources)),
        "licence": dataset.licence,
        "citation": dataset.citation,
    }


KINDS = {
    "methods": Kind(_methods, _of_method),
    "objectives": Kind(_objectives, _of_objective),
    "solvers": Kind(_solvers, _cited),
    "inferences": Kind(_inferences, _hyper_parameters),
    "calibrators": Kind(_calibrators, _cited),
    "scores": Kind(_scores, _of_score),
    "metrics": Kind(_metrics, _of_metric),
    "datasets": Kind(_datasets, _of_dataset),
}
