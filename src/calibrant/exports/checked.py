"""Texts that every export must answer as the run does, before it is there."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import calibrated
from calibrant.classifier import Classifier, outputs_of
from calibrant.data.encode import encode
from calibrant.errors import UserError
from calibrant.exports.answers import Answers, difference, of_the_run, steps
from calibrant.runs.texts import own_splits
from calibrant.types import Needs, Pair

LONG = 512
"""Tokens of a long text; what some models can take, 32768 and more, fits in no memory."""
SOME = 100
"""Of the training texts. Dev's will not do: familiarity jumps at each of them."""
NO_NEEDS: Needs = frozenset()


@dataclass(frozen=True, eq=False)
class Checked:
    """The texts, and what the run says of them."""

    texts: Sequence[str]
    rows: Sequence[Sequence[int]]
    padding: int
    max_length: int
    answers: Answers
    at_step: NDArray[np.bool_]

    def difference(self, export: Answers) -> float:
        """Of what an export says."""
        return difference(self.answers, export, self.at_step)

    @property
    def batches(self) -> list[Sequence[Sequence[int]]]:
        """Other sizes than an ONNX file is traced with: one text, long and short, and all others, padded."""
        return [self.rows[:1], self.rows[1:2], self.rows[2:]]


def checked(classifier: Classifier) -> Checked:
    """The longest and the shortest first."""
    tokenizer = classifier.tokenizer
    max_length = min(classifier.max_length, tokenizer.model_max_length)
    names = list(classifier.label_names[:8])
    texts: list[str] = [*names, " ".join(names) + " a" * min(max_length, LONG)]
    if classifier.run is not None:
        if classifier.run.config.pair_column is not None:
            texts = [Pair(text, text) for text in texts]
        with suppress(UserError):  # texts that are no longer there
            texts += own_splits(classifier.run).train.texts[:SOME]
    texts.sort(key=lambda text: len(encode(tokenizer, [text], max_length)[0]))
    texts = [texts[-1], *texts[:-1]]
    rows = encode(tokenizer, texts, max_length)
    rule, calibrator = classifier.rule, classifier.calibrator
    needs = rule.needs | (NO_NEEDS if calibrator is None else calibrator.needs)
    said = outputs_of(classifier.inference, classifier.models, rows, tokenizer.pad_token_id, needs)
    said = calibrated(said, calibrator)
    answers, at_step = of_the_run(said, rule), steps(calibrator, rule, said)
    return Checked(texts, rows, tokenizer.pad_token_id, max_length, answers, at_step)
