"""Conformal sets: all labels that a text may have, so that the true one is among them as often as asked.

A score s(x, y) says how badly label y fits text x. The dev texts give s_i = s(x_i, y_i), and the set of a
new text is

    C(x) = {y : s(x, y) ≤ q},    q = the ⌈(n + 1)·coverage⌉-th smallest of s_1 … s_n.

If the new text is exchangeable with the n dev texts, P(y ∈ C(x)) ≥ coverage, whatever the model, and less
than coverage + 1/(n + 1) where no scores are equal (Vovk et al. 2005). Per class, q is taken of the dev
texts of each class alone, and the promise holds for each class (Mondrian sets).

Both scores here are 0 for the predicted label, so that no set is empty, and use no random numbers, so that
the same text always has the same set; more coverage only adds labels. A model that is right more often than
asked has sets of one label, which then hold the true one more often than asked.

MAPIE has both scores too, and is the oracle of the tests. It wants a fitted scikit-learn estimator to call,
where a run has probabilities already, and its sets can be empty or, with its default of APS, too large.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.registry import pick

Floats = NDArray[np.floating]


def lac_scores(p: Floats) -> Floats:
    """s(x, y) = 1 − p_y, and 0 for the predicted label, (n, K) from probabilities (n, K).

    Least ambiguous sets: the smallest on average (Sadinle et al. 2019).
    """
    s = 1 - p
    s[np.arange(len(p)), p.argmax(axis=1)] = 0
    return s


def aps_scores(p: Floats) -> Floats:
    """s(x, y) = Σ p_k over the labels k that are more probable than y, (n, K) from probabilities (n, K).

    Adaptive sets: a text's set ends where the probabilities of its labels exceed q (Romano et al. 2020).
    There y itself is counted too, less a random part of it; left out, as here, no random number is needed,
    the coverage is the same, and the sets are a little smaller.
    """
    order = np.argsort(-p, axis=1, kind="stable")  # of equally probable labels the first, as argmax
    before = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    before = np.hstack([np.zeros((len(p), 1)), before[:, :-1]])
    s = np.empty_like(before)
    np.put_along_axis(s, order, before, axis=1)
    return s


SCORES = {"lac": lac_scores, "aps": aps_scores}


def conformal_quantile(scores: Floats, coverage: float) -> float:
    """q: the ⌈(n + 1)·coverage⌉-th smallest of the scores (n,).

    >>> conformal_quantile(np.array([0.1, 0.2, 0.3, 0.4]), coverage=0.6)
    0.3
    """
    if len(scores) < texts_needed(coverage):
        raise UserError(
            f"Sets with coverage {coverage:g} need {texts_needed(coverage)} dev texts or more, got "
            f"{len(scores)}; give more of them, or ask for less coverage."
        )
    rank = math.ceil(round((len(scores) + 1) * coverage, 9))  # rounded: 100 · 0.07 is above 7
    return float(np.partition(scores, rank - 1)[rank - 1])


def texts_needed(coverage: float) -> int:
    """The smallest n with ⌈(n + 1)·coverage⌉ ≤ n.

    >>> texts_needed(0.9), texts_needed(0.99)
    (9, 99)
    """
    return math.ceil(round(coverage / (1 - coverage), 9))


def check_request(coverage: float, method: str) -> None:
    """Refuse what no dev set could give."""
    pick("set method", method, SCORES)
    if not 0 < coverage < 1:
        raise UserError(
            f"The coverage of sets must lie between 0 and 1, got {coverage:g}; write 0.9 for sets that hold "
            "the true label of 90 in 100 texts."
        )


@dataclass(frozen=True)
class SetRule:
    """Which labels are in a set: y where s(x, y) ≤ q_y."""

    method: str  # of SCORES
    q: Floats  # (K,)

    def members(self, probabilities: Floats) -> NDArray[np.bool_]:
        """Whether each label is in the set of each text, (n, K)."""
        return np.asarray(SCORES[self.method](probabilities) <= self.q)

    def labels(self, probabilities: Floats, names: Sequence[str]) -> list[list[str]]:
        """The sets of n texts by name, the most probable label first."""
        order = np.argsort(-probabilities, axis=1, kind="stable")
        member = self.members(probabilities)
        return [[names[k] for k in ks if row[k]] for ks, row in zip(order, member, strict=True)]


def fit_sets(
    probabilities: Floats,
    labels: NDArray[np.integer],
    coverage: float = 0.9,
    method: str = "lac",
    per_class: bool = False,
    names: Sequence[str] | None = None,
) -> SetRule:
    """The rule, from the probabilities (n, K) and true classes (n,) of dev texts.

    Per class, those with too few texts for a quantile of their own share one: what is promised for them
    holds for all of them together, and about, for dev and new texts may mix them otherwise. For those without
    any text nothing is promised. A warning calls the classes by their ``names``, or numbers.

    >>> p = np.array([[0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    >>> fit_sets(p, np.array([0, 1, 1]), coverage=0.75).members(p).tolist()
    [[True, False], [True, True], [False, True]]
    """
    check_request(coverage, method)
    scores = SCORES[method](probabilities)[np.arange(len(labels)), labels]
    needed = texts_needed(coverage)
    classes = probabilities.shape[1]
    group = np.zeros(classes, dtype=int)  # the classes of a group share a quantile
    if per_class:
        count = np.bincount(labels, minlength=classes)
        rare = count < needed
        group = np.where(rare, classes, np.arange(classes))
        if rare.any():
            about = f"{rare.sum()} of {classes} classes have fewer than {needed} dev texts each"
            if count[rare].sum() < needed:
                raise UserError(
                    f"Sets per class with coverage {coverage:g}: {about}, and {count[rare].sum()} together; "
                    "give more of them, ask for less coverage, or for sets that are not per class."
                )
            told = f"{about}; for these the coverage is about {coverage:g}, of all of them together"
            if absent := [str(k) if names is None else names[k] for k in np.flatnonzero(count == 0).tolist()]:
                told += f". Not covered, for want of any dev text: {', '.join(absent)}"
            warnings.warn(f"{told}.", stacklevel=3)
    q = np.empty(classes)
    for g in np.unique(group):
        q[group == g] = conformal_quantile(scores[group[labels] == g], coverage)
    return SetRule(method, q)
