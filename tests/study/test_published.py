from collections import Counter

import pytest

from calibrant.methods import METHODS
from calibrant.objectives import objectives
from calibrant.study.cells import variant
from calibrant.study.measures import measures
from calibrant.study.published import published, published_sizes

NBAUCC = [f"{group}.nbaucc_{tau}" for group in ("misclassification", "ood") for tau in (0.5, 0.7, 1.0)]


def test_shape():
    """Nine methods on six datasets in the main tables, five ablations on two datasets in the others."""
    main = [where for where in published() if not where[-1]]
    ablation = [where for where in published() if where[-1]]
    assert Counter(where[0] for where in main) == dict.fromkeys(["ece", "accuracy", *NBAUCC], 9 * 6)
    assert Counter(where[0] for where in ablation) == dict.fromkeys(["ece", "accuracy", *NBAUCC], 5 * 2)
    assert {where[1] for where in ablation} == {"20ng-15", "20ng"}


def test_names_are_those_of_cells():
    names, datasets, methods, _ = map(set, zip(*published(), strict=True))
    assert names <= set(measures())
    assert methods <= set(METHODS)
    assert datasets == set(published_sizes())
    expected = {
        "",
        variant({"lambda_on": 0}),
        *(variant({"lambda_off": 0, "delta_on": d}) for d in (1e-2, 1e-3, 1e-4, 1e-5)),
    }
    assert {where[-1] for where in published()} == expected
    fields = objectives()["manifold-smoothing"].__dataclass_fields__
    assert {"lambda_on", "lambda_off", "delta_on"} <= set(fields)


def test_ranges():
    assert all(0.02 < value < 0.9 for value in published().values())
    for (name, *_), value in published().items():
        if name == "accuracy":
            assert value > 0.7
        if name == "ece":
            assert value < 0.12


def test_a_higher_bound_finds_more_of_the_misclassified():
    for (name, *where), value in published().items():
        if name == "misclassification.nbaucc_0.5":
            between, whole = (published()[f"misclassification.nbaucc_{tau}", *where] for tau in (0.7, 1.0))
            assert value < between < whole


@pytest.mark.parametrize(
    ("where", "percent"),
    [
        (("ece", "20ng-15", "bert", ""), 9.24),
        (("ece", "yahoo", "entropy-regularized", ""), 2.96),
        (("ece", "wos-100", "manifold-smoothing", ""), 3.24),
        (("accuracy", "wos", "mc-dropout", ""), 79.67),
        (("accuracy", "20ng-15", "temperature-scaling", ""), 87.42),
        (("misclassification.nbaucc_0.5", "yahoo-8", "vat", ""), 6.54),
        (("ood.nbaucc_0.5", "20ng", "manifold-smoothing", ""), 63.92),
        (("ood.nbaucc_0.5", "20ng", "entropy-regularized", ""), 47.00),
        (("ood.nbaucc_0.7", "wos", "label-smoothing", ""), 65.28),
        (("misclassification.nbaucc_0.7", "20ng", "mixup", ""), 11.87),
        (("ood.nbaucc_1.0", "yahoo", "manifold-mixup", ""), 44.20),
        (("misclassification.nbaucc_1.0", "wos-100", "mc-dropout", ""), 38.54),
        (("ood.nbaucc_0.5", "20ng", "manifold-smoothing", "delta_on=0.0001,lambda_off=0"), 43.87),
        (("accuracy", "20ng-15", "manifold-smoothing", "delta_on=0.01,lambda_off=0"), 88.73),
        (("ece", "20ng", "manifold-smoothing", "lambda_on=0"), 7.98),
        (
            ("misclassification.nbaucc_0.7", "20ng-15", "manifold-smoothing", "delta_on=1e-05,lambda_off=0"),
            12.25,
        ),
    ],
)
def test_values_of_the_paper(where, percent):
    assert published()[where] == pytest.approx(percent / 100, abs=1e-12)


def test_sizes_of_the_paper():
    assert list(published_sizes()) == ["20ng-15", "20ng", "wos-100", "wos", "yahoo-8", "yahoo"]
    wos, parts = published_sizes()["wos"], published_sizes()["wos-100"]
    assert wos.train + wos.dev + wos.test == 46985
    assert parts.test + parts.ood == wos.test
    assert (published_sizes()["yahoo"].labels, published_sizes()["yahoo"].ood) == (10, 38000)
    assert (published_sizes()["20ng"].test, published_sizes()["20ng"].ood) == (7532, 1822)
