from dataclasses import replace

import numpy as np
import pytest

from calibrant.errors import UserError
from calibrant.study.cells import Cell, Confidences, Key, read_cell, read_cells, read_confidences, variant


@pytest.fixture
def cell():
    return Cell(
        key=Key("20ng-15", "bert", 3),
        fingerprint="abc",
        metrics={"accuracy": 0.5, "ood": None},
        objective={"name": "cross-entropy"},
        config={"epochs": 1},
        training={"seconds": 2.0},
        data={"test": {"n": 3, "source": "here", "fingerprint": "f"}},
        versions={"torch": "2"},
        machine="this one",
    )


@pytest.fixture
def confidences():
    said = Confidences(
        *(np.array([0.25, 1.0, 1 / 3]), np.array([True, False, True])),
        *(np.array([0.0, 0.5]), np.array([0.5, 700.0, 1.1])),
    )
    return {"none": said, "temperature": replace(said, test=np.array([0.5, 0.5, 0.5]))}


def test_a_cell_is_read_as_it_was_written(cell, confidences, tmp_path):
    cell.write(tmp_path, confidences)
    other = replace(cell, key=replace(cell.key, variant="delta_on=0.01"))
    other.write(tmp_path, confidences)
    assert read_cells(tmp_path) == [cell, other]
    assert other.key.path(tmp_path) == tmp_path / "cells/20ng-15/bert__delta_on=0.01/seed-3.json"
    found = read_confidences(cell, tmp_path)
    np.testing.assert_allclose(found.test, confidences["none"].test, atol=1e-5)
    np.testing.assert_allclose(found.ood, confidences["none"].ood, atol=1e-5)
    np.testing.assert_allclose(found.nll, confidences["none"].nll, rtol=1e-3)
    assert found.correct.tolist() == [True, False, True]


def test_a_cell_holds_what_it_answers_with_other_calibrators(cell, confidences, tmp_path):
    cell = replace(cell, others={"temperature": {"accuracy": 0.5, "ece": 0.1}})
    cell.write(tmp_path, confidences)
    (read,) = read_cells(tmp_path)
    softer = read.answering("temperature")
    assert (softer.metrics["ece"], softer.key) == (0.1, cell.key)
    np.testing.assert_allclose(read_confidences(softer, tmp_path).test, [0.5] * 3, atol=1e-5)
    assert read.answering("none") is read
    assert read.answering("isotonic") is None


def test_without_ood_text(cell, tmp_path):
    said = Confidences(np.array([0.5]), np.array([True]), np.array([]), np.array([0.7]))
    cell.write(tmp_path, {"none": said})
    assert len(read_confidences(cell, tmp_path).ood) == 0


def test_a_variant_has_one_name():
    assert variant({"b": 1, "a": 0.5}) == variant({"a": 0.5, "b": 1}) == "a=0.5,b=1"
    assert variant({}) == ""


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 2}', '{"format": 2, "key": {"no": 1}}'])
def test_a_damaged_file_is_named(text, tmp_path):
    (tmp_path / "seed-0.json").write_text(text)
    with pytest.raises(UserError, match=r"seed-0\.json is not a cell of a study .* remove it"):
        read_cell(tmp_path / "seed-0.json")


def test_another_format_is_refused(tmp_path):
    (tmp_path / "seed-0.json").write_text('{"format": 1}')
    with pytest.raises(UserError, match="another version of calibrant; this reads format 2"):
        read_cell(tmp_path / "seed-0.json")


def test_no_study_there(tmp_path):
    with pytest.raises(UserError, match=r"No study in '.*nowhere'; begin one with `calibrant study run"):
        read_cells(tmp_path / "nowhere")


def test_confidences_that_are_gone(cell, tmp_path):
    with pytest.raises(UserError, match=r"seed-3\.npz is missing or damaged; remove seed-3\.json"):
        read_confidences(cell, tmp_path)


@pytest.mark.parametrize("kept", [0, 1, 100, -1], ids=["empty", "a byte", "the start", "all but the end"])
def test_confidences_that_are_damaged(cell, confidences, tmp_path, kept):
    cell.write(tmp_path, confidences)
    path = cell.key.path(tmp_path).with_suffix(".npz")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"seed-3\.npz is missing or damaged; remove seed-3\.json"):
        read_confidences(cell, tmp_path)


def test_confidences_that_changed_on_the_disk(cell, confidences, tmp_path):
    cell.write(tmp_path, confidences)
    path = cell.key.path(tmp_path).with_suffix(".npz")
    content = bytearray(path.read_bytes())
    content[60:70] = bytes(10)  # within the packed numbers
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"seed-3\.npz is missing or damaged; remove seed-3\.json"):
        read_confidences(cell, tmp_path)


def test_measured_anew_and_interrupted_it_is_unfinished(cell, confidences, tmp_path, monkeypatch):
    cell.write(tmp_path, confidences)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.study.cells.write_json", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace(cell, fingerprint="another").write(tmp_path, confidences)
    assert read_cells(tmp_path) == []
