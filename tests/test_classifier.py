from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax

import calibrant
from calibrant.calibrators.temperature import Temperature
from calibrant.classifier import BATCH_SIZE, Classifier, load, of_run, outputs_of
from calibrant.data.encode import encode
from calibrant.data.files import fingerprint
from calibrant.errors import UserError
from calibrant.inference import inferences
from calibrant.inference.ensemble import DeepEnsemble
from calibrant.inference.mc_dropout import MCDropout
from calibrant.inference.single import SinglePass
from calibrant.runs import store
from calibrant.runs.record import ThresholdRecord
from calibrant.types import Provenance, Texts
from support.tiny import UNFAMILIAR, corpus

ROWS = corpus(2 * BATCH_SIZE + 7, seed=3)
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]


@pytest.fixture(scope="module")
def classifier(trained):
    return load(trained)


@pytest.fixture(scope="module")
def together(classifier):
    return classifier.predict_proba(TEXTS)


def test_it_has_learnt(classifier):
    right = sum(d.label == label for d, label in zip(classifier.predict(TEXTS), LABELS, strict=True))
    assert right / len(TEXTS) > 0.7  # a guess: 0.33


def test_probabilities(together):
    assert together.shape == (len(TEXTS), 3)
    assert together.dtype == np.float64
    np.testing.assert_allclose(together.sum(axis=1), 1, atol=1e-12)
    assert (together > 0).all()


def test_order_is_that_of_the_texts(classifier, together):
    lengths = [len(text.split()) for text in TEXTS]
    assert lengths != sorted(lengths, reverse=True)  # else sorting by length changed nothing
    alone = np.concatenate([classifier.predict_proba([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert len({tuple(row.round(4)) for row in alone}) > BATCH_SIZE  # else any order would do


def test_shuffled_texts_give_shuffled_rows(classifier, together):
    order = np.random.default_rng(0).permutation(len(TEXTS))
    shuffled = classifier.predict_proba([TEXTS[i] for i in order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-5)


def test_logits_are_the_models_own(classifier):
    rows = encode(classifier.tokenizer, TEXTS[:5], 32)
    got = outputs_of(inferences()["single"](), classifier.models, rows, 0).logits
    batch = classifier.tokenizer(TEXTS[:5], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = classifier.models[0].eval()(**batch).logits.numpy()
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_dropout_is_off(classifier, together):
    """Whatever mode the model was in when the classifier was made of it."""
    model = classifier.models[0].train()
    again = replace(classifier, run=None)
    assert again.models[0] is model
    np.testing.assert_array_equal(again.predict_proba(TEXTS), together)


def test_progress(classifier):
    seen = []
    classifier.predict_proba(TEXTS, progress=lambda *step: seen.append(step), label="test")
    n = len(TEXTS)
    assert seen == [("test", BATCH_SIZE, n), ("test", 2 * BATCH_SIZE, n), ("test", n, n)]


def test_decisions(classifier, together):
    for decision, row in zip(classifier.predict(TEXTS), together, strict=True):
        assert decision.label == classifier.label_names[row.argmax()]
        assert decision.confidence == decision.probabilities[decision.label] == row.max()
        assert decision.probabilities == dict(zip(("account", "billing", "shipping"), row, strict=True))
        assert decision.abstain is False


def test_threshold(classifier, together):
    confidence = together.max(axis=1)
    threshold = float(confidence[7])  # at the threshold is not below it
    decisions = classifier.predict(TEXTS, threshold=threshold)
    assert [decision.abstain for decision in decisions] == (confidence < threshold).tolist()
    assert 0 < sum(decision.abstain for decision in decisions) < len(TEXTS)
    assert [d.label for d in decisions] == [d.label for d in classifier.predict(TEXTS)]


def test_threshold_of_nought_never_abstains(classifier):
    assert not any(decision.abstain for decision in classifier.predict(TEXTS, threshold=0.0))


LAYERS = frozenset({"layers"})
FEATURES = frozenset({"features"})


@pytest.mark.parametrize("inference", [SinglePass(), MCDropout(passes=2), DeepEnsemble(members=2)])
def test_what_is_not_asked_for_is_not_computed(classifier, monkeypatch, inference):
    models = [*classifier.models] * inference.members
    asked = replace(classifier, models=models, inference=inference, run=None)
    n, h = len(TEXTS), 32 * inference.members  # members stand side by side
    both = asked.outputs(TEXTS, FEATURES | LAYERS)
    assert (both.features.shape, both.layers.shape) == ((n, h), (n, 3, h))  # the embeddings and two layers
    np.testing.assert_allclose(both.layers[:, -1], both.features, atol=1e-5)
    layers = asked.outputs(TEXTS, LAYERS)
    np.testing.assert_array_equal(layers.layers, both.layers)

    def refuse(*args):
        raise AssertionError("nobody asked for inner layers")

    monkeypatch.setattr("calibrant.models.split.SplitModel.encode_layers_and_classify", refuse)
    features = asked.outputs(TEXTS, FEATURES)
    np.testing.assert_allclose(features.features, both.features, atol=1e-5)
    assert features.layers is None
    monkeypatch.setattr("calibrant.models.split.SplitModel.encode_and_classify", refuse)
    alone = asked.outputs(TEXTS)
    assert (alone.features, alone.layers) == (None, None)
    for other in (both, layers, features):
        np.testing.assert_allclose(other.probabilities, alone.probabilities, atol=1e-5)
    assert len(asked.predict(TEXTS)) == n


def test_prediction_with_labels(classifier, together):
    prediction = classifier.prediction(Texts(TEXTS, LABELS, "file test.csv", ""))
    assert [classifier.label_names[i] for i in prediction.labels] == LABELS
    np.testing.assert_array_equal(prediction.probabilities, together)
    assert len(prediction) == len(TEXTS)


def test_prediction_without_labels(classifier):
    assert (
        classifier.prediction(Texts(UNFAMILIAR, None, "file ood.csv", fingerprint(UNFAMILIAR, None))).labels
        is None
    )


def test_label_that_training_never_saw(classifier):
    with pytest.raises(UserError) as refused:
        classifier.prediction(Texts(["a card"], ["returns"], "file test.csv", ""))
    assert str(refused.value).startswith(
        "file test.csv: label 'returns' is not among the 3 labels seen in training"
    )


def test_long_text_is_cut(classifier):
    """At the run's 32 tokens; the model itself ends at 64."""
    head = ["invoice"] * 30
    first, second = classifier.predict_proba([" ".join(head), " ".join(head + ["password"] * 500)])
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_nothing_gives_nothing(classifier):
    assert classifier.predict_proba([]).shape == (0, 3)
    assert classifier.predict([]) == []


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_a_plain_string_is_refused(classifier, method):
    with pytest.raises(UserError) as refused:
        getattr(classifier, method)("My card was swallowed")
    assert str(refused.value) == "predict takes a list of texts, not one string; write [text]."


@pytest.mark.parametrize("bad", ["", " \n"])
def test_an_empty_text_is_refused_by_its_place(classifier, bad):
    with pytest.raises(UserError, match=r"^Text 2 of 3 is empty; there is nothing to classify\.$"):
        classifier.predict(["one", bad, "three"])


def test_load_is_public(trained):
    assert calibrant.load is load


def test_the_same_weights_asked_in_other_ways(classifier, together):
    logits = classifier.outputs(TEXTS).logits
    scaled = replace(classifier, calibrator=Temperature(2.0), run=None)
    np.testing.assert_allclose(scaled.predict_proba(TEXTS), softmax(logits / 2, axis=1), atol=1e-12)
    assert scaled.models[0] is classifier.models[0]
    dropped = replace(classifier, inference=MCDropout(passes=3), run=None)
    assert np.abs(dropped.predict_proba(TEXTS) - together).max() > 1e-3
    models = [*classifier.models, *classifier.models]
    twice = replace(classifier, models=models, inference=DeepEnsemble(members=2), run=None)
    assert len(twice.models) == 2
    np.testing.assert_allclose(twice.predict_proba(TEXTS), together, atol=1e-6)
    assert (classifier.inference, classifier.calibrator, len(classifier.models)) == (SinglePass(), None, 1)
    np.testing.assert_array_equal(classifier.predict_proba(TEXTS), together)


def test_the_rule_of_a_run_is_not_applied_where_it_is_asked_otherwise(run_copy):
    rule = ThresholdRecord(
        rule={"threshold": 1.1},
        promise={"risk": 0.1, "confidence": 0.95},
        learnt_on={"dev": Provenance(9, "file dev.csv", "d")},
        dev={"coverage": 0.5, "risk": 0.05, "turned_away": 0.0},
    )
    store.load(run_copy).ruled(rule)
    own = load(run_copy)
    assert all(decision.abstain for decision in own.predict(TEXTS))
    otherwise = replace(own, calibrator=Temperature(2.0), run=None)
    assert not any(decision.abstain for decision in otherwise.predict(TEXTS))
    assert all(decision.abstain for decision in own.predict(TEXTS))


def test_a_classifier_without_a_run(classifier, together):
    """Somebody else's model: all that it takes is named."""
    other = Classifier(classifier.models, classifier.tokenizer, classifier.label_names, max_length=32)
    np.testing.assert_array_equal(other.predict_proba(TEXTS), together)
    assert not any(decision.abstain for decision in other.predict(TEXTS))
    with pytest.raises(UserError, match=r"^Sets belong to a run as it answers by itself; take"):
        other.predict_set(TEXTS)


def test_a_run_that_is_loaded_already(trained, together):
    np.testing.assert_array_equal(of_run(store.load(trained)).predict_proba(TEXTS), together)


NEEDS = [frozenset(), frozenset({"features"}), frozenset({"features", "layers"})]


@pytest.mark.parametrize("inference", [SinglePass(), MCDropout(passes=2)])
def test_threads_that_share_a_classifier_do_not_get_each_others_answers(classifier, inference):
    """Some ask for logits alone and take the short cut through the last layer, others for all of it."""
    asked = replace(classifier, inference=inference, run=None)
    questions = [(text, needs) for text in TEXTS[:8] for needs in NEEDS]

    def answer(question):
        text, needs = question
        outputs = asked.outputs([text], needs)
        return outputs.logits, outputs.features, outputs.layers

    alone = [answer(question) for question in questions]
    for workers in (2, 4):
        with ThreadPoolExecutor(workers) as threads:
            for found, expected in zip(threads.map(answer, questions * 4), alone * 4, strict=True):
                for got, one in zip(found, expected, strict=True):
                    assert (got is None) == (one is None)
                    if one is not None:
                        np.testing.assert_array_equal(got, one)  # to the last bit


def test_labels_are_the_columns(classifier, together):
    assert classifier.labels == classifier.label_names
    best = [decision.label for decision in classifier.predict(TEXTS)]
    assert [classifier.labels[column] for column in together.argmax(axis=1)] == best


def test_what_is_no_string_is_called_so(classifier):
    with pytest.raises(UserError, match=r"^Text 1 of 1 is not a string, but int\.$"):
        classifier.predict([5])
