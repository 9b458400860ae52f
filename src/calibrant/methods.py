"""A method is a row of the paper's tables: a choice of objective, inference and calibrator.

Rows that share an objective share the trained model. Any other combination is the user's to make.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One row."""

    name: str
    objective: str
    inference: str = "single"
    calibrator: str | None = None


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("bert", "cross-entropy"),
        Method("label-smoothing", "label-smoothing"),
        Method("entropy-regularized", "entropy-regularized"),
        Method("vat", "vat"),
        Method("mixup", "mixup"),
        Method("manifold-mixup", "manifold-mixup"),
        Method("manifold-smoothing", "manifold-smoothing"),
        Method("mmce", "mmce"),
    )
}
