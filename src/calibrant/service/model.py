"""What answers: a classifier, and how the service tells of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import calibrated
from calibrant.classifier import Classifier, load
from calibrant.decide.sets import SetRule
from calibrant.errors import UserError
from calibrant.service.schemas import Answer, ClassProbability
from calibrant.types import Decision, Pair

DEFAULT_THRESHOLD = 0.5
"""Of a run without a rule: an answer that is more probably wrong than right is not given."""


@dataclass(frozen=True)
class Said:
    """What was said of one text, by which model."""

    decision: Decision
    cut: bool
    model: "Model"

    @property
    def reason(self) -> Literal["unsure", "unfamiliar"] | None:
        """Why it abstains, if it does."""
        if not self.decision.abstain:
            return None
        familiarity, below = self.decision.familiarity, self.model.unfamiliar_below
        strange = familiarity is not None and below is not None and familiarity < below
        # Confident enough and still turned away: that was the score of the rule.
        enough = self.model.thresholds[self.decision.label]
        return "unfamiliar" if strange or self.decision.confidence >= enough else "unsure"

    def answer(self, more: int, sets: SetRule | None) -> Answer:
        """As the client gets it, with so many of the next classes."""
        p = self.decision.probabilities
        ranked = sorted(p, key=p.__getitem__, reverse=True) if more else []
        others = [label for label in ranked if label != self.decision.label][:more]
        names = self.model.classifier.label_names
        return Answer.model_construct(
            label=self.decision.label,
            confidence=self.decision.confidence,
            familiarity=self.decision.familiarity,
            abstain=self.decision.abstain,
            reason=self.reason,
            next=[ClassProbability.model_construct(label=label, probability=p[label]) for label in others],
            set=None if sets is None else sets.labels(np.array([[p[name] for name in names]]), names)[0],
            cut=self.cut,
            run=self.model.digest,
        )


class Model:
    """A loaded run."""

    def __init__(self, path: Path, threshold: float | None = None) -> None:
        self.classifier: Classifier = load(path)
        self.run = self.classifier.own_run("Services")
        self.digest = self.run.digest
        self.stored = self.run.record.threshold
        self.threshold_from: Literal["rule", "option", "default"] = (
            "option" if threshold is not None else "default" if self.stored is None else "rule"
        )
        self._override = DEFAULT_THRESHOLD if threshold is None and self.stored is None else threshold
        rule = self.classifier.rule.threshold if self._override is None else self._override
        names = self.classifier.label_names
        self.thresholds = dict(zip(names, np.broadcast_to(rule, len(names)).tolist(), strict=True))
        self.threshold = min(self.thresholds.values())
        calibrator = self.classifier.calibrator
        self.unfamiliar_below = None if calibrator is None else calibrator.unfamiliar_below
        self.set_rule = lru_cache(maxsize=16)(self._set_rule)
        self.reads_pairs = self.run.config.pair_column is not None
        self.answer(
            [Pair("warm", "up") if self.reads_pairs else "warm up"]
        )  # the first pass is slow, and nobody is waiting yet

    def answer(self, texts: Sequence[str]) -> list[Said]:
        """By ``classifier.predict``, of all these texts in one call."""
        decisions = self.classifier.predict(texts, threshold=self._override)
        return [Said(d, cut, self) for d, cut in zip(decisions, self.classifier.cut(texts), strict=True)]

    def dev_familiarity(self) -> NDArray[np.floating] | None:
        """Where the n dev texts that it was fitted on lie between the n + 1 values that it has, (n,)."""
        kept = self.run.record.calibrator
        if kept is None or self.unfamiliar_below is None:
            return None
        n = kept.fitted_on.n
        return np.asarray((np.arange(1, n + 1) + 0.5) / (n + 1))

    def dev_confidence(self) -> NDArray[np.floating] | None:
        """Of the dev texts, (n,); None where the run keeps no answers on them, or learnt them by heart."""
        answers = self.classifier.kept_answers()
        if answers is None or self.classifier.by_heart(answers):
            return None
        return np.asarray(calibrated(answers.outputs, self.classifier.calibrator).probabilities.max(axis=1))

    def _set_rule(self, coverage: float) -> SetRule:
        if self.classifier.kept_answers() is None:
            raise UserError(
                "This run keeps no answers on dev, which sets are fitted on; where it was trained, run "
                "`calibrant predict RUN --text hello --coverage 0.9` once."
            )
        return self.classifier.set_rule(coverage)
