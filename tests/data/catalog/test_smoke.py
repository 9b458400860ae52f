from calibrant.data import datasets
from calibrant.data.catalog.smoke import SMOKE


def test_generated_texts_are_the_same_each_time_and_in_one_split_only(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    train, test = SMOKE.read("train"), SMOKE.read("test")
    unfamiliar = datasets()[SMOKE.ood].read("test")
    assert (len(train), len(test), len(unfamiliar)) == (200, 120, 60)
    assert SMOKE.read("test") == test
    texts = [*train.texts, *test.texts, *unfamiliar.texts]
    assert len(set(texts)) == len(texts)
    assert set(train.labels) == set(test.labels) == {"billing", "shipping", "account", "device"}
    assert set(unfamiliar.labels) == {"nature", "arts"}
    assert train.source == "generated sentences on billing, shipping, account, device"


def test_dev_is_cut_from_train(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    splits = SMOKE.splits()
    assert (len(splits.train), len(splits.dev)) == (160, 40)


def test_files_go_first(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    (tmp_path / "smoke").mkdir()
    (tmp_path / "smoke" / "test.csv").write_text("text,label\nhello there,billing\n")
    assert list(SMOKE.read("test").texts) == ["hello there"]
