"""From texts to train and dev: cut, subsample, and refuse what training cannot use."""

import math
import random
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from calibrant.data.files import fingerprint
from calibrant.errors import UserError
from calibrant.types import Splits, Texts

DEV_ONE_IN = 5  # 20 % of train, rounded up
SPLIT_SEED = 0  # fixed: runs with different seeds see the same data


def make_splits(name: str, train: Texts, dev: Texts | None, max_train_samples: int | None = None) -> Splits:
    """Train and dev sets. Without a dev set, 20 % of train is cut, stratified, with a fixed seed; copies of a
    text stay together.

    ``max_train_samples`` takes a stratified part of ``train`` first, so that dev shrinks with it.
    """
    if train.labels is None:
        raise UserError(f"{train.source}: training needs labels.")
    train = draw(train, max_train_samples, "--max-train-samples")
    label_names = tuple(sorted(set(train.labels or ())))
    if len(label_names) < 2:
        raise UserError(
            f"{train.source}: only one class ({', '.join(label_names)}); a classifier needs at least two."
        )
    if dev is None:
        train, dev = _cut(train)
        dev = replace(dev, source=f"{dev.source} (20 % of train, stratified)")
    else:
        warn_of_overlap(train, dev)
    check_labels(dev, label_names)
    return Splits(name, train, dev, label_names)


def draw(texts: Texts, at_most: int | None, option: str) -> Texts:
    """That many of the texts, stratified; all of them where there are no more, or for None.

    ``option`` is where a user said how many, for the error where that is less than one of each class.
    """
    if at_most is None or at_most >= len(texts):
        return texts
    classes = len(set(texts.labels or ()))
    if at_most < classes:
        raise UserError(
            f"{option}: {texts.source} has {classes} classes, and a text of each is drawn; ask for at least "
            f"{classes}, got {at_most}."
        )
    kept, _ = part(texts, len(texts) - at_most)
    return replace(kept, source=f"{texts.source} ({at_most} of {len(texts)} drawn)")


def part(texts: Texts, n: int) -> tuple[Texts, Texts]:
    """Those that are left and the n that were taken out, stratified and always the same."""
    kept, cut = _stratified(texts.labels or (), n)
    return _take(texts, kept), _take(texts, cut)


def check_labels(texts: Texts, label_names: Sequence[str]) -> None:
    """Refuse labels that training never saw."""
    unseen = sorted(set(texts.labels or ()) - set(label_names))
    if unseen:
        more = f" (and {len(unseen) - 1} more)" if len(unseen) > 1 else ""
        raise UserError(
            f"{texts.source}: label {unseen[0]!r}{more} is not among the {len(label_names)} labels seen in "
            "training; add training texts for it, or drop it here."
        )


def warn_of_overlap(train: Texts, held_out: Texts) -> None:
    """Text in both makes the held-out figures too good; say so with the count."""
    common = len(set(train.texts) & set(held_out.texts))
    if common:
        warnings.warn(
            f"{common} texts are both in {train.source} and in {held_out.source}; "
            "figures measured there flatter.",
            stacklevel=3,
        )


def _cut(texts: Texts) -> tuple[Texts, Texts]:
    """Train and dev. Where copies of a text would come into both, distinct texts are drawn, each with its
    copies."""
    train, dev = part(texts, math.ceil(len(texts) / DEV_ONE_IN))
    if not set(train.texts) & set(dev.texts):
        return train, dev
    first = {text: i for i, text in reversed(list(enumerate(texts.texts)))}
    _, drawn = part(_take(texts, sorted(first.values())), math.ceil(len(first) / DEV_ONE_IN))
    chosen = set(drawn.texts)
    indices: tuple[list[int], list[int]] = ([], [])
    for i, text in enumerate(texts.texts):
        indices[text in chosen].append(i)
    return _take(texts, indices[False]), _take(texts, indices[True])


def _take(texts: Texts, indices: Sequence[int]) -> Texts:
    kept = [texts.texts[i] for i in indices]
    labels = None if texts.labels is None else [texts.labels[i] for i in indices]
    return Texts(kept, labels, texts.source, fingerprint(kept, labels))


def _stratified(labels: Sequence[str], cut: int) -> tuple[list[int], list[int]]:
    """Indices kept and cut; every class is kept at least once, for training cannot do without."""
    from sklearn.model_selection import train_test_split

    counts = Counter(labels)
    if cut > len(labels) - len(counts):
        raise UserError(
            f"{len(labels)} training texts of {len(counts)} classes are too few to cut {cut} of them off: "
            "training needs a text of every class; add texts."
        )
    single = [i for i, label in enumerate(labels) if counts[label] == 1]
    several = [i for i, label in enumerate(labels) if counts[label] > 1]
    classes = [labels[i] for i in several]
    if min(cut, len(several) - cut) >= len(set(classes)):  # else not every class can be in both parts
        kept, gone = train_test_split(several, test_size=cut, random_state=SPLIT_SEED, stratify=classes)
        if {labels[i] for i in kept} == set(classes):
            return sorted(kept + single), sorted(gone)
    # Shares cannot be exact here: hold the first text of each class back, and draw from the others.
    first = {label: i for i, label in reversed(list(enumerate(labels)))}
    spare = [i for i, label in enumerate(labels) if first[label] != i]
    gone = sorted(random.Random(SPLIT_SEED).sample(spare, cut))
    return sorted(set(range(len(labels))) - set(gone)), gone
