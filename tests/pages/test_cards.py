import numpy as np

from calibrant.metrics.bootstrap import Noise, noise
from calibrant.pages.cards import cards, share_noticed
from calibrant.pages.comparison import Comparison
from support.entries import entry


def cards_of(*entries, draws=20):
    chance = noise([e.test for e in entries], [e.ood for e in entries], draws=draws)
    return {card.title: card for card in cards(Comparison(entries, chance))}


def test_one_run_and_what_its_numbers_mean_here():
    one = entry("a", told=True)
    found = cards_of(one)
    accuracy = 100 * one.metrics["accuracy"]
    card = found["Accuracy"]
    assert card.values == [("a", f"{accuracy:.1f} %", False)]
    assert card.sentence.startswith(f"Of 100 texts like these 80, it labels about {accuracy:.0f} right (95 %")
    card = found["Calibration error (ECE)"]
    assert f"off by {100 * one.metrics['ece']:.1f} points on average; chance alone gives" in card.sentence
    assert card.sentence.endswith(
        {"over-confident": "so it is over-confident."}[one.miscalibration.direction]
    )
    assert "`calibrant threshold` learns a rule" in found["Answerable with 5 % mistakes"].sentence
    card = found["Unfamiliar text noticed"]
    assert card.values[0][1] == f"{100 * share_noticed(one):.1f} %"
    assert "Of 50 unfamiliar texts this share is stranger, by its familiarity, than 95 % of" in card.sentence


def test_a_rule_that_keeps_its_promise_or_not():
    one = entry("a", rule=0.5)
    found = cards_of(one)
    done = one.metrics["abstention"]
    card = found["Answered at the promised risk"]
    assert card.values == [("a", f"{100 * done['coverage']:.1f} %", False)]
    assert card.sentence.endswith(
        f"{100 * done['risk']:.1f} % of its answers are wrong, 20.0 % were promised."
    )
    assert f"Its rule answers {100 * done['ood_answered']:.1f} % of them." in (
        found["Unfamiliar text noticed"].sentence
    )


def test_a_rule_that_answers_nothing():
    assert "nothing was answered" in cards_of(entry("a", rule=2.0))["Answered at the promised risk"].sentence


def test_runs_with_and_without_a_rule_are_asked_the_same_question():
    assert "Answerable with 5 % mistakes" in cards_of(entry("a", rule=0.5), entry("b"))


def test_without_unfamiliar_text_there_are_three():
    assert len(cards_of(entry("a", ood=False))) == 3


def test_without_familiarity_confidence_tells_unfamiliar_text():
    one = entry("a")
    assert "by its confidence" in cards_of(one)["Unfamiliar text noticed"].sentence
    limit = np.sort(one.test.confidence)[4]  # 4 of 80 lie below: 5 %
    assert share_noticed(one) == (one.ood.confidence < limit).mean()


def test_several_runs_are_told_apart_beyond_chance():
    good, bad = entry("good", ood=False, sharpness=1.0), entry("bad", seed=3, ood=False)
    good.metrics["accuracy"], bad.metrics["accuracy"] = 0.9, 0.6
    small = Noise({("", "accuracy"): np.array([[-0.01, 0.01] * 20, [0.01, -0.01] * 20])})
    card = cards(Comparison([bad, good], small))[0]
    assert card.values == [("bad", "60.0 %", False), ("good", "90.0 %", True)]
    assert card.sentence == "good is best, by 30.0 points over bad (95 % interval 28.0 to 32.0)."
    large = Noise({("", "accuracy"): 50 * small.deviations["", "accuracy"]})
    card = cards(Comparison([bad, good], large))[0]
    assert not any(best for _, _, best in card.values)
    assert "within noise" in card.sentence
