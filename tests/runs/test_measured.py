import copy

import pytest

from calibrant.runs.measured import checked

WHOLE = {
    "metrics": {
        **{"n_test": 9, "accuracy": 0.8, "ece": 0.1, "mean_confidence_test": 0.7, "n_ood": 3},
        **{"misclassification": {"nbaucc_0.5": 0.2}, "ood": {"nbaucc_0.5": 0.2}, "mean_confidence_ood": 0.4},
        "abstention": {"coverage": 0.5, "risk": None, "ood_answered": 0.1},
    },
    "measured_on": {"test": {"source": "file a.csv"}, "ood": {"source": "file b.csv"}},
}


def test_what_the_card_tells_is_there():
    assert checked(WHOLE) == WHOLE


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metrics", "accuracy"), "0.8"),
        (("metrics", "ece"), 1.5),
        (("metrics", "ood"), {}),
        (("metrics", "mean_confidence_ood"), None),
        (("metrics", "abstention"), None),
        (("measured_on", "ood"), None),
        (("metrics",), []),
    ],
)
def test_what_is_damaged_is_a_value_error(path, value):
    damaged = copy.deepcopy(WHOLE)
    *above, last = path
    part = damaged
    for name in above:
        part = part[name]
    part[last] = value
    with pytest.raises(ValueError, match=f"{path[0]}|{path[-1]}"):
        checked(damaged)
