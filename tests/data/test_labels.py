import pytest

from calibrant.data.labels import match_labels
from calibrant.errors import UserError
from calibrant.types import Texts


def matched(labels, names):
    return match_labels(Texts(["x"] * len(labels), labels, "file t.csv", ""), names).tolist()


@pytest.mark.parametrize(
    ("labels", "names", "ids"),
    [
        (["b", "a"], ["a", "b"], [1, 0]),
        (["1", "0"], ["a", "b"], [1, 0]),
        (["LABEL_1", "LABEL_0"], ["a", "b"], [1, 0]),
        (["1", "0"], ["LABEL_0", "LABEL_1"], [1, 0]),
        (["0", "5"], ["5", "0"], [1, 0]),  # names first
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
        "'LABEL_2', 'LABEL_3', 'LABEL_4' and 2 more; rename them, write the ids 0 to 6 instead, or correct "
        "id2label in the model's config.json."
    )
