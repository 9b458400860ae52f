"""What a run says of texts as columns, which stand beside those of the table that the texts are from."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.classifier import Classifier
from calibrant.decide.rule import Rule
from calibrant.decide.sets import SetRule
from calibrant.errors import UserError
from calibrant.types import Outputs, Progress

logger = logging.getLogger(__name__)
DIGITS = 4
AT_ONCE = 4096
"""Texts that are answered together; what a model tells of many layers takes much memory."""

Answers = dict[str, tuple[Literal["text", "number", "flag", "texts"], list[Any]]]
"""By the name of the column: what is in it, and its cells."""
Look = Callable[[Sequence[str], Outputs, NDArray[np.bool_]], None]


def answer(
    classifier: Classifier,
    texts: Sequence[str],
    rule: Rule,
    top: int = 1,
    sets: SetRule | None = None,
    progress: Progress | None = None,
    look: Look | None = None,
) -> Answers:
    """Label, confidence, familiarity, abstain, the ``top`` − 1 next labels, and the ``set`` of each text.

    ``look`` sees more of each few thousand of them: the texts, the outputs, and whether each is answered.
    """
    found: Answers = {}
    for start in range(0, max(len(texts), 1), AT_ONCE):

        def moved(what: str, done: int, total: int, start: int = start) -> None:
            if progress is not None:
                progress(what, start + done, len(texts))

        some = texts[start : start + AT_ONCE]
        outputs = classifier.outputs(some, rule.needs, moved)
        answered = rule.answers(outputs)
        if look is not None and some:
            look(some, outputs, answered)
        for name, (kind, cells) in _columns(outputs, answered, classifier.label_names, top, sets).items():
            found.setdefault(name, (kind, []))[1].extend(cells)
    return found


def _columns(
    outputs: Outputs,
    answered: NDArray[np.bool_],
    label_names: Sequence[str],
    top: int,
    sets: SetRule | None,
) -> Answers:
    p, names = outputs.probabilities, np.array(label_names, dtype=object)
    ranked = p.argmax(axis=1)[:, None] if top == 1 else np.argsort(-p, axis=1, kind="stable")[:, :top]
    best = np.take_along_axis(p, ranked, axis=1)
    pi = [None] * len(p) if outputs.familiarity is None else _rounded(outputs.familiarity)
    found: Answers = {
        "label": ("text", names[ranked[:, 0]].tolist()),
        "confidence": ("number", _rounded(best[:, 0])),
        "familiarity": ("number", pi),
        "abstain": ("flag", (~answered).tolist()),
    }
    for rank in range(1, ranked.shape[1]):
        found[f"label_{rank + 1}"] = "text", names[ranked[:, rank]].tolist()
        found[f"confidence_{rank + 1}"] = "number", _rounded(best[:, rank])
    return found if sets is None else found | {"set": ("texts", sets.labels(p, label_names))}


def by_row(columns: Answers) -> Iterator[dict[str, Any]]:
    """The same, a dictionary for each text."""
    for row in zip(*(cells for _, cells in columns.values()), strict=True):
        yield dict(zip(columns, row, strict=True))


def added(top: int, sets: bool) -> list[str]:
    """The names of those columns."""
    more = [f"{what}_{rank}" for rank in range(2, top + 1) for what in ("label", "confidence")]
    return ["label", "confidence", "familiarity", "abstain", *more, *(["set"] if sets else [])]


def renamed(names: Sequence[str], columns: Collection[str], where: str) -> dict[str, str]:
    """What each new column is called, where the table may have one of its name: the true label, say."""
    called = {name: f"predicted_{name}" if name in columns else name for name in names}
    for name, other in called.items():
        if other in columns:
            raise UserError(f"{where}: has columns {name!r} and {other!r} already; rename one of them.")
        if other != name:
            logger.info("%s has a column %r; the answer is in %r", where, name, other)
    return called


def _rounded(values: NDArray[np.floating]) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]
