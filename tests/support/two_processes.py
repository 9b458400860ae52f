"""Processes that train together, forked from this one; and draws that are the same however many there are."""

import math
import os
import socket
import tempfile
import traceback
from dataclasses import dataclass
from multiprocessing import get_context
from unittest import mock

import torch
from transformers import PrinterCallback, TrainerCallback

from calibrant import CalibratedTrainer
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.objectives import Loss, Objective, objectives
from calibrant.objectives.solvers import solvers
from support.tiny import WORDS, corpus, tiny_bert, tiny_tokenizer
from support.training_arguments import arguments

PROCESSES = 2
BATCH_SIZE = 32
TEXTS = 124  # three steps of 32 texts and a short one
LONGEST = 32


def in_processes(work, *args, processes=PROCESSES, seconds=120):
    """What ``work(*args)`` gives in each of them, started with the variables that torchrun sets."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fork = get_context("fork")
    pipes = [fork.Pipe(duplex=False) for _ in range(processes)]
    children = [
        fork.Process(target=_become, args=(rank, processes, port, pipe, work, args))
        for rank, (_, pipe) in enumerate(pipes)
    ]
    for child in children:
        child.start()
    answers = []
    for (answer, _), child in zip(pipes, children, strict=True):
        answers.append(answer.recv() if answer.poll(seconds) else "no answer")
        child.join(10)
        child.kill()
    for answer in answers:
        if isinstance(answer, _Failed):
            raise AssertionError(answer.traceback)
    return answers


@dataclass
class _Failed:
    traceback: str


def _become(rank, processes, port, pipe, work, args):
    numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "LOCAL_WORLD_SIZE": processes}
    os.environ |= {name: str(value) for name, value in numbers.items()}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"}
    torch.set_num_threads(1)
    try:
        pipe.send(work(*args))
    except BaseException:
        pipe.send(_Failed(traceback.format_exc()))
    os._exit(0)


# Equal draws. A text's partner is the next one of those that the same process sees. Noise is drawn for the
# texts of all processes, and each takes that of its own. MMCE, which has no draws, compares the texts that a
# process sees with each other: one process does the same with every second text.


def cases():
    """Every objective, with every solver."""
    found = {name: kind() for name, kind in objectives().items()}
    smoothing = objectives()["manifold-smoothing"]
    found |= {f"manifold-smoothing, {name}": smoothing(solver=name) for name in solvers()}
    found["manifold-smoothing, pgd, random starts"] = smoothing(
        solver="pgd", random_start_on=True, random_start_off=True
    )
    found["manifold-smoothing, yopo, 3 steps"] = smoothing(solver="yopo", steps=3)
    found["manifold-smoothing, half of the texts"] = smoothing(share=0.5)
    return found


class EqualDraws:
    """In the place of torch's; for one process, or for one of two."""

    def __init__(self, rank, processes):
        self.rank, self.parts = rank, PROCESSES // processes
        self.generator = torch.Generator().manual_seed(0)

    def randperm(self, n, generator=None, **kwargs):
        if generator is not None:  # the order of the texts
            return REAL_RANDPERM(n, generator=generator, **kwargs)
        partners = torch.empty(n, dtype=torch.long)
        for part in range(self.parts):
            partners[part :: self.parts] = torch.arange(part, n, self.parts).roll(-1)
        return partners

    def of_all(self, x, draw):
        texts = len(x) * PROCESSES // self.parts
        drawn = draw(torch.empty(texts, LONGEST, x.shape[-1]))
        return drawn[self.rank :: PROCESSES // self.parts, : x.shape[1]].to(x)

    def noise(self, x, mask, delta):
        drawn = self.of_all(x, lambda empty: empty.uniform_(-delta, delta, generator=self.generator))
        return drawn * mask.unsqueeze(-1)

    def randn_like(self, x):
        return self.of_all(x, lambda empty: empty.normal_(generator=self.generator))

    def mixing_weight(self, alpha):
        return 0.5 + 0.5 * float(torch.rand((), generator=self.generator))

    def patches(self):
        for name, own in (
            ("torch.randperm", self.randperm),
            ("torch.randn_like", self.randn_like),
            ("calibrant.objectives.solvers.base.noise", self.noise),
            ("calibrant.objectives.mixup.mixing_weight", self.mixing_weight),
            ("calibrant.objectives.manifold_mixup.mixing_weight", self.mixing_weight),
        ):
            yield mock.patch(name, own)


REAL_RANDPERM = torch.randperm


@dataclass(frozen=True)
class OfEachPart(Objective):
    """The objective of the texts that each of two processes would see, averaged over all texts."""

    objective: Objective

    def loss(self, model, batch):
        parts = [torch.arange(part, len(batch), PROCESSES) for part in range(PROCESSES)]
        found = [(len(part) / len(batch), self.objective.loss(model, batch[part])) for part in parts]
        terms = {name: sum(share * loss.terms[name] for share, loss in found) for name in found[0][1].terms}
        return Loss(sum(share * loss.total for share, loss in found), terms)


def trained(case, steps, accumulation=1, texts=TEXTS, **more):
    """Losses and weights after some steps without dropout, in one process or as one of two."""
    rank, processes = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    objective = cases()[case]
    if case == "mmce" and processes == 1:
        objective = OfEachPart(objective)
    rows = corpus(texts)
    ids = encode(tiny_tokenizer(), [text for text, _ in rows], LONGEST)
    model, kept, told = tiny_bert(dropout=0.0), [], ("loss", *cases()[case].terms)

    class Keep(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" in logs:
                kept.append({name: logs[name] for name in told if name in logs})

    with tempfile.TemporaryDirectory() as folder:
        trainer = CalibratedTrainer(
            model=model,
            args=arguments(
                folder,
                max_steps=steps,
                per_device_train_batch_size=BATCH_SIZE // processes // accumulation,
                gradient_accumulation_steps=accumulation,
                train_sampling_strategy="group_by_length",
                logging_steps=1,
                **more,
            ),
            train_dataset=EncodedTexts(ids, [list(WORDS).index(label) for _, label in rows]),
            data_collator=Collate(0),
            objective=objective,
            callbacks=[Keep()],
        )
        trainer.remove_callback(PrinterCallback)
        patches = list(EqualDraws(rank, processes).patches())
        for patch in patches:
            patch.start()
        try:
            trainer.train()
        finally:
            for patch in patches:
                patch.stop()
    return kept, {name: weight.detach().numpy().copy() for name, weight in model.named_parameters()}


def difference(one, other):
    """The largest between the losses and terms of two trainings, and between their weights."""
    losses = [abs(a[name] - b[name]) for a, b in zip(one[0], other[0], strict=True) for name in a]
    weights = [float(abs(one[1][name] - other[1][name]).max()) for name in one[1]]
    return max(losses, default=math.nan), max(weights)
