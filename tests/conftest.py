"""A tiny encoder built in memory, and a small labelled corpus that it can learn."""

import csv
import os
import random
import shutil
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch is loaded: on some virtual machines oneDNN's newest bf16 kernels die by SIGILL, and a test
# process that dies tells nothing.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from calibrant.cli import main
from calibrant.config import RunConfig
from calibrant.fitting import fit
from random_cells import Maker

torch.set_num_threads(1)  # for models this small, a second thread only waits

WORDS = {
    "billing": ["invoice", "charge", "refund", "payment", "card", "price", "receipt", "bank"],
    "shipping": ["parcel", "courier", "delivery", "late", "address", "tracking", "box", "lost"],
    "account": ["password", "login", "email", "locked", "reset", "profile", "username", "sign"],
}
FILLER = ["the", "my", "a", "is", "was", "please", "help", "with", "and", "i", "it", "now", "today"]
UNFAMILIAR = ["galaxy", "violin", "recipe", "goalkeeper", "enzyme", "glacier", "sonnet", "tractor"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# What a first call imports, or a busy machine, is no fault of the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def make_text(words: list[str], rng: random.Random) -> str:
    return " ".join(rng.choice(words if rng.random() < 0.5 else FILLER) for _ in range(rng.randint(4, 14)))


def corpus(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """n distinct (text, label) rows."""
    rng, rows = random.Random(seed), {}
    while len(rows) < n:
        label = rng.choice(list(WORDS))
        rows.setdefault(make_text(WORDS[label], rng), label)
    return list(rows.items())


def noisy_corpus(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """The same with one label in ten drawn at random, for what needs a model that errs."""
    rng = random.Random(seed)
    return [(text, rng.choice(list(WORDS)) if rng.random() < 0.1 else y) for text, y in corpus(n, seed)]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = SPECIAL + FILLER + UNFAMILIAR + [word for words in WORDS.values() for word in words]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def tiny_bert(labels: int = 3, dropout: float = 0.1, layers: int = 2) -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        num_labels=labels,
    )
    return BertForSequenceClassification(config)


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that ``--model`` takes."""
    path = tmp_path_factory.mktemp("tiny-bert")
    tiny_bert().save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


@pytest.fixture
def csv_file(tmp_path: Path):
    """Writes rows into a CSV file and returns its path."""

    def write(name: str, rows: list[tuple[str, ...]], header: tuple[str, ...] = ("text", "label")) -> Path:
        path = tmp_path / name
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return path

    return write


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that reaches for the network fails at once, instead of passing on some machines."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: object) -> None:
        if self.family != socket.AF_UNIX:
            raise AssertionError(f"a test must not use the network, and this one asked for {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, model_dir: Path) -> Path:
    """The directory of a finished run; for reading only, so copy it before changing anything."""
    folder = tmp_path_factory.mktemp("trained")
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *corpus(200)])
    settings = RunConfig(
        train=str(folder / "train.csv"),
        model=str(model_dir),
        max_length=32,
        epochs=5,
        batch_size=16,
        learning_rate=3e-3,
    )
    return fit(settings, folder / "run").path


@pytest.fixture
def run_copy(trained: Path, tmp_path: Path) -> Path:
    """A finished run to tamper with."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs ``calibrant …`` in this process; gives the exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["calibrant", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def one_sentence(result: tuple[int, str, str], expected: str) -> None:
    """A mistake gets exit code 2 and this sentence alone; "…" at its end stands for whatever follows."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    (told,) = err.strip("\n").split("\n")  # a bar that was shown before leaves an empty line
    sentence = told.removeprefix("calibrant: ")
    assert sentence != told
    if expected.endswith("…"):
        assert sentence.startswith(expected.removesuffix("…").rstrip())
    else:
        assert sentence == expected


@pytest.fixture
def make(tmp_path: Path) -> Maker:
    """Writes cells into a study."""
    return Maker(tmp_path / "study")
