"""Cells of a study with numbers of a test's own."""

from calibrant.methods import METHODS
from calibrant.metrics import metrics
from calibrant.study.cells import Cell, Key
from calibrant.study.rows import ROWS

DATA = {
    "train": {"n": 7010, "source": "files here", "fingerprint": "a", "classes": 15, "words": 240.1},
    "dev": {"n": 1753, "source": "files here (20 % of train, stratified)", "fingerprint": "b"},
    "test": {"n": 5833, "source": "files here", "fingerprint": "c", "classes": 15, "words": 238.6},
    "ood": {"n": 1699, "source": "files there", "fingerprint": "d", "classes": None, "words": 9.4},
}


def make_cell(
    method="bert",
    seed=0,
    dataset="20ng-15",
    variant="",
    *,
    data=DATA,
    config=None,
    settings=(),
    seconds=10.0,
    timed=True,
    machine="this one",
    **numbers,
):
    """Every metric is 0.5 but those that are named: ``ece=0.1``, ``misclassification={"auroc": 0.9}``."""
    kinds = {"classification": {}, "detection": {}}
    for metric in metrics().values():
        kinds[metric.kind][metric.name] = 0.5
    found = (
        kinds["classification"]
        | {"mean_confidence_test": numbers.get("accuracy", 0.5)}
        | {
            group: None if numbers.get(group, {}) is None else kinds["detection"] | numbers.pop(group, {})
            for group in ("misclassification", "ood")
        }
    )
    return Cell(
        key=Key(dataset, method, seed, variant),
        fingerprint="f",
        metrics=found | numbers,
        objective={"name": METHODS[ROWS[method].method].objective, **dict(settings)},
        config={"model": "minilm", "epochs": 5} if config is None else config,
        training={"seconds": seconds, "work_seconds": seconds} if timed else {"seconds": seconds},
        data=data,
        versions={},
        machine=machine,
    )


def series(method, values, name="ece", **more):
    """A cell for each value, with seeds 0, 1, …"""
    return [make_cell(method, seed, **{name: value}, **more) for seed, value in enumerate(values)]
