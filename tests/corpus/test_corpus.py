"""A folder of answers: the same whatever its format, engine and interruptions."""

import datetime
import gzip
import json
import os
import subprocess
import sys

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant
from calibrant.corpus import pieces
from calibrant.errors import UserError
from calibrant.tasks.predict import predict_corpus, predict_file
from support.tiny import corpus

TEXTS = [text for text, _ in corpus(50, seed=3)]
DAY = datetime.datetime(2024, 2, 29)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Parts of seven rows."""
    monkeypatch.setattr(pieces, "ROWS", 7)


@pytest.fixture
def parquet(tmp_path):
    """Two files, one of them with small groups of rows, and columns whose types JSON does not have."""
    (tmp_path / "corpus").mkdir()
    for name, texts, group in (("a", TEXTS[:30], 4), ("b", TEXTS[30:], 100)):
        ids = pa.array(range(len(texts)), pa.int16())
        days = pa.array([DAY] * len(texts), pa.timestamp("ns"))
        table = pa.table({"id": ids, "text": texts, "day": days, "label": ["true"] * len(texts)})
        pq.write_table(table, tmp_path / "corpus" / f"{name}.parquet", row_group_size=group)
    return str(tmp_path / "corpus" / "*.parquet")


def content(folder):
    """All files of a folder, but for the lock."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_all_rows_and_columns_come_back_with_the_answers_of_python(run_copy, parquet, tmp_path):
    done = predict_corpus(run_copy, [parquet], str(tmp_path / "out"), top=2, coverage=0.9)
    assert (done.texts, done.rejected) == (50, 0)
    files = sorted((tmp_path / "out" / "parts").iterdir())
    assert [path.name for path in files] == [f"{i:05d}.parquet" for i in range(8)]  # 5 of 30 rows, 3 of 20
    decided = pa.concat_tables([pq.read_table(path) for path in files])
    assert [str(field.type) for field in decided.schema][:4] == ["int16", "string", "timestamp[ns]", "string"]
    assert decided["text"].to_pylist() == TEXTS
    classifier = calibrant.load(run_copy)
    decisions = classifier.predict(TEXTS)
    assert decided["predicted_label"].to_pylist() == [each.label for each in decisions]
    assert decided["confidence"].to_pylist() == pytest.approx(
        [each.confidence for each in decisions], abs=1e-4
    )
    assert decided["abstain"].to_pylist() == [each.abstain for each in decisions]
    assert decided["set"].to_pylist() == classifier.predict_set(TEXTS)
    assert decided.column_names[-3:] == ["label_2", "confidence_2", "set"]
    assert decided.schema.field("familiarity").type == pa.float64()  # where no row has any, too


@pytest.mark.parametrize("killed_after", [1, 4, 8])
def test_killed_and_begun_again_it_is_the_same_to_the_byte(
    run_copy, parquet, tmp_path, monkeypatch, killed_after
):
    whole, again = tmp_path / "whole", tmp_path / "again"
    predict_corpus(run_copy, [parquet], str(whole))
    read, reads = pieces.ParquetReader.read, []

    def killed(self, piece):
        reads.append(piece)
        if len(reads) == killed_after:
            raise KeyboardInterrupt
        return read(self, piece)

    monkeypatch.setattr(pieces.ParquetReader, "read", killed)
    with pytest.raises(KeyboardInterrupt):
        predict_corpus(run_copy, [parquet], str(again))
    (again / "statistics" / "00002.json").unlink(missing_ok=True)  # a part whose last file is missing
    seen = []
    predict_corpus(run_copy, [parquet], str(again), progress=lambda *moved: seen.append(moved))
    assert content(again) == content(whole)
    assert seen[-1] == ("predict", 50, 50)
    assert len(reads) == 8 + 1 + (killed_after > 3)
    predict_corpus(run_copy, [parquet], str(again))
    assert len(reads) == 8 + 1 + (killed_after > 3)  # nothing was left to do


CSV = b"""id,text
1,a card
2,
3,"a parcel
in two lines"
4,a box, not quoted
5,caf\xe9
6,"a quote that nobody closes
7,a card
8,"a box"
"""


@pytest.mark.parametrize("zipped", [False, True])
def test_bad_rows_are_put_aside_with_their_reason(run_copy, tmp_path, zipped):
    path = tmp_path / ("rows.csv.gz" if zipped else "rows.csv")
    path.write_bytes(gzip.compress(CSV) if zipped else CSV)
    done = predict_corpus(run_copy, [str(path)], str(tmp_path / "out"))
    assert (done.texts, done.rejected) == (4, 4)
    parts = [path.read_text() for path in sorted((tmp_path / "out" / "parts").iterdir())]
    assert [part.splitlines()[0] for part in parts] == ["id,text,label,confidence,familiarity,abstain"] * 2
    assert [line[0] for part in parts for line in part.splitlines()[1:]] == ["1", "3", "i", "7", "8"]
    rejected = [
        json.loads(line)
        for path in sorted((tmp_path / "out" / "rejected").iterdir())
        for line in path.read_text().splitlines()
    ]
    assert [(each["line"], each["reason"].split(";")[0]) for each in rejected] == [
        (3, "empty text in column 'text'"),
        (6, "more cells than the 2 columns"),
        (7, "not UTF-8"),
        (8, "not a well-formed table (',' expected after '\"')"),
    ]
    assert rejected[0]["row"] == {"id": "2", "text": ""}
    assert rejected[3]["row"] == '6,"a quote that nobody closes\n'


def test_json_lines_at_an_address(run_copy, tmp_path):
    rows = [{"text": text, **({"more": i} if i % 2 else {})} for i, text in enumerate(TEXTS[:10])]
    lines = [*map(json.dumps, rows), "", "not json", '["text"]', '{"text": 5}']
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/corpus/rows.jsonl", "\n".join(lines).encode())
    done = predict_corpus(run_copy, ["memory://corpus/*.jsonl"], "memory://out")
    assert (done.texts, done.rejected) == (11, 2)
    parts = [
        json.loads(line) for i in range(2) for line in memory.cat(f"/out/parts/0000{i}.jsonl").splitlines()
    ]
    assert [row["text"] for row in parts] == [*TEXTS[:10], 5]
    assert [row["more"] for row in parts[:4]] == [None, 1, None, 3]
    before = memory.find("/out", detail=True)
    predict_corpus(run_copy, ["memory://corpus/*.jsonl"], "memory://out")
    assert memory.find("/out", detail=True) == before
    assert calibrant.monitor(run_copy, new="memory://out").now.texts.n == 11


def test_monitor_of_the_folder_is_that_of_the_texts(run_copy, parquet, tmp_path):
    predict_corpus(run_copy, [parquet], str(tmp_path / "out"))
    texts = pa.table({"text": TEXTS})
    pq.write_table(texts, tmp_path / "new.parquet")
    before = (run_copy / "dev.safetensors").read_bytes()
    of_texts = calibrant.monitor(run_copy, new=str(tmp_path / "new.parquet"))
    of_folder = calibrant.monitor(run_copy, new=str(tmp_path / "out"))
    assert of_folder.confidence_shift == of_texts.confidence_shift
    assert of_folder.moved == of_texts.moved
    assert of_folder.expected_accuracy.value == pytest.approx(of_texts.expected_accuracy.value)
    assert of_folder.now.confidence == pytest.approx(of_texts.now.confidence)
    assert (of_folder.now.texts.n, of_folder.now.texts.source) == (50, f"corpus {tmp_path / 'out'}")
    followed = calibrant.monitor(run_copy, new=str(tmp_path / "out"), follow=True).followed
    assert (followed.looks, followed.texts) == (1, 50)
    assert (run_copy / "dev.safetensors").read_bytes() == before


def test_what_no_longer_fits_is_refused(command, run_copy, parquet, tmp_path):
    out, first = tmp_path / "out", parquet.replace("*", "a")
    assert command("predict", run_copy, first, "--out", out)[0] == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    (tmp_path / "dev.csv").write_text("text,label\n" + "".join(f"{t},{y}\n" for t, y in corpus(40, seed=5)))

    def told(*arguments):
        code, _, err = command(*arguments)
        assert code == 2, err
        return " ".join(err.split())

    again = ("predict", run_copy, first, "--out")
    assert "was begun with another --top; name a new folder" in told(*again, out, "--top", 2)
    assert "was begun with another --threshold;" in told(*again, out, "--threshold", 0.5)
    assert "was begun with other files, or these have changed" in told(
        "predict", run_copy, parquet, "--out", out
    )
    assert "other holds other files; name a new folder." in told(*again, tmp_path / "other")
    assert "no such file; check the path, and put a pattern in quotes." in told(
        "predict", run_copy, tmp_path / "no*.csv", "--out", tmp_path / "new"
    )
    assert "a.parquet: no column 'body'; its columns are id, text, day, label. Name the one" in told(
        *again, tmp_path / "new", "--text-column", "body"
    )
    assert "compares with" in told("monitor", run_copy, out, "--dev", tmp_path / "dev.csv")
    assert "whose columns are not read" in told("monitor", run_copy, out, "--text-column", "text")
    assert (
        command("calibrate", run_copy, "--dev", tmp_path / "dev.csv", "--calibrator", "temperature")[0] == 0
    )
    assert "was begun with another model or calibrator;" in told(*again, out)
    assert "was answered by another model or calibrator" in told("monitor", run_copy, out)
    (out / "manifest.json").write_text('{"format": 1}')
    assert "manifest.json is damaged (asked: Field required)" in told(*again, out)


def test_a_run_whose_dev_texts_are_gone_answers_without_statistics(run_copy, parquet, tmp_path, caplog):
    record = json.loads((run_copy / "calibrant.json").read_text())
    record["config"]["train"] = str(tmp_path / "gone.csv")
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    assert predict_corpus(run_copy, [parquet], str(tmp_path / "out")).texts == 50
    assert "`calibrant monitor` will not read these answers." in caplog.text
    with pytest.raises(UserError, match="--dev is missing"):
        calibrant.monitor(run_copy, new=str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (
            "a.csv.gz",
            gzip.compress(b"text\na card\n" * 99, mtime=0)[:-9],
            "cannot be read (Compressed file ended before",
        ),
        ("a.parquet", b"PAR1 and so on PAR1", "not a Parquet file ("),
        ("a.xlsx", b"", "cannot be read part by part; use files of .parquet, .csv, .tsv, .jsonl, or .gz"),
        ("a.csv", b"", "no rows; a corpus needs at least one text."),
        ("a.csv", b"text,id,id\na card,1,2\n", "2 columns are called 'id'; rename all but one."),
    ],
)
def test_files_that_are_no_corpus(run_copy, tmp_path, name, content, told):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as refused:
        predict_corpus(run_copy, [str(tmp_path / name)], str(tmp_path / "out"))
    assert told in str(refused.value)


def test_one_file_has_the_same_answers(run_copy, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:10]))
    predict_file(run_copy, str(path), tmp_path / "decided.jsonl")
    predict_corpus(run_copy, [str(path)], str(tmp_path / "out"))
    parts = sorted((tmp_path / "out" / "parts").iterdir())
    assert "".join(part.read_text() for part in parts) == (tmp_path / "decided.jsonl").read_text()


RAY = """
import sys, threading, time
from pathlib import Path
import psutil
from calibrant.corpus.engines.ray import Ray
from calibrant.tasks.predict import predict_corpus

out = Path(sys.argv[3])

def kill():
    while not list(out.glob("statistics/0*.json")):
        time.sleep(0.01)
    below = psutil.Process().children(recursive=True)  # nobody else's
    actors = [each for each in below if "ray::MapWorker" in (each.cmdline() or [""])[0]]
    actors[0].kill()
    print("killed one of", len(actors), "after", len(list(out.glob("statistics/0*.json"))), "parts")

threading.Thread(target=kill, daemon=True).start()
predict_corpus(sys.argv[1], [sys.argv[2]], str(out), engine=Ray())
"""


@pytest.mark.slow
def test_the_same_parts_by_ray_with_an_actor_killed_on_the_way(run_copy, tmp_path, monkeypatch):
    """In a process of its own: Ray talks over the network."""
    monkeypatch.undo()  # parts of as many rows as there
    for i in range(8):
        rows = (json.dumps({"id": i, "text": text}) for text, _ in corpus(2000, seed=i))
        (tmp_path / f"{i}.jsonl").write_text("\n".join(rows))
    names, out = str(tmp_path / "*.jsonl"), tmp_path / "out"
    script = [sys.executable, "-c", RAY, str(run_copy), names, str(out)]
    done = subprocess.run(script, capture_output=True, text=True, env=os.environ, timeout=280)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("killed one of"), done.stderr
    predict_corpus(run_copy, [names], str(tmp_path / "here"))
    assert content(out) == content(tmp_path / "here")
