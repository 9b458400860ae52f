"""All methods on banking77, one seed each: the table in this folder.

    CALIBRANT_DATA=../shared/data python results/banking77/make.py --out runs/banking77

Everything goes through the command line; what is there already is not trained again. Unfamiliar text: 3,080
Yahoo! titles (as many as there are test questions), drawn with a fixed seed.
"""

import argparse
import csv
import json
import os
import platform
import random
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from calibrant.data.files import read_file
from calibrant.methods import METHODS

HERE = Path(__file__).parent
SETTINGS = "--dataset banking77 --max-train-samples 2310 --max-length 32 --epochs 10 --batch-size 32"
SETTINGS += " --learning-rate 3e-4 --seed 0"
OBJECTIVES = {"manifold-smoothing": ["--set", "delta_off=0.005"]}  # as in the demo: short texts
ROWS = {  # name in the table: place in what `evaluate --json` prints
    "accuracy": ("accuracy",),
    "ECE": ("ece",),
    "NBAUCC₀.₅ mistakes": ("misclassification", "nbaucc_0.5"),
    "NBAUCC₀.₅ unfamiliar": ("ood", "nbaucc_0.5"),
}


def calibrant(*arguments: str) -> str:
    command = [str(Path(sys.executable).with_name("calibrant")), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def unfamiliar(path: Path) -> None:
    titles = read_file(Path(os.environ["CALIBRANT_DATA"]) / "yahoo" / "test.parquet").texts
    drawn = random.Random(0).sample(list(titles), 3080)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text"], *([title] for title in drawn)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    unfamiliar(out / "yahoo-titles.csv")
    found = {}
    for method in METHODS:
        run = out / method
        if method == "temperature-scaling":  # the same training as bert's
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(out / "bert", run)
            calibrant("calibrate", str(run), "--calibrator", "temperature")
        else:
            more = OBJECTIVES.get(method, [])
            calibrant("train", *SETTINGS.split(), "--method", method, *more, "--out", str(run))
        printed = calibrant("evaluate", str(run), "--ood", str(out / "yahoo-titles.csv"), "--json")
        seconds = json.loads((run / "calibrant.json").read_text())["training"]["seconds"]
        found[method] = {"metrics": json.loads(printed), "training_seconds": seconds}
        print(
            method, {name: f"{number(found[method], place):.1%}" for name, place in ROWS.items()}, flush=True
        )
        write(found)


def number(row: dict, place: tuple[str, ...]) -> float:
    value = row["metrics"]
    for key in place:
        value = value[key]
    return value


def write(found: dict) -> None:
    about = {
        "command": "CALIBRANT_DATA=../shared/data python results/banking77/make.py --out runs/banking77",
        "settings": SETTINGS,
        "objectives": OBJECTIVES,
        "versions": {name: version(name) for name in ("calibrant", "torch", "transformers")},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    (HERE / "methods.json").write_text(json.dumps({**about, "methods": found}, indent=1) + "\n")
    lines = ["| method | " + " | ".join(ROWS) + " |", "|---" * (len(ROWS) + 1) + "|"]
    for method, row in found.items():
        cells = [f"{number(row, place):.1%}" for place in ROWS.values()]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    (HERE / "methods.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
