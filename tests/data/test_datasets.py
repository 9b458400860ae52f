import pytest

from calibrant.data import datasets
from calibrant.data.base import Dataset


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
