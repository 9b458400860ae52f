"""Text in: a user's files, and public datasets declared one file each."""

from collections.abc import Mapping

from calibrant.data.catalog.base import Dataset
from calibrant.data.files import read_file
from calibrant.data.splits import make_splits
from calibrant.registry import discover

__all__ = ["Dataset", "datasets", "make_splits", "read_file"]


def datasets() -> Mapping[str, Dataset]:
    """Every declared dataset by name."""
    return discover("calibrant.data.catalog", Dataset, plugins="calibrant.datasets")
