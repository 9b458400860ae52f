import pytest

from calibrant.data.layouts import ClassFirst, lines, named_columns
from calibrant.errors import UserError


def test_named_columns(tmp_path):
    assert named_columns(tmp_path, "train") is None
    (tmp_path / "train.tsv").write_text("text\tlabel\nhello\ta\n")
    assert named_columns(tmp_path, "train") == (["hello"], ["a"])
    (tmp_path / "train.csv").write_text("text,label\nbye,b\n")
    assert named_columns(tmp_path, "train") == (["bye"], ["b"])


# class number first


@pytest.mark.parametrize("text", ["", "text,label\n", "1,only one\n", "one,a,b\n"])
def test_another_layout_is_left_to_others(tmp_path, text):
    (tmp_path / "test.csv").write_text(text)
    assert ClassFirst(2)(tmp_path, "test") is None
    assert ClassFirst(2)(tmp_path, "train") is None


@pytest.mark.parametrize(
    ("row", "got"),
    [
        ("1,a", "got 1 after '1'"),
        ("x,a,b", "got 2 after 'x'"),
        ("3,a,b", "got 2 after '3'"),
        ("0,a,b", "'0'"),
    ],
)
def test_a_row_of_another_form_is_named(tmp_path, row, got):
    (tmp_path / "test.csv").write_text(f'2,a,b\n1,"a\nb",c\n{row}\n')
    with pytest.raises(UserError) as refused:
        ClassFirst(2, ("no", "yes"))(tmp_path, "test")
    assert "test.csv, line 4: expected a class number from 1 to 2 and 2 texts, as in the rows above" in str(
        refused.value
    )
    assert got in str(refused.value)


def test_without_names_any_class_number_will_do(tmp_path):
    (tmp_path / "test.csv").write_text("1,a\n77,b\n")
    assert ClassFirst(1)(tmp_path, "test") == (["a", "b"], ["1", "77"])
    (tmp_path / "test.csv").write_text("1,a\nx,b\n")
    with pytest.raises(UserError, match=r"line 2: expected a class number and 1 texts"):
        ClassFirst(1)(tmp_path, "test")


def test_a_torn_table(tmp_path):
    (tmp_path / "test.csv").write_text('1,a\n2,"never closed\n')
    with pytest.raises(UserError, match=r"test\.csv, line 2: not a well-formed table"):
        ClassFirst(1)(tmp_path, "test")


def test_another_encoding(tmp_path):
    (tmp_path / "test.csv").write_bytes("1,a\n2,caf\u00e9\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"test\.csv, line 2: not UTF-8; save it as UTF-8"):
        ClassFirst(1)(tmp_path, "test")


# X.txt and Y.txt


def test_lines(tmp_path):
    assert lines(tmp_path, "all") is None
    (tmp_path / "X.txt").write_text(
        "first\u2028text\nsecond\n"
    )  # one line, whatever Python's splitlines says
    (tmp_path / "Y.txt").write_text("12 \n0\n")
    assert lines(tmp_path, "all") == (["first\u2028text", "second"], ["12", "0"])
    assert lines(tmp_path, "train") is None


@pytest.mark.parametrize(("there", "missing"), [("X", "Y"), ("Y", "X")])
def test_half_of_the_pair(tmp_path, there, missing):
    (tmp_path / f"{there}.txt").write_text("a\n")
    with pytest.raises(UserError, match=rf"{missing}\.txt is missing beside {there}\.txt: texts are in X"):
        lines(tmp_path, "all")


def test_unequal_lines(tmp_path):
    (tmp_path / "X.txt").write_text("a\nb\n")
    (tmp_path / "Y.txt").write_text("1\n")
    with pytest.raises(
        UserError, match=r"X\.txt has 2 lines and Y\.txt 1; they belong together line by line"
    ):
        lines(tmp_path, "all")
