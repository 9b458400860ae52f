"""Less confidence where a text is stranger than the dev texts."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from calibrant.calibrators import Familiarity, calibrated, from_state
from calibrant.errors import UserError
from calibrant.scores import Mahalanobis, RelativeMahalanobis, TwoLayerMahalanobis
from calibrant.types import Outputs


def drawn(n, classes=3, width=4, seed=0, away=0.0):
    """Texts around a point for each class, all moved ``away`` together."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    points = 3 * np.random.default_rng(99).normal(size=(classes, width))
    features, middle = (points[y] + rng.normal(size=(n, width)) + away for _ in range(2))
    logits = 4 * np.eye(classes)[y] + rng.normal(size=(n, classes))
    return seen(logits, features, middle), y


def seen(logits, features, middle):
    return Outputs(logits, features=features.astype(np.float32), middle=middle.astype(np.float32))


def on_a_line(*distances):
    """A calibrator whose score of a text is its only number, squared, and dev texts at these distances."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return Familiarity(
        alpha=0.5,
        means=zero,
        w=one,
        mean=zero,
        w_all=zero,
        inner_means=zero,
        inner_w=one,
        weights=np.array([0.0, 1.0]),
        distances=np.sort(np.array(distances, dtype=float)),
    )


def at(*features):
    numbers = np.array(features)[:, None]
    return seen(np.tile([2.0, 0.0], (len(features), 1)), np.zeros_like(numbers), numbers)


def test_pi_by_hand():
    """Five dev texts, two of them equally strange: π = (1 + how many are as strange) / 6."""
    known = on_a_line(1, 4, 4, 9, 16)
    found = known.familiarity(at(0, 1, 1.5, 2, 2.5, 3, -3, 4, 5))
    # squared:                    0  1  2.25  4  6.25  9  9  16  25
    np.testing.assert_allclose(found * 6, [6, 6, 5, 5, 3, 3, 3, 2, 1])


def test_probabilities_by_hand():
    known = on_a_line(1, 4, 4, 9, 16)  # α = 1/2: with fewer than three of six as strange, confidence is lost
    q = softmax([2.0, 0.0])
    a = np.array([1, 2.1 / 3, 1.1 / 3, 0.1 / 3])[:, None]  # five, two, one and none of them are
    expected = a * q + (1 - a) / 2
    np.testing.assert_allclose(known.probabilities(at(1, 3, 4, 5)), expected)


def test_the_score_is_the_sum_of_two():
    outputs, y = drawn(60)
    fitted = TwoLayerMahalanobis().fit(outputs, y)
    r = RelativeMahalanobis().fit(outputs, y)(outputs)
    m = Mahalanobis().fit(replace(outputs, features=outputs.middle), y)(
        replace(outputs, features=outputs.middle)
    )
    np.testing.assert_allclose(fitted(outputs), r / r.std() + m / m.std())
    assert fitted.needs == Familiarity.needs == {"features", "middle"}


def test_familiar_text_is_as_familiar_as_it_says():
    """P(π ≤ u) ≤ u for text like that of dev, on average over dev sets; and hardly less: π is a rank."""
    levels, below, trials, n = np.array([0.05, 0.1, 0.25, 0.5, 0.9]), [], 300, 39
    train = drawn(120, seed=1)
    rng = np.random.default_rng(2)
    texts, y = drawn(3000, seed=3)
    for _ in range(trials):
        chosen = rng.permutation(len(y))
        dev, new = chosen[:n], chosen[n : n + 200]
        known = Familiarity().fit(texts[dev], y[dev], train)
        pi = known.familiarity(texts[new])
        below.append((pi[:, None] <= levels).mean(axis=0))
    share, error = np.mean(below, axis=0), np.std(below, axis=0) / np.sqrt(trials)
    assert (share <= levels + 3 * error).all()
    assert (share >= np.floor(levels * (n + 1)) / (n + 1) - 3 * error).all()


def test_of_its_own_dev_texts_a_share_of_alpha_loses_confidence():
    train, dev = drawn(120, seed=1), drawn(100, seed=2)
    known = Familiarity(alpha=0.1).fit(*dev, train)
    lost = known.probabilities(dev[0]).max(axis=1) < dev[0].probabilities.max(axis=1) - 1e-12
    assert lost.sum() == 9  # r is 1, 2, … 100, and 10.1 familiar texts in 101 may be as strange
    np.testing.assert_allclose(known.probabilities(dev[0])[~lost], dev[0].probabilities[~lost])


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_far_text_ends_at_a_guess(classes):
    train, dev = drawn(400, classes, seed=1), drawn(400, classes, seed=2)
    known = Familiarity().fit(*dev, train)
    far, _ = drawn(50, classes, seed=3, away=100)
    p = known.probabilities(far)
    a = 0.1 / (0.03 * 401)
    np.testing.assert_allclose(known.familiarity(far), 1 / 401)
    np.testing.assert_allclose(p, a * far.probabilities + (1 - a) / classes)
    np.testing.assert_allclose(p.max(axis=1), 1 / classes, atol=0.01)
    assert known.familiarity(dev[0]).min() < known.unfamiliar_below  # the least familiar of them is dimmed
    assert known.unfamiliar_below == pytest.approx(0.03 + 0.9 / 401)


def test_the_farther_the_less_sure():
    train, dev = drawn(200, seed=1), drawn(200, seed=2)
    known = Familiarity().fit(*dev, train)
    text = drawn(1, seed=5)[0]
    found = [
        known.probabilities(seen(text.logits, text.features + step, text.middle + step)).max()
        for step in (0, 2, 4, 100)
    ]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1]


def test_familiarity_is_told_beside_the_probabilities():
    train, dev = drawn(60, seed=1), drawn(40, seed=2)
    known = Familiarity().fit(*dev, train)
    outputs = calibrated(dev[0], known)
    np.testing.assert_array_equal(outputs.familiarity, known.familiarity(dev[0]))
    np.testing.assert_array_equal(outputs[3:5].familiarity, outputs.familiarity[3:5])
    assert calibrated(outputs, None).familiarity is None
    # What is calibrated already is not calibrated twice.
    np.testing.assert_array_equal(calibrated(outputs, known).probabilities, outputs.probabilities)


def test_it_comes_back_from_what_is_stored_of_it():
    train, dev = drawn(60, seed=1), drawn(40, seed=2)
    known = Familiarity(alpha=0.1).fit(*dev, train)
    state = json.loads(json.dumps(known.state(), allow_nan=False))
    assert state == {"name": "familiarity", "parameters": {"alpha": 0.1}}
    again = from_state(state, {name: array.copy() for name, array in known.arrays().items()})
    assert known.arrays().keys() == {
        *("means", "w", "mean", "w_all", "inner_means", "inner_w", "weights", "distances"),
    }
    for texts in (dev[0], drawn(20, seed=4, away=3)[0]):
        np.testing.assert_array_equal(again.probabilities(texts), known.probabilities(texts))
        np.testing.assert_array_equal(again.familiarity(texts), known.familiarity(texts))


@pytest.mark.parametrize("alpha", [0.03, 0.3])
def test_too_few_dev_texts_are_refused(alpha):
    least, train = 20, drawn(60, seed=1)
    with pytest.raises(UserError) as refused:
        Familiarity(alpha=alpha).fit(*drawn(least - 1, seed=2), train)
    assert str(refused.value) == (
        f"The calibrator 'familiarity' needs {least} dev texts or more, got {least - 1}; add texts."
    )
    known = Familiarity(alpha=alpha).fit(*drawn(least, seed=2), train)
    far, _ = drawn(50, seed=3, away=100)
    assert (known.probabilities(far).max(axis=1) < far.probabilities.max(axis=1)).all()
    np.testing.assert_array_equal(known.probabilities(far).argmax(axis=1), far.logits.argmax(axis=1))
    assert (known.familiarity(far) < known.unfamiliar_below).all()


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5])
def test_a_level_is_between_0_and_1(alpha):
    with pytest.raises(UserError, match="`alpha` must lie between 0 and 1, both excluded, got"):
        Familiarity(alpha=alpha)


def test_unfitted_it_tells_nothing():
    outputs, _ = drawn(5)
    for ask in (
        Familiarity().familiarity,
        Familiarity().probabilities,
        lambda o: calibrated(o, Familiarity()),
    ):
        with pytest.raises(UserError, match="'familiarity' has not been fitted"):
            ask(outputs)


@given(
    classes=st.integers(2, 40),
    n=st.integers(20, 60),
    per_class=st.integers(1, 6),
    width=st.integers(1, 12),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    seed=st.integers(0, 2**16),
)
def test_whatever_it_is_fitted_on(classes, n, per_class, width, scale, seed):
    """Never NaN, rows sum to 1, and the largest stays the largest."""
    rng = np.random.default_rng(seed)

    def texts(m):
        logits = scale * rng.normal(size=(m, classes))
        return seen(logits, *(scale * rng.normal(size=(2, m, width))))

    train = texts(2 + classes * per_class)
    y = rng.integers(0, classes, len(train))
    y[:2] = 0  # a class with two texts, without which there is no spread
    dev, new = texts(n), texts(15)
    known = Familiarity().fit(dev, rng.integers(0, classes, n), (train, y))
    for asked in (dev, new, seen(new.logits, 1e6 * new.features, 1e6 * new.middle)):
        p, pi = known.probabilities(asked), known.familiarity(asked)
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        assert ((pi > 0) & (pi <= 1)).all()
        assert (p[np.arange(len(p)), asked.logits.argmax(axis=1)] == p.max(axis=1)).all()
