import json
import math

import numpy as np
import pytest

from calibrant import metrics as m
from calibrant.errors import UserError
from calibrant.metrics.measure import measure, measure_rule, measure_scores
from calibrant.types import Prediction

DETECTION = {"nbaucc_0.5", "nbaucc_0.7", "nbaucc_1.0", "auroc", "aupr", "fpr95"}
TOP = {"accuracy", "ece", "nll", "brier", "aurc", "misclassification", "ood"} | {
    "n_test",
    "n_ood",
    "mean_confidence_test",
    "mean_confidence_ood",
}


def predictions(seed=0, n=60, classes=4, labels=True):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(classes), size=n).astype(np.float32)
    return Prediction(p, rng.integers(classes, size=n) if labels else None)


def test_keys_and_json():
    numbers = measure(predictions(), predictions(1, n=40, labels=False))
    assert set(numbers) == TOP
    assert set(numbers["misclassification"]) == set(numbers["ood"]) == DETECTION
    assert json.loads(json.dumps(numbers, allow_nan=False)) == numbers
    flat = [v for v in numbers.values() if not isinstance(v, dict)] + [
        v for part in ("misclassification", "ood") for v in numbers[part].values()
    ]
    assert {type(value) for value in flat} == {float, int}  # Python's own, not numpy's


def test_numbers_are_those_of_the_metrics():
    test, ood = predictions(), predictions(1, n=40, labels=False)
    numbers = measure(test, ood)
    assert numbers["accuracy"] == m.accuracy(test.probabilities, test.labels)
    assert numbers["ece"] == m.expected_calibration_error(test.probabilities, test.labels)
    assert numbers["nll"] == m.negative_log_likelihood(test.probabilities, test.labels)
    assert numbers["brier"] == m.brier_score(test.probabilities, test.labels)
    assert numbers["aurc"] == m.aurc(test.probabilities, test.labels)
    assert (numbers["n_test"], numbers["n_ood"]) == (60, 40)
    assert numbers["mean_confidence_test"] == pytest.approx(test.confidence.mean())
    assert numbers["mean_confidence_ood"] == pytest.approx(ood.confidence.mean())

    wrong = test.predicted != test.labels
    assert numbers["misclassification"]["auroc"] == m.auroc(test.confidence, wrong)
    assert numbers["misclassification"]["nbaucc_0.7"] == m.nbaucc(test.confidence, wrong, tau=0.7)
    together = np.concatenate([test.confidence, ood.confidence])
    unfamiliar = np.array([False] * 60 + [True] * 40)
    assert numbers["ood"]["nbaucc_1.0"] == m.nbaucc(together, unfamiliar, tau=1.0)
    assert numbers["ood"]["fpr95"] == m.fpr95(together, unfamiliar)


def test_without_unfamiliar_text():
    numbers = measure(predictions())
    assert set(numbers) == TOP
    assert numbers["ood"] is None
    assert numbers["mean_confidence_ood"] is None
    assert numbers["n_ood"] == 0


@pytest.mark.parametrize("labels", [[0, 1], [1, 0]], ids=["all right", "all wrong"])
def test_undefined_is_none(labels):
    test = Prediction(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array(labels))
    found = measure(test)["misclassification"]
    assert {name for name, value in found.items() if value is None} == {"auroc", "aupr", "fpr95"}
    assert all(math.isfinite(found[name]) for name in ("nbaucc_0.5", "nbaucc_0.7", "nbaucc_1.0"))


def test_one_text_each():
    test = Prediction(np.array([[0.9, 0.1]]), np.array([0]))
    numbers = measure(test, Prediction(np.array([[0.5, 0.5]])))
    assert numbers["ood"]["auroc"] == 1.0
    json.dumps(numbers, allow_nan=False)


def test_refuses_a_test_set_without_labels():
    with pytest.raises(
        UserError, match=r"Evaluation needs the true labels of the test texts, got none; add a"
    ):
        measure(predictions(labels=False))


def test_refuses_what_the_metrics_refuse():
    with pytest.raises(UserError, match=r"probabilities must lie in \[0, 1\]"):
        measure(Prediction(np.array([[3.0, -1.0]]), np.array([0])))
    with pytest.raises(UserError, match=r"probabilities must have shape \(n, K\) with n ≥ 1"):
        measure(predictions(), Prediction(np.zeros((0, 4))))


def test_scores_are_ranked_with_larger_as_less_familiar():
    rng = np.random.default_rng(0)
    wrong = rng.random(50) < 0.3
    test = {"distance": 100 + 30 * rng.normal(size=50) + 20 * wrong}
    ood = {"distance": 150 + 30 * rng.normal(size=40)}
    found = measure_scores(test, wrong, ood)["distance"]
    assert found["misclassification"]["auroc"] == m.auroc(-test["distance"], wrong) > 0.5
    together = -np.concatenate([test["distance"], ood["distance"]])
    unfamiliar = np.arange(90) >= 50
    assert found["ood"] == {
        "auroc": m.auroc(together, unfamiliar),
        "aupr": m.aupr(together, unfamiliar),
        "fpr95": m.fpr95(together, unfamiliar),
    }
    assert found["ood"]["auroc"] > 0.7
    none_wrong = measure_scores(test, np.zeros(50, dtype=bool))["distance"]
    assert none_wrong == {"misclassification": dict.fromkeys(("auroc", "aupr", "fpr95")), "ood": None}


def test_what_a_rule_does():
    answered, wrong = np.array([True, True, True, False]), np.array([True, False, False, True])
    numbers = measure_rule(answered, wrong, np.array([True, False]))
    assert numbers == {"coverage": 0.75, "risk": pytest.approx(1 / 3), "ood_answered": 0.5}
