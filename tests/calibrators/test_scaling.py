"""Vector and matrix scaling against their losses written plainly and minimised by torch."""

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch.nn.functional import cross_entropy

from calibrant.calibrators.matrix_scaling import STRENGTHS, MatrixScaling
from calibrant.calibrators.vector_scaling import VectorScaling
from calibrant.errors import UserError
from calibrant.metrics.nll import negative_log_likelihood
from calibrant.types import Outputs

K = 4


@pytest.fixture(scope="module")
def dev():
    """Logits that are over-confident, differently for each class, and confuse two classes."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(600, K))
    y = (softmax(truth, axis=1).cumsum(axis=1) < rng.random((len(truth), 1))).sum(axis=1)
    mixing = np.diag([2.0, 3.0, 4.0, 2.5])
    mixing[0, 1] = 1.5
    return truth @ mixing.T + np.array([1.0, 0, -1, 0.5]), y


def minimised(loss, *shapes_and_starts):
    parameters = [torch.tensor(start, dtype=torch.float64, requires_grad=True) for start in shapes_and_starts]
    optimizer = torch.optim.LBFGS(
        parameters, max_iter=2000, tolerance_grad=1e-11, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def closure():
        optimizer.zero_grad()
        value = loss(*parameters)
        value.backward()
        return value

    optimizer.step(closure)
    return float(closure().detach()), [parameter.detach().numpy() for parameter in parameters]


def test_vector_scaling(dev):
    z, y = map(torch.from_numpy, dev)
    _, (w, b) = minimised(lambda w, b: cross_entropy(w * z + b, y), np.ones(K), np.zeros(K))
    fitted = VectorScaling().fit(Outputs(dev[0]), dev[1])
    np.testing.assert_allclose(fitted.w, w, rtol=1e-3)
    np.testing.assert_allclose(
        fitted.probabilities(Outputs(dev[0])), softmax(w * dev[0] + b, axis=1), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize("strength", [1e-2, 1.0, 1e2, 1e6])
def test_matrix_scaling(dev, strength):
    z, y = map(torch.from_numpy, dev)

    def loss(w, b):
        off = sum(w[i, j] ** 2 for i in range(K) for j in range(K) if i != j)
        return cross_entropy(z @ w.T + b, y) + strength * off / (K * (K - 1)) + strength * (b**2).sum() / K

    least, (w, b) = minimised(loss, np.eye(K), np.zeros(K))
    fitted = MatrixScaling(strength=strength).fit(Outputs(dev[0]), dev[1])
    assert fitted.strength == strength
    ours = loss(torch.tensor(fitted.weights, dtype=torch.float64), torch.tensor(fitted.b)).item()
    assert ours == pytest.approx(least, rel=1e-5)
    np.testing.assert_allclose(
        fitted.probabilities(Outputs(dev[0])), softmax(dev[0] @ w.T + b, axis=1), rtol=0, atol=2e-3
    )


def test_a_strong_penalty_leaves_a_diagonal(dev):
    w = np.array(MatrixScaling(strength=1e9).fit(Outputs(dev[0]), dev[1]).weights)
    assert np.abs(w - np.diag(np.diag(w))).max() < 1e-6
    assert np.abs(np.diag(w)).min() > 0.1


def test_the_strength_is_chosen_by_texts_left_out(dev):
    """Much data with confused classes wants the matrix; a handful does not."""
    z, y = dev
    much, little = MatrixScaling().fit(Outputs(z), y), MatrixScaling().fit(Outputs(z[:14]), y[:14])
    assert {much.strength, little.strength} <= set(STRENGTHS)
    assert much.strength < little.strength


def test_too_few_texts_to_choose_a_strength():
    with pytest.raises(UserError, match=r"needs 3 dev texts or more to choose its penalty, got 2\.$"):
        MatrixScaling().fit(Outputs([[1.0, 0.0], [0.0, 1.0]]), [0, 1])


@pytest.mark.parametrize("scale", [0.05, 50.0])
def test_the_scale_of_the_logits_does_not_matter(dev, scale):
    z, y = dev
    expected = VectorScaling().fit(Outputs(z), y).probabilities(Outputs(z))
    scaled = VectorScaling().fit(Outputs(scale * z), y).probabilities(Outputs(scale * z))
    np.testing.assert_allclose(scaled, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("calibrator", [VectorScaling(), MatrixScaling(strength=1.0)])
def test_a_class_that_dev_lacks_and_texts_that_are_all_right(calibrator):
    """There is no optimum; the parameters stay finite, and so do the probabilities of other texts."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 50)
    z = 3 * np.eye(3)[y] + 0.1 * rng.random((50, 3))
    with pytest.warns(UserWarning, match=f"1 of 3 classes have no dev text, and {calibrator.name} may learn"):
        fitted = calibrator.fit(Outputs(z), y)
    p = fitted.probabilities(Outputs(1e3 * rng.normal(size=(20, 3))))
    assert np.isfinite(p).all()
    assert max(np.abs(value).max() for value in map(np.array, fitted.state()["parameters"].values())) < 1e3


def test_each_is_better_than_the_one_that_it_generalises(dev):
    from calibrant.calibrators.temperature import Temperature

    z, y = dev
    nll = [
        negative_log_likelihood(calibrator.fit(Outputs(z), y).probabilities(Outputs(z)), y)
        for calibrator in (Temperature(), VectorScaling(), MatrixScaling(strength=1e-3))
    ]
    assert nll[0] > nll[1] > nll[2]
