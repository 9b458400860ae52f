"""The labels of a file as the class ids of a model that somebody else trained."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.types import Texts

AN_ID = re.compile(r"(?:LABEL_)?(\d+)")  # "LABEL_3" is how transformers names a class that nobody named
SHOWN = 5


def match_labels(texts: Texts, label_names: Sequence[str]) -> NDArray[np.integer]:
    """Class ids of labelled texts, (n,): by name or, if all are numbers or LABEL_ and a number, by id.

    >>> match_labels(Texts(["a", "b"], ["good", "bad"], "file t.csv", ""), ["bad", "good"])
    array([1, 0])
    >>> match_labels(Texts(["a", "b"], ["1", "LABEL_0"], "file t.csv", ""), ["bad", "good"])
    array([1, 0])
    """
    labels = list(texts.labels or ())
    class_of = {name: i for i, name in enumerate(label_names)}
    if not set(labels) <= class_of.keys():
        numbers = [AN_ID.fullmatch(label) for label in labels]
        ids = [int(number[1]) if number else len(label_names) for number in numbers]
        if max(ids) >= len(label_names):
            strange = sorted(set(labels) - class_of.keys())
            raise UserError(
                f"{texts.source}: its labels are not the model's: {_few(strange)} where the model has "
                f"{_few(label_names)}; rename them, write the ids 0 to {len(label_names) - 1} instead, or "
                "correct id2label in the model's config.json."
            )
        return np.array(ids)
    return np.array([class_of[label] for label in labels])


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
