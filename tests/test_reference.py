"""What a run answers on dev: computed once, kept, and not taken for another model's."""

import json

import numpy as np
import pytest

import calibrant
from calibrant import dev
from calibrant.calibrators.temperature import Temperature
from calibrant.errors import UserError
from calibrant.inference.single import SinglePass
from calibrant.reference import answer_dev, answers_on
from calibrant.scoring import fitted_scores
from conftest import corpus, noisy_corpus

TEXTS = [text for text, _ in corpus(30, seed=5)]


def test_answered_once_and_kept(run_copy):
    classifier = calibrant.load(run_copy)
    assert dev.read(classifier.run) is None
    seen = []
    first = answer_dev(classifier, progress=lambda *step: seen.append(step))
    assert seen[-1] == ("dev", 40, 40)
    assert first.texts == classifier.run.record["data"]["dev"]
    assert first.logits.shape == (40, 3)
    again = answer_dev(calibrant.load(run_copy), progress=lambda *step: pytest.fail("answered again"))
    np.testing.assert_array_equal(again.logits, first.logits)
    np.testing.assert_array_equal(again.labels, first.labels)
    assert again.logits.dtype == np.float64
    assert again.texts == first.texts
    right = (again.logits.argmax(axis=1) == again.labels).mean()
    assert right == pytest.approx(classifier.run.record["training"]["dev_accuracy"])


def test_another_file_takes_its_place(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    own = answer_dev(classifier)
    path = str(csv_file("dev.csv", corpus(50, seed=9)))
    other = answer_dev(classifier, path)
    assert other.texts["source"] == f"file {path}"
    assert len(other.logits) == 50
    np.testing.assert_array_equal(answer_dev(classifier).logits, other.logits)
    same = answer_dev(classifier, path, progress=lambda *step: pytest.fail("answered again"))
    np.testing.assert_array_equal(same.logits, other.logits)
    (run_copy / dev.FILE).unlink()
    np.testing.assert_array_equal(answer_dev(classifier).logits, own.logits)


def test_answers_that_are_not_kept(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    path = str(csv_file("dev.csv", corpus(50, seed=9)))
    once = answers_on(classifier, path)
    assert len(once.logits) == 50
    assert dev.read(classifier.run) is None
    answer_dev(classifier, path)
    again = answers_on(classifier, path, progress=lambda *step: pytest.fail("answered again"))
    np.testing.assert_array_equal(again.logits, once.logits)


def test_a_classifier_that_is_asked_otherwise_keeps_nothing(run_copy):
    classifier = calibrant.load(run_copy)
    answer_dev(classifier)
    otherwise = classifier.asked(SinglePass(), Temperature(2.0))
    for what, refused in (
        ("Answers on dev", lambda: answer_dev(otherwise)),
        ("Sets", lambda: otherwise.predict_set(TEXTS)),
        ("Fitted scores", lambda: fitted_scores(otherwise, ["entropy", "knn"])),
    ):
        with pytest.raises(UserError) as told:
            refused()
        assert str(told.value) == (
            f"{what} belong to {run_copy} as it answers by itself, and this classifier is asked otherwise; "
            f"take calibrant.load({str(run_copy)!r})."
        )
    assert list(fitted_scores(otherwise, ["entropy"])) == ["entropy"]  # which needs nothing of the run
    assert not (run_copy / "scores").exists()
    assert classifier.predict_set(TEXTS)


def test_it_outlives_a_change_of_the_calibrator_and_sets_follow(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    answer_dev(classifier, str(csv_file("dev.csv", noisy_corpus(200, seed=9))))
    before = classifier.set_rule(0.97)
    calibrant.calibrate(run_copy, Temperature(), str(csv_file("other.csv", noisy_corpus(200, seed=8))))
    calibrated = calibrant.load(run_copy)
    kept = dev.read(calibrated.run)
    assert kept is not None
    assert len(kept.logits) == 200
    assert calibrated.set_rule(0.97).q[0] != before.q[0]


def test_what_another_model_answered_is_not_taken(run_copy):
    classifier = calibrant.load(run_copy)
    answer_dev(classifier)
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["inference"] = {"name": "mc-dropout", "passes": 2, "seed": 0}
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    passes = calibrant.load(run_copy)
    assert dev.read(passes.run) is None
    assert (answer_dev(passes).logits != answer_dev(classifier).logits).any()


@pytest.mark.parametrize("content", [b"", b"not a safetensors file", None])
def test_a_damaged_file(run_copy, content):
    classifier = calibrant.load(run_copy)
    answer_dev(classifier)
    path = run_copy / dev.FILE
    path.write_bytes(path.read_bytes()[:-7] if content is None else content)
    with pytest.raises(UserError) as refused:
        answer_dev(classifier)
    assert str(refused.value).startswith(f"{path} is damaged (")
    assert str(refused.value).endswith("); remove it, and it is made again.")


def test_predict_set(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    with pytest.raises(UserError) as refused:
        classifier.predict_set(TEXTS)
    assert str(refused.value) == (
        f"{run_copy} keeps no answers on dev yet, which sets are fitted on; call "
        "`calibrant.answer_dev(classifier)` first, once."
    )
    calibrant.answer_dev(classifier, str(csv_file("dev.csv", noisy_corpus(200, seed=9))))
    for method in ("lac", "aps"):
        narrow = classifier.predict_set(TEXTS, 0.9, method)
        wide = classifier.predict_set(TEXTS, 0.99, method, progress=lambda *step: None)
        assert [labels[0] for labels in wide] == [decision.label for decision in classifier.predict(TEXTS)]
        assert all(set(a) <= set(b) for a, b in zip(narrow, wide, strict=True))
        assert sum(map(len, wide)) > len(TEXTS)
    assert classifier.predict_set([]) == []


def test_sets_hold_the_true_label(run_copy, csv_file):
    """Of 400 texts like those of dev, with room for chance: five standard errors."""
    classifier = calibrant.load(run_copy)
    answer_dev(classifier, str(csv_file("dev.csv", noisy_corpus(400, seed=9))))
    rows = noisy_corpus(400, seed=10)
    sets = classifier.predict_set([text for text, _ in rows], 0.97)
    held = np.mean([label in labels for labels, (_, label) in zip(sets, rows, strict=True)])
    assert held == pytest.approx(0.97, abs=5 * (0.97 * 0.03 * 2 / 400) ** 0.5)
