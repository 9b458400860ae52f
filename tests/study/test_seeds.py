import math

import pytest

from calibrant.study.seeds import clear_winner, differences, mean_and_std


def test_mean_and_standard_deviation_by_hand():
    mean, std = mean_and_std({0: 1.0, 1: 2.0, 5: 6.0})
    assert mean == 3.0
    assert std == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
    assert mean_and_std({3: 0.25}) == (0.25, None)


def test_differences_of_common_seeds():
    assert differences({0: 3.0, 1: 5.0, 2: 9.0}, {1: 1.0, 2: 2.0, 7: 0.0}) == [4.0, 7.0]


# The margin for three pairs is 4.303 · s / √3 = 2.484 · s. Differences 1, 2, 3 have s = 1 and mean 2.


@pytest.mark.parametrize(
    ("shift", "clear"),
    [(0, False), (0.48, False), (0.49, True)],
    ids=["2 < 2.484", "2.480 < 2.484", "2.490 > 2.484"],
)
def test_the_margin_is_that_of_a_t_interval(shift, clear):
    first = {0: 1 + shift, 1: 2 + shift, 2: 3 + shift}
    rows = {"second": dict.fromkeys(range(3), 0.0), "first": first, "third": dict.fromkeys(range(3), -9.0)}
    assert clear_winner(rows, higher_is_better=True) == ("first" if clear else None)


def test_the_direction():
    rows = {"low": {0: 0.1, 1: 0.11, 2: 0.1}, "high": {0: 0.9, 1: 0.9, 2: 0.91}}
    assert clear_winner(rows, higher_is_better=False) == "low"
    assert clear_winner(rows, higher_is_better=True) == "high"


def test_pairs_tell_what_spreads_hide():
    """Seeds differ by far more than methods do, but one method is better with each seed."""
    hard = {0: 0.1, 1: 0.5, 2: 0.9}
    rows = {"better": {s: v - 0.01 - 0.001 * s for s, v in hard.items()}, "worse": hard}
    assert clear_winner(rows, higher_is_better=False) == "better"


@pytest.mark.parametrize(
    "rows",
    [
        {},
        {"alone": {0: 0.1, 1: 0.1}},
        {"one seed": {0: 0.1}, "other": {0: 0.9}},
        {"seeds of its own": {0: 0.1, 1: 0.1}, "other": {2: 0.9, 3: 0.9}},
        {"worse where both are": {0: 0.5, 1: 0.5, 2: 0.0, 3: 0.0, 4: 0.0}, "other": {0: 0.3, 1: 0.31}},
        {
            "best on average": {0: 0.10, 1: 0.101, 2: 0.10},
            "second, surely": {0: 0.12, 1: 0.12, 2: 0.121},
            "third, and often better": {0: 0.05, 1: 0.05, 2: 0.30},
        },
        {"same": {0: 0.1, 1: 0.2}, "again": {0: 0.1, 1: 0.2}, "far": {0: 0.8, 1: 0.9}},
    ],
    ids=["nothing", "one row", "one seed", "no common seeds", "other seeds", "a noisy third", "equal"],
)
def test_no_winner(rows):
    assert clear_winner(rows, higher_is_better=False) is None
