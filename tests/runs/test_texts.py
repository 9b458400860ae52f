"""The texts behind a run, had again as they were."""

import json
import shutil

import pytest

from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.runs.texts import columns_of, dev_texts, load_splits, own_splits, own_train


@pytest.fixture
def run(run_copy, trained, tmp_path):
    """A run with training texts of its own, to be changed."""
    path = shutil.copy(trained.parent / "train.csv", tmp_path / "train.csv")
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["config"]["train"] = str(path)
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    return store.load(run_copy)


def test_texts_are_those_that_the_record_names(run):
    own = own_splits(run)
    recorded = run.record.data
    assert own == load_splits(run.config)
    assert (own.train.fingerprint, own.dev.fingerprint) == (
        recorded.train.fingerprint,
        recorded.dev.fingerprint,
    )
    assert own_train(run, "knn") == own.train
    assert dev_texts(run, None, columns_of(run)) == own.dev


def test_texts_that_have_changed_since(run, tmp_path, csv_file):
    path = tmp_path / "train.csv"
    path.write_text(path.read_text() + "one more card,billing\n")
    why = f"file {path} is no longer what the run was trained on"
    other = str(csv_file("dev.csv", [("my card", "billing"), ("a box", "shipping")]))
    for refused, sentence in (
        (lambda: own_splits(run), f"{why}."),
        (
            lambda: own_train(run, "knn"),
            f"knn: fitted on the run's training texts, and these cannot be had again ({why}); restore them, "
            "or use what needs no fitting on them.",
        ),
        (
            lambda: dev_texts(run, None, columns_of(run)),
            f"--dev is missing, and the run's own dev texts cannot be had again ({why}); name a labelled "
            "file with text that training has not seen.",
        ),
    ):
        with pytest.raises(UserError) as told:
            refused()
        assert str(told.value) == sentence
    assert list(dev_texts(run, other, columns_of(run)).texts) == ["my card", "a box"]


def test_dev_texts_that_training_saw(run, csv_file):
    text, label = own_train(run, "knn").texts[0], own_train(run, "knn").labels[0]
    path = str(csv_file("dev.csv", [(text, label), ("a box", "shipping")]))
    with pytest.warns(UserWarning, match=r"1 text.* both in"):
        dev_texts(run, path, columns_of(run))


def test_columns_are_those_of_training_unless_others_are_named(run):
    assert columns_of(run) == ("text", "label", None)
    assert columns_of(run, label_column="queue", pair_column="reply") == ("text", "queue", "reply")
