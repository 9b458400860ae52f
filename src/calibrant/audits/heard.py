"""What a classifier says of the texts: the model is asked, or its probabilities are given."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.audits.question import Question
from calibrant.audits.subject import load_subject
from calibrant.calibrators import Calibrator, calibrated, new_calibrator
from calibrant.classifier import Classifier
from calibrant.data.labels import match_labels
from calibrant.data.probabilities import class_names, read_probabilities
from calibrant.errors import UserError
from calibrant.exports.plain import check_plain
from calibrant.methods import TEMPERATURE_THEN_FAMILIARITY
from calibrant.metrics.base import check_probabilities
from calibrant.metrics.measure import measure
from calibrant.models.split import can_be_split
from calibrant.pages.entry import Entry
from calibrant.types import Needs, Outputs, Prediction, Progress, Texts

LEAST = 1e-12  # what a probability of 0 counts as: it has no logarithm


@dataclass(frozen=True)
class Heard:
    """What it says of all texts, and what they are."""

    outputs: dict[str, Outputs]  # of test, and of ood, dev and train where they are given
    labels: dict[str, NDArray[np.integer]]  # (n,) of each but ood
    label_names: tuple[str, ...]
    subject: Classifier | None = None  # None where only its probabilities are known

    def entry(self, name: str, calibrator: Calibrator | None) -> Entry:
        """Measured on test and ood, with this calibrator."""
        test = Prediction(calibrated(self.outputs["test"], calibrator).probabilities, self.labels["test"])
        ood = None
        if "ood" in self.outputs:
            ood = Prediction(calibrated(self.outputs["ood"], calibrator).probabilities)
        return Entry(name, test, ood, measure(test, ood), self.label_names)


def hear(question: Question, texts: dict[str, Texts], progress: Progress | None) -> Heard:
    """Of the model where there is one, else of its probabilities."""
    if question.model is None:
        return _given(question, texts)
    return _asked(question.model, question, texts, progress)


def _asked(model: str, question: Question, texts: dict[str, Texts], progress: Progress | None) -> Heard:
    """The model itself; for what familiarity needs only where that can be fitted."""
    subject = load_subject(model, question.max_length)
    if question.export is not None:
        check_plain(subject.models[0])
    labelled = [part for part in texts if part != "ood"]
    ids = match_labels([texts[part] for part in labelled], subject.label_names)
    needs: Needs = frozenset()
    if "dev" in texts and can_be_split(subject.models[0]):
        needs = new_calibrator(TEMPERATURE_THEN_FAMILIARITY).needs
    said = {
        part: subject.outputs(these.texts, needs, progress=progress, label=part)
        for part, these in texts.items()
    }
    return Heard(said, dict(zip(labelled, ids, strict=True)), subject.label_names, subject)


def _given(question: Question, texts: dict[str, Texts]) -> Heard:
    """What somebody else's classifier has said: log p stands for its logits."""
    paths = {
        "test": question.probabilities,
        "ood": question.ood_probabilities,
        "dev": question.dev_probabilities,
    }
    files = {part: read_probabilities(path) for part, path in paths.items() if path is not None}
    for part, file in files.items():
        if len(file.values) != len(texts[part]):
            raise UserError(
                f"{file.path} has {len(file.values)} rows for the {len(texts[part])} texts of --{part}; give "
                "a row for each, in the same order."
            )
        try:
            check_probabilities(file.values)
        except UserError as error:
            raise UserError(f"{file.path}: {error}") from error
    labelled = {part: these for part, these in texts.items() if part != "ood"}
    names = class_names(list(files.values()), labelled.values())
    class_of = {name: i for i, name in enumerate(names)}
    said = {
        part: Outputs(np.log(np.clip(file.values.astype(np.float64), LEAST, 1.0)))
        for part, file in files.items()
    }
    labels = {
        part: np.array([class_of[label] for label in these.labels or ()]) for part, these in labelled.items()
    }
    return Heard(said, labels, names)
