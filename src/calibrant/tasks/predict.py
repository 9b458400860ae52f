"""``calibrant predict``: what a run says of texts, a few thousand at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.classifier import Classifier, load
from calibrant.data.files import read_file
from calibrant.decide.sets import SetRule, check_request
from calibrant.errors import UserError
from calibrant.runs.texts import columns_of
from calibrant.types import Progress

AT_ONCE = 4096
"""Texts that are answered together, so that an interruption keeps what was answered before."""


def predict(
    run: Path | str,
    *,
    texts: Sequence[str] | None = None,
    file: str | None = None,
    text_column: str | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    set_method: str = "lac",
    set_per_class: bool = False,
    dev: str | None = None,
    progress: Progress | None = None,
) -> Iterator[dict[str, Any]]:
    """A row for each text: label, confidence, abstain and probabilities, and with ``coverage`` its ``set``.

    Args:
        run: its folder.
        texts: to be classified; or
        file: with the texts, as for training.
        text_column: of the file; as in training where it is not given.
        threshold: abstain below this confidence, 0 never; the run's own rule where it is not given.
        coverage: add the labels that hold the true one for this share of the texts.
        set_method: "lac" (smallest sets) or "aps" (larger where unsure).
        set_per_class: that share for each class, not over all texts.
        dev: a labelled file to fit the sets on from now on; the run's dev texts where it is not given.
        progress: told of each batch.
    """
    if (texts is None) == (file is None):
        raise UserError("predict takes either texts or a file with texts; give one of the two.")
    if coverage is not None:
        check_request(coverage, set_method)
    classifier = load(run)
    if texts is None:
        column, _ = columns_of(classifier.own_run("Columns"), text_column)
        texts = read_file(file or "", column).texts
    rule = None
    if coverage is not None:
        classifier.answer_dev(dev, progress)
        rule = classifier.set_rule(coverage, set_method, set_per_class)
    return _rows(classifier, texts, threshold, rule, progress)


def _rows(
    classifier: Classifier,
    texts: Sequence[str],
    threshold: float | None,
    rule: SetRule | None,
    progress: Progress | None,
) -> Iterator[dict[str, Any]]:
    for start in range(0, len(texts), AT_ONCE):

        def moved(what: str, done: int, total: int, start: int = start) -> None:
            if progress is not None:
                progress(what, start + done, len(texts))

        some = texts[start : start + AT_ONCE]
        decisions = classifier.predict(some, threshold=threshold, progress=moved)
        rows = [asdict(decision) for decision in decisions]
        if rule is not None:
            p = np.array([list(decision.probabilities.values()) for decision in decisions])
            for row, labels in zip(rows, rule.labels(p, classifier.label_names), strict=True):
                row["set"] = labels
        yield from rows
