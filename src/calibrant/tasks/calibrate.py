"""``calibrant calibrate``: fit a calibrator to a finished run, and keep it there."""

from dataclasses import dataclass, replace
from pathlib import Path

from calibrant._system.progress import in_notebook
from calibrant.calibrators import Calibrator, calibrated, new_calibrator
from calibrant.classifier import load
from calibrant.fitting.calibrating import fit_calibrator
from calibrant.metrics.dev import dev_figures
from calibrant.runs import store
from calibrant.runs.record import ThresholdRecord
from calibrant.runs.texts import columns_of, dev_texts
from calibrant.types import Progress, Texts


@dataclass(frozen=True)
class Calibrated:
    """What was fitted, and what it changed on the texts that it was fitted on."""

    calibrator: Calibrator
    dev: Texts
    before: dict[str, float]  # the dev figures without a calibrator
    after: dict[str, float]
    removed_rule: ThresholdRecord | None  # the rule of abstention that the run had; it holds no longer


def calibrate(
    run: Path | str,
    *,
    calibrator: Calibrator | str,
    dev: Path | str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    pair_column: str | None = None,
    progress: Progress | None = in_notebook,
) -> Calibrated:
    """Fit ``calibrator`` on a labelled file, or on the run's own dev texts, and store it in the run.

    It may be named, as on the command line: ``"temperature+familiarity"``. One that the run already has is
    replaced, and a rule of abstention removed: every confidence has changed.
    """
    unfitted = new_calibrator(calibrator) if isinstance(calibrator, str) else calibrator
    classifier = replace(load(run), calibrator=None)
    own = classifier.own_run("Calibrators")
    texts = dev_texts(own, dev, columns_of(own, text_column, label_column, pair_column))
    labels = classifier.class_ids(texts)
    outputs = classifier.outputs(texts.texts, unfitted.needs, progress, "dev")
    fitted = fit_calibrator(classifier, unfitted, outputs, texts, progress=progress)
    removed_rule = own.stored().record.threshold
    own.calibrated(fitted, texts.provenance())
    before, after = (dev_figures(calibrated(outputs, one).probabilities, labels) for one in (None, fitted))
    return Calibrated(fitted, texts, before, after, removed_rule)


def remove_calibrator(run: Path | str) -> ThresholdRecord | None:
    """Let the run answer as its model does. Gives the rule of abstention that went with it, or None."""
    own = store.load(run)
    own.calibrated(None, None)
    return own.record.threshold
