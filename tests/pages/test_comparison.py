import numpy as np

from calibrant.metrics.bootstrap import Noise
from calibrant.pages.comparison import Comparison
from support.entries import entry


def compared(values, spread):
    """Models with these accuracies, of which chance moves each by itself by ± ``spread``."""
    rng = np.random.default_rng(0)
    entries = []
    for i, value in enumerate(values):
        one = entry(f"model {i}", ood=False)
        one.metrics["accuracy"] = value
        entries.append(one)
    deviations = spread * rng.uniform(-1, 1, size=(len(values), 400))
    return Comparison(entries, Noise({("", "accuracy"): deviations}))


def row(comparison, title):
    rows = [row for group in comparison.groups() for row in group["rows"]]
    return next(row for row in rows if row["metric"].title == title)


def test_bold_is_what_is_better_beyond_chance_whichever_way_is_better():
    comparison = compared([0.7, 0.9, 0.8], spread=0.02)
    assert comparison.leader(("", "accuracy"), higher_is_better=True) == 1
    assert comparison.leader(("", "accuracy"), higher_is_better=False) == 0
    assert [cell["best"] for cell in row(comparison, "Accuracy")["cells"]] == [False, True, False]


def test_what_is_within_noise_is_not_bold():
    comparison = compared([0.80, 0.81, 0.5], spread=0.02)  # the third is worse beyond doubt, and yet
    assert comparison.leader(("", "accuracy"), higher_is_better=True) is None
    assert not any(cell["best"] for cell in row(comparison, "Accuracy")["cells"])


def test_one_model_beats_nobody():
    assert compared([0.9], spread=0.01).leader(("", "accuracy"), higher_is_better=True) is None


def test_a_number_that_one_lacks():
    comparison = compared([0.9, None, 0.8], spread=0.01)
    assert comparison.leader(("", "accuracy"), higher_is_better=True) == 0
    cells = row(comparison, "Accuracy")["cells"]
    assert [cell["text"] for cell in cells] == ["90.0", "–", "80.0"]
    assert cells[1]["interval"] == cells[1]["difference"] == ""


def test_a_difference_stands_with_its_interval():
    cells = row(compared([0.7, 0.9], spread=0.0), "Accuracy")["cells"]
    assert (cells[0]["interval"], cells[0]["difference"]) == ("70.0 to 70.0", "")
    assert cells[1]["difference"] == "+20.0 (+20.0 to +20.0)"


def test_units_and_groups():
    comparison = Comparison([entry("a", rule=0.4)], Noise({}))
    groups = {group["title"]: [row["metric"].name for row in group["rows"]] for group in comparison.groups()}
    assert groups["By its rule of abstention"] == ["coverage", "risk", "ood_answered"]
    assert set(groups["Finding its own mistakes"]) == set(groups["Finding unfamiliar text"])
    nll = comparison.entries[0].metrics["nll"]
    assert row(comparison, "NLL")["cells"][0]["text"] == f"{nll:.3f}"
    assert row(comparison, "NLL")["cells"][0]["interval"] == ""  # of no draws, no interval
