"""Real batches: the same texts for every step that is compared.

Those who pad everything to the maximum see random batches of full width; calibrant sees the batches
that its own length grouping and padding make of the same texts.
"""

from dataclasses import dataclass

import torch
from transformers.trainer_pt_utils import LengthGroupedSampler

from calibrant.data import datasets
from calibrant.data.encode import encode, pad
from calibrant.types import Batch

BATCH_SIZE = 32


@dataclass(frozen=True)
class Workload:
    name: str
    dataset: str
    max_length: int
    batches: int


WORKLOADS = (
    Workload("20ng-64", "20ng-15", 64, batches=3),
    Workload("20ng-150", "20ng-15", 150, batches=2),
    Workload("reuters-256", "reuters-r8", 256, batches=4),
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
    n = BATCH_SIZE * workload.batches
    chosen = torch.randperm(len(texts), generator=generator)[:n].tolist()
    rows = encode(tokenizer, [texts.texts[i] for i in chosen], workload.max_length)
    labels = torch.tensor([names.index(texts.labels[i]) for i in chosen])
    sampler = LengthGroupedSampler(BATCH_SIZE, lengths=[len(row) for row in rows], generator=generator)
    # one mega-batch, as the Trainer makes of 50 batches
    order = sorted(sampler, key=lambda i: len(rows[i]), reverse=True)

    def batches(order, width=None):
        made = []
        for start in range(0, n, BATCH_SIZE):
            index = order[start : start + BATCH_SIZE]
            ids, mask = pad([rows[i] for i in index], tokenizer.pad_token_id)
            if width is not None:
                ids = torch.nn.functional.pad(ids, (0, width - ids.shape[1]), value=tokenizer.pad_token_id)
                mask = torch.nn.functional.pad(mask, (0, width - mask.shape[1]))
            made.append(Batch(ids, mask, labels[index]))
        return made

    return Material(batches(list(range(n)), workload.max_length), batches(order), len(names))
