import numpy as np
import pytest
from scipy.special import softmax

from calibrant.calibrators import calibrators
from calibrant.decide.advice import Candidate, candidates, choose
from calibrant.types import Outputs

OF_LOGITS = [name for name, kind in calibrators().items() if not kind.needs]


def drawn(n, scale, offset=(0.0, 0.0, 0.0), seed=0):
    """Logits that are right but for a scale and an offset, and classes drawn from them."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, 3))
    y = (softmax(z, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return Outputs(scale * z + np.array(offset)), y


@pytest.mark.parametrize(
    ("scale", "offset", "name"),
    [(1.0, (0, 0, 0), "none"), (4.0, (0, 0, 0), "temperature"), (1.0, (0, 3, -3), "vector-scaling")],
)
def test_the_simplest_that_is_as_good_as_the_best(scale, offset, name):
    seen = []
    found = candidates(*drawn(300, scale, offset), progress=lambda *step: seen.append(step))
    assert [candidate.name for candidate in found] == ["none", *OF_LOGITS]
    assert {candidate.name: candidate.foldable for candidate in found} == {
        "none": True,
        "temperature": True,
        "vector-scaling": True,
        "matrix-scaling": True,
        "isotonic": False,
        "histogram-binning": False,
    }
    assert choose(found).name == name
    n = len(OF_LOGITS)
    assert seen == [("calibrators", done, n) for done in range(1, n + 1)]


def test_losses_are_of_texts_left_out():
    """Curves of many numbers fit those that they see too well."""
    outputs, y = drawn(60, 1.0)
    fitted = next(c for c in candidates(outputs, y) if c.name == "isotonic")
    own = -np.log(np.maximum(fitted.calibrator.probabilities(outputs)[np.arange(60), y], 1e-300)).mean()
    assert fitted.dev_nll > own + 0.1


def test_one_standard_error():
    temperature, vector = (calibrators()[name] for name in ("temperature", "vector-scaling"))
    two = vector(w=[1.0, 1.0], b=[0.0, 0.0])
    noisy, steady = np.array([0.0, 0.5, 0.0, 0.5]), np.full(4, 0.5)
    assert choose([Candidate(two, noisy - 0.3), Candidate(temperature(2.0), noisy)]).name == "vector-scaling"
    assert choose([Candidate(two, noisy), Candidate(temperature(2.0), noisy)]).name == "temperature"
    # Better by 0.25 on average, where the difference has a standard error of 0.125.
    assert choose([Candidate(two, noisy), Candidate(None, steady)]).name == "vector-scaling"
    assert choose([Candidate(two, np.array([0.0, 0.9, 0.0, 0.9])), Candidate(None, steady)]).name == "none"
