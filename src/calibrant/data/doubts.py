"""What makes a training file look as if another column was meant, or as if it was not cleaned.

What cannot be meant is refused. What may be is warned of, with a count, and trained on as it is.
"""

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from calibrant.errors import UserError
from calibrant.types import Texts

FEW = 20  # texts or classes, below which chance may look like a mistake
MISSING = frozenset({"nan", "null", "<na>", "#n/a", "n/a"})
"""What programs write for a value that is not there, in lower case."""


def check_classes(train: Texts, label_column: str) -> None:
    """Refuse labels of a user's own file that are no classes."""
    classes, n = set(train.labels or ()), len(train)
    if n >= FEW and len(classes) == n:
        raise UserError(
            f"{train.source}: as many classes as texts ({n}) in column {label_column!r}. Is it an id column? "
            "Name the one with the classes with --label-column."
        )
    if len(classes) > FEW and (measured := _measurements(train, label_column)):
        raise UserError(
            f"{measured} A classifier needs classes; name another --label-column, or write a word for each "
            "range."
        )


def doubt(train: Texts, text_column: str, label_column: str) -> None:
    """Warn of texts and labels of a user's own file that may not be meant."""
    labels, n = list(train.labels or ()), len(train)
    classes = set(labels)
    if n >= FEW and 2 * len(classes) > n:
        _warn(f"{train.source}: {len(classes)} classes for {n} texts. Is {label_column!r} an id column?")
    if len(classes) <= FEW and (measured := _measurements(train, label_column)):
        _warn(
            f"{measured} Each is trained as a class of its own. Name another --label-column if they measure "
            "something."
        )
    _alike(train.source, labels)
    for label, count in _counted(labels, lambda label: label.lower() in MISSING):
        _warn(
            f"{train.source}: {count} texts have the label {label!r}, which is trained as a class. Drop them "
            "if it stands for no label."
        )
    numbers = sum(map(_number, train.texts))
    if 2 * numbers > n:
        _warn(
            f"{train.source}: {numbers} of {n} texts in column {text_column!r} are numbers. Is it the column "
            "with the text? Name another with --text-column."
        )


def _measurements(train: Texts, label_column: str) -> str | None:
    """How many labels there are, where all are numbers and not all are whole; None elsewhere."""
    classes = set(train.labels or ())
    if not all(map(_number, classes)) or all(map(_whole, classes)):
        return None
    return (
        f"{train.source}: the labels in column {label_column!r} are {len(classes)} different numbers with a "
        f"fraction, as {min(filter(_fraction, classes))}."
    )


def _alike(source: str, labels: Sequence[str]) -> None:
    """Labels that differ only in case or blanks."""
    spellings = defaultdict(set)
    for label in labels:
        spellings["".join(label.split()).casefold()].add(label)
    several = [sorted(group) for group in spellings.values() if len(group) > 1]
    if several:
        first = " and ".join(map(repr, min(several)))
        _warn(
            f"{source}: {sum(map(len, several))} labels differ only in case or blanks, as {first}. They are "
            "trained as different classes; write them alike."
        )


def _counted(labels: Sequence[str], chosen: Callable[[str], bool]) -> list[tuple[str, int]]:
    return sorted(Counter(filter(chosen, labels)).items())


def _number(text: str) -> bool:
    """Whether it is a finite number.

    >>> [_number(text) for text in ("5", " 3.7", "1e3", "nan", "five")]
    [True, True, True, False, False]
    """
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _whole(text: str) -> bool:
    return float(text).is_integer()


def _fraction(text: str) -> bool:
    return not _whole(text)


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
