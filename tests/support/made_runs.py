"""Finished runs of any encoder family, without training."""

import torch

from calibrant.calibrators import from_state
from calibrant.config import RunConfig
from calibrant.data.files import fingerprint
from calibrant.runs.begin import begin
from calibrant.runs.record import MethodRecord, TrainingRecord
from calibrant.types import Splits, Texts
from support.encoders import tiny
from support.tiny import corpus, tiny_tokenizer

TRAINING = TrainingRecord(
    steps=0, seconds=0, best_epoch=0, dev_accuracy=0.5, dev_confidence=0.5, dev_nll=0.7, history=[]
)
LABELS = ("account", "billing", "shipping")
TEXTS = [text for text, _ in corpus(20, seed=5)] + ["refund password parcel " * 40]
TEMPERATURE = {"name": "temperature", "parameters": {"temperature": 1.7}}
VECTOR = {"name": "vector-scaling", "parameters": {"w": [0.5, 1.5, 1.0], "b": [0.3, -0.8, 0.0]}}
MATRIX = {
    "name": "matrix-scaling",
    "parameters": {
        "strength": 1.0,
        "weights": [[0.8, 0.3, 0], [-0.2, 1.4, 0.1], [0, 0, 1]],
        "b": [0.3, -1, 0],
    },
}


def opinionated(family):
    """A tiny classifier whose probabilities differ from text to text."""
    model = tiny(family)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model


def make_run(path, family="bert", calibrator=TEMPERATURE, inference="single", pair_column=None):
    """A finished run, without training."""
    texts = Texts(
        ["a card", "a box"], ["billing", "shipping"], "file train.csv", fingerprint(["a card"], None)
    )
    config = RunConfig(train="train.csv", model=family, max_length=32, method="bert", pair_column=pair_column)
    splits = Splits("train.csv", texts, texts, LABELS)
    method = MethodRecord(name="bert", objective="cross-entropy", inference=inference, calibrator=None)
    run = begin(path, config, splits, method, {"name": "cross-entropy"}, {"name": inference})
    model = opinionated(family)
    model.config.id2label = dict(enumerate(LABELS))
    model.config.label2id = {name: i for i, name in enumerate(LABELS)}
    run = run.keep(model, tiny_tokenizer(), TRAINING)
    kept = calibrator and run.keep_calibrator(from_state(calibrator), texts.provenance())
    return run.finish(calibrator=kept).path
