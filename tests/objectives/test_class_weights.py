"""Class weights, against torch and scikit-learn, in every objective."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch.nn import CrossEntropyLoss

from calibrant.data.weights import class_weights
from calibrant.errors import UserError
from calibrant.models.split import SplitModel
from calibrant.objectives import ClassWeights, CrossEntropy, LabelSmoothing, Loss, Objective, objectives
from calibrant.objectives.solvers import solvers
from support.training_steps import assert_same, gradients, make_batch, tiny_model

BATCH = make_batch()
WEIGHTS = [0.5, 1.0, 2.0]
EVERY = {name: objective() for name, objective in objectives().items()} | {
    f"manifold-smoothing, {name}": objectives()["manifold-smoothing"](solver=name) for name in solvers()
}


def step(objective, weights):
    """Loss, terms and gradients of one batch under a seed."""
    model = tiny_model()
    torch.manual_seed(3)
    loss = ClassWeights(weights, 3).loss(objective, SplitModel(model), BATCH)
    return loss, gradients(loss.total, model)


def by_torch(weights, smoothing=0.0, reduction="mean"):
    model = tiny_model()
    logits = model(input_ids=BATCH.input_ids, attention_mask=BATCH.attention_mask).logits
    weight = torch.tensor(weights, dtype=torch.float64)
    criterion = CrossEntropyLoss(weight=weight, label_smoothing=smoothing, reduction=reduction)
    return criterion(logits, BATCH.labels), model


def test_cross_entropy_is_torchs_where_the_weights_of_the_texts_have_a_mean_of_1():
    labels = BATCH.labels.tolist()
    weights = class_weights({"0": 0.5, "2": 2.0}, [str(y) for y in labels], ["0", "1", "2"])
    assert np.mean([weights[y] for y in labels]) == pytest.approx(1)
    expected, model = by_torch(WEIGHTS)  # torch divides by the weights, so that it needs no such care
    loss, found = step(CrossEntropy(), weights)
    assert_same((loss.total, found), (expected, gradients(expected, model)))


def test_otherwise_the_mean_is_over_the_texts():
    expected, model = by_torch(WEIGHTS, reduction="sum")
    expected = expected / len(BATCH)
    loss, found = step(CrossEntropy(), WEIGHTS)
    assert_same((loss.total, found), (expected, gradients(expected, model)))


def test_smoothed_labels_are_weighted_as_torch_does():
    expected, model = by_torch(WEIGHTS, smoothing=0.2, reduction="sum")
    expected = expected / len(BATCH)
    loss, found = step(LabelSmoothing(0.2), WEIGHTS)
    assert_same((loss.total, found), (expected, gradients(expected, model)))


@pytest.mark.parametrize("objective", EVERY.values(), ids=EVERY)
def test_weights_reach_every_objective(objective):
    model = SplitModel(tiny_model())
    torch.manual_seed(3)
    plain = objective.loss(model, BATCH)
    ones, twos, weighted = (step(objective, weights)[0] for weights in ([1.0] * 3, [2.0] * 3, WEIGHTS))
    torch.testing.assert_close(ones.total, plain.total)
    torch.testing.assert_close(twos.terms["ce"], 2 * plain.terms["ce"])
    assert weighted.terms["ce"] != pytest.approx(float(plain.terms["ce"]), rel=1e-3)


def test_the_samples_of_the_paper_are_weighted_by_their_labels():
    """R_on = Σ_k w_k·y′_k·(−log p_k) − H(y′), whichever solver; R_off has no label."""
    smoothing = objectives()["manifold-smoothing"]
    found = {name: step(smoothing(solver=name), WEIGHTS) for name in ("shared", "pgd")}
    for name in ("ce", "r_on", "r_off"):
        torch.testing.assert_close(found["shared"][0].terms[name], found["pgd"][0].terms[name])
    assert_same(*[(loss.total, gradient) for loss, gradient in found.values()])
    mixed = smoothing(delta_on=0.0, lambda_off=0.0, delta_y=0.0)  # x′ = x and y′ = y: the cross-entropy again
    terms = step(mixed, WEIGHTS)[0].terms
    torch.testing.assert_close(terms["r_on"], terms["ce"])


def test_balanced_is_scikit_learns():
    labels = ["ham"] * 7 + ["spam"] * 2 + ["egg"]
    names = sorted(set(labels))
    expected = compute_class_weight("balanced", classes=np.array(names), y=labels)
    np.testing.assert_allclose(class_weights("balanced", labels, names), expected)


def test_a_class_without_training_texts_is_left_out_of_the_balance():
    found = class_weights("balanced", ["ham", "ham", "ham", "spam"], ["egg", "ham", "spam"])
    np.testing.assert_allclose(found[1:], [2 / 3, 2])
    assert np.isfinite(found).all()


def test_an_unknown_label_gets_the_nearest():
    with pytest.raises(UserError, match=r"Unknown label in --class-weights 'spm'; did you mean 'spam'\?"):
        class_weights({"spm": 2.0}, ["spam", "ham"], ["ham", "spam"])


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1.0, 2.0], "expected one of each of the 3 classes"),
        ([1.0, -2.0, 1.0], "must be numbers above 0"),
        ([1.0, 0.0, 1.0], "must be numbers above 0"),
        ([1.0, float("nan"), 1.0], "must be numbers above 0"),
    ],
)
def test_weights_that_are_none_are_refused(weights, sentence):
    with pytest.raises(UserError, match=sentence):
        ClassWeights(weights, 3)


def test_an_objective_that_they_do_not_reach_is_refused():
    @dataclass(frozen=True)
    class Margin(Objective):
        name: ClassVar[str] = "margin"
        citation: ClassVar[str] = "none"

        def loss(self, model, batch):
            return Loss(model(model.embed(batch.input_ids), batch.attention_mask).square().mean())

    with pytest.raises(UserError, match="'margin' does not call torch's cross_entropy"):
        step(Margin(), WEIGHTS)
