"""What a run answers on dev: computed once, kept, and not taken for another model's."""

import json
from dataclasses import replace

import numpy as np
import pytest

import calibrant
from calibrant.calibrators.temperature import Temperature
from calibrant.errors import UserError
from calibrant.runs import dev
from calibrant.types import Outputs
from support.tiny import corpus, noisy_corpus

TEXTS = [text for text, _ in corpus(30, seed=5)]


def test_answered_once_and_kept(run_copy):
    classifier = calibrant.load(run_copy)
    assert dev.read(classifier.run) is None
    seen = []
    first = classifier.answer_dev(progress=lambda *step: seen.append(step))
    assert seen[-1] == ("dev", 40, 40)
    assert first.texts == classifier.run.record.data.dev
    assert first.outputs.logits.shape == (40, 3)
    again = calibrant.load(run_copy).answer_dev(progress=lambda *step: pytest.fail("answered again"))
    np.testing.assert_array_equal(again.outputs.logits, first.outputs.logits)
    np.testing.assert_array_equal(again.labels, first.labels)
    assert again.outputs.logits.dtype == np.float64
    assert again.texts == first.texts
    right = (again.outputs.logits.argmax(axis=1) == again.labels).mean()
    assert right == pytest.approx(classifier.run.training.dev_accuracy)


def test_another_file_takes_its_place(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    own = classifier.answer_dev()
    path = str(csv_file("dev.csv", corpus(50, seed=9)))
    other = classifier.answer_dev(path)
    assert other.texts.source == f"file {path}"
    assert len(other.outputs) == 50
    np.testing.assert_array_equal(classifier.answer_dev().outputs.logits, other.outputs.logits)
    same = classifier.answer_dev(path, progress=lambda *step: pytest.fail("answered again"))
    np.testing.assert_array_equal(same.outputs.logits, other.outputs.logits)
    (run_copy / dev.FILE).unlink()
    np.testing.assert_array_equal(classifier.answer_dev().outputs.logits, own.outputs.logits)


def test_answers_that_are_not_kept(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    path = str(csv_file("dev.csv", corpus(50, seed=9)))
    once = classifier.answers_on(path)
    assert len(once.outputs) == 50
    assert dev.read(classifier.run) is None
    classifier.answer_dev(path)
    again = classifier.answers_on(path, progress=lambda *step: pytest.fail("answered again"))
    np.testing.assert_array_equal(again.outputs.logits, once.outputs.logits)


def test_a_classifier_that_is_asked_otherwise_keeps_nothing(run_copy):
    classifier = calibrant.load(run_copy)
    classifier.answer_dev()
    otherwise = replace(classifier, calibrator=Temperature(2.0), run=None)
    for what, refused in (
        ("Answers on dev", lambda: otherwise.answer_dev()),
        ("Sets", lambda: otherwise.predict_set(TEXTS)),
        ("Fitted scores", lambda: otherwise.fitted_scores(["entropy", "knn"])),
    ):
        with pytest.raises(UserError) as told:
            refused()
        assert str(told.value) == (
            f"{what} belong to a run as it answers by itself; take calibrant.load(run)."
        )
    assert list(otherwise.fitted_scores(["entropy"])) == ["entropy"]  # which needs nothing of the run
    assert not (run_copy / "scores").exists()
    assert classifier.predict_set(TEXTS)


def test_it_outlives_a_change_of_the_calibrator_and_sets_follow(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    classifier.answer_dev(str(csv_file("dev.csv", noisy_corpus(200, seed=9))))
    before = classifier.set_rule(0.97)
    other = str(csv_file("other.csv", noisy_corpus(200, seed=8)))
    calibrant.calibrate(run_copy, calibrator=Temperature(), dev=other)
    calibrated = calibrant.load(run_copy)
    kept = dev.read(calibrated.run)
    assert kept is not None
    assert len(kept.outputs) == 200
    assert calibrated.set_rule(0.97).q[0] != before.q[0]


def test_what_another_model_answered_is_not_taken(run_copy):
    classifier = calibrant.load(run_copy)
    classifier.answer_dev()
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["inference"] = {"name": "mc-dropout", "passes": 2, "seed": 0}
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    passes = calibrant.load(run_copy)
    assert dev.read(passes.run) is None
    assert (passes.answer_dev().outputs.logits != classifier.answer_dev().outputs.logits).any()


@pytest.mark.parametrize("content", [b"", b"not a safetensors file", None])
def test_a_damaged_file(run_copy, content):
    classifier = calibrant.load(run_copy)
    classifier.answer_dev()
    path = run_copy / dev.FILE
    path.write_bytes(path.read_bytes()[:-7] if content is None else content)
    with pytest.raises(UserError) as refused:
        classifier.answer_dev()
    assert str(refused.value).startswith(f"{path} is damaged (")
    assert str(refused.value).endswith("); remove it, and it is made again.")


def test_predict_set(run_copy, csv_file):
    classifier = calibrant.load(run_copy)
    with pytest.raises(UserError) as refused:
        classifier.predict_set(TEXTS)
    assert str(refused.value) == (
        f"{run_copy} keeps no answers on dev yet, which sets are fitted on; call "
        "`classifier.answer_dev()` first, once."
    )
    classifier.answer_dev(str(csv_file("dev.csv", noisy_corpus(200, seed=9))))
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
    classifier.answer_dev(str(csv_file("dev.csv", noisy_corpus(400, seed=9))))
    rows = noisy_corpus(400, seed=10)
    sets = classifier.predict_set([text for text, _ in rows], 0.97)
    held = np.mean([label in labels for labels, (_, label) in zip(sets, rows, strict=True)])
    assert held == pytest.approx(0.97, abs=5 * (0.97 * 0.03 * 2 / 400) ** 0.5)


def test_what_a_calibrator_reads_is_kept_too(run_copy):
    """Where features are asked for and only logits are kept, that is not enough."""
    classifier = calibrant.load(run_copy)
    texts = replace(classifier.run.record.data.dev, n=6)
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(6, 3)), np.arange(6) % 3
    features = rng.normal(size=(6, 4)).astype(np.float32)
    dev.write(classifier.run, dev.DevAnswers(Outputs(logits), labels, texts))
    assert dev.read(classifier.run).outputs.features is None
    assert dev.read(classifier.run, frozenset({"features"})) is None
    dev.write(classifier.run, dev.DevAnswers(Outputs(logits, features), labels, texts))
    kept = dev.read(classifier.run, frozenset({"features"}))
    np.testing.assert_array_equal(kept.outputs.features, features)
    np.testing.assert_array_equal(kept.outputs.logits, logits.astype(np.float32))
    assert dev.read(classifier.run, frozenset({"features", "layers"})) is None


def test_answers_are_the_models_own_and_not_what_a_calibrator_made_of_them(run_copy):
    run = calibrant.load(run_copy).run
    plain = calibrant.load(run_copy).answer_dev().outputs
    (run_copy / dev.FILE).unlink()
    run.calibrated(Temperature(2.0), run.record.data.dev)
    classifier = calibrant.load(run_copy)
    for outputs in (classifier.answer_dev().outputs, classifier.answer_dev().outputs):  # made, then read
        np.testing.assert_array_equal(outputs.logits, plain.logits)
        assert outputs.calibrated is None
