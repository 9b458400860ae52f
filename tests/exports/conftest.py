"""A run that plain transformers cannot answer for: pooled, with temperature and familiarity."""

import csv
import shutil

import pytest

from calibrant.config import RunConfig
from calibrant.runs import store
from calibrant.runs.record import ThresholdRecord
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


@pytest.fixture(scope="session")
def ruled_run(probed, tmp_path_factory):
    """The same with a rule, as `calibrant threshold` stores it."""
    run = shutil.copytree(probed, tmp_path_factory.mktemp("ruled") / "run")
    about = {"n": 60, "source": f"file {probed.parent}/dev.csv", "fingerprint": "f"}
    rule = ThresholdRecord(
        rule={"threshold": 0.9},
        promise={"risk": 0.3, "confidence": 0.95},
        learnt_on={"dev": about},
        dev={"coverage": 0.5, "risk": 0.01, "turned_away": 0.0},
    )
    store.load(run).ruled(rule)
    return run
