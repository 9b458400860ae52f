"""The only prediction loop, and the classifier that a run becomes."""

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

import calibrant.models  # noqa: F401  so that transformers knows our own architectures when a run is loaded
from calibrant import artifact
from calibrant.calibrators import Calibrator, from_state
from calibrant.data.encode import encode, pad
from calibrant.data.splits import check_labels
from calibrant.errors import UserError
from calibrant.inference import Inference, inferences
from calibrant.registry import pick
from calibrant.types import Decision, Prediction, Progress, Texts

BATCH_SIZE = 32


def predict_logits(
    inference: Inference,
    models: Sequence[Any],
    rows: Sequence[Sequence[int]],
    padding: int,
    progress: Progress | None = None,
    label: str = "predict",
) -> NDArray[np.float32]:
    """Logits of tokenised texts, (n, K).

    Texts of like length share a batch, so that little padding is computed; the order given is the
    order returned.
    """
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
    device = models[0].device
    logits = np.empty((len(rows), models[0].config.num_labels), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), BATCH_SIZE):
            chosen = order[start : start + BATCH_SIZE]
            ids, mask = pad([rows[i] for i in chosen], padding)
            output = inference.logits(models, ids.to(device), mask.to(device))
            logits[chosen] = output.float().cpu().numpy()
            if progress is not None:
                progress(label, start + len(chosen), len(order))
    return logits


class Classifier:
    """A trained run, ready to answer. ``calibrant.load`` makes one."""

    def __init__(self, run: artifact.Run) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.run = run
        self.label_names = run.label_names
        # Records of before there was a choice have no settings of the inference.
        settings = dict(run.record.get("inference", {"name": run.record["method"]["inference"]}))
        self.inference: Inference = pick("inference", settings.pop("name"), inferences())(**settings)
        state = run.record["calibrator"]
        self.calibrator: Calibrator | None = None if state is None else from_state(state)
        self.models = [
            AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
            for folder in run.model_dirs
        ]
        self.tokenizer = AutoTokenizer.from_pretrained(run.model_dir)
        if torch.cuda.is_available():
            for model in self.models:
                model.to("cuda")

    def asked(
        self,
        inference: Inference,
        calibrator: Calibrator | None = None,
        others: Sequence["Classifier"] = (),
    ) -> "Classifier":
        """The same weights, asked by another inference and answering through another calibrator.

        Nothing is copied and the run on disk stays as it is. ``others`` are the further members of an
        ensemble.
        """
        answering = copy(self)
        answering.inference, answering.calibrator = inference, calibrator
        answering.models = [model for classifier in (self, *others) for model in classifier.models]
        return answering

    def predict_proba(
        self, texts: Sequence[str], progress: Progress | None = None, label: str = "predict"
    ) -> NDArray[np.floating]:
        """Class probabilities, (n, K): the calibrator's, where the run has one."""
        logits = self.logits(texts, progress, label)
        probabilities: NDArray[np.floating] = (
            softmax(logits, axis=1) if self.calibrator is None else self.calibrator.probabilities(logits)
        )
        return probabilities

    def logits(
        self, texts: Sequence[str], progress: Progress | None = None, label: str = "predict"
    ) -> NDArray[np.float64]:
        """What a calibrator sees: logarithms, up to a constant, of the probabilities, (n, K)."""
        if isinstance(texts, str):
            raise UserError("predict takes a list of texts, not one string; write [text].")
        for number, text in enumerate(texts, start=1):
            if not isinstance(text, str) or not text.strip():
                raise UserError(f"Text {number} of {len(texts)} is empty; there is nothing to classify.")
        if not len(texts):
            return np.empty((0, len(self.label_names)))
        rows = encode(self.tokenizer, texts, self.run.config.max_length)
        logits = predict_logits(
            self.inference, self.models, rows, self.tokenizer.pad_token_id, progress, label
        )
        return logits.astype(np.float64)

    def predict(
        self, texts: Sequence[str], threshold: float | None = None, progress: Progress | None = None
    ) -> list[Decision]:
        """A label, its confidence and whether to abstain (confidence below the threshold), for each text."""
        decisions = []
        for row in self.predict_proba(texts, progress):
            best = int(row.argmax())
            probabilities = dict(zip(self.label_names, map(float, row), strict=True))
            abstain = threshold is not None and bool(row[best] < threshold)
            decisions.append(Decision(self.label_names[best], float(row[best]), abstain, probabilities))
        return decisions

    def prediction(
        self, texts: Texts, progress: Progress | None = None, label: str = "predict"
    ) -> Prediction:
        """Probabilities beside the true classes, where the texts have labels that training saw."""
        labels = None if texts.labels is None else self.class_ids(texts)
        return Prediction(self.predict_proba(texts.texts, progress, label), labels)

    def class_ids(self, texts: Texts) -> NDArray[np.integer]:
        """The true classes of labelled texts, (n,); refused where training never saw the label."""
        check_labels(texts, self.label_names)
        class_of = {name: i for i, name in enumerate(self.label_names)}
        return np.array([class_of[name] for name in texts.labels or ()])


def load(path: Path | str) -> Classifier:
    """The classifier of a run directory."""
    return Classifier(artifact.load(path))
