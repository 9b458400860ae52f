"""Made-up models for the report."""

import numpy as np

from calibrant.metrics.measure import measure
from calibrant.pages import Entry
from calibrant.types import Prediction, Texts

LABELS = ("a", "b", "c", "d", "e")


def entry(name, seed=0, sharpness=2.0, ood=True, told=False, rule=None, n=80, labels=LABELS, **more):
    """Of n familiar and 50 unfamiliar texts; ``told``: with familiarity; ``rule``: a threshold."""
    rng = np.random.default_rng(seed)
    k = len(labels)

    def predict(n, truth):
        z = rng.normal(size=(n, k))
        if truth is not None:
            z[np.arange(n), truth] += 1
        p = np.exp(sharpness * z)
        p /= p.sum(axis=1, keepdims=True)
        pi = rng.uniform(0.01, 1 if truth is not None else 0.2, size=n)
        answered = None if rule is None else p.max(axis=1) >= rule
        return Prediction(p, truth, pi if told else None, answered)

    test = predict(n, rng.integers(k, size=n))
    unfamiliar = predict(50, None) if ood else None
    if rule is not None:
        more = {"promised_risk": 0.2, **more}
    return Entry(name, test, unfamiliar, measure(test, unfamiliar), labels, **more)


def texts(entry, text="text number {}"):
    """The texts behind its answers, familiar and unfamiliar."""
    truth = [entry.label_names[i] for i in entry.test.labels]
    test = Texts([text.format(i) for i in range(len(truth))], truth, "file test.csv", "0")
    n = 0 if entry.ood is None else len(entry.ood)
    return test, Texts([text.format(f"o{i}") for i in range(n)], None, "file other.csv", "1")
