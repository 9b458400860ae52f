"""Tables as people have them."""

import gzip
import logging
import sys

import pytest

from calibrant.data.files import read_file
from calibrant.data.tables import read_table
from calibrant.errors import UserError

ROWS = [("1", "a card, swallowed", "billing"), ("2", "a box", "shipping")]


def written(path, sign):
    header = sign.join(("id", "text", "label"))
    quoted = [sign.join(f'"{cell}"' for cell in row) for row in ROWS]
    return path, "\n".join([header, *quoted]) + "\n"


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_another_delimiter_is_found_and_said(tmp_path, caplog, sign):
    path, content = written(tmp_path / "rows.csv", sign)
    path.write_text(content)
    with caplog.at_level(logging.INFO, "calibrant"):
        read = read_file(path, labelled=True)
    assert (read.texts, read.labels) == ([row[1] for row in ROWS], [row[2] for row in ROWS])
    assert caplog.messages == [f"{path}: its columns are told apart by {sign!r}"]


def test_the_usual_delimiter_is_not_said(tmp_path, caplog):
    path, content = written(tmp_path / "rows.csv", ",")
    path.write_text(content)
    with caplog.at_level(logging.INFO, "calibrant"):
        assert len(read_file(path)) == 2
    assert caplog.messages == []


def test_a_tsv_with_commas(tmp_path):
    path, content = written(tmp_path / "rows.tsv", ",")
    path.write_text(content)
    assert read_file(path, labelled=True).labels == ["billing", "shipping"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_gzipped(tmp_path, suffix):
    _, content = written(tmp_path, {".csv": ",", ".tsv": "\t", ".jsonl": ","}[suffix])
    if suffix == ".jsonl":
        content = '{"text": "a card, swallowed"}\n{"text": "a box"}\n'
    path = tmp_path / f"rows{suffix}.gz"
    path.write_bytes(gzip.compress(content.encode()))
    assert read_file(path).texts == ["a card, swallowed", "a box"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"text\na card\n", "cannot be read (Not a gzipped file (b'te'))."),
        (gzip.compress(b"text\na card\n" * 99, mtime=0)[:-9], "cannot be read (Compressed file ended before"),
        (gzip.compress(b"text\ncaf\xe9\n", mtime=0), "line 2: not UTF-8;"),
    ],
)
def test_damaged_gzip(tmp_path, content, sentence):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        read_table(path)
    assert sentence in str(refused.value)


def test_excel(tmp_path, caplog):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (("text", "label", None), *((text, label) for _, text, label in ROWS), (None, None)):
        book.active.append(row)
    book.create_sheet("more")
    book.save(tmp_path / "rows.xlsx")
    with caplog.at_level(logging.INFO, "calibrant"):
        read = read_file(tmp_path / "rows.xlsx", labelled=True)
    assert (read.texts, read.labels) == (["a card, swallowed", "a box"], ["billing", "shipping"])
    assert caplog.messages == [f"{tmp_path / 'rows.xlsx'}: read the sheet 'Sheet', the first of 2"]


def test_excel_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "rows.xlsx").touch()
    with pytest.raises(UserError, match=r"run `pip install .calibrant\[excel\].`, or save the sheet as CSV"):
        read_table(tmp_path / "rows.xlsx")


@pytest.mark.parametrize(
    "url", ["https://example.org/a.csv", "s3://bucket/a.parquet", "HTTP://example.org/a"]
)
def test_a_url_is_called_a_url(url):
    with pytest.raises(UserError, match=f"{url} is a URL, and only files are read"):
        read_file(url)
