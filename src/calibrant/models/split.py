"""Any Hugging Face sequence classifier as embed → encode → head.

    x = embed(ids, types)     word embeddings, before positions and LayerNorm    (B, T) → (B, T, e)
    f(x) = encode(x, mask)    last hidden states                                 → (B, T, h)
    g(f(x)) = head(…, mask)   logits                                             → (B, K)

The feature of a text is the mean of its last hidden states over its own tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from calibrant.errors import UserError
from calibrant.models.fast.first_token import first_token_only, first_token_too
from calibrant.models.lora import unwrapped
from calibrant.models.modeling_calibrant import mean

WORKS = (
    "BERT, RoBERTa, XLM-R, ALBERT, ELECTRA, DistilBERT, DeBERTa-v2, MPNet, ModernBERT or, for T5, "
    "calibrant.models.t5.T5EncoderForSequenceClassification"
)

ROUNDING = 1e-2  # of the largest logit


class SplitModel:
    """A view of a sequence classifier, peft's wrapper around it or not; it owns no weights."""

    def __init__(self, model: Any) -> None:
        self._given = model
        self.model = unwrapped(model)
        self._prefix = self.model.base_model_prefix
        self._base = self.model.base_model

    def embed(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """x, (B, T) → (B, T, e).

        Of pairs, x holds by how much the embedding of a token's type differs from that of type 0, which an
        encoder adds where nobody names the types. So what x is changed to, mixed with or perturbed by needs
        none, and takes its own along.
        """
        x: Tensor = self.model.get_input_embeddings()(input_ids)
        if token_type_ids is None or (table := type_embeddings(self.model)) is None:
            return x
        x = x + table(token_type_ids) - table.weight[0]
        return x

    def encode(self, x: Tensor, mask: Tensor) -> Tensor:
        """f(x): the last hidden states, (B, T, e) → (B, T, h)."""
        hidden: Tensor = self._base(inputs_embeds=x, attention_mask=mask).last_hidden_state
        return hidden

    def head(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """g: logits of given last hidden states, (B, T, h) → (B, K).

        Every architecture has a head of its own, so the classifier's own ``forward`` runs, seeing
        these hidden states where it asks its encoder for them.
        """
        view = _Answered(self.model, self._prefix, self._pooled(hidden))
        logits: Tensor = type(self.model).forward(view, attention_mask=mask).logits
        return logits

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        """g∘f(x), (B, T, e) → (B, K)."""
        with first_token_only():
            return self.head(self.encode(x, mask), mask)

    def encode_and_classify(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """f(x) and g∘f(x) of one pass, (B, T, e) → (B, T, h), (B, K)."""
        with first_token_too() as found:
            hidden = self.encode(x, mask)
        return hidden, self.head(found[0] if found else hidden, mask)

    def encode_layers_and_classify(
        self, x: Tensor, mask: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """The same with the hidden states of the embeddings and of every layer between, (B, T, h) each.

        Of a model without inner layers (TextCNN) there are the last hidden states only.
        """
        if not has_layers(self.model):
            hidden, logits = self.encode_and_classify(x, mask)
            return hidden, (hidden,), logits
        with first_token_too() as found:
            encoded = self._base(inputs_embeds=x, attention_mask=mask, output_hidden_states=True)
        hidden = encoded.last_hidden_state
        return hidden, encoded.hidden_states, self.head(found[0] if found else hidden, mask)

    @staticmethod
    def features(hidden: Tensor, mask: Tensor) -> Tensor:
        """The mean over each text's own tokens, (B, T, h) → (B, h)."""
        return mean(hidden, mask)

    @contextmanager
    def dropout_off(self) -> Iterator[None]:
        """Evaluation mode, then every module back as it was."""
        training = [module for module in self.model.modules() if module.training]
        self.model.eval()
        try:
            yield
        finally:
            for module in training:
                module.training = True

    def _pooled(self, hidden: Tensor) -> BaseModelOutputWithPooling:
        """What the encoder returns for these hidden states, pooled where BERT and ALBERT pool."""
        pooler = getattr(self._base, "pooler", None)
        if pooler is None:
            return BaseModelOutputWithPooling(last_hidden_state=hidden)
        activation = getattr(self._base, "pooler_activation", None)  # ALBERT's, which it keeps apart
        pooled = pooler(hidden) if activation is None else activation(pooler(hidden[:, 0]))
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=pooled)

    def verify(self) -> None:
        """Refuse a model whose embedding path does not give what its token path gives.

        Checked on a padded batch, because that is where decoders and models with tricks of their
        own at padding go wrong, silently.
        """
        name = type(self.model).__name__
        ids, mask = self.padded_batch()
        with torch.no_grad(), self.dropout_off():
            try:
                expected = self._given(input_ids=ids, attention_mask=mask).logits
                got = self(self.embed(ids), mask)
            except Exception as error:
                raise UserError(
                    f"{name} cannot be calibrated: it does not run from word embeddings ({error}). Use an "
                    f"encoder classifier such as {WORKS}."
                ) from error
        # A GPU may round to TF32; a model that cannot be taken apart is off by far more.
        near = ROUNDING * expected.abs().max()
        if got.shape != expected.shape or not (got - expected).abs().max() <= near:  # so that NaN fails
            raise UserError(
                f"{name} cannot be calibrated: from word embeddings it gives other logits than from tokens "
                f"on a padded batch. Use an encoder classifier such as {WORKS}."
            )

    def padded_batch(self) -> tuple[Tensor, Tensor]:
        """Two texts of random words, the second one shorter: ids and mask, (2, 8) each."""
        config = self.model.config
        padding = config.pad_token_id if config.pad_token_id is not None else 0
        # Ordinary words, as far as one can tell from ids: special tokens are mostly the first ones.
        ids = config.vocab_size - 1 - torch.arange(16) % (config.vocab_size - 1)
        ids = torch.where(ids == padding, 0, ids).view(2, 8)
        mask = torch.ones_like(ids)
        ids[1, 5:], mask[1, 5:] = padding, 0
        device = self.model.device
        return ids.to(device), mask.to(device)


def can_be_split(model: Any) -> bool:
    """Whether the training objectives can take it apart."""
    try:
        SplitModel(model).verify()
    except UserError:
        return False
    return True


def type_embeddings(model: PreTrainedModel) -> nn.Embedding | None:
    """The table by which it tells the second text of a pair from the first; None where it has none."""
    for name, module in model.base_model.named_modules():
        if name.rpartition(".")[2] == "token_type_embeddings" and module.num_embeddings > 1:
            table: nn.Embedding = module
            return table
    return None


def has_layers(model: PreTrainedModel) -> bool:
    """Whether there is anything between its embeddings and its last hidden states that can be asked for."""
    return getattr(model.config, "num_hidden_layers", None) is not None


class _Answered:
    """A classifier whose encoder has already answered; all else is the classifier's own."""

    def __init__(self, model: PreTrainedModel, prefix: str, answer: BaseModelOutputWithPooling) -> None:
        self._model, self._prefix, self._answer = model, prefix, answer

    def __getattr__(self, name: str) -> Any:
        if name == self._prefix:
            return lambda *args, **kwargs: self._answer
        return getattr(self._model, name)
