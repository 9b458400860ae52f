"""A method is a row of a table: a choice on each axis, and nothing more.

Rows that share all but inference and calibrator share the trained model. Any other combination is the user's
to make.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any

NO_CALIBRATOR = "none"
"""How a user says that there should be none, where the method or a run has one."""

INTERPOLATION = "interpolation"
"""What is kept: no epoch, but the best point between the start and the last one."""

TEMPERATURE_THEN_FAMILIARITY = "temperature+familiarity"


@dataclass(frozen=True)
class Method:
    """One row."""

    name: str
    objective: str = "cross-entropy"
    inference: str = "single"
    calibrator: str | None = None
    start: str = "random"  # of the head: "random", or the linear "probe"
    frozen: bool = False  # whether the start is all: the encoder stays as it came
    pooling: str = (
        "native"  # what the head reads: "native" is the architecture's own head; see models/pooling
    )
    keep: str = "accuracy"
    """What is best on dev: the epoch in "accuracy" or in "refinement" (NLL after a temperature), or, by
    the latter, the "interpolation" of start and end."""
    patience: int = 0  # epochs without a better one after which training stops; 0: never
    learning_rate: float = 1e-4  # where the settings name none
    width: int | None = None  # of the encoder that this rate is for; for others it goes with 1/width
    about: str = field(default="", compare=False)  # what it does, in a line for somebody who chooses
    cost: float | None = field(default=None, compare=False)
    """Of a training step, plain = 1, by benchmarks/costs.py; None: not measured."""

    def rate(self, width: int | None) -> float:
        """The learning rate for an encoder of this width (Yang et al. 2021: with Adam, as 1/width)."""
        if self.width is None or width is None:
            return self.learning_rate
        return self.learning_rate * self.width / width


_PROBE: dict[str, Any] = {
    "start": "probe",
    "pooling": "first+mean",
    "keep": INTERPOLATION,
    "calibrator": TEMPERATURE_THEN_FAMILIARITY,
}

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "calibrant",
            learning_rate=2e-4,
            width=384,
            **_PROBE,
            about="The default: calibrated, and unsure on unfamiliar text.",
            cost=1.2,
        ),
        Method(
            "linear-probe",
            frozen=True,
            **_PROBE,
            about="The same without fine-tuning: seconds, not minutes.",
        ),
        Method("bert", cost=1.0, about="Plain fine-tuning; its confidence is often too high."),
        Method(
            "temperature-scaling",
            calibrator="temperature",
            cost=1.0,
            about="Plain, then one number that corrects confidence.",
        ),
        Method(
            "mc-dropout",
            inference="mc-dropout",
            cost=1.0,
            about="Plain; an answer is the mean of 10 random passes.",
        ),
        Method(
            "label-smoothing",
            "label-smoothing",
            cost=1.0,
            about="Trains towards labels that are not quite certain.",
        ),
        Method(
            "entropy-regularized",
            "entropy-regularized",
            cost=1.0,
            about="Trains with a penalty on confident answers.",
        ),
        Method("vat", "vat", cost=2.9, about="Trains for one answer when a text changes a little."),
        Method("mixup", "mixup", cost=1.0, about="Trains on mixtures of two texts."),
        Method(
            "manifold-mixup",
            "manifold-mixup",
            cost=1.2,
            about="Trains on mixtures of the features of two texts.",
        ),
        Method(
            "manifold-smoothing",
            "manifold-smoothing",
            cost=3.3,
            about="The paper's: smooth between texts, unsure beside them.",
        ),
        Method(
            "deep-ensemble",
            inference="ensemble",
            cost=5.0,
            about="Plain fine-tuning 5 times; an answer is the mean.",
        ),
        Method(
            "mmce",
            "mmce",
            cost=1.0,
            about="Trains to close the gap of confidence and accuracy.",
        ),
    )
}
DEFAULT = "calibrant"
_BESIDE = ("name", "about", "learning_rate", "width", "cost")
AXES = tuple(each.name for each in fields(Method) if each.name not in _BESIDE)


def named(method: Method) -> Method:
    """The row that makes these choices; where there is none, one that is named after them.

    >>> named(Method("", calibrator="temperature")).name
    'temperature-scaling'
    >>> named(Method("", "manifold-smoothing", calibrator="temperature")).name
    'manifold-smoothing + temperature'
    """
    for row in METHODS.values():
        if all(getattr(row, axis) == getattr(method, axis) for axis in AXES):
            return row
    beside = [
        None if (value := getattr(method, axis)) == getattr(Method(""), axis) else _shown(axis, value)
        for axis in AXES
        if axis != "objective"
    ]
    return replace(method, name=" + ".join([method.objective, *filter(None, beside)]), about="", cost=None)


def _shown(axis: str, value: Any) -> str:
    return str(value) if axis in ("inference", "calibrator") else f"{axis} {value}"
