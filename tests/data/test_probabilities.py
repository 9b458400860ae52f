"""Files of what any classifier said."""

import numpy as np
import pytest

from calibrant.data.probabilities import Said, class_names, read_probabilities
from calibrant.errors import UserError
from calibrant.types import Texts


def labelled(*labels, source="file test.csv"):
    return Texts(["a"] * len(labels), labels, source, "")


def said(classes, columns=None, path="p.npy"):
    return Said(path, np.full((2, classes), 1 / classes), columns)


def test_an_array(tmp_path):
    p = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)
    np.save(tmp_path / "p.npy", p)
    found = read_probabilities(str(tmp_path / "p.npy"))
    np.testing.assert_array_equal(found.values, p)
    assert (found.values.dtype, found.columns) == (np.float32, None)


def test_a_table(tmp_path):
    """As Excel and pandas write it: a mark before the header, white space, quotes, an empty line."""
    (tmp_path / "p.csv").write_text('\ufeff"spam, or so",ham\n0.25, 7.5e-1\n1,0\n\n', encoding="utf-8")
    found = read_probabilities(str(tmp_path / "p.csv"))
    assert found.columns == ("spam, or so", "ham")
    np.testing.assert_array_equal(found.values, [[0.25, 0.75], [1, 0]])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("p.txt", b"", "unknown kind of file '.txt'; probabilities are .npy or .csv."),
        ("p.npy", b"no array", "not an array that numpy saved"),
        ("p.npy", b"", "not an array that numpy saved"),
        ("p.csv", b"", "expected a header with the names of the classes, and a line for each text."),
        ("p.csv", b"a,b\n", "expected a header with the names of the classes"),
        ("p.csv", b"0.2,0.8\n0.5,0.5\n", "must name the classes, each once, and begins with '0.2', '0.8'."),
        ("p.csv", b"a,a\n0.5,0.5\n", "each once, and begins with 'a', 'a'."),
        ("p.csv", b"a,\n0.5,0.5\n", "each once, and begins with 'a', ''."),
        ("p.csv", b"a,b\n0.5,0.5\n0.5,much\n", "row 3: expected numbers only (could not convert"),
        ("p.csv", b"a,b\n0.5\n", "row 2: 1 numbers for 2 classes."),
        ("p.csv", b"\xff\xfea,b\n", "not a CSV file in UTF-8"),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as refused:
        read_probabilities(str(tmp_path / name))
    assert words in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)


def test_no_file():
    with pytest.raises(UserError, match=r"^No file 'nowhere\.npy'; check the path\.$"):
        read_probabilities("nowhere.npy")


@pytest.mark.parametrize(
    "values", [np.array([{}, 1], dtype=object), np.zeros(3), np.zeros((2, 2), dtype=int)]
)
def test_arrays_that_are_refused(tmp_path, values):
    """A pickle among them, which is not opened."""
    np.save(tmp_path / "p.npy", values)
    with pytest.raises(UserError, match=r"p\.npy: (not an array that numpy saved|expected floats of shape)"):
        read_probabilities(str(tmp_path / "p.npy"))


@pytest.mark.parametrize(
    ("files", "labels", "names"),
    [
        ([said(2)], ("spam", "ham"), ("ham", "spam")),
        ([said(3)], ("10", "2", "-1"), ("-1", "2", "10")),  # as numpy sorts numbers, not as words
        ([said(4)], ("0", "2"), ("0", "1", "2", "3")),  # ids, of which some have no text
        ([said(2, ("spam", "ham"))], ("ham",), ("spam", "ham")),  # a header is not sorted
        ([said(2), said(2, ("b", "a"), "dev.csv")], ("a", "b"), ("b", "a")),  # and speaks for all
    ],
)
def test_the_class_of_each_column(files, labels, names):
    assert class_names(files, [labelled(*labels)]) == names


@pytest.mark.parametrize(
    ("files", "labels", "sentence"),
    [
        (
            [said(3)],
            ("spam", "ham"),
            "p.npy has 3 columns, and there are 2 different labels in file test.csv; give a CSV file whose "
            "header names the classes.",
        ),
        (
            [said(2)],
            ("1", "2", "3"),
            "p.npy has 2 columns, and there are 3 different labels in file test.csv; give a CSV file whose "
            "header names the classes.",
        ),
        (
            [said(2, ("spam", "ham"), "p.csv")],
            ("ham", "eggs"),
            "file test.csv: the label 'eggs' is no column of p.csv, which begins with 'spam', 'ham'; name "
            "its columns as the labels.",
        ),
        (
            [said(2), said(3, path="dev.npy")],
            ("a", "b"),
            "dev.npy and p.npy have different columns; give both the same.",
        ),
        (
            [said(2, ("a", "b"), "p.csv"), said(2, ("b", "a"), "dev.csv")],
            ("a", "b"),
            "dev.csv and p.csv have different columns; give both the same.",
        ),
    ],
)
def test_columns_that_fit_no_labels(files, labels, sentence):
    with pytest.raises(UserError) as refused:
        class_names(files, [labelled(*labels)])
    assert str(refused.value) == sentence
