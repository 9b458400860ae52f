"""A method is a row of the paper's tables: a choice of objective, inference and calibrator.

Rows that share an objective share the trained model. Any other combination is the user's to make.
"""

from dataclasses import dataclass

NO_CALIBRATOR = "none"
"""How a user says that there should be none, where the method or a run has one."""


@dataclass(frozen=True)
class Method:
    """One row."""

    name: str
    objective: str
    inference: str = "single"
    calibrator: str | None = None
    cost: float | None = None  # of training, plain = 1, by benchmarks/costs.py; None: not measured


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("bert", "cross-entropy", cost=1.0),
        Method("temperature-scaling", "cross-entropy", calibrator="temperature", cost=1.0),
        Method("mc-dropout", "cross-entropy", inference="mc-dropout", cost=1.0),
        Method("label-smoothing", "label-smoothing", cost=1.0),
        Method("entropy-regularized", "entropy-regularized", cost=1.0),
        Method("vat", "vat", cost=2.9),
        Method("mixup", "mixup", cost=1.0),
        Method("manifold-mixup", "manifold-mixup", cost=1.2),
        Method("manifold-smoothing", "manifold-smoothing", cost=3.3),
        Method("deep-ensemble", "cross-entropy", inference="ensemble", cost=5.0),
        Method("mmce", "mmce", cost=1.0),
    )
}


def combination(objective: str, inference: str, calibrator: str | None) -> Method:
    """The row that makes these choices; where there is none, one that is named after them.

    >>> combination("cross-entropy", "single", "temperature").name
    'temperature-scaling'
    >>> combination("manifold-smoothing", "single", "temperature").name
    'manifold-smoothing + temperature'
    """
    for method in METHODS.values():
        if (method.objective, method.inference, method.calibrator) == (objective, inference, calibrator):
            return method
    more = [inference if inference != "single" else None, calibrator]
    name = " + ".join([objective, *(choice for choice in more if choice is not None)])
    return Method(name, objective, inference, calibrator)
