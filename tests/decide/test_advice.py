"""The rules, at their edges."""

import numpy as np
import pytest

from calibrant.decide.advice import advise, in_words, sureness
from calibrant.metrics.miscalibration import Miscalibration

OVER = Miscalibration(0.12, (0.08, 0.16), ece=0.12, chance=0.05)
FINE = Miscalibration(0.01, (-0.03, 0.05), ece=0.04, chance=0.05)


def measured(ece=0.12, ood=None, auroc=0.9, familiar=0.9, n_ood=50, accuracy=0.78):
    """What ``evaluate`` gives, as far as it is looked at, of two classes."""
    return {
        "n_test": 100,
        "n_ood": 0 if ood is None else n_ood,
        "accuracy": accuracy,
        "ece": ece,
        "nll": 0.5,
        "misclassification": {"auroc": auroc},
        "ood": None if ood is None else {"auroc": 0.7},
        "mean_confidence_test": familiar,
        "mean_confidence_ood": ood,
    }


@pytest.mark.parametrize(
    ("found", "calibrator", "after", "action"),
    [
        (OVER, "temperature", measured(0.03), "calibrate"),
        (OVER, None, measured(), "nothing"),
        (FINE, "temperature", measured(0.03), "nothing"),
        # Half of the way from 0.5 to 0.9 is 0.7, and chance adds ½·√(½·ln 20·(1/50 + ¼/100)) = 0.092.
        (OVER, "temperature", measured(0.03, ood=0.79), "calibrate"),
        (OVER, "temperature", measured(0.03, ood=0.80), "retrain"),
        (FINE, None, measured(0.04, ood=0.80), "retrain"),
        (FINE, None, measured(0.04, ood=0.80, n_ood=40), "nothing"),
        (FINE, None, measured(0.04, ood=0.99, n_ood=2), "nothing"),
        # For 22 mistakes of 100 texts the standard error at 0.7 is 0.068, and 0.7 − 1.645·0.068 = 0.588.
        (FINE, None, measured(0.04, auroc=0.58), "retrain"),
        (FINE, None, measured(0.04, auroc=0.59), "nothing"),
        (FINE, None, measured(0.04, auroc=0.3, accuracy=0.99), "nothing"),  # one mistake
        (FINE, None, measured(0.04, auroc=None), "nothing"),  # no mistake to find
    ],
)
def test_the_rules(found, calibrator, after, action):
    before = measured() if calibrator else after
    assert advise(found, calibrator, before, after, classes=2).action == action


def test_a_calibrator_that_is_not_advised_is_no_reason_to_train_again():
    before, after = measured(0.04, ood=0.6), measured(0.04, ood=0.94)
    assert advise(FINE, "matrix-scaling", before, after, classes=2).action == "nothing"
    found = advise(FINE, "matrix-scaling", after, before, classes=2)
    assert found.action == "retrain"
    assert found.reasons[-1].startswith("On unfamiliar text its confidence is 94.0%, 110% of the way")


def test_noise_seldom_sends_anybody_to_train_again():
    """At both limits, in one of twenty samples at most; Hoeffding's bound is the safer of the two."""
    rng, draws = np.random.default_rng(0), 2000

    def share(samples):
        return np.mean([advise(FINE, None, m, m, classes=2).action == "retrain" for m in samples])

    wrong, right = rng.normal(-0.7416, size=(draws, 22, 1)), rng.normal(size=(draws, 1, 78))
    areas = (wrong < right).mean(axis=(1, 2))  # of which the true one is Φ(0.7416 / √2) = 0.7
    assert 0 < share(measured(auroc=area) for area in areas) < 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5
    unfamiliar = rng.choice([0.5, 1.0], size=(draws, 50), p=[0.6, 0.4]).mean(axis=1)
    familiar = rng.choice([0.5, 1.0], size=(draws, 100), p=[0.2, 0.8]).mean(axis=1)
    pairs = zip(unfamiliar, familiar, strict=True)  # 0.7 and 0.9 in truth: half of the way
    assert 0 < share(measured(ood=ood, familiar=c) for ood, c in pairs) < 0.05


def test_reasons_carry_the_measured_gain():
    known = measured(ood=0.55, familiar=0.88)
    advice = advise(OVER, "temperature", measured(), measured(0.03, ood=0.8, auroc=0.5), known, classes=2)
    assert advice.reasons == [
        "Fitted on dev, temperature takes the ECE on test from 12.0% to 3.0% and the NLL from 0.500 to "
        "0.500.",
        "On unfamiliar text its confidence would still be 80.0%, 75% of the way from a guess up to 90.0% on "
        "familiar text: no temperature tells the two apart.",
        "Familiarity does, which looks at how far a text is from those it knows: fitted on dev, it takes the "
        "confidence on unfamiliar text to 55.0%, with 88.0% on familiar text. `calibrant train` fits it.",
        "Its mistakes are hardly less confident than its right answers (AUROC 0.50): a calibrator leaves "
        "their order nearly as it is; training anew may not.",
    ]
    assert advise(FINE, "temperature", measured(), measured(), classes=2).reasons == [
        "On familiar text its confidence can be used as it is."
    ]
    assert advise(OVER, None, measured(), measured(), classes=2).reasons == [
        "No calibrator lowers the NLL of dev texts that were left out of its fit; more dev texts may."
    ]


def test_a_model_that_guesses_is_as_sure_of_anything():
    assert sureness(measured(ood=0.5, familiar=0.5), classes=2) == 1


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (OVER, "12.0%, where chance alone would give a calibrated model up to 5.0%: it is over-confident."),
        (Miscalibration(-0.12, (-0.2, -0.1), 0.12, 0.05), ": it is under-confident."),
        (
            Miscalibration(0.0, (-0.1, 0.1), 0.12, 0.05),
            "over-confident on some texts and under-confident on others.",
        ),
        (FINE, ": these texts show no miscalibration."),
    ],
)
def test_words(found, words):
    (familiar,) = in_words(measured(), found, classes=2)
    assert familiar.startswith(
        "On 100 familiar texts 78.0% of its answers are right, and its mean confidence is 90.0%, a "
        f"difference of {100 * found.gap:+.1f} points (95 % interval "
    )
    assert familiar.endswith(words)
    _, unfamiliar = in_words(measured(ood=0.6), found, classes=2)
    assert unfamiliar == (
        "On 50 unfamiliar texts its mean confidence is 60.0%, where a guess would be 50.0%: that is 25% of "
        "the way from a guess up to its confidence on familiar text."
    )
