"""A check is worth something if it fails: each entry here breaks one promise."""

import dataclasses
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest
import torch

from calibrant.calibrators import Isotonic, Temperature
from calibrant.metrics import Metric, accuracy, auroc
from calibrant.objectives import CrossEntropy, Loss
from calibrant.scores import Energy, Mahalanobis
from calibrant.testing import check_calibrator, check_metric, check_objective, check_score
from calibrant.testing.objectives import tiny_bert


def promise(*changes):
    """A class with these attributes over another's, and the words in which the check tells."""
    *_, words = changes
    return pytest.param(*changes, id=words)


NAMELESS = promise({"name": ""}, "has no name")
UNCITED = promise({"citation": "somebody"}, "has no year in its citation")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        NAMELESS,
        UNCITED,
        promise({"needs": {"features"}}, "needs must be a frozenset"),
        promise({"_probabilities": lambda self, outputs: outputs.logits}, "probabilities outside"),
        promise({"_probabilities": lambda self, o: np.full_like(o.logits, 0.1)}, "rows do not sum to 1"),
        promise({"_fit": lambda self, *_: dataclasses.replace(self, temperature=1.0)}, "squared error"),
        promise({"learns_by_heart": True}, "temperature, of 40 classes"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_a_calibrator_may_not(change, words):
    if words == "temperature, of 40 classes":  # says that it learns by heart, and does not warn

        def quiet(self, outputs, labels, train=None):
            return dataclasses.replace(self, temperature=2.0)

        change = change | {"fit": quiet}
    with pytest.raises(AssertionError, match=words):
        check_calibrator(type("Broken", (Temperature,), change))


def test_a_calibrator_that_changes_itself():
    @dataclasses.dataclass
    class Forgetful(Temperature.__base__):
        name: ClassVar[str] = "forgetful"
        citation: ClassVar[str] = "Nobody (2026)"
        learns_by_heart: ClassVar[bool] = False
        temperature: float | None = None

        def _fit(self, outputs, y, train):
            self.temperature = 3.0
            return self

        def _probabilities(self, outputs):
            return Temperature(self.temperature)._probabilities(outputs)

    with pytest.raises(AssertionError, match="forgetful"):
        check_calibrator(Forgetful)


def test_a_calibrator_that_learns_by_heart_passes():
    check_calibrator(Isotonic)


@pytest.mark.parametrize(
    ("base", "change", "words"),
    [
        promise(Energy, {"citation": "somebody"}, "has no year in its citation"),
        promise(Energy, {"learns": True}, "derives from FittedScore"),
        promise(Energy, {"__call__": lambda self, o: -Energy()(o)}, "larger where text is less familiar"),
        promise(Energy, {"__call__": lambda self, o: Energy()(o)[:3]}, "one number for each text"),
        promise(Energy, {"__call__": lambda self, o: Energy()(o) + 1e-3 * len(o)}, "its company"),
        promise(
            Energy,
            {"__call__": lambda self, o: Energy()(o) + (0 if o.features is None else 1e-3)},
            "what it does not declare",
        ),
        promise(
            Mahalanobis,
            {"fit": lambda self, outputs, labels: self._fit(outputs, labels)},
            "expected a UserError",
        ),
    ],
)
def test_what_a_score_may_not(base, change, words):
    broken = type("Broken", (base,), change)
    with pytest.raises(AssertionError, match=words):
        check_score(broken)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (Metric("x", "", "classification", True, accuracy), "name and title must not be empty"),
        (Metric("x", "X", "ranking", True, accuracy), "kind must be one of"),
        (Metric("x", "X", "classification", True, accuracy, ranks=True), "only detection ranks"),
        (Metric("x", "X", "classification", 1, accuracy), "higher_is_better must be a bool"),
        (Metric("x", "X", "classification", False, accuracy), "x: lower should be better"),
        (Metric("x", "X", "detection", False, auroc), "x: lower should be better"),
        (Metric("x", "X", "detection", True, lambda c, p: float("nan")), "not a finite float"),
        (Metric("x", "X", "detection", True, lambda c, p: float(c[0])), "depends on the order"),
    ],
)
def test_what_a_metric_may_not(metric, words):
    with pytest.raises(AssertionError, match=words):
        check_metric(metric)


def broken(change):
    """The cross-entropy with a change to what it gives."""

    @dataclasses.dataclass(frozen=True)
    class Broken(CrossEntropy):
        name: ClassVar[str] = "broken"

        def loss(self, model, batch):
            return change(super().loss(model, batch))

    return Broken


@pytest.mark.parametrize(
    ("change", "words"),
    [
        promise(lambda loss: Loss(loss.total * torch.nan, loss.terms), "the loss is nan"),
        promise(lambda loss: Loss(loss.total[None], loss.terms), r"has shape \(1,\)"),
        promise(lambda loss: Loss(loss.total.double(), loss.terms), "expected float32"),
        promise(lambda loss: Loss(loss.total * 0, loss.terms), "is 0"),
        promise(lambda loss: Loss(loss.total, {}), "lack 'ce'"),
        promise(lambda loss: Loss(loss.total, {"ce": loss.total}), "detach the terms"),
        promise(lambda loss: Loss(loss.total * np.random.default_rng().random(), loss.terms), "same seed"),
    ],
)
def test_what_an_objective_may_not(change, words):
    with pytest.raises(AssertionError, match=words):
        check_objective(broken(change))


def test_an_objective_leaves_the_model_as_it_was():
    model = tiny_bert()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    check_objective(CrossEntropy(), model)
    assert all(weight.grad is None for weight in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_checking_a_metric_loads_no_torch():
    code = "import sys; from calibrant.testing import check_metric; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_no_other_checks():
    import calibrant.testing

    with pytest.raises(AttributeError, match=r"module 'calibrant\.testing' has no attribute 'check_nothing'"):
        calibrant.testing.check_nothing  # noqa: B018
