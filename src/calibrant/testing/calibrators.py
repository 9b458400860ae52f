"""What a calibrator must keep to."""

import json
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.calibrators.base import Calibrator
from calibrant.testing.expect import (
    expect,
    expect_named_and_cited,
    expect_possible_needs,
    expect_same,
    only,
    refused,
    without,
)
from calibrant.types import Outputs

Y = np.ndarray
REFUSED: list[tuple[Any, Any, str]] = [  # logits, labels, what the sentence says
    (np.zeros((2, 1)), [0, 0], "shape (n, K) with K ≥ 2, got (2, 1)"),
    (np.zeros(3), [0], "got (3,)"),
    ([[0.0, np.nan]], [0], "logits must be finite"),
    (np.zeros((0, 3)), np.array([], dtype=int), "at least one row, got int64 labels of shape (0,)"),
    (np.zeros((2, 3)), [0], "labels of shape (1,) for logits of shape (2, 3)"),
    (np.zeros((2, 3)), [0.0, 1.0], "got float64 labels"),
    (np.zeros((2, 3)), [0, 3], "labels must lie in 0..2 for 3 columns of logits, got 0..3"),
]


def check_calibrator(kind: type[Calibrator]) -> None:
    """Probabilities for any logits, better ones for over-confident logits, the same again from what is
    stored; nothing is read that is not declared, and nothing answered before the fit.

    >>> from calibrant.calibrators import Temperature
    >>> check_calibrator(Temperature)
    """
    expect_named_and_cited(kind)
    expect_possible_needs(kind)
    calibrator = kind()
    for classes in (2, 3, 40):
        _check_probabilities(calibrator, classes)
    _check_that_it_helps(calibrator)
    _check_stored(calibrator)
    _check_fitting(calibrator)
    _check_needs(calibrator)
    for logits, labels, words in REFUSED:
        with refused(f"{kind.name}, fit", words):
            calibrator.fit(Outputs(logits), labels)


def _check_probabilities(calibrator: Calibrator, classes: int) -> None:
    outputs, y = _outputs(classes)  # of 40 classes, dev lacks some
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = _fit(calibrator, outputs, y)
    should_warn = classes == 40 and calibrator.learns_by_heart
    expect(
        bool(told) == should_warn,
        f"{calibrator.name}, of {classes} classes: it should warn of classes without dev text if and only if "
        f"it learns by heart, and said {[str(warning.message) for warning in told]}",
    )
    for factor in (1, 1e4, 0):
        p = fitted.probabilities(replace(outputs, logits=factor * outputs.logits))
        where = f"{calibrator.name}, {classes} classes, logits times {factor:g}"
        expect(p.shape == outputs.logits.shape, f"{where}: shape {p.shape}")
        expect(p.dtype == np.float64, f"{where}: float64 is expected, got {p.dtype}")
        expect(((p >= 0) & (p <= 1)).all(), f"{where}: probabilities outside [0, 1], or NaN")
        expect_same(p.sum(axis=1), 1, f"{where}: rows do not sum to 1", atol=1e-12)


def _check_that_it_helps(calibrator: Calibrator) -> None:
    outputs, y = _outputs(scale=5)
    fitted = _fit(calibrator, outputs, y)
    if fitted.familiarity(outputs) is not None:
        return  # that is not about how sure the model is, but about which texts it knows
    z, truth = outputs.logits, np.eye(3)[y]
    before = np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True))
    squared = [((p - truth) ** 2).sum() for p in (before, fitted.probabilities(outputs))]
    expect(
        squared[1] < 0.95 * squared[0],
        f"{calibrator.name}: over-confident logits had a squared error of {squared[0]}, and now {squared[1]}",
    )


def _check_stored(calibrator: Calibrator) -> None:
    outputs, y = _outputs()
    fitted, name = _fit(calibrator, outputs, y), calibrator.name
    state = json.loads(json.dumps(fitted.state(), allow_nan=False))
    expect(state["name"] == name, f"{name}: its state names {state['name']!r}")
    again = type(fitted)(
        **state["parameters"], **{part: array.copy() for part, array in fitted.arrays().items()}
    )
    again.check(classes=3)
    expect(_kept(again) == _kept(fitted), f"{name} is not the same from what is stored of it")
    expect_same(
        again.probabilities(outputs), fitted.probabilities(outputs), f"{name}: stored, it says something else"
    )
    expect(fitted.summary().startswith(name), f"{name}: its summary begins otherwise, {fitted.summary()!r}")


def _check_fitting(calibrator: Calibrator) -> None:
    outputs, y = _outputs()
    before, name = _kept(calibrator), calibrator.name
    once, twice = (_kept(_fit(calibrator, outputs, y)) for _ in range(2))
    expect(once == twice, f"{name}: two fits to the same texts differ")
    expect(once != before, f"{name}: fit found nothing")
    expect(_kept(calibrator) == before, f"{name}: fit must give a new one, and changed this one")
    with refused(name, f"The calibrator '{name}' has not been fitted; call fit"):
        calibrator.probabilities(outputs)


def _check_needs(calibrator: Calibrator) -> None:
    outputs, y = _outputs()
    fitted, name = _fit(calibrator, outputs, y), calibrator.name
    given = replace(outputs, calibrated=np.full((60, 3), 1 / 3))
    expect_same(
        fitted.probabilities(only(given, calibrator.needs)),
        fitted.probabilities(outputs),
        f"{name} reads what it does not declare as needs",
    )
    for need in calibrator.needs:
        with refused(name, f"The calibrator '{name}' needs {need}; ask for"):
            fitted.probabilities(without(outputs, need))


def _fit(calibrator: Calibrator, outputs: Outputs, y: Y) -> Calibrator:
    """Training texts are there for those who read them."""
    return calibrator.fit(only(outputs, calibrator.needs), y, (outputs, y))


def _kept(calibrator: Calibrator) -> tuple[Any, Any]:
    """All that is stored of it."""
    return calibrator.state(), {name: array.tolist() for name, array in calibrator.arrays().items()}


def _outputs(classes: int = 3, n: int = 60, scale: float = 1.0) -> tuple[Outputs, Y]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    logits = 2 * rng.normal(size=(n, classes)) + 2 * np.eye(classes)[y]
    layers = rng.normal(size=(n, 3, 8)).astype(np.float32)
    return Outputs(scale * logits, layers[:, -1], layers[:, 1], layers), y
