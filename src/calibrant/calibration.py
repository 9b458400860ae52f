"""Fit a calibrator to a finished run, and keep it there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.artifact import Run
from calibrant.artifact import load as load_run
from calibrant.calibrators import Calibrator
from calibrant.data import read_file
from calibrant.data.splits import warn_of_overlap
from calibrant.errors import UserError
from calibrant.fitting import load_again
from calibrant.metrics import accuracy, expected_calibration_error, negative_log_likelihood
from calibrant.prediction import load
from calibrant.types import Progress, Texts


@dataclass(frozen=True)
class Calibrated:
    """What was fitted, and what it changed on the texts that it was fitted on."""

    calibrator: Calibrator
    dev: Texts
    before: dict[str, float]  # accuracy, NLL and ECE without a calibrator
    after: dict[str, float]
    removed_rule: dict[str, Any] | None  # the rule of abstention that the run had; it holds no longer


def calibrate(
    path: Path | str,
    calibrator: Calibrator,
    dev: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: Progress | None = None,
) -> Calibrated:
    """Fit ``calibrator`` on a labelled file, or on the run's own dev texts, and store it in the run.

    One that the run already has is replaced, and a rule of abstention removed: every confidence has changed.
    """
    classifier = load(path)
    config = classifier.run.config
    columns = text_column or config.text_column, label_column or config.label_column
    texts = dev_texts(classifier.run, dev, columns)
    labels = classifier.class_ids(texts)
    logits = classifier.logits(texts.texts, progress, "dev")
    fitted = calibrator.fit(logits, labels)
    removed_rule = classifier.run.stored().record.get("threshold")
    classifier.run.calibrated(fitted.state(), texts.provenance())
    before, after = (_figures(p, labels) for p in (softmax(logits, axis=1), fitted.probabilities(logits)))
    return Calibrated(fitted, texts, before, after, removed_rule)


def remove_calibrator(path: Path | str) -> dict[str, Any] | None:
    """Let the run answer as its model does. Gives the rule of abstention that went with it, or None."""
    run = load_run(path)
    run.calibrated(None, None)
    removed_rule: dict[str, Any] | None = run.record.get("threshold")
    return removed_rule


def dev_texts(run: Run, dev: str | None, columns: tuple[str, str]) -> Texts:
    """A labelled file, or the run's own dev texts; text that training saw too is warned of."""
    try:
        own = load_again(run.config, run.record["data"])
    except UserError as reason:
        if dev is None:
            why = str(reason).rstrip(".")
            raise UserError(
                f"--dev is missing, and the run's own dev texts cannot be had again ({why}); name a labelled "
                "file with text that training has not seen."
            ) from reason
        return read_file(dev, *columns, labelled=True)
    if dev is None:
        return own.dev
    texts = read_file(dev, *columns, labelled=True)
    warn_of_overlap(own.train, texts)
    return texts


def _figures(probabilities: NDArray[Any], labels: NDArray[Any]) -> dict[str, float]:
    metrics = {"accuracy": accuracy, "nll": negative_log_likelihood, "ece": expected_calibration_error}
    return {name: metric(probabilities, labels) for name, metric in metrics.items()}
