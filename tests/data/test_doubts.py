import warnings

import pytest

from calibrant.data.doubts import check_classes, doubt
from calibrant.errors import UserError
from calibrant.types import Texts


def told(labels, texts=None):
    texts = [f"text {i}" for i in range(len(labels))] if texts is None else texts
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = Texts(texts, labels, "file t.csv", "")
        check_classes(file, "queue")
        doubt(file, "body", "queue")
    return [str(one.message) for one in caught]


def refused(labels):
    texts = [f"text {i}" for i in range(len(labels))]
    with pytest.raises(UserError) as error:
        check_classes(Texts(texts, labels, "file t.csv", ""), "queue")
    return str(error.value)


def test_ordinary_labels():
    assert told(["billing", "chat", "1", "2.5"] * 10) == []


def test_an_id_column():
    assert refused([f"T-{i}" for i in range(30)]) == (
        "file t.csv: as many classes as texts (30) in column 'queue'. Is it an id column? Name the one with "
        "the classes with --label-column."
    )
    nearly = [f"T-{i}" for i in range(29)] + ["T-0"]
    assert told(nearly) == ["file t.csv: 29 classes for 30 texts. Is 'queue' an id column?"]


def test_few_texts_are_not_doubted():
    assert told(["a", "b", "c"]) == []


def test_floats():
    assert refused([f"{i / 40:.3f}" for i in range(40)] * 2) == (
        "file t.csv: the labels in column 'queue' are 40 different numbers with a fraction, as 0.025. A "
        "classifier needs classes; name another --label-column, or write a word for each range."
    )
    assert told([str(star / 2) for star in range(1, 11)] * 5) == [  # half stars, which may be meant
        "file t.csv: the labels in column 'queue' are 10 different numbers with a fraction, as 0.5. Each is "
        "trained as a class of its own. Name another --label-column if they measure something."
    ]
    for classes in (3, 40):
        assert told([f"{i}.0" for i in range(classes)] * 30) == []  # class ids, as pandas writes them


def test_labels_that_differ_only_in_case_or_blanks():
    assert told(["Billing", "billing", "chat room", "chatroom", "other"] * 9) == [
        "file t.csv: 4 labels differ only in case or blanks, as 'Billing' and 'billing'. They are trained as "
        "different classes; write them alike."
    ]


@pytest.mark.parametrize("word", ["nan", "NaN", "NULL", "<NA>"])
def test_a_word_for_nothing(word):
    assert told(["billing", "chat", word] * 9) == [
        f"file t.csv: 9 texts have the label {word!r}, which is trained as a class. Drop them if it "
        "stands for no label."
    ]


def test_numbers_as_texts():
    texts = [str(i * 1.5) for i in range(20)] + ["a card"] * 10
    assert told(["billing", "chat", "x"] * 10, texts) == [
        "file t.csv: 20 of 30 texts in column 'body' are numbers. Is it the column with the text? Name "
        "another with --text-column."
    ]
