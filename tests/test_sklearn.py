"""``CalibrantClassifier`` among scikit-learn's own tools, with texts as X."""

import pickle
import re
import warnings
from logging import getLogger
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks as checks

import calibrant
from calibrant import CalibrantClassifier, UserError
from support.tiny import corpus

pytestmark = pytest.mark.filterwarnings("ignore:The calibrator 'familiarity' needs")  # so few dev texts
X, Y = map(list, zip(*corpus(60), strict=True))
NEW, NEW_Y = map(list, zip(*corpus(40, seed=1), strict=True))

# check_estimator gives every estimator tables of numbers, and skips one that takes texts. Of its checks these
# need no X; those that do are below, with texts. What is asked of numbers alone (NaN, sparse, dtypes, the
# number of features, a single feature, data frames' column names) has no meaning here.
WITHOUT_X = [
    checks.check_estimator_cloneable,
    checks.check_estimator_repr,
    checks.check_estimator_tags_renamed,
    checks.check_valid_tag_types,
    checks.check_mixin_order,
    checks.check_no_attributes_set_in_init,
    checks.check_parameters_default_constructible,
    checks.check_get_params_invariance,
    checks.check_set_params,
]


@pytest.fixture
def estimator(model_dir):
    """Half a second of training."""
    return CalibrantClassifier(
        model=str(model_dir), method="linear-probe", batch_size=8, max_length=32, random_state=0
    )


@pytest.fixture
def fitted(estimator):
    return estimator.fit(X, Y)


@pytest.mark.parametrize("check", WITHOUT_X, ids=lambda check: check.__name__)
def test_what_scikit_learn_asks_of_any_estimator(check):
    check("CalibrantClassifier", CalibrantClassifier())


def test_check_estimator_clones_and_tests_nothing_more_of_an_estimator_of_texts():
    """If it does one day, the list above should go."""
    with pytest.warns(SkipTestWarning, match="Can't test estimator CalibrantClassifier"):
        found = list(checks.estimator_checks_generator(CalibrantClassifier()))
    assert [check.func.__name__ for _, check in found] == ["check_estimator_cloneable"]


def test_fit_predict_and_score(estimator):
    before = dict(vars(estimator))
    assert estimator.fit(X, Y) is estimator
    assert {name: vars(estimator)[name] for name in before} == before  # parameters are never written to
    assert is_classifier(estimator)
    assert estimator.classes_.tolist() == ["account", "billing", "shipping"]
    p = estimator.predict_proba(NEW)
    assert p.shape == (40, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    said = estimator.predict(NEW)
    assert said.tolist() == estimator.classes_[p.argmax(axis=1)].tolist()
    assert estimator.score(NEW, NEW_Y) == np.mean(said == NEW_Y) > 0.7
    assert estimator.classifier_.predict(NEW[:1])[0].label == said[0]


def test_answers_do_not_depend_on_company_or_order(fitted):
    together, order = fitted.predict_proba(NEW), np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(fitted.predict_proba(NEW[:5]), together[:5], atol=1e-5)
    np.testing.assert_allclose(fitted.predict_proba(np.array(NEW)[order]), together[order], atol=1e-5)
    before = dict(vars(fitted))
    fitted.predict(NEW)
    assert vars(fitted) == before


def test_the_same_seed_gives_the_same_answers(model_dir):
    def fit(seed):
        estimator = CalibrantClassifier(
            model=str(model_dir), method="bert", epochs=1, batch_size=8, max_length=32, random_state=seed
        )
        return estimator.fit(X, Y).predict_proba(NEW)

    first = fit(3)
    np.testing.assert_array_equal(first, fit(3))
    np.testing.assert_array_equal(fit(np.random.RandomState(1)), fit(np.random.RandomState(1)))
    assert not np.array_equal(first, fit(4))


def test_labels_may_be_numbers(estimator):
    """Ten comes before two among words, and after it among numbers."""
    number = {"account": 2, "billing": 10, "shipping": -1}
    y = np.array([number[label] for label in Y])
    estimator.fit(X, y)
    assert estimator.classes_.tolist() == [-1, 2, 10]
    assert estimator.predict(NEW).dtype == y.dtype
    assert estimator.score(NEW, [number[label] for label in NEW_Y]) > 0.7


def test_a_clone_is_unfitted_and_a_pickle_is_not(fitted):
    with pytest.raises(NotFittedError):
        clone(fitted).predict(NEW)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))


def test_without_a_folder_nothing_is_left_behind(estimator, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    estimator.fit(X, Y)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UserError, match="Sets"):
        estimator.classifier_.predict_set(NEW)


def test_nothing_of_other_libraries_is_printed(estimator, capfd, monkeypatch):
    """And they are as loud as before: a script may have its own use for them."""
    from transformers.utils import logging

    # The command line, which other tests call in this process, prints calibrant's own lines.
    monkeypatch.setattr(getLogger("calibrant"), "handlers", [])
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    try:
        logging.set_verbosity_info()
        logging.enable_progress_bar()
        estimator.set_params(method="calibrant", epochs=1).fit(X, Y).predict(NEW)
        assert capfd.readouterr() == ("", "")
        assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (logging.INFO, True)
    finally:
        logging.set_verbosity(level)
        if not bars:
            logging.disable_progress_bar()


def test_a_folder_keeps_a_run(estimator, tmp_path):
    folder = tmp_path / "kept"
    estimator.set_params(folder=folder).fit(X, Y)
    opened = calibrant.load(folder / "run")
    assert opened.run.config.seed == estimator.random_state
    again = clone(estimator).set_params(folder=tmp_path / "unseeded", random_state=None).fit(X, Y)
    assert again.classifier_.run.config.seed == 0  # an interrupted fit goes on
    np.testing.assert_array_equal(opened.predict_proba(NEW), estimator.predict_proba(NEW))
    written = (folder / "run" / "calibrant.json").stat().st_mtime_ns
    estimator.fit(X, Y)  # finds it there
    assert (folder / "run" / "calibrant.json").stat().st_mtime_ns == written
    with pytest.raises(
        UserError, match=r"kept holds a fit to other texts; give another folder, or remove it"
    ):
        estimator.fit(NEW, NEW_Y)
    assert len(Path(folder / "train.jsonl").read_text().splitlines()) == 60


def test_in_a_pipeline_and_in_cross_validation(estimator):
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = make_pipeline(lower, estimator)
    shouted = [text.upper() for text in X]
    found = cross_val_score(pipeline, shouted, Y, cv=2)
    assert found.shape == (2,)
    assert (found > 0.6).all()


def test_in_calibrated_classifier_cv(estimator):
    wrapped = CalibratedClassifierCV(estimator, method="sigmoid", cv=2).fit(X, Y)
    p = wrapped.predict_proba(NEW)
    assert p.shape == (40, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert wrapped.score(NEW, NEW_Y) > 0.6


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        ("a text", ["a"], "X must be a sequence of texts, got one string; put it into a list."),
        ([], [], "X must hold at least one text, got none."),
        (
            np.zeros((3, 2)),
            [0, 1, 0],
            "X must be a sequence of texts, one string each, and X[0] is of type ndarray; of a table "
            "give one column.",
        ),
        (
            ["a", None],
            [0, 1],
            "X must be a sequence of texts, one string each, and X[1] is of type NoneType; ",
        ),
        (["a", " "], [0, 1], "X[1] is an empty text; drop it, and its label."),
        (["a", "b"], None, "CalibrantClassifier requires y to be passed, but the target y is None."),
        (["a", "b"], [0.5, 1.7], "Unknown label type: continuous."),
        (["a", "b"], [0], "Found input variables with inconsistent numbers of samples: [2, 1]"),
        (["a", "b"], ["x", "x "], "Labels must differ in more than white space, and none may be empty."),
        (["a", "b"], ["x", "x"], "only one class (x); a classifier needs at least two."),
    ],
)
def test_what_cannot_be_fitted(estimator, x, y, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        estimator.fit(x, y)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"epochs": 3}, "`settings` names 'epochs', which is an argument of CalibrantClassifier's own."),
        ({"weight_decy": 0.1}, "Unknown setting 'weight_decy'; did you mean 'weight_decay'?"),
    ],
)
def test_settings_that_are_refused(estimator, settings, sentence):
    with pytest.raises(UserError) as refused:
        estimator.set_params(settings=settings).fit(X, Y)
    assert sentence in str(refused.value)


def test_other_settings_reach_the_run(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator.set_params(settings={"calibrator": "temperature"}).fit(X, Y)
    assert estimator.classifier_.calibrator.name == "temperature"
