"""The headline cards: four numbers, each with one sentence on what it means here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calibrant.metrics.noticed import FALSE_ALARMS, noticed
from calibrant.metrics.risk_coverage import coverage_at
from calibrant.pages.comparison import Comparison, between, shown
from calibrant.pages.entry import Entry

USUAL_RISK = 0.05  # to ask a run about that has no rule


@dataclass(frozen=True)
class Card:
    """A number of each model, and what to make of it."""

    title: str
    values: list[tuple[str, str, bool]]  # name of the model, its number, whether it is best beyond chance
    sentence: str


def cards(comparison: Comparison) -> list[Card]:
    """In the order of the page."""
    return [_accuracy(comparison), _ece(comparison), _coverage(comparison), *_noticed(comparison)]


def _accuracy(comparison: Comparison) -> Card:
    def sentence(entry: Entry) -> str:
        interval = comparison.interval(("", "accuracy"), 0)
        sure = "" if interval is None else f" (95 % interval {between(interval)})"
        right = 100 * entry.metrics["accuracy"]
        return f"Of 100 texts like these {len(entry.test):,}, it labels about {right:.0f} right{sure}."

    return _measured(comparison, "Accuracy", "accuracy", True, sentence)


def _ece(comparison: Comparison) -> Card:
    def sentence(entry: Entry) -> str:
        found = entry.miscalibration
        verdict = {
            "calibrated": "so no miscalibration shows",
            "over-confident": "so it is over-confident",
            "under-confident": "so it is under-confident",
            "uneven": "so it is over-confident on some texts and under-confident on others",
        }[found.direction]
        return (
            f"Its confidence is off by {shown(found.ece)} points on average; chance alone gives a calibrated "
            f"model up to {shown(found.chance)}, {verdict}."
        )

    return _measured(comparison, "Calibration error (ECE)", "ece", False, sentence)


def _measured(
    comparison: Comparison, title: str, name: str, higher: bool, sentence: Callable[[Entry], str]
) -> Card:
    """A card of a metric; several models are told apart by their paired difference."""
    key, entries = ("", name), comparison.entries
    leader = comparison.leader(key, higher)
    values = [
        (entry.name, _percent(value), i == leader)
        for i, (entry, value) in enumerate(zip(entries, comparison.values(key), strict=True))
    ]
    if len(entries) == 1:
        return Card(title, values, sentence(entries[0]))
    if leader is None:
        return Card(title, values, "The best are within noise of each other: none is better beyond chance.")
    known = {i: v for i, v in enumerate(comparison.values(key)) if v is not None and i != leader}
    second = (max if higher else min)(known, key=lambda i: known[i])
    found = comparison.difference(key, leader, second)
    assert found is not None  # a leader differs from all others, by an interval
    low, high = sorted(abs(end) for end in found[1])
    return Card(
        title,
        values,
        f"{entries[leader].name} is best, by {shown(abs(found[0]))} points over {entries[second].name} "
        f"(95 % interval {between((low, high))}).",
    )


def _coverage(comparison: Comparison) -> Card:
    entries = comparison.entries
    if any(entry.promised_risk is None for entry in entries):  # the same question to all
        values = [_in_hindsight(entry) for entry in entries]
        title = f"Answerable with {100 * USUAL_RISK:.0f} % mistakes"
        sentence = (
            "This share of familiar text could be answered by its confidence, in hindsight; `calibrant "
            "threshold` learns a rule that promises it for other texts."
        )
    else:
        values = [entry.metrics["abstention"]["coverage"] for entry in entries]
        title, sentence = "Answered at the promised risk", _kept(entries)
    return Card(title, [(e.name, _percent(v), False) for e, v in zip(entries, values, strict=True)], sentence)


def _in_hindsight(entry: Entry) -> float:
    labels = entry.test.labels
    assert labels is not None  # checked with the first figure
    return coverage_at(USUAL_RISK, entry.test.probabilities, labels)


def _kept(entries: Sequence[Entry]) -> str:
    told = []
    for entry in entries:
        risk = entry.metrics["abstention"]["risk"]
        name = f"{entry.name}: " if len(entries) > 1 else ""
        wrong = "nothing was answered" if risk is None else f"{_percent(risk)} of its answers are wrong"
        told.append(f"{name}{wrong}, {_percent(entry.promised_risk)} were promised")
    return f"Its rule leaves the rest undecided. {'; '.join(told)}."


def _noticed(comparison: Comparison) -> list[Card]:
    asked = [entry for entry in comparison.entries if entry.ood is not None]
    if not asked:
        return []
    values = [(entry.name, _percent(share_noticed(entry)), False) for entry in asked]
    by = " or ".join(sorted({judge(entry) for entry in asked}, reverse=True))
    sentence = (
        f"Of {len(asked[0].ood or ()):,} unfamiliar texts this share is stranger, by its {by}, than "
        f"{100 - 100 * FALSE_ALARMS:.0f} % of the familiar ones."
    )
    answered = [(entry.metrics.get("abstention") or {}).get("ood_answered") for entry in asked]
    if len(asked) == 1 and answered[0] is not None:
        sentence += f" Its rule answers {_percent(answered[0])} of them."
    return [Card("Unfamiliar text noticed", values, sentence)]


def judge(entry: Entry) -> str:
    """What tells unfamiliar text."""
    return "confidence" if entry.test.familiarity is None else "familiarity"


def share_noticed(entry: Entry) -> float:
    """Of unfamiliar text, with one false alarm in twenty familiar texts."""
    assert entry.ood is not None
    if entry.test.familiarity is not None and entry.ood.familiarity is not None:
        return noticed(entry.test.familiarity, entry.ood.familiarity)
    return noticed(entry.test.confidence, entry.ood.confidence)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{shown(value)} %"
