"""Runs, labels and files made to do harm."""

import hashlib
import json

EVIL = """
from pathlib import Path
Path({mark!r}).write_text("in")
from transformers import BertConfig, BertForSequenceClassification
class EvilConfig(BertConfig):
    model_type = "evil"
class EvilModel(BertForSequenceClassification):
    config_class = EvilConfig
"""
LABELS = (
    "a`b",
    "billing\n\n# Forged\n",
    "red\x1b[31m\x9b2J\x07",
    "<script>alert(1)</script>",
    "left\u202eright",
)


def plant_code(model_dir, mark):
    """Let the config of a saved model name code beside it, which writes the file ``mark`` if it runs."""
    config = json.loads((model_dir / "config.json").read_text())
    config["model_type"] = "evil"
    config["auto_map"] = {
        "AutoConfig": "evil.EvilConfig",
        "AutoModelForSequenceClassification": "evil.EvilModel",
    }
    (model_dir / "config.json").write_text(json.dumps(config))
    (model_dir / "evil.py").write_text(EVIL.format(mark=str(mark)))


def bless(run, without=()):
    """Let the record know the files that are there, but for some."""
    record = json.loads((run / "calibrant.json").read_text())
    record["files"] = {
        str(file.relative_to(run / "model")): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in (run / "model").rglob("*")
        if file.is_file() and file.name not in without
    }
    (run / "calibrant.json").write_text(json.dumps(record))
