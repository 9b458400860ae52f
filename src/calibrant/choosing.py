"""Which calibrator suits a model: all are fitted on dev, and dev alone decides."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.calibrators import Calibrator, calibrators
from calibrant.calibrators.foldable import Foldable
from calibrant.types import Progress

FOLDS = 5


@dataclass(frozen=True)
class Candidate:
    """A calibrator fitted on all of dev, or none."""

    calibrator: Calibrator | None
    losses: NDArray[np.float64]  # (n,) −log p[y] of each dev text, by a fit that had left it out

    @property
    def name(self) -> str:
        """As users know it."""
        return "none" if self.calibrator is None else self.calibrator.name

    @property
    def foldable(self) -> bool:
        """Whether a plain model can carry it."""
        return self.calibrator is None or isinstance(self.calibrator, Foldable)

    @property
    def dev_nll(self) -> float:
        """The mean loss."""
        return float(self.losses.mean())

    @property
    def numbers(self) -> int:
        """How many it holds."""
        if self.calibrator is None:
            return 0
        return sum(np.size(value) for value in self.calibrator.state()["parameters"].values())


def candidates(
    logits: NDArray[np.float64], labels: NDArray[np.integer], progress: Progress | None = None
) -> list[Candidate]:
    """No calibrator and every one that there is, fitted to the logits (n, K) and true classes (n,) of dev."""
    found = [Candidate(None, _losses(softmax(logits, axis=1), labels))]
    kinds = calibrators()
    for done, kind in enumerate(kinds.values(), start=1):
        left_out = _left_out_probabilities(kind(), logits, labels)
        found.append(Candidate(kind().fit(logits, labels), _losses(left_out, labels)))
        if progress is not None:
            progress("calibrators", done, len(kinds))
    return found


def choose(found: list[Candidate]) -> Candidate:
    """Of those that a plain model can carry, the one of fewest numbers that is as good as the best.

    As good: its mean loss is higher by no more than one standard error of the difference, text by text, so
    that a gain which is noise is not bought with parameters (Breiman et al., 1984, the 1-SE rule).
    """
    foldable = sorted((candidate for candidate in found if candidate.foldable), key=lambda c: c.numbers)
    best = min(foldable, key=lambda c: c.dev_nll)

    def as_good(candidate: Candidate) -> bool:
        worse = candidate.losses - best.losses
        return bool(worse.mean() <= worse.std() / np.sqrt(len(worse)))

    return next(filter(as_good, foldable))


def _left_out_probabilities(
    calibrator: Calibrator, z: NDArray[np.float64], y: NDArray[np.integer]
) -> NDArray[np.float64]:
    from sklearn.model_selection import KFold

    p = np.empty_like(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of a fit, the one to all of dev says
        for kept, left_out in KFold(FOLDS, shuffle=True, random_state=0).split(z):
            p[left_out] = calibrator.fit(z[kept], y[kept]).probabilities(z[left_out])
    return p


def _losses(p: NDArray[np.float64], y: NDArray[np.integer]) -> NDArray[np.float64]:
    of_truth = p[np.arange(len(y)), y]
    losses: NDArray[np.float64] = -np.log(np.maximum(of_truth, np.nextafter(0, 1)))  # as the metric has it
    return losses
