"""Class by class: which answers can be trusted, and what a class is taken for."""

from dataclasses import dataclass

import numpy as np

from calibrant.errors import UserError
from calibrant.metrics.ece import reliability
from calibrant.types import Prediction


@dataclass(frozen=True)
class ClassNumbers:
    """Of one class. What depends on its answers is None where it was never answered."""

    texts: int  # that truly belong to it
    found: float | None  # the share of these that were answered so
    answers: int  # texts that were answered so
    accuracy: float | None  # of these answers
    confidence: float | None  # their mean
    ece: float | None
    confused_with: int | None  # the true class of most of the wrong ones among them
    confusions: int  # how many


def per_class(prediction: Prediction) -> list[ClassNumbers]:
    """One for each class, in the order of the ids.

    Accuracy, confidence and ECE are of the texts that were *answered* with the class. Confidence promises
    something about answers; of the texts that truly belong to a class a calibrated model need not be right
    as often as it says.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    >>> first, second = per_class(Prediction(p, labels=np.array([0, 1, 1])))
    >>> first.texts, first.answers, first.accuracy, first.confused_with
    (1, 2, 0.5, 1)
    >>> second.found, second.accuracy, second.confused_with
    (0.5, 1.0, None)
    """
    if prediction.labels is None:
        raise UserError("Numbers of each class need the true labels, got none; add a label column.")
    classes = prediction.probabilities.shape[1]
    truth, predicted = prediction.labels, prediction.predicted
    confidence, correct = prediction.confidence, prediction.correct
    texts = np.bincount(truth, minlength=classes)
    hits = np.bincount(truth[correct], minlength=classes)
    rows = []
    for number in range(classes):
        mine = predicted == number
        answers = int(mine.sum())
        mistaken = np.bincount(truth[mine & ~correct], minlength=classes)
        confused = int(mistaken.argmax())
        rows.append(
            ClassNumbers(
                texts=int(texts[number]),
                found=float(hits[number] / texts[number]) if texts[number] else None,
                answers=answers,
                accuracy=float(correct[mine].mean()) if answers else None,
                confidence=float(confidence[mine].mean(dtype=np.float64)) if answers else None,
                ece=reliability(confidence[mine], correct[mine]).ece if answers else None,
                confused_with=confused if mistaken[confused] else None,
                confusions=int(mistaken[confused]),
            )
        )
    return rows
