"""The decision of ``modeling_calibrant.py``, in torch, is that of calibrators and rules, in numpy."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from calibrant.calibrators import Chain, Familiarity, Isotonic, MatrixScaling, Temperature, VectorScaling
from calibrant.calibrators import calibrated as calibrated_by
from calibrant.decide.rule import Rule
from calibrant.errors import UserError
from calibrant.exports.answers import Answers, difference, of_the_run, steps
from calibrant.exports.decided import check_decided, decision, decision_of
from calibrant.models import modeling_calibrant
from calibrant.scores import Score, scores
from calibrant.types import Outputs
from support.encoders import tiny

K, H, N = 4, 6, 80


def outputs(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, K, n)
    features = (rng.normal(size=(n, H)) + 3 * np.eye(K, H)[y]).astype(np.float32)
    layers = np.stack([features + rng.normal(size=(n, H)), features, features * 2], axis=1).astype(np.float32)
    logits = (3 * rng.normal(size=(n, K)) + 2 * np.eye(K)[y]).astype(np.float32).astype(np.float64)
    return Outputs(logits, features, layers[:, 1] + 1, layers), y


TRAIN, DEV, NEW = outputs(200, 0), outputs(N, 1), outputs(50, 2)[0]
CALIBRATORS = {
    "none": None,
    "temperature": Temperature(),
    "vector-scaling": VectorScaling(),
    "matrix-scaling": MatrixScaling(),
    "familiarity": Familiarity(),
    "temperature+familiarity": Chain((Temperature(), Familiarity())),
    "matrix-scaling+familiarity": Chain((MatrixScaling(), Familiarity(alpha=0.3))),
}


def torch_answers(calibrator, rule, said):
    model = decision(*decision_of(K, calibrator, rule))
    seen = said.logits, said.features, said.middle, said.layers.mean(axis=1)
    p, familiarity, abstain = model(*(torch.tensor(part, dtype=torch.float32) for part in seen))
    return Answers(p.numpy(), None if familiarity is None else familiarity.numpy(), abstain.numpy())


@pytest.mark.parametrize("name", CALIBRATORS)
def test_probabilities_and_familiarity(name):
    calibrator = CALIBRATORS[name] and CALIBRATORS[name].fit(*DEV, TRAIN)
    rule = Rule(np.array([0.5, 0.6, 0.9, math.inf]))
    said = calibrated_by(NEW, calibrator)
    expected, got = of_the_run(said, rule), torch_answers(calibrator, rule, said)
    assert (got.familiarity is None) == ("familiarity" not in name)
    assert difference(expected, got, steps(calibrator, rule, said)) < 1e-5
    assert 0 < expected.abstain.mean() < 1
    if "familiarity" in name:
        assert (got.familiarity < calibrator.unfamiliar_below).any()


@pytest.mark.parametrize("name", scores())
def test_a_rule_with_any_score(name):
    score = scores()[name]()
    if score.learns:
        score = score.fit(*TRAIN)
    calibrator = Temperature(temperature=1.5)
    said = calibrated_by(NEW, calibrator)
    rule = Rule(0.4, score, float(np.median(score(said))) + 1e-4)
    expected, got = of_the_run(said, rule), torch_answers(calibrator, rule, said)
    assert difference(expected, got, steps(calibrator, rule, said)) < 1e-5
    assert (~expected.abstain).any()
    assert (expected.abstain & (said.probabilities.max(axis=1) > 0.4)).any(), "the score decides nothing"


def test_differences_are_found():
    run = Answers(np.full((3, 2), 0.5), np.array([0.1, 0.2, 0.3]), np.array([True, False, False]))
    none = np.zeros(3, dtype=bool)
    assert difference(run, run, none) == 0
    shifted = run.probabilities + np.array([[0, 0], [0, 0.1], [0, 0]])
    other = Answers(shifted, run.familiarity, run.abstain)
    assert difference(run, other, none) == pytest.approx(0.1)
    assert difference(run, other, np.array([False, True, False])) == 0
    assert difference(run, Answers(run.probabilities, run.familiarity + 0.2, run.abstain), none) > 0.1
    assert difference(run, Answers(run.probabilities, run.familiarity, ~run.abstain), none) == 1
    assert math.isnan(difference(run, run, ~none))


def test_where_the_answer_jumps():
    calibrator = Familiarity().fit(*DEV, TRAIN)
    on_dev = calibrated_by(DEV[0], calibrator)
    assert steps(calibrator, Rule(0.0), on_dev).all(), "each dev text is as strange as itself"
    said = calibrated_by(NEW, calibrator)
    assert not steps(calibrator, Rule(0.0), said).any()
    confidence = said.probabilities.max(axis=1)
    assert steps(calibrator, Rule(float(confidence[3])), said)[3]


class Peculiar(Score):
    name, citation = "peculiar", "nobody"

    def __call__(self, outputs):
        return outputs.logits[:, 0]


def test_what_the_module_cannot_hold():
    isotonic = Isotonic(points=[[0, 1]] * 3, values=[[0, 1]] * 3)
    for calibrator in (
        isotonic,
        Chain((Familiarity(), Temperature())),
        Chain((Temperature(), Temperature())),
    ):
        with pytest.raises(
            UserError, match=r"^The calibrator '[a-z+]+' cannot be exported: what can be is a"
        ):
            check_decided(tiny("bert"), calibrator, Rule(0.0))
    with pytest.raises(UserError, match=r"^The rule of abstention reads the score 'peculiar', which cannot"):
        check_decided(tiny("bert"), None, Rule(0.0, Peculiar(), 1.0))
    with pytest.raises(UserError, match=r"^TextCNNForSequenceClassification is an architecture of calibrant"):
        check_decided(tiny("textcnn"), None, Rule(0.0))


def test_the_module_is_self_contained():
    """It runs where there is no calibrant."""
    tree = ast.parse(Path(modeling_calibrant.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    assert imported == {"collections", "dataclasses", "typing", "torch", "transformers"}
    assert set(modeling_calibrant.SCORES) == set(scores()), "a new score is exported, too"
