"""Any encoder with a linear head on its pooled hidden states: the head that a linear probe can start.

    logits = W · dropout(pool(f(x))) + b

``pool`` is the first token's hidden state, the mean over the text's own tokens, or both side by side. The
classifiers of the hub put layers of their own between encoder and logits, which begin at random.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    initialization,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from calibrant.models.saved import check_config, read_model
from calibrant.models.split import SplitModel

ENCODER_FACTS = ("vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings", "pad_token_id")
"""Of the encoder, for whoever asks a classifier's config."""
LABELS = ("id2label", "label2id", "problem_type")
"""Of the classifier, and not of its encoder."""


def first(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, T, h) → (B, h)."""
    return hidden[:, 0]


def first_and_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, T, h) → (B, 2·h)."""
    return torch.cat([hidden[:, 0], SplitModel.features(hidden, mask)], dim=-1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "first": first,
    "mean": SplitModel.features,
    "first+mean": first_and_mean,
}


class PooledConfig(PreTrainedConfig):  # type: ignore[misc]
    """The encoder's own config, as a dictionary, and how its hidden states are pooled."""

    model_type = "calibrant-pooled"

    encoder: dict[str, Any] | None = None
    pooling: str = "mean"
    classifier_dropout: float = 0.1
    vocab_size: int = 0
    hidden_size: int = 0
    num_hidden_layers: int = 0
    max_position_embeddings: int | None = None
    pad_token_id: int | None = 0


class PooledForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """The classifier."""

    config: PooledConfig
    config_class = PooledConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    _supports_sdpa = True

    def __init__(self, config: PooledConfig) -> None:
        super().__init__(config)
        settings = dict(config.encoder or {})
        own = AutoConfig.for_model(settings.pop("model_type"), **settings)
        check_config(own)
        self.encoder = AutoModel.from_config(own, trust_remote_code=False)
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler = None  # BERT's reads the first token for nobody
        width = config.hidden_size * (2 if config.pooling == "first+mean" else 1)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(width, config.num_labels)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if module is self.classifier:
            initialization.normal_(module.weight, std=0.02)
            initialization.zeros_(module.bias)

    def get_input_embeddings(self) -> nn.Module:
        """The encoder's."""
        embeddings: nn.Module = self.encoder.get_input_embeddings()
        return embeddings

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """(B, T) or (B, T, e) → logits (B, K), and the cross-entropy where labels (B,) are given."""
        hidden = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds
        ).last_hidden_state
        if attention_mask is None:
            attention_mask = hidden.new_ones(hidden.shape[:2])
        logits = self.classifier(self.dropout(POOLINGS[self.config.pooling](hidden, attention_mask)))
        loss = None if labels is None else cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


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
    settings = {name: value for name, value in config.to_dict().items() if name not in LABELS}
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
