"""Texts to look at: the surest mistakes, the least sure right answers, the surest on unfamiliar text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.pages.entry import Entry
from calibrant.types import Prediction, Texts

EACH = 8
LONGEST = 400  # characters


def telling_examples(entry: Entry, others: Sequence[Entry], test: Texts, ood: Texts | None) -> list[Any]:
    """Of one model's answers, with what the others say of the same texts; as ``write_report`` takes them."""
    correct, confidence = entry.test.correct, entry.test.confidence
    of = f" of {entry.name}" if others else ""
    surest, least_sure = _first(-confidence, ~correct), _first(confidence, correct)
    found = _of(f"Surest mistakes{of}", surest, entry, others, test, familiar=True)
    found += _of(f"Least sure right answers{of}", least_sure, entry, others, test, familiar=True)
    if ood is not None and entry.ood is not None:
        surest = _first(-entry.ood.confidence, np.ones(len(entry.ood), dtype=bool))
        found += _of(f"Surest on unfamiliar text{of}", surest, entry, others, ood, familiar=False)
    return found


def _first(order: NDArray[np.floating], among: NDArray[np.bool_]) -> list[int]:
    chosen = np.flatnonzero(among)
    return [int(i) for i in chosen[np.argsort(order[chosen], kind="stable")][:EACH]]


def _of(
    kind: str, chosen: Sequence[int], entry: Entry, others: Sequence[Entry], texts: Texts, *, familiar: bool
) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "text": cut(texts.texts[i]),
            "truth": texts.labels[i] if familiar and texts.labels is not None else None,
            "answers": {
                one.name: _answer(one, said, i)
                for one in (entry, *others)
                if (said := one.test if familiar else one.ood) is not None
            },
        }
        for i in chosen
    ]


def _answer(entry: Entry, said: Prediction, i: int) -> dict[str, Any]:
    best = int(said.probabilities[i].argmax())
    return {
        "label": entry.label_names[best],
        "confidence": float(said.probabilities[i, best]),
        "familiarity": None if said.familiarity is None else float(said.familiarity[i]),
    }


def cut(text: str) -> str:
    """At most so many characters."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()} …"
