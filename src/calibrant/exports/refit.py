"""A quantised classifier with a decision of its own: temperature and familiarity, fitted again on dev."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.calibrators import Calibrator, calibrated
from calibrant.classifier import Classifier
from calibrant.data.encode import encode
from calibrant.errors import UserError
from calibrant.exports.onnx import Session, outputs_of
from calibrant.metrics.dev import dev_figures
from calibrant.runs.store import Run
from calibrant.runs.texts import own_splits
from calibrant.types import Outputs, Progress, Splits


@dataclass(frozen=True)
class Lost:
    """What 8 bits cost on dev, before and after each with a calibrator of its own."""

    before: dict[str, float]  # accuracy, confidence, nll and ece
    after: dict[str, float]
    other_labels: float  # the share of texts whose label has changed
    n: int

    def in_words(self) -> str:
        """For the card."""
        before, after = self.before, self.after
        return (
            f"on the {self.n} dev texts its accuracy is {after['accuracy']:.1%} (in float32: "
            f"{before['accuracy']:.1%}), its expected calibration error {after['ece']:.1%} "
            f"({before['ece']:.1%}), and {self.other_labels:.1%} of the labels are others. Temperature and "
            "familiarity were fitted again for it."
        )


def texts_to_fit(run: Run) -> Splits:
    """The run's own; refused where they are gone."""
    try:
        return own_splits(run)
    except UserError as reason:
        why = str(reason).rstrip(".")
        raise UserError(
            f"--int8 fits on the run's own texts, and these cannot be had again ({why}); restore them, or "
            "leave --int8 out."
        ) from reason


def refitted(
    small: Any, classifier: Classifier, own: Splits, max_loss: float, progress: Progress
) -> tuple[Calibrator | None, Lost]:
    """The calibrator for the first half of a graph in integers, and what that costs.

    Refused where it loses more than ``max_loss`` of accuracy or of ECE.
    """
    calibrator, dev, train = classifier.calibrator, own.dev, own.train
    session, padding = Session(small), classifier.tokenizer.pad_token_id

    def said(texts: Any, label: str) -> Outputs:
        rows = encode(classifier.tokenizer, texts, classifier.max_length)
        return outputs_of(session(rows, padding, progress, label))

    labels, on_dev = classifier.class_ids(dev), said(dev.texts, "dev")
    if calibrator is not None:
        known = (said(train.texts, "train"), classifier.class_ids(train)) if calibrator.needs else None
        calibrator = calibrator.fit(on_dev, labels, known)
    before = classifier.outputs(dev.texts, progress=progress, label="dev as it was").probabilities
    after = calibrated(on_dev, calibrator).probabilities
    lost = Lost(
        dev_figures(before, labels),
        dev_figures(after, labels),
        float(np.mean(before.argmax(axis=1) != after.argmax(axis=1))),
        len(dev),
    )
    for what, name, loss in (
        ("accuracy", "accuracy", lost.before["accuracy"] - lost.after["accuracy"]),
        ("calibration (ECE)", "ece", lost.after["ece"] - lost.before["ece"]),
    ):
        if not loss <= max_loss:  # so that NaN fails
            raise UserError(
                f"--int8 would cost {loss:.2%} of {what} on the {len(dev)} dev texts "
                f"({lost.before[name]:.2%} → {lost.after[name]:.2%}), more than --max-loss "
                f"{max_loss:g}; nothing was written. Leave --int8 out, or allow more."
            )
    return calibrator, lost
