"""The labels of files as the class ids of a model that somebody else trained."""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import UserError
from calibrant.types import Texts

SHOWN = 5


def match_labels(files: Sequence[Texts], label_names: Sequence[str]) -> list[NDArray[np.integer]]:
    """Class ids of the labelled texts of each file, (n,): by name or, where not all are names, by id.

    An id is a number, or LABEL_ and a number, which is how transformers names a class that nobody named. The
    files are read in the same way, all of them: where classes are named by numbers, a file with few of the
    classes might be read otherwise than its neighbour.

    >>> match_labels([Texts(["a", "b"], ["good", "bad"], "file t.csv", "")], ["bad", "good"])
    [array([1, 0])]
    >>> match_labels([Texts(["a", "b"], ["1", "LABEL_0"], "file t.csv", "")], ["bad", "good"])
    [array([1, 0])]
    """
    by_name = {name: i for i, name in enumerate(label_names)}
    by_id = {written: i for i in range(len(label_names)) for written in (str(i), f"LABEL_{i}")}
    of_file = {texts.source: set(texts.labels or ()) for texts in files}
    labels = set().union(*of_file.values())
    two_faced = sorted(y for y in labels & by_name.keys() & by_id.keys() if by_name[y] != by_id[y])
    if labels <= by_name.keys():
        class_of = by_name
        if two_faced:
            warnings.warn(
                f"The label {two_faced[0]!r} is read as the name of a class, though it is the id of another; "
                "where ids are meant, write them as LABEL_0, LABEL_1, ….",
                stacklevel=2,
            )
    elif labels <= by_id.keys():
        class_of = by_id
        if two_faced:
            source = next(source for source, held in of_file.items() if two_faced[0] in held)
            raise UserError(
                f"{source}: the label {two_faced[0]!r} is both the name of a class and the id of another; "
                "write names only."
            )
    else:
        source = next(source for source, held in of_file.items() if not held <= by_name.keys())
        raise UserError(
            f"{source}: its labels are not the model's: {_few(sorted(of_file[source] - by_name.keys()))} "
            f"where the model has {_few(label_names)}; rename them, write the ids 0 to "
            f"{len(label_names) - 1} in all files instead, or correct id2label in the model's config.json."
        )
    return [np.array([class_of[label] for label in texts.labels or ()]) for texts in files]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more
