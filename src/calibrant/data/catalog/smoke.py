"""Generated sentences of four topics, and of two others: a dataset that needs no network and no file.

It is there to run everything once, not to measure anything. A quarter of the words that tell a topic are
taken from another, so that some texts cannot be got right and there are mistakes to detect.
"""

import random
from dataclasses import dataclass

from calibrant.data.catalog.base import Dataset
from calibrant.data.layouts import Rows
from calibrant.data.sources import FolderSource, Source, Unavailable

_FILLER = "the my a is was please help with and i it now today we have this that for on at"
_FAMILIAR = {
    "billing": "invoice charge refund payment card price receipt bank",
    "shipping": "parcel courier delivery late address tracking box lost",
    "account": "password login email locked reset profile username sign",
    "device": "screen battery cable noise broken charger button repair",
}
_UNFAMILIAR = {
    "nature": "glacier enzyme galaxy tractor meadow thunder otter pebble",
    "arts": "violin sonnet recipe goalkeeper canvas opera ballad chorus",
}


@dataclass(frozen=True)
class GeneratedSource(Source):
    """Texts of these topics from a fixed seed; train and test have none in common."""

    topics: tuple[str, ...]
    train: int
    test: int
    kind = "generated"

    def read(self, split: str) -> Rows:
        """The first texts are train, the others test."""
        if split == "dev":
            raise Unavailable("dev is cut from train")
        rows = list(self._rows().items())
        part = rows[: self.train] if split == "train" else rows[self.train :]
        return [text for text, _ in part], [topic for _, topic in part]

    def _rows(self) -> dict[str, str]:
        draw, rows = random.Random(0), dict[str, str]()
        words = {topic: (_FAMILIAR | _UNFAMILIAR)[topic].split() for topic in self.topics}
        while len(rows) < self.train + self.test:
            topic = self.topics[len(rows) % len(self.topics)]
            about = [draw.choice(self.topics) if draw.random() < 0.25 else topic for _ in range(3)]
            text = [draw.choice(words[of]) for of in about]
            text += draw.choices(_FILLER.split(), k=draw.randint(2, 8))
            draw.shuffle(text)
            rows.setdefault(" ".join(text), topic)
        return rows

    def __str__(self) -> str:
        return f"generated sentences on {', '.join(self.topics)}"


_CITATION = "calibrant (2026), sentences generated from lists of words"
_LICENCE = "CC0"

SMOKE = Dataset(
    "smoke",
    _CITATION,
    _LICENCE,
    (FolderSource("smoke"), GeneratedSource(tuple(_FAMILIAR), train=200, test=120)),
    ood="smoke-unfamiliar",
    about="Generated sentences of four topics, to try things out.",
)
SMOKE_UNFAMILIAR = Dataset(
    "smoke-unfamiliar",
    _CITATION,
    _LICENCE,
    (FolderSource("smoke-unfamiliar"), GeneratedSource(tuple(_UNFAMILIAR), train=0, test=60)),
    about="Generated sentences of two other topics.",
)
