"""Sets: by hand, by simulation, and against MAPIE."""

import numpy as np
import pytest

from calibrant.decide.sets import (
    SCORES,
    aps_scores,
    conformal_quantile,
    fit_sets,
    lac_scores,
    texts_needed,
)
from calibrant.errors import UserError

P = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]])


def simulated(rng, n, classes=4, sharpness=2.0, distortion=1.0):
    """Probabilities of a model that errs, over-confident where distortion > 1, and true classes."""
    truth = np.exp(sharpness * rng.normal(size=(n, classes)))
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    p = truth**distortion
    return p / p.sum(axis=1, keepdims=True), labels


def test_scores_by_hand():
    np.testing.assert_allclose(lac_scores(P), [[0, 0.7, 0.8], [0.9, 0.8, 0], [0, 0.6, 0.8]])
    np.testing.assert_allclose(aps_scores(P), [[0, 0.5, 0.8], [0.9, 0.7, 0], [0, 0.4, 0.8]])


def test_probabilities_are_left_as_they_were():
    before = P.copy()
    for score in SCORES.values():
        score(P)
    np.testing.assert_array_equal(before, P)


@pytest.mark.parametrize("n", [9, 10, 19, 99, 100])
def test_the_quantile_is_that_order_statistic(n):
    """⌈0.9·(n + 1)⌉ by integers, on scores that are their own rank."""
    scores = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    assert conformal_quantile(scores, 0.9) == -(-9 * (n + 1) // 10)


def test_the_quantile_of_products_that_floats_miss():
    assert 100 * 0.07 > 7
    assert conformal_quantile(np.arange(1.0, 100), 0.07) == 7


@pytest.mark.parametrize(("coverage", "needed"), [(0.5, 1), (0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999)])
def test_how_many_texts_are_needed(coverage, needed):
    assert texts_needed(coverage) == needed
    assert conformal_quantile(np.arange(float(needed)), coverage) == needed - 1  # the largest
    with pytest.raises(UserError, match=f"need {needed} dev texts or more, got {needed - 1};"):
        conformal_quantile(np.arange(float(needed - 1)), coverage)


@pytest.mark.parametrize("distortion", [1.0, 2.0])
@pytest.mark.parametrize("method", SCORES)
@pytest.mark.parametrize("coverage", [0.8, 0.95])
def test_coverage_of_exchangeable_texts(method, coverage, distortion):
    """Within a point of what was asked, over 200 draws, for a calibrated and an over-confident model."""
    got, accuracy = [], []
    for seed in range(200):
        p, y = simulated(np.random.default_rng(seed), 900, distortion=distortion)
        rule = fit_sets(p[:300], y[:300], coverage, method)
        got.append(rule.members(p[300:])[np.arange(600), y[300:]].mean())
        accuracy.append((p.argmax(axis=1) == y).mean())
    assert np.mean(accuracy) < coverage  # else sets of one label hold the true one more often than asked
    assert abs(np.mean(got) - coverage) < 0.01


@pytest.mark.parametrize("method", SCORES)
def test_coverage_of_each_class(method):
    """A class that the model knows badly has its coverage too, which it has not in sets over all."""
    hits = {True: [], False: []}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p, y = simulated(rng, 1600)
        p[:, 0] *= 0.3  # the model underrates class 0
        p /= p.sum(axis=1, keepdims=True)
        for per_class, rows in hits.items():
            rule = fit_sets(p[:800], y[:800], 0.9, method, per_class)
            hit = rule.members(p[800:])[np.arange(800), y[800:]]
            rows.append([hit[y[800:] == k].mean() for k in range(4)])
    np.testing.assert_allclose(np.mean(hits[True], axis=0), 0.9, atol=0.01)
    assert np.mean(hits[False], axis=0)[0] < 0.85


def test_the_label_itself_is_better_not_counted():
    """At equal coverage, sets are smaller than with it counted in full, or (as published) in random part."""
    size = {"none": [], "part": [], "all": []}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p, y = simulated(rng, 3500, classes=15, sharpness=3)
        best = p == p.max(axis=1, keepdims=True)
        u = rng.random((len(p), 1))
        for counted, s in (
            ("none", aps_scores(p)),
            ("part", np.where(best, 0, aps_scores(p) + u * p)),
            ("all", np.where(best, 0, aps_scores(p) + p)),
        ):
            q = conformal_quantile(s[np.arange(1500), y[:1500]], 0.9)
            members = s[1500:] <= q
            assert members[np.arange(2000), y[1500:]].mean() == pytest.approx(0.9, abs=0.04)
            size[counted].append(members.sum(axis=1).mean())
    assert np.mean(size["none"]) < 0.97 * np.mean(size["part"])
    assert np.mean(size["none"]) < 0.90 * np.mean(size["all"])


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("method", SCORES)
def test_more_coverage_adds_labels_and_no_set_is_empty(method, per_class):
    p, y = simulated(np.random.default_rng(0), 800, sharpness=4)
    inner = np.zeros_like(p, dtype=bool)
    sizes = []
    for coverage in (0.01, 0.3, 0.6, 0.8, 0.9, 0.97):
        members = fit_sets(p[:600], y[:600], coverage, method, per_class).members(p)
        assert members[np.arange(len(p)), p.argmax(axis=1)].all()
        assert not (inner & ~members).any()
        inner = members
        sizes.append(members.sum(axis=1).mean())
    assert sizes[0] == 1
    assert sizes[-1] > 1.5


def test_a_model_that_is_right_more_often_than_asked_has_sets_of_one_label():
    p, y = simulated(np.random.default_rng(0), 600, sharpness=8)
    right = (p.argmax(axis=1) == y).mean()
    assert right > 0.8
    for method in SCORES:
        members = fit_sets(p[:300], y[:300], 0.6, method).members(p[300:])
        assert (members.sum(axis=1) == 1).all()


def test_names_in_the_order_of_probability():
    p, y = simulated(np.random.default_rng(0), 200)
    rule = fit_sets(p[:100], y[:100], 0.95)
    names = ("a", "b", "c", "d")
    sets = rule.labels(p, names)
    for row, member, got in zip(p, rule.members(p), sets, strict=True):
        assert [row[names.index(name)] for name in got] == sorted(row[member], reverse=True)
    assert {len(got) for got in sets} >= {1, 2, 3}


def test_classes_with_too_few_texts_share_a_quantile():
    p, y = simulated(np.random.default_rng(0), 300)
    keep = (y >= 2) | (np.cumsum(y < 2) <= 12)  # 12 texts of classes 0 and 1 together, fewer than 9 of each
    p, y = p[keep], y[keep]
    assert 0 < np.bincount(y)[:2].min() <= np.bincount(y)[:2].max() < 9
    with pytest.warns(UserWarning, match="about") as told:
        rule = fit_sets(p, y, 0.9, per_class=True)
    assert str(told[0].message) == (
        "2 of 4 classes have fewer than 9 dev texts each; for these the coverage is about 0.9, of all of "
        "them together."
    )
    rare = y < 2
    scores = lac_scores(p)[np.arange(len(y)), y]
    assert rule.q[0] == rule.q[1] == conformal_quantile(scores[rare], 0.9)
    assert rule.q[2] == conformal_quantile(scores[y == 2], 0.9)
    assert rule.q[3] == conformal_quantile(scores[y == 3], 0.9)
    few = ~rare | (np.cumsum(rare) <= 8)
    with pytest.raises(UserError) as refused:
        fit_sets(p[few], y[few], 0.9, per_class=True)
    assert str(refused.value) == (
        "Sets per class with coverage 0.9: 2 of 4 classes have fewer than 9 dev texts each, and 8 together; "
        "give more of them, ask for less coverage, or for sets that are not per class."
    )


@pytest.mark.parametrize(("names", "called"), [(None, "2"), (["a", "b", "c", "d"], "c")])
def test_classes_without_any_text_are_not_covered(names, called):
    p, y = simulated(np.random.default_rng(0), 300)
    keep = (y == 3) | ((y < 2) & (np.cumsum(y < 2) <= 12))
    with pytest.warns(UserWarning, match=rf"Not covered, for want of any dev text: {called}\.$"):
        fit_sets(p[keep], y[keep], 0.9, per_class=True, names=names)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90, float("nan")])
def test_a_coverage_that_cannot_be(coverage):
    with pytest.raises(UserError) as refused:
        fit_sets(P, np.array([0, 1, 2]), coverage)
    assert str(refused.value) == (
        f"The coverage of sets must lie between 0 and 1, got {coverage:g}; write 0.9 for sets that hold the "
        "true label of 90 in 100 texts."
    )


def test_unknown_method():
    with pytest.raises(
        UserError, match=r"^Unknown set method 'lca'; did you mean 'lac'\? Known: lac, aps\.$"
    ):
        fit_sets(P, np.array([0, 1, 2]), 0.5, "lca")


class Ones(np.random.RandomState):
    """MAPIE takes a random part of the true label off its APS score; here the whole, as we do."""

    def uniform(self, low=0.0, high=1.0, size=None):
        return np.ones(size)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.97])
@pytest.mark.parametrize("method", SCORES)
def test_against_mapie(method, coverage):
    """Equal sets where the definitions coincide.

    They do not where MAPIE's LAC leaves out a predicted label (not here: q ≥ 1 − 1/K), nor where it draws
    random numbers for APS, and then includes the last label in full: that covers more than was asked.
    """
    mapie = pytest.importorskip("mapie.classification")
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose inputs are its probabilities."""

        classes_ = np.arange(4)
        fitted_ = True

        def fit(self, X, y):
            raise AssertionError("it is fitted")

        def predict_proba(self, X):
            return X

        def predict(self, X):
            return X.argmax(axis=1)

    p, y = simulated(np.random.default_rng(1), 1000, sharpness=1.5)
    ours = fit_sets(p[:400], y[:400], coverage, method)

    def theirs(random_state):
        oracle = mapie.SplitConformalClassifier(
            Given(), coverage, method, prefit=True, random_state=random_state
        )
        oracle.conformalize(p[:400], y[:400])
        return oracle.predict_set(p[400:])[1][:, :, 0]

    np.testing.assert_array_equal(ours.members(p[400:]), theirs(Ones(0)))
    if method == "lac":
        assert ours.q.min() >= 1 - 1 / 4
    else:  # what MAPIE does if left alone
        assert theirs(0).sum() > ours.members(p[400:]).sum()
