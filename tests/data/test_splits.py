import random
from collections import Counter

import pytest

from calibrant.data.files import fingerprint
from calibrant.data.splits import check_labels, draw, make_splits, warn_of_overlap
from calibrant.errors import UserError
from calibrant.types import Texts

# Messages of each group in the training part of 20 Newsgroups, by date, in alphabetical order.
GROUPS_20NG = (
    *(480, 584, 591, 590, 578, 593, 585, 594, 598, 597, 600, 595, 591, 594, 593),
    *(599, 546, 564, 465, 377),
)


def texts(counts, source="file train.csv", shuffled=True):
    """Texts that tell their own place and class, of classes with these counts."""
    rows = [f"c{k}" for k, count in enumerate(counts) for _ in range(count)]
    if shuffled:
        random.Random(1).shuffle(rows)
    words = [f"{label} {source} {i}" for i, label in enumerate(rows)]
    return Texts(words, rows, source, fingerprint(words, rows))


@pytest.mark.parametrize(
    ("counts", "train", "dev"),
    [
        (GROUPS_20NG, 9051, 2263),
        (GROUPS_20NG[:15], 7010, 1753),
        ((2500,) * 8, 16000, 4000),
        ((35, 35), 56, 14),
    ],
    ids=["20ng", "20ng-15", "yahoo-8", "no remainder"],
)
def test_dev_is_a_fifth_rounded_up(counts, train, dev):
    splits = make_splits("news", texts(counts), None)
    assert (len(splits.train), len(splits.dev)) == (train, dev)
    for label, count in Counter(texts(counts).labels).items():
        assert abs(Counter(splits.dev.labels)[label] - count / 5) <= 1


def test_parts_are_disjoint_and_whole():
    whole = texts((40, 30, 20))
    splits = make_splits("own", whole, None)
    assert sorted([*splits.train.texts, *splits.dev.texts]) == sorted(whole.texts)
    for part in (splits.train, splits.dev):
        assert all(text.startswith(f"{label} ") for text, label in zip(part.texts, part.labels, strict=True))
        assert part.fingerprint == fingerprint(part.texts, part.labels)
        places = [whole.texts.index(text) for text in part.texts]
        assert places == sorted(places)  # the file's order
    assert splits.name == "own"
    assert splits.label_names == ("c0", "c1", "c2")
    assert splits.dev.source == "file train.csv (20 % of train, stratified)"


def test_the_cut_is_always_the_same():
    first, again = (make_splits("own", texts((50, 50)), None) for _ in range(2))
    assert first == again
    assert first.dev.texts != make_splits("own", texts((50, 50), shuffled=False), None).dev.texts


def test_classes_seen_once_stay_in_train():
    splits = make_splits("own", texts((1, 40, 1, 40)), None)
    assert {"c0", "c2"} <= set(splits.train.labels)
    assert set(splits.dev.labels) == {"c1", "c3"}
    assert (len(splits.train), len(splits.dev)) == (65, 17)


@pytest.mark.parametrize("counts", [(2,) * 10, (3, 3, 3), (1, 1, 2), (2, 2), (1, 1, 1, 2, 2)])
def test_few_texts_of_many_classes_leave_every_class_to_train_on(counts):
    splits = make_splits("own", texts(counts), None)
    assert set(splits.train.labels) == {f"c{k}" for k in range(len(counts))}
    assert len(splits.dev) == -(-sum(counts) // 5)


def test_too_few_texts():
    with pytest.raises(UserError) as refused:
        make_splits("own", texts((1, 1, 1)), None)
    assert str(refused.value) == (
        "3 training texts of 3 classes are too few to cut 1 of them off: training needs a text of every "
        "class; add texts."
    )


def test_dev_of_the_users_own():
    train, dev = texts((5, 5)), texts((2, 1), "file dev.csv")
    splits = make_splits("own", train, dev)
    assert (splits.train, splits.dev) == (train, dev)


def test_max_train_samples_is_kept_to_and_stratified():
    whole = texts((400, 200, 100, 1, 2))
    splits = make_splits("own", whole, None, max_train_samples=100)
    assert (len(splits.train), len(splits.dev)) == (80, 20)
    assert splits.train.source == "file train.csv (100 of 703 drawn)"
    counts = Counter([*splits.train.labels, *splits.dev.labels])
    assert counts["c3"] == 1
    assert counts["c4"] >= 1  # a rare class does not vanish: its test texts could not be evaluated
    assert abs(counts["c0"] - 57) <= 6
    assert splits.label_names == ("c0", "c1", "c2", "c3", "c4")


def test_max_train_samples_of_even_classes_is_exact():
    splits = make_splits("own", texts(GROUPS_20NG[:15]), None, max_train_samples=800)
    assert (len(splits.train), len(splits.dev)) == (640, 160)
    assert set(Counter(splits.dev.labels).values()) <= {8, 9, 10, 11, 12}


def test_max_train_samples_leaves_the_users_dev_whole():
    dev = texts((2, 2), "file dev.csv")
    splits = make_splits("own", texts((50, 50)), dev, max_train_samples=20)
    assert (len(splits.train), splits.dev) == (20, dev)


def test_max_train_samples_beyond_what_there_is():
    assert make_splits("own", texts((5, 5)), None, 100) == make_splits("own", texts((5, 5)), None)


def test_max_train_samples_below_the_number_of_classes():
    with pytest.raises(UserError) as refused:
        make_splits("own", texts((3,) * 30), None, max_train_samples=10)
    assert str(refused.value) == (
        "--max-train-samples: file train.csv has 30 classes, and a text of each is drawn; ask for at least "
        "30, got 10."
    )


@pytest.mark.parametrize("count", [1, 30])
def test_one_class(count):
    with pytest.raises(UserError) as refused:
        make_splits("own", texts((count,)), None)
    assert str(refused.value) == "file train.csv: only one class (c0); a classifier needs at least two."


def test_training_without_labels():
    with pytest.raises(UserError, match=r"^file a.csv: training needs labels\.$"):
        make_splits("own", Texts(["a"], None, "file a.csv", ""), None)


def test_dev_label_unseen_in_train():
    with pytest.raises(UserError) as refused:
        make_splits("own", texts((5, 5)), texts((1, 1, 1), "file dev.csv"))
    assert str(refused.value) == (
        "file dev.csv: label 'c2' is not among the 2 labels seen in training; add training texts for it, or "
        "drop it here."
    )


def test_several_unseen_labels_are_counted():
    with pytest.raises(UserError, match=r"label 'c1' \(and 2 more\) is not among the 1 labels"):
        check_labels(texts((1, 1, 1, 1)), ("c0",))
    check_labels(texts((1, 1)), ("c0", "c1"))
    check_labels(Texts(["a"], None, "", ""), ("c0",))


def test_overlap_warns_with_the_count():
    train = texts((5, 5))
    dev = Texts(
        [*train.texts[:3], train.texts[0], "new"], [*train.labels[:3], "c0", "c1"], "file dev.csv", ""
    )
    with pytest.warns(UserWarning, match=r"^3 texts are both in file train.csv and in file dev.csv; figures"):
        make_splits("own", train, dev)
    with pytest.warns(UserWarning, match=r"^10 texts"):
        warn_of_overlap(train, train)


def test_provenance_of_splits():
    splits = make_splits("own", texts((8, 8)), None)
    recorded = splits.provenance()
    assert set(recorded) == {"train", "dev"}
    assert recorded["dev"] == {
        "n": 4,
        "source": "file train.csv (20 % of train, stratified)",
        "fingerprint": splits.dev.fingerprint,
    }


def test_the_same_texts_are_drawn_each_time():
    whole = texts((30, 20), source="file test.csv")
    part = draw(whole, 20, "n")
    assert part == draw(whole, 20, "n")
    assert len(part) == len(set(part.texts)) == 20
    assert part.source == "file test.csv (20 of 50 drawn)"
    assert part.fingerprint == fingerprint(part.texts, part.labels) != whole.fingerprint
    label_of = dict(zip(whole.texts, whole.labels, strict=True))
    assert [label_of[text] for text in part.texts] == list(part.labels)
    assert draw(whole, 50, "n") is draw(whole, 51, "n") is draw(whole, None, "n") is whole


def test_copies_of_a_text_stay_together():
    rows = [(f"text {i % 20}", "ab"[i % 2]) for i in range(100)]
    texts = Texts(*(list(column) for column in zip(*rows, strict=True)), "file t.csv", "")
    splits = make_splits("own", texts, None)
    assert not set(splits.train.texts) & set(splits.dev.texts)
    assert (len(splits.train), len(splits.dev)) == (80, 20)
    assert Counter(splits.dev.labels) == {"a": 10, "b": 10}
    assert sorted(splits.train.texts + splits.dev.texts) == sorted(texts.texts)
