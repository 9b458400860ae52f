"""What a run is measured on; the rest of the story is in tests/cli."""

import pytest

from calibrant.tasks.evaluate import _read_if_available, evaluate

COLUMNS = ("text", "label")


def test_labels_of_unfamiliar_text_are_not_looked_at(run_copy, csv_file):
    test = csv_file("test.csv", [("my card", "billing"), ("a parcel", "shipping")])
    other = csv_file("other.csv", [("a violin", "music"), ("a glacier", "")])
    measured = evaluate(run_copy, test=str(test), ood=str(other))
    assert measured.entry.metrics["n_ood"] == 2
    assert measured.entry.ood.labels is None
    assert measured.notes == [f"test: 2 texts, file {test}", f"ood: 2 texts, file {other}"]


def test_other_columns(run_copy, csv_file):
    test = csv_file("test.csv", [("my card", "billing"), ("a box", "shipping")], ("body", "queue"))
    measured = evaluate(run_copy, test=str(test), text_column="body", label_column="queue")
    assert list(measured.test.texts) == ["my card", "a box"]
    assert measured.entry.metrics["n_test"] == 2


def test_progress_names_what_is_done(run_copy, csv_file):
    seen = []
    test = str(csv_file("test.csv", [("my card", "billing"), ("a box", "shipping")]))
    evaluate(run_copy, test=test, ood=test, progress=lambda *step: seen.append(step))
    assert seen == [("test manifold-smoothing", 2, 2), ("unfamiliar manifold-smoothing", 2, 2)]


def test_texts_in_train_and_test_both_are_counted(run_copy, trained):
    with pytest.warns(UserWarning, match=r"160 texts are both in file .*train.csv and in file .*train.csv"):
        evaluate(run_copy, test=str(trained.parent / "train.csv"))


def test_unfamiliar_text_that_nobody_named_may_be_missing(tmp_path, monkeypatch):
    (tmp_path / "banking77").mkdir()
    (tmp_path / "banking77" / "test.csv").write_text("text,label\nfrom files,card\n")
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    with pytest.warns(
        UserWarning, match=r"Measured on familiar text only\. The test split of sst-2 could not"
    ):
        assert _read_if_available("sst-2", COLUMNS, None) is None
    assert list(_read_if_available("banking77", COLUMNS, None).texts) == ["from files"]
