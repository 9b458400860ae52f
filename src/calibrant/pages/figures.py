"""The figures of the report: for the page, each with words for those who cannot see it, and as files."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from calibrant._system.atomic import check_folder, write_bytes
from calibrant.metrics import risk_coverage
from calibrant.metrics.base import unfamiliar_among_all
from calibrant.pages.comparison import shown
from calibrant.pages.curves import bin_counts, f1_lines, overlaid_shares, risk_coverage_lines
from calibrant.pages.entry import Entry
from calibrant.pages.plots import INK, figure_bytes, reliability_diagram

SIZE = (4.0, 3.3)  # inches; small, so that its words can still be read on a phone


@dataclass(frozen=True)
class Drawn:
    """A figure."""

    name: str  # of its file
    caption: str
    words: str  # what it shows, for those who cannot see it
    figure: Figure


@dataclass(frozen=True)
class Section:
    """Figures that answer one question."""

    name: str
    title: str
    lead: str  # how to read them
    drawn: list[Drawn]


def sections(entries: Sequence[Entry]) -> list[Section]:
    """All figures, in the order of the page."""
    each = [
        (entry, f"-{i}-{slug(entry.name)}" if len(entries) > 1 else "") for i, entry in _numbered(entries)
    ]
    found = [
        Section(
            "reliability",
            "On familiar text: is confidence close to accuracy?",
            "On the dashed line the model is right as often as it says. Below it, it is over-confident. A "
            "thin upright line is a bin's 95 % interval by the bootstrap; the numbers below count texts.",
            [_reliability(entry, end) for entry, end in each],
        ),
        Section(
            "confidence",
            "Is it less sure where it is wrong, or where text is unfamiliar?",
            "Right answers should lie on the right, mistakes further left, unfamiliar text at the left end. "
            "Each outline adds up to 100 % of its kind.",
            _on_one_scale([_confidence(entry, end) for entry, end in each]),
        ),
    ]
    told = [(entry, end) for entry, end in each if entry.test.familiarity is not None]
    if told:
        found.append(
            Section(
                "familiarity",
                "Does it notice unfamiliar text?",
                "Familiarity is the share of known texts that are at least as strange. Familiar text spreads "
                "evenly, and unfamiliar text should lie in the first bar, below 0.05.",
                _on_one_scale([_familiarity(entry, end) for entry, end in told]),
            )
        )
    found.append(
        Section(
            "abstention",
            "What if it only answers when it is sure?",
            "The fewer texts it answers, the fewer answers should be wrong. A dot is what the stored rule "
            "does on these texts; the thin line at its height is the risk that it promises.",
            [_risk_coverage(entries)],
        )
    )
    found.append(
        Section(
            "f1",
            "Which threshold on the confidence finds what?",
            "Texts with a confidence below τ are set aside. F1 is high where these are the right ones; the "
            "mean of a curve up to τ is NBAUCC.",
            _f1(entries),
        )
    )
    return found


def write_figures(folder: Path | str, entries: Sequence[Entry]) -> list[Path]:
    """Every figure as SVG and PNG; returns the files."""
    folder = Path(folder)
    check_figures_place(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for section in sections(entries):
        for drawn in section.drawn:
            for format in ("svg", "png"):
                path = folder / f"{drawn.name}.{format}"
                write_bytes(path, figure_bytes(drawn.figure, format))
                written.append(path)
    return written


def check_figures_place(folder: Path) -> None:
    """Refuse a place that no figures can be written to; for those who do long work first."""
    check_folder(folder, "the figures")


def slug(name: str) -> str:
    """What of a name can be in a file's name.

    >>> slug("runs/my tickets")
    'runs-my-tickets'
    """
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.") or "run"


def _numbered(entries: Sequence[Entry]) -> list[tuple[int, Entry]]:
    return list(enumerate(entries, start=1))


def _one(draw: Callable[..., None], *args: object) -> Figure:
    figure = Figure(figsize=SIZE, layout="constrained")
    draw(figure.add_subplot(), *args)
    return figure


def _on_one_scale(drawn: list[Drawn]) -> list[Drawn]:
    """So that figures side by side compare."""
    top = max(one.figure.axes[0].get_ylim()[1] for one in drawn)
    for one in drawn:
        one.figure.axes[0].set_ylim(0, top)
    return drawn


def _reliability(entry: Entry, end: str) -> Drawn:
    figure = Figure(figsize=(SIZE[0], SIZE[1] + 0.6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(4, 1), sharex=True)
    reliability_diagram(above, entry.test.confidence, entry.test.correct, bands=True)
    bin_counts(below, entry.test.confidence, entry.test.correct)
    above.set_xlabel("")
    above.get_legend().remove()  # it goes below both
    handles, labels = above.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=8,
        labelcolor=INK,
    )
    words = (
        f"Reliability diagram of {entry.name} on {len(entry.test)} familiar texts: expected calibration "
        f"error {shown(entry.miscalibration.ece)} %, accuracy {entry.test.correct.mean():.1%}."
    )
    return Drawn(f"reliability{end}", entry.name, words, figure)


def _confidence(entry: Entry, end: str) -> Drawn:
    confidence, correct = entry.test.confidence, entry.test.correct
    kinds = {"right": confidence[correct], "mistaken": confidence[~correct]}
    if entry.ood is not None:
        kinds["unfamiliar"] = entry.ood.confidence
    guess = 1 / entry.classes
    figure = _one(overlaid_shares, kinds, "confidence", guess)
    means = ", ".join(f"{name} {values.mean():.1%}" for name, values in kinds.items() if len(values))
    words = f"Confidence of {entry.name}, mean of each kind of text: {means}. A guess would be {guess:.1%}."
    return Drawn(f"confidence{end}", entry.name, words, figure)


def _familiarity(entry: Entry, end: str) -> Drawn:
    familiarity, correct = entry.test.familiarity, entry.test.correct
    assert familiarity is not None
    kinds = {"right": familiarity[correct], "mistaken": familiarity[~correct]}
    if entry.ood is not None and entry.ood.familiarity is not None:
        kinds["unfamiliar"] = entry.ood.familiarity
    figure = _one(overlaid_shares, kinds, "familiarity")
    below = ", ".join(
        f"{name} {np.mean(values <= 0.05):.1%}" for name, values in kinds.items() if len(values)
    )
    words = f"Familiarity by {entry.name}, share of each kind of text at or below 0.05: {below}."
    return Drawn(f"familiarity{end}", entry.name, words, figure)


def _risk_coverage(entries: Sequence[Entry]) -> Drawn:
    curves = {entry.name: risk_coverage(entry.test.probabilities, entry.test.labels) for entry in entries}  # type: ignore[arg-type]
    rules = {
        entry.name: (
            entry.metrics["abstention"]["coverage"],
            entry.metrics["abstention"]["risk"],
            entry.promised_risk,
        )
        for entry in entries
        if entry.promised_risk is not None
    }
    told = []
    for name, (coverage, risk) in curves.items():
        half = risk[np.searchsorted(coverage, 0.5)]
        told.append(f"{name} is wrong in {half:.1%} of the surest half and in {risk[-1]:.1%} of all")
    words = f"Risk–coverage curve: {'; '.join(told)}."
    return Drawn("risk-coverage", "Risk and coverage", words, _one(risk_coverage_lines, curves, rules))


def _f1(entries: Sequence[Entry]) -> list[Drawn]:
    mistakes = {entry.name: (entry.test.confidence, ~entry.test.correct) for entry in entries}
    strange = {
        entry.name: unfamiliar_among_all(entry.test.confidence, entry.ood.confidence)
        for entry in entries
        if entry.ood is not None
    }
    if len(entries) == 1:  # one figure, two lines
        name = entries[0].name
        both = {"finding its mistakes": mistakes[name]}
        if strange:
            both["finding unfamiliar text"] = strange[name]
        return [Drawn("f1", name, _f1_words(entries, name), _one(f1_lines, both))]
    drawn = [
        Drawn(
            "f1-mistakes",
            "Finding its own mistakes",
            _f1_words(entries, "mistakes"),
            _one(f1_lines, mistakes),
        )
    ]
    if strange:
        words = _f1_words(entries, "unfamiliar")
        drawn.append(Drawn("f1-unfamiliar", "Finding unfamiliar text", words, _one(f1_lines, strange)))
    return drawn


def _f1_words(entries: Sequence[Entry], what: str) -> str:
    def told(group: str, entry: Entry) -> str:
        value = (entry.metrics.get(group) or {}).get("nbaucc_0.5")
        return "not measured" if value is None else f"{value:.3f}"

    if len(entries) == 1:
        entry = entries[0]
        ood = "" if entry.ood is None else f", of finding unfamiliar text {told('ood', entry)}"
        mistakes = told("misclassification", entry)
        return f"F1 curves of {what}; mean up to 0.5 of finding mistakes {mistakes}{ood}."
    group = "misclassification" if what == "mistakes" else "ood"
    each = ", ".join(f"{entry.name} {told(group, entry)}" for entry in entries)
    return f"F1 curves of finding {what} texts, mean up to 0.5: {each}."
