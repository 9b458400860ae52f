"""Calibrators one after another."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant
from calibrant.calibrators import (
    Chain,
    Familiarity,
    Temperature,
    VectorScaling,
    calibrated,
    from_state,
    new_calibrator,
)
from calibrant.calibrators.base import Labelled
from calibrant.calibrators.foldable import Foldable
from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.tasks.train import train as train_run
from calibrant.types import Outputs
from support.tiny import UNFAMILIAR, corpus, noisy_corpus

BOTH = "temperature+familiarity"
TEXTS = [text for text, _ in corpus(30, seed=5)] + UNFAMILIAR


def drawn(n, classes=3, seed=0, width=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    points = 3 * np.random.default_rng(99).normal(size=(classes, width))
    logits = 6 * (np.eye(classes)[y] + rng.normal(size=(n, classes)))
    features, middle = ((points[y] + rng.normal(size=(n, width))).astype(np.float32) for _ in range(2))
    return Outputs(logits, features=features, middle=middle), y


TRAIN, DEV, NEW = drawn(90, seed=1), drawn(60, seed=2), drawn(40, seed=3)[0]
NEW.middle[20:] += 20  # half of them are strange


def test_a_name_of_several_is_a_chain():
    chain = new_calibrator(BOTH)
    assert [type(part) for part in chain.parts] == [Temperature, Familiarity]
    assert chain.name == BOTH
    assert chain.needs == Familiarity.needs
    assert not chain.learns_by_heart
    assert "Guo" in chain.citation
    assert "Bates" in chain.citation
    assert new_calibrator("isotonic+familiarity").learns_by_heart
    assert type(new_calibrator("temperature")) is Temperature


UNSEEN = drawn(50, seed=4)


def unseen(*parts):
    """The training texts, with what heads that had not seen them say of some."""
    outputs, y = parts
    return Labelled(outputs, y, Labelled(Outputs(UNSEEN[0].logits), UNSEEN[1]))


def test_unseen_training_texts_count_as_dev_for_what_reads_logits_only():
    both = Outputs(np.concatenate([DEV[0].logits, UNSEEN[0].logits])), np.concatenate([DEV[1], UNSEEN[1]])
    expected = Temperature().fit(*both).temperature
    assert expected != Temperature().fit(*DEV).temperature
    assert Temperature().fit(*DEV, unseen(*TRAIN)).temperature == expected
    chain = new_calibrator(BOTH).fit(*DEV, unseen(*TRAIN))
    assert chain.parts[0].temperature == expected
    np.testing.assert_array_equal(
        chain.parts[1].distances, Familiarity().fit(*DEV, TRAIN).distances
    )  # of dev alone


def test_a_second_part_gets_unseen_text_as_the_first_has_made_it():
    chain = new_calibrator("temperature+vector-scaling+familiarity").fit(*DEV, unseen(*TRAIN))
    both = Outputs(np.concatenate([DEV[0].logits, UNSEEN[0].logits])), np.concatenate([DEV[1], UNSEEN[1]])
    expected = new_calibrator("temperature+vector-scaling").fit(*both)
    np.testing.assert_allclose(chain.parts[1].w, expected.parts[1].w)
    alone = new_calibrator("temperature+vector-scaling").fit(*DEV, unseen(*TRAIN))  # no part reads features
    np.testing.assert_allclose(alone.parts[1].w, expected.parts[1].w)


def test_what_familiarity_has_changed_has_no_unseen_text():
    after = new_calibrator("familiarity+temperature")
    assert after.fit(*DEV, unseen(*TRAIN)).parts[1].temperature == after.fit(*DEV, TRAIN).parts[1].temperature


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("temperature+familiar", "familiar"), ("+temperature", ""), ("temprature+x", "temprature")],
)
def test_every_part_must_be_known(name, wrong):
    with pytest.raises(UserError, match=f"^Unknown calibrator '{wrong}'"):
        new_calibrator(name)


def test_each_part_is_fitted_to_what_those_before_it_say():
    chain = new_calibrator(BOTH).fit(*DEV, TRAIN)
    temperature, familiarity = chain.parts
    alone = Temperature().fit(*DEV)
    assert temperature == alone
    assert chain.summary() == f"{BOTH} (temperature {alone.temperature:.4g}, alpha 0.03)"
    # Familiarity reads features alone, so that it is the same with and without.
    known = Familiarity().fit(*DEV, TRAIN)
    np.testing.assert_array_equal(familiarity.distances, known.distances)
    np.testing.assert_array_equal(chain.familiarity(NEW), known.familiarity(NEW))
    a = np.minimum(1, (known.familiarity(NEW) - 0.9 / 61) / 0.03)[:, None]
    expected = a * alone.probabilities(NEW) + (1 - a) / 3
    np.testing.assert_allclose(chain.probabilities(NEW), expected, atol=1e-12)
    np.testing.assert_allclose(a[20:], 0.1 / 61 / 0.03)
    told = calibrated(NEW, chain)
    np.testing.assert_array_equal(told.probabilities, chain.probabilities(NEW))
    np.testing.assert_array_equal(told.familiarity, chain.familiarity(NEW))
    np.testing.assert_array_equal(told.logits, NEW.logits)


def test_a_second_part_sees_the_first_ones_probabilities():
    """A temperature after a scale of each class: fitted to the logarithms of what these say."""
    log_p = np.log(VectorScaling().fit(*DEV).probabilities(DEV[0]))
    expected = Temperature().fit(Outputs(log_p), DEV[1])
    chain = new_calibrator("vector-scaling+temperature").fit(*DEV)
    assert chain.parts[1].temperature == pytest.approx(expected.temperature)
    np.testing.assert_allclose(chain.probabilities(DEV[0]), expected.probabilities(Outputs(log_p)))
    assert chain.familiarity(DEV[0]) is None


def test_a_part_that_is_certain_hands_on_what_is_finite():
    """Curves of each class say 0 of some, whose logarithm is none."""
    chain = new_calibrator("isotonic+familiarity").fit(*DEV, TRAIN)
    says = chain.parts[0].probabilities(DEV[0])
    assert (says == 0).any()
    a = np.minimum(1, (chain.familiarity(DEV[0]) - 0.9 / 61) / 0.03)[:, None]
    np.testing.assert_allclose(chain.probabilities(DEV[0]), a * says + (1 - a) / 3, atol=1e-12)


def test_the_label_stays_and_rows_sum_to_one():
    p = new_calibrator(BOTH).fit(*DEV, TRAIN).probabilities(NEW)
    np.testing.assert_array_equal(p.argmax(axis=1), NEW.logits.argmax(axis=1))
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


def test_it_comes_back_from_what_is_stored_of_it():
    chain = new_calibrator(BOTH).fit(*DEV, TRAIN)
    state = json.loads(json.dumps(chain.state(), allow_nan=False))
    assert state["name"] == BOTH
    assert set(state["parameters"]) == {"temperature.temperature", "familiarity.alpha"}
    assert set(chain.arrays()) == {f"familiarity.{name}" for name in Familiarity().fit(*DEV, TRAIN).arrays()}
    again = from_state(state, {name: array.copy() for name, array in chain.arrays().items()})
    assert type(again) is Chain
    assert again.state() == chain.state()
    np.testing.assert_array_equal(again.probabilities(NEW), chain.probabilities(NEW))
    np.testing.assert_array_equal(again.familiarity(NEW), chain.familiarity(NEW))
    with pytest.raises(UserError, match="'temperature\\+familiarity' has not been fitted"):
        from_state(state).probabilities(NEW)
    with pytest.raises(UserError, match="state is damaged"):
        from_state(state | {"parameters": {"temperature": 2.0}})
    with pytest.raises(UserError, match="did you mean 'familiarity'"):
        from_state(state | {"name": "temperature+familiarty"})


def test_unfitted_it_tells_nothing():
    for ask in (
        new_calibrator(BOTH).probabilities,
        lambda outputs: calibrated(outputs, new_calibrator(BOTH)),
    ):
        with pytest.raises(UserError, match="has not been fitted"):
            ask(NEW)


def test_with_too_few_dev_texts_the_temperature_is_kept():
    few, y = DEV[0][:19], DEV[1][:19]
    told = (
        "The calibrator 'familiarity' needs 20 dev texts or more, got 19; add texts. It is left out of "
        "temperature+familiarity."
    )
    with pytest.warns(UserWarning, match="left out") as warned:
        fitted = new_calibrator(BOTH).fit(few, y, TRAIN)
    assert [str(one.message) for one in warned] == [told]
    assert fitted == Temperature().fit(few, y)
    assert isinstance(fitted, Foldable)  # and so can be exported
    again = from_state(json.loads(json.dumps(fitted.state())), fitted.arrays())
    assert again == fitted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert type(new_calibrator(BOTH).fit(DEV[0][:20], DEV[1][:20], TRAIN)) is Chain


def test_where_no_part_can_be_fitted_it_is_refused():
    with (
        pytest.warns(UserWarning, match="It is left out of familiarity\\+familiarity"),
        pytest.raises(UserError, match="needs 20 dev texts or more, got 5"),
    ):
        Chain((Familiarity(), Familiarity())).fit(DEV[0][:5], DEV[1][:5], TRAIN)


def test_a_part_is_named_once():
    """Its values are stored by its name."""
    with pytest.raises(
        UserError, match="'temperature\\+temperature' names temperature 2 times; name it once"
    ):
        new_calibrator("temperature+temperature")


# in a run


@pytest.fixture(scope="module")
def settings(tmp_path_factory, model_dir):
    folder = tmp_path_factory.mktemp("texts")

    def write(name, rows):
        (folder / name).write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
        return str(folder / name)

    return {
        "train": write("train.csv", noisy_corpus(150)),
        "dev": write("dev.csv", noisy_corpus(60, seed=1)),
        "model": str(model_dir),
        "method": "linear-probe",
        "max_length": 32,
    }, write


def test_a_run_keeps_both(settings, tmp_path):
    run = train_run(RunConfig(**settings[0]), out=tmp_path / "run")
    kept = store.load(run.path).record.calibrator
    assert (kept.name, kept.fitted_on.n) == (BOTH, 60)
    assert set(kept.parameters) == {"temperature.temperature", "familiarity.alpha"}
    fitted, again = run.calibrator(), store.load(run.path).calibrator()
    classifier = calibrant.load(run.path)
    outputs = classifier.outputs(TEXTS)
    for one in (fitted, again):
        np.testing.assert_array_equal(one.probabilities(outputs), outputs.probabilities)
    decisions = classifier.predict(TEXTS)
    assert [decision.familiarity for decision in decisions] == outputs.familiarity.tolist()
    assert min(outputs.familiarity) == 1 / 61
    pi = np.array([decision.familiarity for decision in decisions])
    temperature = kept.parameters["temperature.temperature"]
    q = Temperature(temperature).probabilities(outputs)
    a = np.minimum(1, (pi - 0.9 / 61) / 0.03)[:, None]
    np.testing.assert_allclose(outputs.probabilities, a * q + (1 - a) / 3, atol=1e-12)
    assert "Calibrator: `temperature+familiarity`, fitted on 60 texts" in (run.path / "README.md").read_text()


def test_a_run_with_few_dev_texts_has_the_temperature_and_says_so(settings, tmp_path):
    given, write = settings
    few = write("few.csv", noisy_corpus(19, seed=2))
    with pytest.warns(UserWarning, match=r"got 19; add texts\. It is left out of temperature\+familiarity"):
        run = train_run(RunConfig(**given | {"dev": few}), out=tmp_path / "run")
    assert run.record.calibrator.name == "temperature"
    assert run.record.method.calibrator == BOTH  # what it was asked to be
    classifier = calibrant.load(run.path)
    assert type(classifier.calibrator) is Temperature
    assert {decision.familiarity for decision in classifier.predict(TEXTS)} == {None}


# anything


@given(
    classes=st.integers(2, 150),
    n=st.integers(1, 60),
    per_class=st.integers(1, 4),
    scale=st.sampled_from([1e-2, 1.0, 1e2]),
    seed=st.integers(0, 2**16),
)
def test_whatever_it_is_fitted_on(classes, n, per_class, scale, seed):
    """Never NaN, rows sum to 1, and the largest stays the largest; few texts, dev or train, are no reason."""
    rng = np.random.default_rng(seed)

    def texts(m):
        logits = scale * rng.normal(size=(m, classes))
        features, middle = rng.normal(size=(2, m, 5)).astype(np.float32)
        return Outputs(logits, features=features, middle=middle)

    train, dev, new = texts(classes * per_class), texts(n), texts(15)
    y = np.arange(classes * per_class) % classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is left out, and of temperatures at their bound
        fitted = new_calibrator(BOTH).fit(dev, rng.integers(0, classes, n), (train, y))
    assert fitted.name == (BOTH if n >= 20 and per_class > 1 else "temperature")
    for asked in (dev, new):
        p = fitted.probabilities(asked)
        assert np.isfinite(p).all()
        assert ((p >= 0) & (p <= 1)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        assert (p[np.arange(len(p)), asked.logits.argmax(axis=1)] == p.max(axis=1)).all()
