"""A run that plain transformers cannot answer for: pooled, with temperature and familiarity."""

import csv

import pytest

from calibrant.config import RunConfig
from calibrant.tasks.train import train
from support.tiny import noisy_corpus


@pytest.fixture(scope="session")
def probed(tmp_path_factory, model_dir):
    """Its folder; for reading only. It takes two seconds: the encoder stays as it is."""
    folder = tmp_path_factory.mktemp("private") / "probed"
    folder.mkdir()
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *noisy_corpus(300)])
    settings = RunConfig(
        train=str(folder / "train.csv"), model=str(model_dir), method="linear-probe", max_length=32
    )
    return train(settings, out=folder / "run").path
