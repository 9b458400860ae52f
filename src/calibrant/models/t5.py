"""T5's encoder as a sequence classifier.

    logits = W · dropout(mean over the text's own tokens of encoder(x)) + b

The hub's own ``T5ForSequenceClassification`` runs the decoder as well and refuses word embeddings, so that it
cannot be split. mT5 is the same network with other weights.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    T5Config,
    T5EncoderModel,
    T5PreTrainedModel,
    initialization,
)
from transformers.modeling_outputs import SequenceClassifierOutput

from calibrant.models.split import SplitModel


class T5EncoderConfig(T5Config):  # type: ignore[misc]
    """T5's settings under a name of their own.

    Saved as "t5", transformers would read the run as its own classifier and fill in a random decoder.
    """

    model_type = "calibrant-t5"


class T5EncoderForSequenceClassification(T5PreTrainedModel):  # type: ignore[misc]
    """The encoder, and a linear layer on the mean of its last hidden states."""

    config: T5EncoderConfig
    config_class = T5EncoderConfig
    # What a whole T5 has besides, and the head of T5ForSequenceClassification.
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = ["decoder", "lm_head", "classification_head"]

    def __init__(self, config: T5EncoderConfig) -> None:
        super().__init__(config)
        self.transformer = T5EncoderModel(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, config.num_labels)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if module is self.classifier:
            std = self.config.initializer_factor * self.config.d_model**-0.5
            initialization.normal_(module.weight, mean=0.0, std=std)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """(B, T) or (B, T, e) → logits (B, K), and the cross-entropy where labels (B,) are given."""
        hidden = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds
        ).last_hidden_state
        if attention_mask is None:
            attention_mask = hidden.new_ones(hidden.shape[:2])
        logits = self.classifier(self.dropout(SplitModel.features(hidden, attention_mask)))
        loss = None if labels is None else cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def encoder_only(config: PreTrainedConfig) -> PreTrainedConfig:
    """The classifier's config for a T5 or mT5; any other config as it is."""
    if config.model_type not in ("t5", "mt5"):
        return config
    settings = config.to_dict()
    del settings["model_type"]
    return T5EncoderConfig(**settings)


AutoConfig.register(T5EncoderConfig.model_type, T5EncoderConfig)
AutoModelForSequenceClassification.register(T5EncoderConfig, T5EncoderForSequenceClassification)
