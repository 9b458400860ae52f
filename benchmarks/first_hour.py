"""The first hour of a new user: a journey in a fresh directory, bad input, and start-up times.

    PYTHONPATH=src python benchmarks/first_hour.py journey results/first-hour   # minutes
    PYTHONPATH=src python benchmarks/first_hour.py mistakes results/first-hour
    PYTHONPATH=src python benchmarks/first_hour.py start results/first-hour --run RUN

The texts are banking77's (the hub, or $CALIBRANT_DATA): 1,200 questions of its 20 largest topics.
"""

import argparse
import csv
import gzip
import json
import os
import platform
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from statistics import median

COLUMNS = "--text-column question --label-column topic"
JOURNEY = f"""
calibrant train --train tickets.csv {COLUMNS} --quick --out runs/quick
calibrant train --train tickets.csv {COLUMNS} --out runs/tickets
calibrant evaluate runs/tickets --test test.csv --ood other.csv --report report.html
calibrant threshold runs/tickets --dev dev.csv --risk 0.02
calibrant predict runs/tickets --text "My card was swallowed by the machine" --top 2
calibrant predict runs/tickets inbox.csv --out decided.csv
calibrant report runs/quick runs/tickets --test test.csv --ood other.csv --out compare.html
"""
MISTAKES = f"""
a missing file | train --train no.csv --out new
a folder that is no run | predict nowhere --text hello
a URL | train --train https://example.com/a.csv --out new
an unknown kind of file | train --train notes.docx --out new
an Excel file that is none | train --train broken.xlsx --out new
an empty file | train --train empty.csv --out new
a column that is not there | train --train tickets.csv --out new
a semicolon, which is found | train --train semicolon.csv {COLUMNS} --quick --model tiny --out semi
a gzipped file, which is read | train --train tickets.csv.gz {COLUMNS} --quick --model tiny --out zipped
a header twice | train --train twice.csv --out new
as many classes as texts | train --train ids.csv --out new
fractions as labels | train --train floats.csv --out new
few fractions, which may be meant | train --train stars.csv --quick --model tiny --out stars
one class | train --train one.csv --out new
labels that differ in case | train --train cases.csv --quick --model tiny --out cased
an empty text | train --train hole.csv --out new
not UTF-8 | train --train latin.csv --out new
no epoch | train --train good.csv --epochs 0 --out new
a misspelt command | tain --train good.csv --out new
a misspelt option | train --train good.csv --epoch 3 --out new
a misspelt method | train --train good.csv --method calibrnat --out new
a misspelt dataset | train --dataset 20gn --out new
a misspelt objective | train --train good.csv --objective manifold-smothing --out new
a model that is not there | train --train good.csv --model nowhere --out new
a rate that diverges | train --train good.csv --model tiny --learning-rate 1e6 --out new
another training in the folder | train --train good.csv --quick --model tiny --seed 5 --out run
no text and no file | predict run
a text and a file | predict run good.csv --text hello
an empty text to predict | predict run --text ""
a threshold of 2 | predict run --text hello --threshold 2
an output over the input | predict run good.csv --out good.csv
an output of unknown kind | predict run good.csv --out answers.docx
labels that training never saw | evaluate run --test other_labels.csv
no test text | evaluate run --test empty.csv
a risk of 2 | threshold run --dev good.csv --risk 2
too few texts for a risk | threshold run --dev few.csv --risk 0.01
three texts to monitor | monitor run few.csv
a calibrator that is not there | calibrate run --dev good.csv --calibrator temprature
a damaged run | predict damaged --text hello
an export onto a folder | export run run
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["journey", "mistakes", "start"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", type=Path, help="A trained run, for the start-up times.")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    out, trained = asked.out.resolve(), asked.run and asked.run.resolve()
    with tempfile.TemporaryDirectory() as fresh:
        os.chdir(fresh)
        {"journey": journey, "mistakes": mistakes, "start": start}[asked.what](out, trained)


def journey(out: Path, trained: Path | None) -> None:
    make_questions()
    lines = [f"# {machine()}", ""]
    for line in JOURNEY.strip().splitlines():
        code, printed, seconds, work = run(shlex.split(line)[1:])
        lines += [f"$ {line}", printed.rstrip(), f"[{seconds:.1f} s, {work:.1f} s of CPU, exit {code}]", ""]
        (out / "journey.txt").write_text("\n".join(lines), encoding="utf-8")
    head = Path("decided.csv").read_text(encoding="utf-8").splitlines()[:4]
    lines += ["$ head -n 4 decided.csv", *head, ""]
    (out / "journey.txt").write_text("\n".join(lines), encoding="utf-8")


def mistakes(out: Path, trained: Path | None) -> None:
    make_mistakes()
    rows = [f"{machine()}", "", "| input | command | exit | what is said |", "|---|---|---|---|"]
    for line in MISTAKES.strip().splitlines():
        what, command = line.split(" | ")
        code, printed, _, _ = run(shlex.split(command))
        said = " ".join(printed.split()).replace("|", "\\|")
        said = said if len(said) < 400 else f"{said[:200]} … {said[-180:]}"
        rows.append(f"| {what} | `{command}` | {code} | {said} |")
        (out / "mistakes.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def start(out: Path, trained: Path | None) -> None:
    commands = {
        "--help": ["--help"],
        "a missing file": ["predict", str(trained), "no.csv"],
        "predict --text": ["predict", str(trained), "--text", "My card was swallowed"],
        "list methods": ["list", "methods"],
    }
    found = {"machine": machine(), "load": os.getloadavg()}
    for name, arguments in commands.items():
        runs = [run(arguments)[2:] for _ in range(5)]
        found[name] = {
            "seconds": [round(seconds, 2) for seconds, _ in runs],
            "median": round(median(seconds for seconds, _ in runs), 2),
            "median_of_cpu": round(median(work for _, work in runs), 2),
        }
    print(json.dumps(found, indent=1))
    (out / "start.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def run(arguments: list[str]) -> tuple[int, str, float, float]:
    """Exit code, what is printed, seconds, and seconds of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    code = "from calibrant.cli import main; main()"  # what the installed command runs
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"COLUMNS": "100"},
    )
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    work = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.returncode, done.stdout, seconds, work


def machine() -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers"))
    cores = os.cpu_count()
    return f"{time.strftime('%Y-%m-%d %H:%M')}, Python {platform.python_version()}, {packages}, {cores} cores"


def write(name: str, rows: list[tuple[str, ...]], header: tuple[str, ...], delimiter: str = ",") -> None:
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])


def make_questions() -> None:
    from calibrant.data import datasets

    train, test = (datasets()["banking77"].read(split) for split in ("train", "test"))
    topics = {topic for topic, _ in Counter(train.labels).most_common(20)}
    parts = []
    for split in (train, test):
        rows = sorted({row for row in zip(split.texts, split.labels, strict=True) if row[1] in topics})
        random.Random(0).shuffle(rows)
        parts.append([(str(number), *row) for number, row in enumerate(rows, start=1)])
    known, new = parts
    news = [(str(number), text) for number, text in enumerate(datasets()["agnews"].read("test").texts[:310])]
    write("tickets.csv", known[:1200], ("id", "question", "topic"))
    write("dev.csv", known[1200:], ("id", "question", "topic"))
    write("test.csv", new, ("id", "question", "topic"))
    write("other.csv", news[:300], ("id", "question"))
    write("inbox.csv", [row[:2] for row in new[:190]] + news[300:], ("id", "question"))


def make_mistakes() -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from support.tiny import corpus, tiny_bert, tiny_tokenizer

    tiny_bert().save_pretrained("tiny")
    tiny_tokenizer().save_pretrained("tiny")
    rows, named = corpus(200), ("text", "label")
    write("good.csv", rows, named)
    write("tickets.csv", rows, ("question", "topic"))
    write("semicolon.csv", rows, ("question", "topic"), ";")
    Path("tickets.csv.gz").write_bytes(gzip.compress(Path("tickets.csv").read_bytes()))
    write("twice.csv", [(text, text, label) for text, label in rows], ("text", "text", "label"))
    write("ids.csv", [(text, str(number)) for number, (text, _) in enumerate(rows)], named)
    write("floats.csv", [(text, f"{number % 50 / 7:.3f}") for number, (text, _) in enumerate(rows)], named)
    write("stars.csv", [(text, str((1 + number % 9) / 2)) for number, (text, _) in enumerate(rows)], named)
    write("one.csv", [(text, "billing") for text, _ in rows], named)
    write("cases.csv", [(t, y.upper() if i % 9 == 0 else y) for i, (t, y) in enumerate(rows)], named)
    write("hole.csv", [*rows[:5], ("", "billing"), *rows[5:]], named)
    write("few.csv", rows[:3], named)
    write("other_labels.csv", [(text, "weather") for text, _ in rows], named)
    for name in ("empty.csv", "notes.docx", "broken.xlsx"):
        Path(name).touch()
    Path("latin.csv").write_bytes("text,label\nMünchen,a\nKöln,b\n".encode("latin-1"))
    assert run(shlex.split("train --train good.csv --quick --model tiny --out run"))[0] == 0
    subprocess.run(["cp", "-r", "run", "damaged"], check=True)
    Path("damaged/model/config.json").write_text("{}")


if __name__ == "__main__":
    main()
