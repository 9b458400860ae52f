"""Any encoder with a linear head on its pooled hidden states: the head that a linear probe can start.

    logits = W · dropout(pool(f(x))) + b

``pool`` is the first token's hidden state, the mean over the text's own tokens, or both side by side. The
classifiers of the hub put layers of their own between encoder and logits, which begin at random. The classes
themselves are in ``modeling_calibrant.py``, which an export takes along.
"""

import json
from pathlib import Path

from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedConfig

from calibrant.models.modeling_calibrant import (
    CalibrantConfig,
    CalibrantForSequenceClassification,
    PooledConfig,
    PooledForSequenceClassification,
)
from calibrant.models.saved import read_model

ENCODER_FACTS = ("vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings", "pad_token_id")
"""Of the encoder, for whoever asks a classifier's config."""
LABELS = ("id2label", "label2id", "problem_type")
"""Of the classifier, and not of its encoder."""


def declared_pooling(path: str, config: PreTrainedConfig) -> str:
    """What an encoder was made for, by its own files; the first token where they say nothing."""
    file = Path(path) / "1_Pooling" / "config.json"  # as sentence-transformers writes it
    if file.exists():
        says = json.loads(file.read_text(encoding="utf-8"))
        return (
            "mean" if says.get("pooling_mode_mean_tokens") or says.get("pooling_mode") == "mean" else "first"
        )
    return "mean" if getattr(config, "classifier_pooling", None) == "mean" else "first"


def new_pooled(
    path: str, config: PreTrainedConfig, pooling: str, local: bool
) -> PooledForSequenceClassification:
    """A pretrained encoder with a new head; ``config`` is the encoder's, with the labels."""
    labels = {name: getattr(config, name) for name in LABELS}
    if isinstance(config, PooledConfig):  # what an earlier run has left
        made_for = config.pooling
        model = read_model(PooledForSequenceClassification, path, local, config, ignore_mismatched_sizes=True)
        encoder, config = model.encoder, model.encoder.config
    else:
        made_for = declared_pooling(path, config)
        encoder = read_model(AutoModel, path, local, config)
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    not_its_own = {*LABELS, "_name_or_path"}  # the last is a folder of this machine
    settings = {name: value for name, value in config.to_dict().items() if name not in not_its_own}
    dropout = getattr(config, "classifier_dropout", None)
    model = PooledForSequenceClassification(
        PooledConfig(
            encoder=settings,
            pooling=made_for if pooling == "declared" else pooling,
            classifier_dropout=getattr(config, "hidden_dropout_prob", 0.1) if dropout is None else dropout,
            **{name: getattr(config, name, None) for name in ENCODER_FACTS},
            **labels,
        )
    )
    model.encoder = encoder
    return model


AutoConfig.register(PooledConfig.model_type, PooledConfig)
AutoModelForSequenceClassification.register(PooledConfig, PooledForSequenceClassification)
AutoConfig.register(CalibrantConfig.model_type, CalibrantConfig)
AutoModelForSequenceClassification.register(CalibrantConfig, CalibrantForSequenceClassification)
