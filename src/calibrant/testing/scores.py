"""What a score must keep to."""

import numpy as np

from calibrant.scores.base import FittedScore, Score
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


def check_score(kind: type[Score]) -> None:
    """Larger for less familiar text, text by text, and from nothing but what it declares; one that learns
    refuses before its fit, and is the same from its arrays.

    >>> from calibrant.scores import Energy
    >>> check_score(Energy)
    """
    expect_named_and_cited(kind)
    expect_possible_needs(kind)
    expect(
        kind.learns == issubclass(kind, FittedScore),
        f"{kind.name}: a score that learns, and no other, derives from FittedScore",
    )
    score: Score = kind()
    if isinstance(score, FittedScore):
        score = score.fit(*_outputs(60))
    _check_order(score)
    _check_text_by_text(score)
    if isinstance(score, FittedScore):
        _check_fitted(score)


def _check_order(score: Score) -> None:
    familiar, unfamiliar = score(_outputs(30, seed=1)[0]), score(_outputs(20, seed=2, far=True)[0])
    shapes = (familiar.shape, unfamiliar.shape)
    expect(shapes == ((30,), (20,)), f"{score.name}: one number for each text, got shapes {shapes}")
    expect(familiar.dtype == np.float64, f"{score.name}: float64 is expected, got {familiar.dtype}")
    expect(np.isfinite([*familiar, *unfamiliar]).all(), f"{score.name}: not all is finite")
    expect(np.median(unfamiliar) > familiar.max(), f"{score.name} must be larger where text is less familiar")


def _check_text_by_text(score: Score) -> None:
    outputs, _ = _outputs(30, seed=1)
    together = score(outputs)
    alone = np.concatenate([score(outputs[np.array([i])]) for i in range(30)])
    expect_same(alone, together, f"{score.name} of a text depends on its company", rtol=1e-9, atol=1e-9)
    expect_same(
        score(only(outputs, score.needs)), together, f"{score.name} reads what it does not declare as needs"
    )


def _check_fitted(fitted: FittedScore) -> None:
    kind, name, (train, y) = type(fitted), fitted.name, _outputs(60)
    outputs, _ = _outputs(30, seed=1)
    again = kind(**{part: array.copy() for part, array in fitted.arrays().items()})
    expect_same(again(outputs), fitted(outputs), f"{name} is not the same from its arrays")
    with refused(name, f"The score '{name}' has not been fitted; call fit(outputs, labels)"):
        kind()(train)
    for need in kind.needs:
        lacking, words = without(train, need), f"The score '{name}' needs {need}; ask for"
        with refused(name, words):
            fitted(lacking)
        with refused(name, words):
            kind().fit(lacking, y)
    for texts, labels in ((train, y[:-1]), (train[:0], y[:0])):
        with refused(name, f"'{name}' is fitted on one class id for each text and at least"):
            kind().fit(texts, labels)


def _outputs(n: int, seed: int = 0, far: bool = False) -> tuple[Outputs, np.ndarray]:
    """Of texts in three classes, or far from all: equal logits, and features where no class has any."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    logits = 6 * np.eye(3)[y] + rng.normal(size=(n, 3))
    features = 4 * np.eye(8)[y] + rng.normal(size=(n, 8))
    layers = features[:, None] + 0.3 * rng.normal(size=(n, 4, 8))
    if far:
        logits, features, layers = 0.1 * rng.normal(size=(n, 3)), -5 * features, -5 * layers
    small = layers.astype(np.float32)
    return Outputs(logits, features.astype(np.float32), small[:, 2], small), y
