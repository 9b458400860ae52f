"""Texts that a user names: a file of their own, or a public dataset."""

from pathlib import Path

from calibrant.data import datasets, read_file
from calibrant.registry import pick
from calibrant.types import Texts


def as_name(file: Path | str | None) -> str | None:
    """As it is told and kept; None stays None."""
    return None if file is None else str(file)


def read_named(
    name: Path | str, columns: tuple[str, str, str | None], source: str | None, labelled: bool | None
) -> Texts:
    """The texts of a file, or the test texts of a dataset, with its labels.

    Args:
        name: a file, or the name of a dataset; a folder of a dataset's name can be written ``./name``.
        columns: of a file, those with the text, the label and, of pairs, the second text.
        source: where a dataset that has it is read from, as in training; None asks each in order.
        labelled: as for ``read_file``.
    """
    known, name = datasets(), str(name)
    if name not in known and ("://" in name or Path(name).suffix or Path(name).exists()):
        return read_file(name, *columns, labelled=labelled)
    dataset = pick("file or dataset", name, known)
    offered = {s.kind for s in dataset.sources}
    return dataset.read("test", source if source in offered else None)
