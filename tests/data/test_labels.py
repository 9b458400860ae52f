import pytest

from calibrant.data.labels import match_labels
from calibrant.errors import UserError
from calibrant.types import Texts


def matched(labels, names):
    (ids,) = match_labels([Texts(["x"] * len(labels), labels, "file t.csv", "")], names)
    return ids.tolist()


@pytest.mark.parametrize(
    ("labels", "names", "ids"),
    [
        (["b", "a"], ["a", "b"], [1, 0]),
        (["1", "0"], ["a", "b"], [1, 0]),
        (["LABEL_1", "LABEL_0"], ["a", "b"], [1, 0]),
        (["1", "0"], ["LABEL_0", "LABEL_1"], [1, 0]),
        (["0", "1"], ["0", "1"], [0, 1]),  # both, and the same
        (["7", "5"], ["5", "7"], [1, 0]),  # numbers that are no ids
    ],
)
def test_by_name_then_by_id(labels, names, ids):
    assert matched(labels, names) == ids


@pytest.mark.parametrize("labels", [["a", "1"], ["0", "2"], ["-1"], ["LABEL_2"], ["A"], ["1.0"]])
def test_neither(labels):
    with pytest.raises(UserError, match=r"^file t.csv: its labels are not the model's: '"):
        matched(labels, ["a", "b"])


def test_the_sentence_lists_both_sides():
    with pytest.raises(UserError) as refused:
        matched(["bad", "good"], [f"LABEL_{i}" for i in range(7)])
    assert str(refused.value) == (
        "file t.csv: its labels are not the model's: 'bad', 'good' where the model has 'LABEL_0', 'LABEL_1', "
        "'LABEL_2', 'LABEL_3', 'LABEL_4' and 2 more; rename them, write the ids 0 to 6 in all files instead, "
        "or correct id2label in the model's config.json."
    )


STARS = ["1", "2", "3"]  # classes 0, 1 and 2


def both(test, dev, names=STARS):
    files = [Texts(["x"] * len(y), y, f"file {part}.csv", "") for part, y in (("test", test), ("dev", dev))]
    return [ids.tolist() for ids in match_labels(files, names)]


def test_numbers_that_are_names_and_other_classes_ids():
    with pytest.warns(UserWarning, match="^The label '1' is read as the name of a class") as told:
        assert both(["3", "1"], ["1", "2"]) == [[2, 0], [0, 1]]
    assert [str(warning.message) for warning in told] == [
        "The label '1' is read as the name of a class, though it is the id of another; where ids are meant, "
        "write them as LABEL_0, LABEL_1, …."
    ]
    assert both(["LABEL_2", "LABEL_0"], ["LABEL_1"]) == [[2, 0], [1]]  # as it says, and nothing is told


def test_one_reading_for_all_files():
    """Dev alone would pass as names, and each of its labels would be the wrong class."""
    with pytest.raises(UserError) as refused:
        both(["0", "2"], ["1", "2"])
    assert str(refused.value) == (
        "file dev.csv: the label '1' is both the name of a class and the id of another; write names only."
    )
    with pytest.raises(UserError, match=r"^file dev.csv: its labels are not the model's: '0', '1' where"):
        both(["a", "b"], ["0", "1"], names=["a", "b"])
    assert both(["0", "2"], ["1"], names=["5", "6", "7"]) == [[0, 2], [1]]
