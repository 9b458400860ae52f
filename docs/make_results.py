"""Write the tables of docs/results.md, and all numbers into STUDY/tables.md:

    python docs/make_results.py [STUDY]

They are made from the cells that are there; what has not been run is a dash. Numbers are in %, but for NLL,
each with half of its 95 % interval (``calibrant.study.intervals``).
"""

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from calibrant.study.cells import Cell, Confidences, read_cells, read_confidences, variant
from calibrant.study.intervals import Intervals, intervals
from calibrant.study.plan import ABLATION
from calibrant.study.presets import PARAMETERS, PRESETS
from calibrant.study.provenance import DOUBT
from calibrant.study.published import published
from calibrant.study.rows import ANSWERS, ROWS
from calibrant.study.significance import holm

ROOT = Path(__file__).parents[1]
PAGE, STUDY, PEERS = ROOT / "docs/results.md", ROOT / "results/evidence", ROOT / "results/peers"
BEGIN, END = "<!-- made by `make results` -->", "<!-- end of what `make results` makes -->"
AS_IT_IS, TEMPERATURE, BOTH = ANSWERS
SHORT = {AS_IT_IS: "", TEMPERATURE: ", T", BOTH: ", T+F"}
ACCURACY, ECE, NLL, AURC = ("", "accuracy"), ("", "ece"), ("", "nll"), ("", "aurc")
MISTAKES, OOD = ("misclassification", "nbaucc_0.5"), ("ood", "nbaucc_0.5")
TITLES = {
    ACCURACY: "accuracy",
    ("", "confidence"): "confidence",
    ECE: "ECE",
    NLL: "NLL",
    AURC: "AURC",
    MISTAKES: "mistakes: NBAUCC₀.₅",
    ("misclassification", "auroc"): "mistakes: AUROC",
    ("misclassification", "fpr95"): "mistakes: FPR95",
    OOD: "OOD: NBAUCC₀.₅",
    ("ood", "auroc"): "OOD: AUROC",
    ("ood", "fpr95"): "OOD: FPR95",
}
HIGHER = {ACCURACY, MISTAKES, OOD, ("misclassification", "auroc"), ("ood", "auroc")}
COLUMNS = [  # of the page
    *((ACCURACY, AS_IT_IS), (ECE, AS_IT_IS), (ECE, TEMPERATURE), (ECE, BOTH), (NLL, BOTH)),
    *((MISTAKES, AS_IT_IS), (MISTAKES, BOTH), (OOD, AS_IT_IS), (OOD, BOTH), (("ood", "auroc"), BOTH)),
]
SAME_AS_PLAIN = ("temperature-scaling", "calibrant")  # plain training with T, and with T+F
PAPER = (("20ng-15", "20NG₁₅"), ("20ng", "20NG"))
LEGEND = f"""In %, but for NLL, with half of the 95 % interval. The number of seeds is in brackets.
With one seed the interval is for the choice of texts alone.

- T: with a temperature. T+F: with temperature and familiarity.
- Plain training (`bert`) with T is the paper's temperature scaling. With T+F it is calibrant's default, but
  with 4 epochs instead of 8, and with the best of them kept. (The preset keeps a point between the start and
  the last of them since then, so its command measures these cells anew.)
- **Bold**: better than every other row by more than chance.
- NBAUCC [rewards doubt](metrics.md#nbaucc), as the row `constant` shows. So no row is bold there whose
  confidence is more than {100 * DOUBT:.0f} points below its accuracy.
"""

BOOTSTRAP = "Paired bootstrap over texts and seeds, corrected by Holm, at 5 %.\n"
Asked = tuple[str, str]  # row and calibrator


@dataclass(frozen=True)
class Dataset:
    """All that was measured on one dataset."""

    study: Path
    name: str
    cells: Sequence[Cell]
    draws: int

    def said(self, row: str, how: str) -> list[Confidences]:
        """Of each seed, in order."""
        asked = [cell.answering(how) for cell in self.cells if cell.key.row == row]
        return [read_confidences(cell, self.study) for cell in asked if cell is not None]

    @cached_property
    def rows(self) -> list[str]:
        """The main rows that are there, in the order of the tables."""
        return [row for row in ROWS if any(cell.key.row == row for cell in self.cells)]

    @cached_property
    def found(self) -> Intervals:
        """Of every row, variants included, with every calibrator."""
        rows = dict.fromkeys(cell.key.row for cell in self.cells)
        asked = {f"{row}|{how}": self.said(row, how) for row in rows for how in ANSWERS}
        return intervals({name: of for name, of in asked.items() if of}, self.draws)

    def has(self, asked: Asked) -> bool:
        return "|".join(asked) in self.found.rows

    def value(self, asked: Asked, name: tuple[str, str]) -> float:
        return self.found.values["|".join(asked)][name]

    def entry(self, asked: Asked, name: tuple[str, str], bold: bool = False) -> str:
        """``3.7 ± 0.4``; a dash where it has not been run."""
        if not self.has(asked) or name not in self.found.values["|".join(asked)]:
            return "–"
        low_high = self.found.of("|".join(asked), name)
        scale, digits = (1, 3) if name == NLL else (100, 1)
        half = "" if low_high is None else f" ± {scale * (low_high[1] - low_high[0]) / 2:.{digits}f}"
        shown = f"{scale * self.value(asked, name):.{digits}f}{half}"
        return f"**{shown}**" if bold else shown

    def doubts(self, asked: Asked) -> bool:
        return self.value(asked, ACCURACY) - self.value(asked, ("", "confidence")) > DOUBT

    def compared(self, asked: Asked, others: Iterable[Asked], name: tuple[str, str]) -> dict[str, list[str]]:
        """The other rows that it is better than, worse than, and not shown to differ from, after Holm."""
        there = [other for other in others if other != asked and self.has(other)]
        found = [self.found.difference("|".join(asked), "|".join(other), name) for other in there]
        sign = 1 if name in HIGHER else -1
        verdicts: dict[str, list[str]] = {"better": [], "worse": [], "not shown": []}
        for other, (d, _, _), p in zip(there, found, holm([p for *_, p in found]), strict=True):
            verdict = "not shown" if p > 0.05 else "better" if sign * d > 0 else "worse"
            verdicts[verdict].append(other[0])
        return verdicts

    def best(self, name: tuple[str, str], how: str) -> str | None:
        """The row that is better than every other; none whose confidence is too low, in NBAUCC."""
        rows = [(row, how) for row in self.rows if ROWS[row].instead is None and row not in SAME_AS_PLAIN]
        rows = [asked for asked in rows if self.has(asked)]
        if name in (MISTAKES, OOD):
            rows = [asked for asked in rows if not self.doubts(asked)]
        for asked in rows:
            verdicts = self.compared(asked, rows, name)
            if len(rows) > 1 and not verdicts["worse"] and not verdicts["not shown"]:
                return asked[0]
        return None

    def seeds(self, row: str) -> int:
        return sum(cell.key.row == row for cell in self.cells)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """As Markdown."""
    rows = [head, ["---", *("---:" for _ in head[1:])], *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def main_table(data: Dataset) -> str:
    """The page's, of one dataset."""
    best = {column: data.best(*column) for column in COLUMNS}
    lines = []
    for row in data.rows:
        if row not in SAME_AS_PLAIN:
            entries = [data.entry((row, how), name, bold=best[name, how] == row) for name, how in COLUMNS]
            lines.append([f"{row} ({data.seeds(row)})", *entries])
    return table([data.name, *(TITLES[name] + SHORT[how] for name, how in COLUMNS)], lines)


def whole_tables(data: Dataset) -> str:
    """Every number, once for each calibrator."""
    parts = [f"# {data.name}\n"]
    rows = dict.fromkeys((*data.rows, *(cell.key.row for cell in data.cells)))
    for how in ANSWERS:
        lines = [
            [f"{row} ({data.seeds(row)})", *(data.entry((row, how), name) for name in TITLES)]
            for row in rows
            if data.has((row, how))
        ]
        parts.append(f"## {data.name}{SHORT[how] or ', as it is'}\n\n{table(['', *TITLES.values()], lines)}")
    return "\n".join(parts)


def beside_the_paper(sets: dict[str, Dataset]) -> str:
    """The default beside what the paper prints of its own method."""
    lines = []
    for name, title in PAPER:
        for measure in (ACCURACY, ECE, MISTAKES, OOD):
            key = ".".join(filter(None, measure))
            printed = f"{100 * published()[key, name, 'manifold-smoothing', '']:.2f}"
            here = [
                "not run" if name not in sets else sets[name].entry((row, how), measure)
                for row, how in (("calibrant", BOTH), ("manifold-smoothing", AS_IT_IS))
            ]
            lines.append([f"{title}, {TITLES[measure]}", printed, *here])
    return table(
        ["", "paper: manifold smoothing, BERT-base", "here: the default", "here: manifold smoothing"], lines
    )


def significance(sets: dict[str, Dataset]) -> str:
    """Whom the paper's method and the default are better and worse than."""
    lines = []
    for row, how in (("manifold-smoothing", AS_IT_IS), ("calibrant", BOTH)):
        for data in sets.values():
            if not data.has((row, how)):
                continue
            same = {"manifold-smoothing": (), "calibrant": ("bert",)}[row]
            others = [
                (other, how)
                for other in data.rows
                if ROWS[other].instead is None and other not in (*SAME_AS_PLAIN, *same)
            ]
            for name in (ECE, MISTAKES, OOD) if any(map(data.has, others)) else ():
                verdicts = data.compared((row, how), others, name)
                lines.append(
                    [
                        f"{row}{SHORT[how]}, {data.name}, {TITLES[name]}",
                        *(", ".join(of) or "–" for of in verdicts.values()),
                    ]
                )
    return table(["", "better than", "worse than", "no difference shown"], lines) if lines else ""


def variants(data: Dataset | None) -> str:
    """Ablation and parameter study, on 20ng-15."""
    settings = [*ABLATION[1:], *({name: value} for name, values in PARAMETERS.items() for value in values)]
    names = [f"manifold-smoothing,{name}" for name in dict.fromkeys(map(variant, settings))]
    shown = (ACCURACY, ("", "confidence"), ECE, MISTAKES, OOD, ("ood", "auroc"))
    if data is None or not any(data.has((row, AS_IT_IS)) for row in names):
        return ""
    lines = [
        [row.removeprefix("manifold-smoothing,"), *(data.entry((row, AS_IT_IS), name) for name in shown)]
        for row in ("bert", "manifold-smoothing", *names)
        if data.has((row, AS_IT_IS))
    ]
    return table(["20ng-15, seed 0", *(TITLES[name] for name in shown)], lines)


def peers() -> str:
    """Other libraries, by their own defaults."""
    made = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(PEERS.glob("*.json"))]
    lines = []
    for one in made:
        m = one["metrics"]
        ood = m["ood"] or {}
        numbers = [m["accuracy"], m["ece"], m["misclassification"]["nbaucc_0.5"]]
        numbers += [ood.get("nbaucc_0.5"), ood.get("auroc")]
        shown = ["–" if x is None else f"{100 * x:.1f}" for x in numbers]
        lines.append(
            [one["dataset"], one["peer"], *shown, f"{m['nll']:.3f}", f"{one['seconds'] / 60:.0f} min"]
        )
    head = ["", "library", "accuracy", "ECE", TITLES[MISTAKES], TITLES[OOD], "OOD: AUROC", "NLL", "time"]
    return table(head, lines) if lines else ""


def missing(sets: dict[str, Dataset]) -> str:
    """What the preset has and nobody has run yet."""
    preset = PRESETS["laptop"]
    lacks = []
    for name in preset.datasets:
        rows = [row for row in preset.methods if name not in sets or row not in sets[name].rows]
        if rows:
            lacks.append(f"{name} ({'all' if len(rows) == len(preset.methods) else ', '.join(rows)})")
    return f"Not run yet: {'; '.join(lacks)}.\n" if lacks else ""


def worked(times: Mapping[str, float]) -> float:
    """Seconds of the processor; of the wall where those were not taken, and none where a training failed."""
    return times.get("work_seconds", times.get("seconds", 0.0))


def hours(study: Path, sets: dict[str, Dataset]) -> str:
    """Of all trainings, each once; of an ensemble, those that are not rows themselves."""
    seconds = {}
    for cell in (cell for data in sets.values() for cell in data.cells):
        ensemble = cell.key.method == "deep-ensemble"
        what = json.dumps([cell.config, cell.objective, ensemble], sort_keys=True)
        seconds[what] = worked(cell.training) * (4 / 5 if ensemble else 1)
    looks = [json.loads(path.read_text(encoding="utf-8")) for path in (study / "search").glob("*.json")]
    searched = sum(worked(look) for look in looks)
    more = f", and the search {searched / 3600:.1f} more, in {len(looks)} trainings" if looks else ""
    return f"Training took {sum(seconds.values()) / 3600:.1f} hours of one core{more}.\n"


def page(study: Path, sets: dict[str, Dataset]) -> str:
    """What stands between the marks."""
    if not sets:
        return missing(sets)
    parts = [
        "## Beside the paper's published values\n",
        beside_the_paper(sets),
        "## Every method, every dataset\n",
        LEGEND,
        *(main_table(data) for data in sets.values()),
        missing(sets),
        *headed("Who is better than whom", significance(sets), BOOTSTRAP),
        *headed("Ablation and parameters", variants(sets.get("20ng-15"))),
        *headed("Other libraries", peers(), "On the same texts and encoder, each by its own defaults.\n"),
        hours(study, sets),
    ]
    return "\n".join(filter(None, parts))


def headed(title: str, body: str, intro: str = "") -> tuple[str, ...]:
    """A section; nothing where it would be empty."""
    return (f"## {title}\n", intro, body) if body else ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", nargs="?", type=Path, default=STUDY)
    parser.add_argument("--draws", type=int, default=300, help="of the bootstrap")
    parser.add_argument("--page", type=Path, default=PAGE)
    arguments = parser.parse_args()
    cells = read_cells(arguments.study) if arguments.study.exists() else []
    order = [name for name in PRESETS["laptop"].datasets if any(cell.key.dataset == name for cell in cells)]
    sets = {
        name: Dataset(
            arguments.study, name, [cell for cell in cells if cell.key.dataset == name], arguments.draws
        )
        for name in order
    }
    text = arguments.page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    arguments.page.write_text(
        f"{before}{BEGIN}\n\n{page(arguments.study, sets)}\n{END}{after}", encoding="utf-8"
    )
    if sets:
        whole = "\n".join(whole_tables(data) for data in sets.values())
        (arguments.study / "tables.md").write_text(whole, encoding="utf-8")


if __name__ == "__main__":
    main()
