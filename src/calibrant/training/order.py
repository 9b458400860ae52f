"""Which texts a step sees, and which of them a process does."""

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import BatchSampler
from transformers.trainer_pt_utils import LengthGroupedSampler


class EpochSeededSampler(torch.utils.data.Sampler[int]):
    """Length grouping whose order depends on seed and epoch only, so that a resumed epoch is the same."""

    def __init__(self, sampler: LengthGroupedSampler, seed: int) -> None:
        self.sampler, self.seed = sampler, seed
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Called by the Trainer at the start of each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Any:
        # Through Python's generator, since torch's looks at the low 32 bits of a seed only.
        seed = random.Random(f"{self.seed} {self.epoch}").getrandbits(32)
        self.sampler.generator = torch.Generator().manual_seed(seed)
        return iter(self.sampler)


class Share(BatchSampler):
    """Of each batch of all processes the part of one: every n-th text, so that all get texts of like length.

    A step then sees the texts that it would see with one process, the last of an epoch included. Where that
    one has fewer texts than there are processes, some have a text that another has, too.
    """

    def __init__(self, batches: BatchSampler, number: int, processes: int) -> None:
        self.batches, self.number, self.processes = batches, number, processes
        self.sampler = batches.sampler  # which accelerate tells of each epoch

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in self.batches:
            yield batch[self.number :: self.processes] or [batch[self.number % len(batch)]]
