import csv
import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibrant.data.files import fingerprint, read_file, read_lines
from calibrant.data.tables import SUFFIXES
from calibrant.errors import UserError

TEXTS = ["My card\nwas swallowed, twice", 'Say "hello"\tnow', "Ünïcode – 你好 🎈", "plain"]
LABELS = ["billing", "chat", "chat", "1"]


def write(path, suffix):
    path = path / f"rows{suffix}"
    if suffix == ".parquet":
        pq.write_table(pa.table({"text": TEXTS, "label": LABELS}), path)
    elif suffix == ".jsonl":
        rows = [json.dumps({"text": t, "label": y}) for t, y in zip(TEXTS, LABELS, strict=True)]
        path.write_text("\n\n".join(rows), encoding="utf-8")  # blank lines are no rows
    else:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if suffix == ".csv" else "\t")
            writer.writerows([("text", "label"), *zip(TEXTS, LABELS, strict=True)])
    return path


def message(path, **options):
    """The sentence with which the file is refused."""
    with pytest.raises(UserError) as refused:
        read_file(path, **options)
    return str(refused.value).removeprefix(str(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_the_same(tmp_path, suffix):
    path = write(tmp_path, suffix)
    read = read_file(path, labelled=True)
    assert list(read.texts) == TEXTS
    assert list(read.labels) == LABELS
    assert read.source == f"file {path}"
    assert read.fingerprint == fingerprint(TEXTS, LABELS)


def test_saved_dataset_with_class_names(tmp_path):
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["billing", "chat", "other"])}
    )
    rows = {"text": ["refund", "hi", "yo"], "label": [0, 1, 1]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "saved"))
    read = read_file(tmp_path / "saved", labelled=True)
    assert (list(read.texts), list(read.labels)) == (["refund", "hi", "yo"], ["billing", "chat", "chat"])


def test_saved_dataset_whose_labels_are_withheld(tmp_path):
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["a"])}
    )
    rows = {"text": ["one", "two"], "label": [0, -1]}
    datasets.Dataset.from_dict(rows, features=features).save_to_disk(str(tmp_path / "saved"))
    assert list(read_file(tmp_path / "saved").texts) == ["one", "two"]
    assert message(tmp_path / "saved", labelled=True).startswith(", line 2: empty label in column 'label'")


def test_labels_are_read_only_where_they_are_wanted(csv_file):
    path = csv_file("part.csv", [("one", "a"), ("two", "")])
    assert read_file(path).labels is None
    assert read_file(path).fingerprint == fingerprint(["one", "two"], None)
    assert (
        message(path, labelled=True) == ", line 3: empty label in column 'label'; fill it or drop the line."
    )


def test_labels_where_they_are_there(csv_file):
    both = csv_file("both.csv", [("a card", "billing")])
    assert read_file(both, labelled=None).labels == ["billing"]
    assert read_file(csv_file("bare.csv", [("a card",)], ("text",)), labelled=None).labels is None
    assert message(csv_file("gap.csv", [("a card", "")]), labelled=None).startswith(", line 2: empty label")


def test_other_columns_may_be_named(csv_file):
    path = csv_file("own.csv", [("7", "refund", "billing")], header=("id", "body", "queue"))
    read = read_file(path, "body", "queue", labelled=True)
    assert (list(read.texts), list(read.labels)) == (["refund"], ["billing"])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_byte_order_mark_is_no_text(tmp_path, suffix):
    path = write(tmp_path, suffix)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(read_file(path, labelled=True).texts) == TEXTS


def test_very_long_text(csv_file):
    long = "word " * 100_000  # 500 kB; the csv module's own limit is 128 kB
    assert list(read_file(csv_file("long.csv", [(long, "a")])).texts) == [long]


def test_windows_line_ends(tmp_path):
    path = tmp_path / "crlf.csv"
    path.write_bytes(b"text,label\r\none,a\r\ntwo,b\r\n")
    assert list(read_file(path, labelled=True).labels) == ["a", "b"]


def test_numbers_as_labels_become_names(tmp_path):
    path = tmp_path / "ids.jsonl"
    path.write_text('{"text": "one", "label": 0}\n{"text": "two", "label": 1}\n')
    assert list(read_file(path, labelled=True).labels) == ["0", "1"]


def test_fingerprint_is_of_the_content():
    first = fingerprint(["ab", "c"], ["x", "y"])
    assert first == fingerprint(("ab", "c"), ("x", "y"))
    others = [
        fingerprint(["a", "bc"], ["x", "y"]),
        fingerprint(["c", "ab"], ["x", "y"]),
        fingerprint(["ab", "c"], ["y", "x"]),
        fingerprint(["ab", "c", "x", "y"], None),
    ]
    assert len({first, *others}) == 5


def test_missing_file(tmp_path):
    assert message(tmp_path / "no.csv") == f"No file {str(tmp_path / 'no.csv')!r}; check the path."


def test_unknown_suffix(tmp_path):
    (tmp_path / "rows.docx").touch()
    assert message(tmp_path / "rows.docx") == (
        ": unknown kind of file '.docx'; use one of .parquet, .csv, .tsv, .jsonl, .xlsx, or .gz of what "
        "has lines."
    )


def test_unreadable_file(csv_file, monkeypatch):
    path = csv_file("locked.csv", [("one", "a")])

    def locked(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", locked)
    assert message(path) == " cannot be read (Permission denied)."


def test_missing_text_column_lists_those_there_are(csv_file):
    path = csv_file("own.csv", [("x", "y")], header=("body", "queue"))
    assert message(path) == (
        ": no column 'text'; its columns are body, queue. Name the one that holds the text with "
        "--text-column."
    )


def test_missing_label_column_lists_those_there_are(csv_file):
    path = csv_file("own.csv", [("x", "y")], header=("text", "queue"))
    assert message(path, labelled=True) == (
        ": no column 'label'; its columns are text, queue. Name the one that holds the label with "
        "--label-column."
    )


@pytest.mark.parametrize(
    ("suffix", "content"), [(".csv", ""), (".tsv", "\n"), (".jsonl", ""), (".jsonl", "\n")]
)
def test_empty_file(tmp_path, suffix, content):
    path = tmp_path / f"empty{suffix}"
    path.write_text(content)
    assert message(path) == ": the file is empty; it needs rows with a text each."


def test_header_only(csv_file):
    assert message(csv_file("header.csv", [])) == ": the file has no rows; it needs at least one text."


def test_blank_first_line(tmp_path):
    path = tmp_path / "blank.csv"
    path.write_text("\ntext,label\none,a\n")
    assert message(path) == ", line 1: blank, where the column names should be."


@pytest.mark.parametrize("blank", ["", "  \t "])
def test_empty_text_names_the_line(csv_file, blank):
    path = csv_file("gap.csv", [("one\nand a half", "a"), (blank, "b")])  # a quoted newline is a line too
    assert message(path) == ", line 4: empty text in column 'text'; fill it or drop the line."


def test_null_in_parquet_names_the_row(tmp_path):
    pq.write_table(pa.table({"text": ["one", None]}), tmp_path / "null.parquet")
    assert message(tmp_path / "null.parquet").startswith(", line 2: empty text")


def test_key_missing_in_one_json_line(tmp_path):
    path = tmp_path / "gap.jsonl"
    path.write_text('{"text": "one"}\n\n{"label": "b"}\n')
    assert message(path).startswith(", line 3: empty text")


@pytest.mark.parametrize("lines_before", [1, 5000])
@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_not_utf8_names_the_line(tmp_path, suffix, lines_before):
    """Far down too, where a decoder that reads in blocks counts from the start of its block."""
    path = tmp_path / f"latin1{suffix}"
    row = "café" if suffix == ".csv" else '{"text": "café"}'
    good = "text" if suffix == ".csv" else '{"text": "tea"}'
    path.write_bytes(b"\n".join([good.encode()] * lines_before + [row.encode("latin1")]))
    assert message(path) == (
        f", line {lines_before + 1}: not UTF-8; save it as UTF-8 "
        "(for instance with `iconv -f latin1 -t utf-8`)."
    )


@pytest.mark.parametrize(
    ("row", "why"), [('"open\nfor long', "unexpected end of data"), ('"a"b,c', "',' expected after '\"'")]
)
def test_malformed_csv(tmp_path, row, why):
    path = tmp_path / "broken.csv"
    path.write_text(f"text,label\none,a\n{row}")
    found = message(path)
    assert found.startswith(", line 3: not a well-formed table (")
    assert why in found


def test_surplus_cells_are_not_dropped_silently(tmp_path):
    path = tmp_path / "commas.csv"
    path.write_text("text,label\none,a\nHello, world,b\n")
    assert message(path) == (
        ", line 3: more cells than the 2 columns; put texts that hold the delimiter in double quotes."
    )


def test_bad_json_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "one"}\n{"text": \n')
    assert message(path) == ", line 2: not JSON (Expecting value); each line is one object."
    path.write_text('{"text": "one"}\n["two"]\n')
    assert message(path) == ', line 2: expected an object such as {"text": …}.'


@pytest.mark.parametrize("content", [b"", b"text,label\none,a\n", b"PAR1 and so on and on PAR1"])
def test_parquet_that_is_not_one(tmp_path, content):
    path = tmp_path / "fake.parquet"
    path.write_bytes(content)
    assert message(path).startswith((": not a Parquet file (", " cannot be read ("))


def test_folder_that_is_no_saved_dataset(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "train.csv").write_text("text,label\n")
    assert message(tmp_path / "folder") == ": a folder, but not one written by `Dataset.save_to_disk`."


def test_saved_dataset_of_several_splits(tmp_path):
    part = datasets.Dataset.from_dict({"text": ["one"], "label": ["a"]})
    datasets.DatasetDict({"train": part, "test": part}).save_to_disk(str(tmp_path / "both"))
    inner = tmp_path / "both" / "train"
    assert message(tmp_path / "both") == f": holds several splits (train, test); name one, as in {inner}."
    assert list(read_file(inner).texts) == ["one"]


def test_lines():
    assert read_lines([b"one\n", "zwei ü\r\n".encode(), b"three"], "pipe") == ["one", "zwei ü", "three"]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "pipe: empty; it needs at least one text."),
        ([b"one\n", b" \n"], "pipe, line 2: empty text; drop the line."),
        ([b"one\n", b"caf\xe9\n"], "pipe, line 2: not UTF-8; save it as UTF-8 (for instance with `iconv"),
    ],
)
def test_lines_refused(lines, sentence):
    with pytest.raises(UserError) as refused:
        read_lines(lines, "pipe")
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("NaN", "empty label in column 'label'; fill it or drop the line."),
        ('["x", "y"]', "the label in column 'label' is of type list; write one label a line, as a string."),
        ('"\\ud800"', "the label in column 'label' holds half a character; write it whole."),
        ("1" * 5000, "not JSON (beyond what Python reads); each line is one object."),
        ("[" * 100_000, "not JSON (beyond what Python reads); each line is one object."),
    ],
)
def test_labels_that_are_none(tmp_path, label, told):
    path = tmp_path / "texts.jsonl"
    path.write_text(f'{{"text": "one", "label": "a"}}\n{{"text": "two", "label": {label}}}\n')
    assert message(path, labelled=True) == f", line 2: {told}"


def test_spaces_around_a_label_and_capitals_in_an_ending_do_not_matter(tmp_path):
    path = tmp_path / "TEXTS.CSV"
    path.write_text("text,label\none , a \ntwo,a\n")
    found = read_file(path, labelled=True)
    assert (list(found.texts), list(found.labels)) == (["one ", "two"], ["a", "a"])


def test_the_byte_order_mark_of_a_pipe_is_no_text():
    assert read_lines([b"\xef\xbb\xbfcard\n", b"parcel\n"], "standard input") == ["card", "parcel"]


def test_a_quote_that_swallows_lines_of_a_tsv_is_warned_of(tmp_path):
    path = tmp_path / "texts.tsv"
    path.write_text('text\tlabel\n"hello there\tpos\nfine text\tneg\nworld"\tpos\n')
    with pytest.warns(UserWarning, match=r"texts\.tsv, line 4: a cell that begins with a double quote"):
        assert len(read_file(path)) == 1


@pytest.mark.parametrize(("header", "told"), [("text,label,text", "text"), ("text,label,label", "label")])
def test_a_column_twice(tmp_path, header, told):
    path = tmp_path / "twice.csv"
    path.write_text(f"{header}\na card,billing,a box\n")
    with pytest.raises(UserError) as refused:
        read_file(path, labelled=True)
    assert str(refused.value) == f"{path}: 2 columns are called {told!r}; rename all but one."
    path.write_text("text,label,,\na card,billing,,\n")  # as spreadsheets leave them
    assert read_file(path, labelled=True).labels == ["billing"]


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff \u2060", "\u200d\u00ad", "\x00\x1b"])
def test_text_that_nobody_sees_is_empty(tmp_path, unseen):
    path = tmp_path / "unseen.jsonl"
    path.write_text(json.dumps({"text": unseen}))
    with pytest.raises(UserError, match="line 1: empty text in column 'text'"):
        read_file(path)
    with pytest.raises(UserError, match="line 1: empty text; drop the line"):
        read_lines([f"a{unseen}".encode()[1:] + b"\n"], "standard input")


def test_a_date_that_python_has_not(tmp_path):
    path = tmp_path / "dates.parquet"
    days = pa.array([10**8], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"text": ["a"], "day": days}), path)
    with pytest.raises(UserError) as refused:
        read_file(path)
    assert str(refused.value).startswith(
        f"{path}: column 'day' (date32[day]) holds a value that Python has no"
    )


def test_a_file_whose_name_is_no_text(tmp_path):
    path = tmp_path / "caf\udce9.csv"
    path.write_text("text\na card\n")
    assert read_file(path).source == f"file {tmp_path}/caf\ufffd.csv"
