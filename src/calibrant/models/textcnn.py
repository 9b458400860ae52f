"""TextCNN (Kim, 2014), with word embeddings of its own: what text classifiers were before pretraining.

    x_t = E[word_t]                                       word embeddings                (B, T) → (B, T, e)
    h_t = [relu(W_w · x_{t … t+w−1} + b_w) for each w]    widths 3, 4, 5; 100 filters each    → (B, T, 300)
    logits = V · dropout(max_t h_t) + c                   max over time                         → (B, K)

A window begins at each of a text's own words, and past its end it sees zeros (Kim's code puts zeros around
the text too). So there are as many hidden states as words, however short the text, and what lies at padding
reaches none of them. Kim's bound on the norm of V is left out.
"""

from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, trainers
from tokenizers.models import WordLevel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    initialization,
)
from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput

from calibrant.data.encode import check_characters
from calibrant.errors import UserError

PADDING, UNKNOWN = "[PAD]", "[UNK]"
MIN_FREQUENCY = 2
"""A word seen once becomes the unknown word, which is thus trained too and not a random vector in use."""
MAX_WORDS = 30_000


class TextCNNConfig(PreTrainedConfig):  # type: ignore[misc]
    """The sizes; the defaults are Kim's."""

    model_type = "calibrant-textcnn"

    vocab_size: int = MAX_WORDS
    embedding_size: int = 300
    widths: list[int] | tuple[int, ...] = (3, 4, 5)
    filters: int = 100
    dropout: float = 0.5
    pad_token_id: int | None = 0


class TextCNNPreTrainedModel(PreTrainedModel):  # type: ignore[misc]
    """What both classes share."""

    config: TextCNNConfig
    config_class = TextCNNConfig
    base_model_prefix = "textcnn"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding):
            initialization.uniform_(module.weight, -0.25, 0.25)
        elif isinstance(module, nn.Conv1d | nn.Linear):
            initialization.xavier_uniform_(module.weight)
            initialization.zeros_(module.bias)


class TextCNNModel(TextCNNPreTrainedModel):
    """From words to hidden states, one for each window."""

    def __init__(self, config: TextCNNConfig) -> None:
        super().__init__(config)
        self.word_embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_size, config.filters, width) for width in config.widths
        )
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """E."""
        return self.word_embeddings

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        """As transformers asks of every model."""
        self.word_embeddings = value

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
    ) -> BaseModelOutput:
        """(B, T) or (B, T, e) → (B, T, h)."""
        x = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if attention_mask is not None:
            x = x * attention_mask.unsqueeze(-1).to(x.dtype)
        tokens = x.shape[1]
        x = pad(x.transpose(1, 2), (0, max(self.config.widths) - 1))
        maps = [convolution(x)[..., :tokens] for convolution in self.convolutions]
        return BaseModelOutput(last_hidden_state=torch.cat(maps, dim=1).relu().transpose(1, 2))


class TextCNNForSequenceClassification(TextCNNPreTrainedModel):
    """The classifier."""

    def __init__(self, config: TextCNNConfig) -> None:
        super().__init__(config)
        self.textcnn = TextCNNModel(config)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(config.filters * len(config.widths), config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """(B, T) or (B, T, e) → logits (B, K), and the cross-entropy where labels (B,) are given."""
        hidden = self.textcnn(input_ids, attention_mask, inputs_embeds).last_hidden_state
        if attention_mask is not None:
            hidden = hidden.masked_fill(attention_mask.unsqueeze(-1) == 0, -torch.inf)
        logits = self.classifier(self.dropout(hidden.amax(dim=1)))
        loss = None if labels is None else cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


def word_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Lower-cased words and runs of punctuation; the vocabulary is that of the texts, most frequent first."""
    check_characters(texts)
    tokenizer = Tokenizer(WordLevel(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        vocab_size=MAX_WORDS,
        min_frequency=MIN_FREQUENCY,
        special_tokens=[PADDING, UNKNOWN],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PADDING,
        unk_token=UNKNOWN,
        model_input_names=["input_ids", "attention_mask"],
    )


def new_textcnn(
    texts: Sequence[str], **labels: Any
) -> tuple[TextCNNForSequenceClassification, PreTrainedTokenizerFast]:
    """An untrained TextCNN for the words of the training texts, and its tokenizer.

    Args:
        texts: the training texts.
        labels: ``id2label`` and ``label2id``.
    """
    tokenizer = word_tokenizer(texts)
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise UserError(
            f"No word occurs {MIN_FREQUENCY} times in the {len(texts)} training texts, so that a TextCNN has "
            "nothing to learn from; give more texts or take a pretrained encoder."
        )
    config = TextCNNConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **labels)
    return TextCNNForSequenceClassification(config), tokenizer


AutoConfig.register(TextCNNConfig.model_type, TextCNNConfig)
AutoModelForSequenceClassification.register(TextCNNConfig, TextCNNForSequenceClassification)
