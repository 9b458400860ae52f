"""Real batches: the same texts for every step that is compared.

calibrant sees batches that its own length grouping and padding make: as in training, 50 batches' worth
of texts are sorted by length, and of these 50 batches some, evenly spaced, are taken. Those who pad
everything to the maximum see the same texts, shuffled, at full width.
"""

from dataclasses import dataclass

import torch

from calibrant.data import datasets
from calibrant.data.encode import encode, pad
from calibrant.types import Batch

BATCH_SIZE = 32
GROUPED = 50  # batches that transformers sorts by length together


@dataclass(frozen=True)
class Workload:
    name: str
    dataset: str
    max_length: int
    batches: int


WORKLOADS = (
    Workload("20ng-64", "20ng-15", 64, batches=3),
    Workload("20ng-150", "20ng-15", 150, batches=3),
    Workload("reuters-256", "reuters-r8", 256, batches=3),
)


@dataclass(frozen=True)
class Material:
    padded: list[Batch]  # to the maximum, in random order
    grouped: list[Batch]  # by length, each to its own longest
    classes: int


def prepare(workload: Workload, tokenizer) -> Material:
    """Batches drawn from the whole dataset with a fixed seed."""
    texts = datasets()[workload.dataset].read("train", "wheel")
    names = sorted(set(texts.labels))
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randperm(len(texts), generator=generator)[: BATCH_SIZE * GROUPED].tolist()
    rows = encode(tokenizer, [texts.texts[i] for i in drawn], workload.max_length)
    labels = torch.tensor([names.index(texts.labels[i]) for i in drawn])
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
    middles = [int(GROUPED * (i + 0.5) / workload.batches) for i in range(workload.batches)]
    grouped = [order[BATCH_SIZE * i : BATCH_SIZE * (i + 1)] for i in middles]
    same = [i for batch in grouped for i in batch]
    shuffled = [same[i] for i in torch.randperm(len(same), generator=generator).tolist()]

    def batch(index: list[int], width: int = 0) -> Batch:
        ids, mask = pad([rows[i] for i in index], tokenizer.pad_token_id)
        more = (0, max(0, width - ids.shape[1]))
        ids = torch.nn.functional.pad(ids, more, value=tokenizer.pad_token_id)
        return Batch(ids, torch.nn.functional.pad(mask, more), labels[index])

    return Material(
        [
            batch(shuffled[i : i + BATCH_SIZE], workload.max_length)
            for i in range(0, len(shuffled), BATCH_SIZE)
        ],
        [batch(index) for index in grouped],
        len(names),
    )
