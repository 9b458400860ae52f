"""The rules, at their edges."""

import pytest

from calibrant.advice import advise, in_words, sureness
from calibrant.miscalibration import Miscalibration

OVER = Miscalibration(0.12, (0.08, 0.16), ece=0.12, chance=0.05)
FINE = Miscalibration(0.01, (-0.03, 0.05), ece=0.04, chance=0.05)


def measured(ece=0.12, ood=None, auroc=0.9, familiar=0.9):
    """What ``evaluate`` gives, as far as it is looked at, of two classes."""
    return {
        "n_test": 100,
        "n_ood": 0 if ood is None else 50,
        "accuracy": 0.78,
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
        (OVER, "temperature", measured(0.03, ood=0.70), "calibrate"),  # half of the way from 0.5 to 0.9
        (OVER, "temperature", measured(0.03, ood=0.71), "retrain"),
        (FINE, None, measured(0.04, ood=0.71), "retrain"),
        (FINE, None, measured(0.04, auroc=0.69), "retrain"),
        (FINE, None, measured(0.04, auroc=0.70), "nothing"),
        (FINE, None, measured(0.04, auroc=None), "nothing"),  # no mistake to find
    ],
)
def test_the_rules(found, calibrator, after, action):
    assert advise(found, calibrator, measured(), after, classes=2).action == action


def test_reasons_carry_the_measured_gain():
    advice = advise(OVER, "temperature", measured(), measured(0.03, ood=0.8, auroc=0.6), classes=2)
    assert advice.reasons == [
        "Fitted on dev, temperature takes the ECE on test from 12.0% to 3.0% and the NLL from 0.500 to "
        "0.500.",
        "On unfamiliar text its confidence would still be 80.0%, 75% of the way from a guess to 90.0% on "
        "familiar text: no calibrator tells the two apart; training with manifold smoothing is for it.",
        "Its mistakes are hardly less confident than its right answers (AUROC 0.60): a calibrator leaves "
        "their order nearly as it is; training with manifold smoothing is for it.",
    ]
    assert advise(FINE, "temperature", measured(), measured(), 2).reasons == [
        "On familiar text its confidence can be used as it is."
    ]
    assert advise(OVER, None, measured(), measured(), 2).reasons == [
        "No calibrator lowers the NLL of dev texts that were left out of its fit; more dev texts may."
    ]


def test_a_model_that_guesses_is_as_sure_of_anything():
    assert sureness(measured(ood=0.5, familiar=0.5), classes=2) == 1


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (OVER, "it is over-confident, by 12.0 points."),
        (Miscalibration(-0.12, (-0.2, -0.1), 0.12, 0.05), "it is under-confident, by 12.0 points."),
        (
            Miscalibration(0.0, (-0.1, 0.1), 0.12, 0.05),
            "over-confident on some texts and under-confident on others.",
        ),
        (FINE, "that is within chance: no miscalibration that so many texts could show."),
    ],
)
def test_words(found, words):
    (familiar,) = in_words(measured(), found, classes=2)
    assert familiar.startswith("On 100 familiar texts it is right in 78.0% and sure of 90.0%, a gap of ")
    assert familiar.endswith(words)
    _, unfamiliar = in_words(measured(ood=0.6), found, classes=2)
    assert unfamiliar == (
        "On 50 unfamiliar texts it is sure of 60.0%, where a guess would be 50.0%; that is 25% of the way "
        "from a guess to its confidence on familiar text."
    )
