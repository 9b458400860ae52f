import numpy as np
import pytest

from calibrant.errors import UserError
from calibrant.study.figures import figures
from calibrant.study.figures.base import Study, mean_and_deviation


def test_the_figures_of_the_paper():
    assert {"reliability", "ood-histogram", "curves", "parameters", "illustration"} <= set(figures())


def test_cells_by_dataset_and_method_in_the_order_of_the_seeds(make):
    for dataset, seed in (("20ng", 10), ("20ng", 2), ("banking77", 0)):
        make(dataset, seed=seed)
    make("20ng", model="textcnn")
    assert [cells.dataset for cells in Study(make.path).datasets] == ["20ng", "banking77"]
    assert list(make.of("20ng").of("bert")) == [2, 10]
    assert list(make.of("20ng").of("bert", "model=textcnn")) == [0]
    assert make.of("20ng").of("mixup") == {}
    assert [cells.dataset for cells in Study(make.path, ("banking77",)).datasets] == ["banking77"]


def test_confidences_are_those_of_the_cell(make):
    cell, confidences = make()
    np.testing.assert_allclose(make.of().confidences(cell).ood, confidences.ood, atol=1e-5)


def test_mean_and_deviation_over_the_seeds():
    mean, deviation = mean_and_deviation([np.array([1.0, 4.0]), np.array([3.0, 4.0])])
    assert (mean.tolist(), deviation.tolist()) == ([2, 4], [pytest.approx(2**0.5), 0])
    mean, deviation = mean_and_deviation([np.array([1.0, 4.0])])
    assert mean.tolist() == [1, 4]
    assert np.isnan(deviation).all()  # one seed tells nothing of the spread


def test_a_dataset_that_was_not_measured(make):
    make("20ng")
    make("banking77")
    with pytest.raises(UserError) as error:
        Study(make.path, ("20ng-15",)).datasets  # noqa: B018
    assert str(error.value) == (
        f"{make.path} has no cells of '20ng-15', only of 20ng, banking77; get them with "
        f"`calibrant study run --datasets 20ng-15 --out {make.path}`."
    )


def test_a_study_without_cells(tmp_path):
    with pytest.raises(UserError, match=r"^No study in '.*'; begin one with `calibrant study run --out .*`"):
        Study(tmp_path).datasets  # noqa: B018
    (tmp_path / "cells").mkdir()
    with pytest.raises(UserError, match=r"has no cells yet; get them with `calibrant study run --out .*`\."):
        Study(tmp_path).datasets  # noqa: B018


def test_the_preset_is_part_of_the_command(make):
    make()
    assert Study(make.path).preset is None
    (make.path / "study.json").write_text('{"preset": "paper"}')
    assert Study(make.path).command("--parts main") == (
        f"`calibrant study run --preset paper --parts main --out {make.path}`"
    )


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_damaged_record(make, text):
    make()
    (make.path / "study.json").write_text(text)
    with pytest.raises(
        UserError, match=r"study\.json is damaged; remove it and run the study's command again"
    ):
        Study(make.path).preset  # noqa: B018
