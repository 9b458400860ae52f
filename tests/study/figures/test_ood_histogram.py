import numpy as np
import pytest

from calibrant.study.figures.base import NotMeasured
from calibrant.study.figures.ood_histogram import draw


def test_panels_of_one_scale_that_hold_all_texts(make):
    made = make.three(seed=1)
    drawing = draw(make.of())
    assert drawing.name == "ood-histogram-20ng-15"
    assert drawing.figure.get_suptitle() == "20ng-15, 40 unfamiliar texts, seed 1"
    assert len({axes.get_ylim() for axes in drawing.figure.axes}) == 1
    for axes, (cell, confidences) in zip(drawing.figure.axes, made, strict=True):
        shares = [bar.get_height() for bar in axes.containers[0]]
        counts, _ = np.histogram(confidences.ood, bins=15, range=(0, 1))
        np.testing.assert_allclose(shares, counts / 40, atol=1e-12)
        assert axes.get_title().split("\n")[1] == f"mean confidence {cell.metrics['mean_confidence_ood']:.1%}"


def test_without_unfamiliar_text(make):
    make.three(ood=0)
    with pytest.raises(NotMeasured, match=r"20ng-15 was measured in .*study without unfamiliar text\."):
        draw(make.of())
