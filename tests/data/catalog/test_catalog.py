from collections import Counter

import pytest

from calibrant.data import datasets
from calibrant.data.catalog.base import Dataset
from calibrant.errors import UserError


def test_what_there_is():
    assert {"20ng", "20ng-15", "20ng-5", "banking77", "reuters-r8", "reuters-r52"} <= set(datasets())


@pytest.mark.parametrize("dataset", datasets().values(), ids=datasets())
def test_a_dataset_is_declared(dataset):
    assert isinstance(dataset, Dataset)
    assert "(" in dataset.citation  # author (year)
    assert dataset.licence
    assert dataset.sources[0].kind == "files"  # what a user put there goes before what is downloaded
    assert len({source.kind for source in dataset.sources}) == len(dataset.sources)
    assert dataset.ood is None or dataset.ood in datasets()


def test_20ng_is_parted_into_15_and_5():
    familiar, unfamiliar = datasets()["20ng-15"], datasets()["20ng-5"]
    assert (len(familiar.classes), len(unfamiliar.classes)) == (15, 5)
    assert len({*familiar.classes, *unfamiliar.classes}) == 20
    assert set(unfamiliar.classes) == {
        "soc.religion.christian",
        "talk.politics.guns",
        "talk.politics.mideast",
        "talk.politics.misc",
        "talk.religion.misc",
    }
    assert familiar.ood == "20ng-5"
    assert familiar.sources == unfamiliar.sources == datasets()["20ng"].sources


def test_parts_of_20ng_are_its_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    groups = [*datasets()["20ng-15"].classes, *datasets()["20ng-5"].classes]
    (tmp_path / "20ng").mkdir()
    rows = "".join(f"text {i} of {group},{group}\n" for group in groups for i in range(2))
    (tmp_path / "20ng" / "test.csv").write_text(f"text,label\n{rows}")
    whole, familiar, unfamiliar = (datasets()[name].read("test") for name in ("20ng", "20ng-15", "20ng-5"))
    assert (len(whole), len(familiar), len(unfamiliar)) == (40, 30, 10)
    assert set(familiar.texts) | set(unfamiliar.texts) == set(whole.texts)
    assert set(unfamiliar.labels) == set(datasets()["20ng-5"].classes)
    assert len({whole.fingerprint, familiar.fingerprint, unfamiliar.fingerprint}) == 3


# the paper's pairs


@pytest.mark.parametrize(
    ("name", "ood"),
    [
        ("20ng-15", "20ng-5"),
        ("20ng", "sst-2"),
        ("wos-100", "wos-34"),
        ("wos", "agnews"),
        ("yahoo-8", "yahoo-2"),
        ("yahoo", "yelp"),
        ("banking77", "yahoo"),
    ],
)
def test_pairs(name, ood):
    assert datasets()[name].ood == ood


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty $CALIBRANT_DATA, and a way to write into it."""
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))

    def write(name, text):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    return write


def test_wos_is_cut_40_to_60_and_by_class_id(data):
    """X.txt and Y.txt, as published; 10 texts of each of the 134 classes."""
    ids = [str(i) for i in range(134) for _ in range(10)]
    data("wos/X.txt", "".join(f"abstract {i} of {y}\n" for i, y in enumerate(ids)))
    data("wos/Y.txt", "".join(f"{y}\n" for y in ids))
    test = {name: datasets()[name].read("test") for name in ("wos", "wos-100", "wos-34")}
    assert {name: (len(read), len(set(read.labels))) for name, read in test.items()} == {
        "wos": (536, 134),
        "wos-100": (400, 100),
        "wos-34": (136, 34),
    }
    assert sorted({*test["wos-100"].texts, *test["wos-34"].texts}) == sorted(test["wos"].texts)
    assert max(map(int, test["wos-100"].labels)) == 99
    assert test["wos"].source == "files $CALIBRANT_DATA/wos (40 % of all, stratified)"
    splits = datasets()["wos"].splits()
    assert splits.train.source == "files $CALIBRANT_DATA/wos (60 % of all, stratified)"
    assert (len(splits.train), len(splits.dev)) == (643, 161)
    assert sorted([*splits.train.texts, *splits.dev.texts, *test["wos"].texts]) == sorted(
        f"abstract {i} of {y}" for i, y in enumerate(ids)
    )


def test_wos_in_one_table(data):
    """all.csv, the form of the sample."""
    data("wos/all.csv", "text,label\n" + "".join(f"abstract {i},{i % 5}\n" for i in range(50)))
    assert len(datasets()["wos"].read("test")) == 20
    assert len(datasets()["wos"].splits().train) == 24


@pytest.mark.parametrize("whole", [True, False], ids=["beside the whole", "alone"])
def test_wos_that_somebody_cut_already(data, whole):
    for part, n in (("train", 20), ("test", 6)):
        data(f"wos/{part}.csv", "text,label\n" + "".join(f"{part} {i},{i % 2}\n" for i in range(n)))
    if whole:
        data("wos/X.txt", "".join(f"abstract {i}\n" for i in range(40)))
        data("wos/Y.txt", "".join(f"{i % 2}\n" for i in range(40)))
    splits, test = datasets()["wos"].splits(), datasets()["wos"].read("test")
    assert (len(splits.train), len(splits.dev), len(test)) == (16, 4, 6)
    assert {text.split()[0] for text in [*splits.train.texts, *splits.dev.texts]} == {"train"}
    assert test.source == "files $CALIBRANT_DATA/wos"


def test_wos_that_is_not_there(data):
    with pytest.raises(
        UserError, match=r"put all\.csv with columns text and label into \$CALIBRANT_DATA/wos\."
    ):
        datasets()["wos-100"].read("train")


def test_yahoo_as_published(data):
    """Class numbers from 1, in the order of the topics."""
    rows = "".join(f'"{k}","title {k}","","answer ""{k}""\\nmore"\n' for k in range(1, 11))
    data("yahoo/test.csv", rows)
    whole, familiar, unfamiliar = (datasets()[n].read("test") for n in ("yahoo", "yahoo-8", "yahoo-2"))
    assert whole.texts[0] == 'title 1\nanswer "1"\nmore'
    assert whole.labels[:2] == ["Society & Culture", "Science & Mathematics"]
    assert len(familiar) == 8
    assert list(unfamiliar.labels) == ["Family & Relationships", "Politics & Government"]


def test_yahoo_with_named_columns(data):
    data("yahoo/test.csv", "text,label\nwhy?,Health\nwho?,Politics & Government\n")
    assert list(datasets()["yahoo"].read("test").texts) == ["why?", "who?"]
    assert list(datasets()["yahoo-2"].read("test").texts) == ["who?"]


def test_the_papers_sizes_are_drawn_where_there_are_more(data):
    topics = datasets()["yahoo"].classes
    data(
        "yahoo/train.csv",
        "".join(f'"{k}","title {i} of {k}","",""\n' for k in range(1, 11) for i in range(2600)),
    )
    for name, n in (("yahoo", 10), ("yahoo-8", 8)):
        splits = datasets()[name].splits()
        assert (len(splits.train), len(splits.dev)) == (2000 * n, 500 * n)
        assert Counter(splits.dev.labels) == dict.fromkeys(topics[:n], 500)
        assert splits.train.source == f"files $CALIBRANT_DATA/yahoo ({2500 * n} of {2600 * n} drawn)"
        assert datasets()[name].splits() == splits


def test_yelp_and_agnews_as_published(data):
    data("yelp/test.csv", '"2","good, cheap"\n"1"," "\n')
    data("agnews/test.csv", '"4","Chips","Faster ones."\n')
    yelp, agnews = datasets()["yelp"].read("test"), datasets()["agnews"].read("test")
    assert (list(yelp.texts), list(yelp.labels)) == (["good, cheap"], ["2"])  # one had no text
    assert (list(agnews.texts), list(agnews.labels)) == (["Chips\nFaster ones."], ["Sci/Tech"])
