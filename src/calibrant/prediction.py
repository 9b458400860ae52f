"""The only prediction loop, and the classifier that a run becomes."""

import threading
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor

import calibrant.models  # noqa: F401  so that transformers knows our own architectures when a run is loaded
from calibrant import artifact, dev
from calibrant.calibrators import Calibrator, by_heart, from_state
from calibrant.conformal import SetRule, fit_sets
from calibrant.data.encode import encode, pad
from calibrant.data.splits import check_labels
from calibrant.device import device
from calibrant.errors import UserError
from calibrant.inference import Inference, inferences
from calibrant.models.linear import use_convolved_linear
from calibrant.registry import pick
from calibrant.scores.files import load_score
from calibrant.selective import Rule
from calibrant.types import Decision, Outputs, Prediction, Progress, Texts

BATCH_SIZE = 32

_PASS = threading.Lock()
"""Held for the pass of one batch: it switches parts of its model for a moment (the last layer, dropout), and
a server's threads share that model."""


@torch.inference_mode()
def predict_logits(
    inference: Inference,
    models: Sequence[Any],
    rows: Sequence[Sequence[int]],
    padding: int,
    progress: Progress | None = None,
    label: str = "predict",
) -> NDArray[np.float32]:
    """Logits of tokenised texts, (n, K)."""
    logits = np.empty((len(rows), models[0].config.num_labels), dtype=np.float32)
    for chosen, ids, mask in _batches(rows, padding, models[0].device, progress, label):
        with _PASS:
            logits[chosen] = _numpy(inference.logits(models, ids, mask))
    return logits


@torch.inference_mode()
def predict_logits_and_features(
    inference: Inference,
    models: Sequence[Any],
    rows: Sequence[Sequence[int]],
    padding: int,
    progress: Progress | None = None,
    label: str = "predict",
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Logits (n, K) and features (n, h) of tokenised texts; slower than the logits alone, for which a part
    of the last layer is enough."""
    logits = np.empty((len(rows), models[0].config.num_labels), dtype=np.float32)
    features = np.empty((len(rows), 0), dtype=np.float32)
    for chosen, ids, mask in _batches(rows, padding, models[0].device, progress, label):
        with _PASS:
            z, f = inference.logits_and_features(models, ids, mask)
        if not features.size:
            features = np.empty((len(rows), f.shape[1]), dtype=np.float32)
        logits[chosen], features[chosen] = _numpy(z), _numpy(f)
    return logits, features


def _batches(
    rows: Sequence[Sequence[int]],
    padding: int,
    device: torch.device,
    progress: Progress | None,
    label: str,
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """The prediction loop: which texts, their ids and their mask.

    Texts of like length share a batch, so that little padding is computed.
    """
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
    for start in range(0, len(order), BATCH_SIZE):
        chosen = order[start : start + BATCH_SIZE]
        ids, mask = pad([rows[i] for i in chosen], padding)
        yield chosen, ids.to(device), mask.to(device)
        if progress is not None:
            progress(label, start + len(chosen), len(order))


def _numpy(output: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = output.float().cpu().numpy()
    return array


class Classifier:
    """A trained run, ready to answer. ``calibrant.load`` makes one."""

    def __init__(self, run: artifact.Run) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.run = run
        self.asked_otherwise = False
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
        for model in self.models:
            use_convolved_linear(model.to(device()))

    def asked(
        self,
        inference: Inference,
        calibrator: Calibrator | None = None,
        others: Sequence["Classifier"] = (),
    ) -> "Classifier":
        """The same weights, asked by another inference and answering through another calibrator.

        Nothing is copied and the run on disk stays as it is. What was learnt for its own way of answering
        (the rule, sets, fitted scores) does not come along. ``others`` are further members of an ensemble.
        """
        answering = copy(self)
        answering.inference, answering.calibrator = inference, calibrator
        answering.asked_otherwise, answering.rule = True, Rule(threshold=0.0)
        answering.models = [model for classifier in (self, *others) for model in classifier.models]
        return answering

    def check_own(self, what: str) -> None:
        """Refuse what belongs to the run where it is asked otherwise than it was trained to be."""
        if self.asked_otherwise:
            raise UserError(
                f"{what} belong to {self.run.path} as it answers by itself, and this classifier is asked "
                f"otherwise; take calibrant.load({str(self.run.path)!r})."
            )

    def predict_proba(
        self, texts: Sequence[str], progress: Progress | None = None, label: str = "predict"
    ) -> NDArray[np.floating]:
        """Class probabilities, (n, K): the calibrator's, where the run has one."""
        return self.probabilities(self.logits(texts, progress, label))

    def probabilities(self, logits: NDArray[np.float64]) -> NDArray[np.floating]:
        """What the run makes of logits, (n, K): the calibrator's, where it has one."""
        probabilities: NDArray[np.floating] = (
            softmax(logits, axis=1) if self.calibrator is None else self.calibrator.probabilities(logits)
        )
        return probabilities

    def logits(
        self, texts: Sequence[str], progress: Progress | None = None, label: str = "predict"
    ) -> NDArray[np.float64]:
        """What a calibrator sees: logarithms, up to a constant, of the probabilities, (n, K)."""
        rows, padding = self._rows(texts), self.tokenizer.pad_token_id
        logits = predict_logits(self.inference, self.models, rows, padding, progress, label)
        return logits.astype(np.float64)

    def outputs(
        self,
        texts: Sequence[str],
        features: bool = True,
        progress: Progress | None = None,
        label: str = "predict",
    ) -> Outputs:
        """What a score sees, of one pass over each text; without features it is faster."""
        if not features:
            logits = self.logits(texts, progress, label)
            return Outputs(logits, self.probabilities(logits), None)
        rows, padding = self._rows(texts), self.tokenizer.pad_token_id
        z, f = predict_logits_and_features(self.inference, self.models, rows, padding, progress, label)
        logits = z.astype(np.float64)
        return Outputs(logits, self.probabilities(logits), f)

    def predict(
        self, texts: Sequence[str], threshold: float | None = None, progress: Progress | None = None
    ) -> list[Decision]:
        """A label, its confidence and whether to abstain, for each text.

        The rule stored with the run says when to abstain; a ``threshold`` on the confidence takes its place,
        and 0 answers everything.
        """
        rule = self.rule if threshold is None else Rule(threshold)
        outputs = self.outputs(texts, rule.uses_features, progress)
        decisions = []
        for row, answered in zip(outputs.probabilities, rule.answers(outputs), strict=True):
            best = int(row.argmax())
            probabilities = dict(zip(self.label_names, map(float, row), strict=True))
            decisions.append(Decision(self.label_names[best], float(row[best]), not answered, probabilities))
        return decisions

    @cached_property
    def rule(self) -> Rule:
        """When to answer, as stored with the run; always, where nothing is."""
        stored = self.run.record.get("threshold")
        if stored is None:
            return Rule(threshold=0.0)
        try:
            threshold, score, cut = (stored["rule"][key] for key in ("threshold", "score", "cut"))
        except (KeyError, TypeError) as error:
            raise UserError(
                f"The rule in {self.run.path / artifact.RECORD} is damaged ({error}); learn it again with "
                "`calibrant threshold`."
            ) from error
        return Rule(threshold) if score is None else Rule(threshold, load_score(self.run, score), cut)

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, once all have been looked at."""
        if isinstance(texts, str):
            raise UserError("predict takes a list of texts, not one string; write [text].")
        for number, text in enumerate(texts, start=1):
            if not isinstance(text, str) or not text.strip():
                raise UserError(f"Text {number} of {len(texts)} is empty; there is nothing to classify.")
        return encode(self.tokenizer, texts, self.run.config.max_length) if len(texts) else []

    def predict_set(
        self,
        texts: Sequence[str],
        coverage: float = 0.9,
        method: str = "lac",
        per_class: bool = False,
        progress: Progress | None = None,
    ) -> list[list[str]]:
        """The labels that a text may have, most probable first: the true one is among them for ``coverage``
        of the texts like those of dev. ``method`` is "lac" (smallest sets) or "aps" (larger where unsure).
        """
        rule = self.set_rule(coverage, method, per_class)
        return rule.labels(self.predict_proba(texts, progress), self.label_names)

    def set_rule(self, coverage: float = 0.9, method: str = "lac", per_class: bool = False) -> SetRule:
        """Which labels are in a set, from what the run answered on dev."""
        self.check_own("Sets")
        kept = dev.read(self.run)
        if kept is None:
            raise UserError(
                f"{self.run.path} keeps no answers on dev yet, which sets are fitted on; call "
                "`calibrant.answer_dev(classifier)` first, once."
            )
        if flaw := by_heart(self.run.record["calibrator"], kept.texts):
            warnings.warn(
                f"{flaw}, so that sets hold the true label less often than asked; name other labelled texts "
                "with --dev.",
                stacklevel=2,
            )
        p = self.probabilities(kept.logits)
        return fit_sets(p, kept.labels, coverage, method, per_class, self.label_names)

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
