import pytest

from calibrant.calibrators import new_calibrator
from calibrant.decide.verdict import BOTH, Known, after_training, verdict
from calibrant.metrics.miscalibration import Miscalibration

CALIBRATED = Miscalibration(gap=0.0, interval=(-0.01, 0.01), ece=0.01, chance=0.02)
OVER = Miscalibration(gap=0.1, interval=(0.08, 0.12), ece=0.1, chance=0.02)
UNDER = Miscalibration(gap=-0.05, interval=(-0.06, -0.04), ece=0.05, chance=0.02)


def measured(accuracy=0.9, unfamiliar=None):
    """Of 1,000 texts each; confidence on familiar text is 0.9."""
    numbers = {"accuracy": accuracy, "n_test": 1000, "mean_confidence_test": 0.9, "ood": None}
    if unfamiliar is not None:
        numbers |= {"ood": {}, "n_ood": 1000, "mean_confidence_ood": unfamiliar}
    return numbers


def known(calibrator=None, abstains=False, turns_away=False, path="runs/tickets", ood=None):
    return Known(path, 10, calibrator, abstains, turns_away, ood)


@pytest.mark.parametrize(
    ("numbers", "found", "run", "command"),
    [
        (measured(), OVER, known(), "calibrate runs/tickets --calibrator temperature"),
        (measured(), UNDER, known(), "calibrate runs/tickets --calibrator temperature"),
        (measured(), OVER, known("isotonic"), "calibrate runs/tickets --calibrator isotonic --dev more.csv"),
        # Familiarity takes confidence away on purpose, but never adds any.
        (measured(), UNDER, known(BOTH), "threshold runs/tickets --risk 0.05"),
        (measured(), OVER, known(BOTH), f"calibrate runs/tickets --calibrator {BOTH} --dev more.csv"),
        # What is wrong with unfamiliar text comes first: the chain mends both.
        (measured(unfamiliar=0.8), OVER, known(), f"calibrate runs/tickets --calibrator {BOTH}"),
        (
            measured(unfamiliar=0.8),
            CALIBRATED,
            known("temperature"),
            f"calibrate runs/tickets --calibrator {BOTH}",
        ),
        (
            measured(unfamiliar=0.8),
            CALIBRATED,
            known(BOTH, ood="other.tsv"),
            "threshold runs/tickets --risk 0.05 --ood other.tsv --ood-rate 0.05",
        ),
        (measured(unfamiliar=0.2), CALIBRATED, known(), "threshold runs/tickets --risk 0.05"),
        (measured(0.95), CALIBRATED, known(), "threshold runs/tickets --risk 0.02"),
        (measured(0.995), CALIBRATED, known(), "predict runs/tickets new.csv"),
        (measured(), CALIBRATED, known(abstains=True), "predict runs/tickets new.csv"),
        (measured(), CALIBRATED, known(path="my runs/a", abstains=True), "predict 'my runs/a' new.csv"),
    ],
)
def test_the_command(numbers, found, run, command):
    assert verdict(numbers, found, run).command == f"calibrant {command}"


def test_a_sentence_for_each_kind_of_text():
    one = verdict(measured(), CALIBRATED, known())
    assert len(one.words) == 1
    assert one.words[0].endswith("these texts show no miscalibration.")
    both = verdict(measured(unfamiliar=0.2), OVER, known())
    assert both.words[0].endswith("it is over-confident.")
    assert both.words[1].startswith("On 1000 unfamiliar texts its mean confidence is 20.0%")


def test_nobody_is_sent_round_in_a_circle():
    """The worst case, followed: each step takes its own condition away, and the last is to use it."""
    bad = measured(unfamiliar=0.8)
    steps = [
        verdict(bad, OVER, known()).command,
        verdict(bad, UNDER, known(BOTH)).command,
        verdict(bad, UNDER, known(BOTH, abstains=True, turns_away=True)).command,
    ]
    assert [step.split()[1] for step in steps] == ["calibrate", "threshold", "predict"]


def test_the_calibrator_that_is_advised_can_be_had():
    assert new_calibrator(BOTH).name == BOTH


@pytest.mark.parametrize(
    ("confidence", "calibrator", "words", "command"),
    [
        (0.95, None, "It is over-confident.", "calibrate runs/tickets --calibrator temperature"),
        (0.6, None, "It is under-confident.", "calibrate runs/tickets --calibrator temperature"),
        (
            0.82,
            None,
            "agree within chance, so there is nothing",
            "evaluate runs/tickets --test test.csv",
        ),
        (None, None, "nothing to do.", "evaluate runs/tickets --test test.csv"),
        # Familiarity takes confidence from strange texts on purpose.
        (0.7, BOTH, "nothing to do.", "evaluate runs/tickets --test test.csv"),
    ],
)
def test_after_training(confidence, calibrator, words, command):
    advice = after_training("runs/tickets", 0.8, confidence, 200, calibrator)
    assert words in advice.reason
    assert advice.command == f"calibrant {command}"
