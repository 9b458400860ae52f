"""What Python shows of the public objects: one line that fits a screen."""

import csv

import pytest

import calibrant
from calibrant import RunConfig
from calibrant.calibrators import calibrators
from calibrant.calibrators.temperature import Temperature
from calibrant.runs import store
from calibrant.scores import scores
from support.tiny import UNFAMILIAR, corpus


@pytest.fixture
def test_csv(tmp_path):
    path = tmp_path / "test.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *corpus(120, seed=5)])
    return str(path)


def test_all_names_are_told():
    assert {"train", "load", "RunConfig", "Classifier", "CalibrantClassifier", "__version__"} <= set(
        dir(calibrant)
    )
    assert set(calibrant.__all__) <= set(dir(calibrant))


def test_settings():
    assert repr(RunConfig(train="a.csv", epochs=3)) == "RunConfig(train='a.csv', epochs=3)"


@pytest.mark.parametrize("kind", [*calibrators().values(), *scores().values()])
def test_a_calibrator_or_score(kind):
    assert repr(kind()).startswith(f"<{kind.name}")


def test_a_run_and_what_its_verbs_give(run_copy, test_csv):
    run = store.load(run_copy)
    assert repr(run) == f"Run({str(run_copy)!r}, manifold-smoothing, 3 classes)"
    fitted = calibrant.calibrate(run_copy, calibrator=Temperature(), dev=test_csv)
    classifier = calibrant.load(run_copy)
    assert repr(classifier) == f"Classifier({str(run_copy)!r}, 3 classes, calibrator='temperature')"
    outputs = classifier.outputs(UNFAMILIAR)
    n = len(UNFAMILIAR)
    assert repr(outputs) == f"Outputs(logits ({n}, 3), calibrated ({n}, 3))"
    (decision,) = classifier.predict(["parcel lost"])
    assert repr(decision) == (
        f"Decision(label={decision.label!r}, confidence={decision.confidence:.4f}, familiarity=None, "
        "abstain=False, …)"
    )
    evaluated = calibrant.evaluate(run_copy, test=test_csv)
    assert repr(evaluated.entry.test) == "Prediction(probabilities (120, 3), labels (120,))"
    assert repr(evaluated.test) == f"Texts(120 texts, source='file {test_csv}')"
    assert repr(evaluated.entry).startswith("Entry('manifold-smoothing + temperature', accuracy ")
    learnt = calibrant.threshold(run_copy, risk=0.2, dev=test_csv)
    assert repr(learnt).startswith("Learnt(threshold=")
    monitored = calibrant.monitor(run_copy, new=test_csv)
    assert repr(monitored).startswith("Monitored(moved=")
    audit = calibrant.audit(str(run_copy / "model"), test=test_csv)
    assert repr(audit).startswith("Audit(Entry(")
    for each in (fitted, evaluated, learnt, monitored, audit):
        assert "\n" not in repr(each)
        assert len(repr(each)) < 500
