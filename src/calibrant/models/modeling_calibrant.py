"""A text classifier that says how sure it is, how familiar a text is, and when it would rather not answer.

    from transformers import pipeline

    classifier = pipeline("text-classification", FOLDER, trust_remote_code=True, truncation=True)
    classifier("a text")  # [{"label": …, "score": …, "familiarity": …, "abstain": …}]

``calibrant export`` puts this file beside the weights. It needs torch and transformers, nothing else. B texts
of T tokens each, K classes, h features:

    z        the classifier's logits                                              (B, K)
    f, m     the mean over a text's own tokens of what the last and the middle layer see   (B, h)
    q        softmax(A·z + c)            temperature, vector or matrix scaling, fitted on dev
    s        how far f and m lie from those of the training texts                 (B,)
    π        (1 + #{i : s_i ≥ s}) / (n + 1)    familiarity: how many of n dev texts are as strange
    p        a·q + (1 − a)/K with a = min(1, (r + 0.1)/(α·(n + 1))): the probabilities
    abstain  where p_k < t_k for the most probable class k, or where a score of unfamiliarity ≥ its cut

The decision is computed in float64. It is little work, and a rank turns rounding into a step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedConfig,
    PreTrainedModel,
    TextClassificationPipeline,
    initialization,
)
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils import ModelOutput

# The classifier: any of transformers' own, or an encoder with a linear head on its pooled hidden states.


def first(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, T, h) → (B, h)."""
    return hidden[:, 0]


def mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """Over each text's own tokens, (B, T, h) → (B, h)."""
    weight = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weight).sum(dim=1) / weight.sum(dim=1)


def first_and_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """(B, T, h) → (B, 2·h)."""
    return torch.cat([hidden[:, 0], mean(hidden, mask)], dim=-1)


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "first": first,
    "mean": mean,
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
    """logits = W · dropout(pool(f(x))) + b."""

    config: PooledConfig
    config_class = PooledConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    _supports_sdpa = True

    def __init__(self, config: PooledConfig) -> None:
        super().__init__(config)
        settings = dict(config.encoder or {})
        own = AutoConfig.for_model(settings.pop("model_type"), **settings)
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
        output_hidden_states: bool | None = None,
        token_type_ids: Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """(B, T) or (B, T, e) → logits (B, K), and the cross-entropy where labels (B,) are given."""
        asked: dict[str, Any] = {"output_hidden_states": True} if output_hidden_states else {}
        if token_type_ids is not None:
            asked["token_type_ids"] = token_type_ids
        encoded = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **asked
        )
        hidden = encoded.last_hidden_state
        if attention_mask is None:
            attention_mask = hidden.new_ones(hidden.shape[:2])
        logits = self.classifier(self.dropout(POOLINGS[self.config.pooling](hidden, attention_mask)))
        loss = None if labels is None else cross_entropy(logits, labels)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=encoded.hidden_states if output_hidden_states else None
        )


# The decision: probabilities, familiarity and abstention of what a classifier has seen.


class Seen(NamedTuple):
    """Of B texts, in float64."""

    logits: Tensor  # (B, K)
    last: Tensor | None = None  # (B, h), of the last layer
    middle: Tensor | None = None  # (B, h), of the middle one
    average: Tensor | None = None  # (B, h), the mean of all layers'


Arrays = dict[str, Tensor]


def distances(x: Tensor | None, centres: Tensor, w: Tensor) -> Tensor:
    """(x − μ_k)ᵀ·Σ⁻¹·(x − μ_k) with W·Wᵀ = Σ⁻¹, of x (B, h) and μ·W (K, h) → (B, K)."""
    assert x is not None
    x = x @ w
    return x.square().sum(dim=1, keepdim=True) - 2 * x @ centres.T + centres.square().sum(dim=1)


def relative_mahalanobis(seen: Seen, p: Tensor, a: Arrays) -> Tensor:
    """To the nearest class, less that to all training texts."""
    to_all = distances(seen.last, a["mean"], a["w_all"])[:, 0]
    return distances(seen.last, a["means"], a["w"]).amin(dim=1) - to_all


def two_layer_mahalanobis(seen: Seen, p: Tensor, a: Arrays) -> Tensor:
    """That and the middle layer's distance to the nearest class, each in units of its spread."""
    inner = distances(seen.middle, a["inner_means"], a["inner_w"]).amin(dim=1)
    return relative_mahalanobis(seen, p, a) * a["weights"][0] + inner * a["weights"][1]


def margin(seen: Seen, p: Tensor, a: Arrays) -> Tensor:
    """1 − (p₍₁₎ − p₍₂₎)."""
    largest = p.topk(2, dim=1).values
    return 1 - (largest[:, 0] - largest[:, 1])


def knn(seen: Seen, p: Tensor, a: Arrays) -> Tensor:
    """The distance to the tenth nearest training text."""
    assert seen.last is not None
    f, t = seen.last, a["neighbours"]
    f = f / f.square().sum(dim=1, keepdim=True).sqrt().clamp(min=1e-30)
    squared = f.square().sum(dim=1, keepdim=True) + t.square().sum(dim=1) - 2 * f @ t.T
    return squared.topk(min(10, len(t)), dim=1, largest=False).values[:, -1].clamp(min=0).sqrt()


SCORES: dict[str, Callable[[Seen, Tensor, Arrays], Tensor]] = {  # larger means less familiar
    "max-probability": lambda seen, p, a: 1 - p.amax(dim=1),
    "entropy": lambda seen, p, a: -(p * p.clamp(min=1e-300).log()).sum(dim=1),
    "margin": margin,
    "energy": lambda seen, p, a: -seen.logits.logsumexp(dim=1),
    "max-logit": lambda seen, p, a: -seen.logits.amax(dim=1),
    "mahalanobis": lambda seen, p, a: distances(seen.last, a["means"], a["w"]).amin(dim=1),
    "layer-mahalanobis": lambda seen, p, a: distances(seen.middle, a["means"], a["w"]).amin(dim=1),
    "mean-mahalanobis": lambda seen, p, a: distances(seen.average, a["means"], a["w"]).amin(dim=1),
    "relative-mahalanobis": relative_mahalanobis,
    "two-layer-mahalanobis": two_layer_mahalanobis,
    "knn": knn,
}


RHO = 0.1  # what is left, of one text's share, to a text that is stranger than every text of dev


class Decision(nn.Module):
    """From what was seen to p, π and abstain."""

    def __init__(
        self, arrays: dict[str, list[int]], alpha: float | None, score: str | None, cut: float | None
    ) -> None:
        """``arrays`` has the shape of each buffer; its name begins with what it belongs to."""
        super().__init__()
        self.alpha, self.score, self.cut = alpha, score, cut or 0.0
        for name, shape in arrays.items():
            self.register_buffer(name, torch.zeros(shape))

    def _of(self, owner: str) -> Arrays:
        return {
            name.removeprefix(owner): array.double()
            for name, array in self.named_buffers()
            if name.startswith(owner)
        }

    def forward(
        self,
        logits: Tensor,
        last: Tensor | None = None,
        middle: Tensor | None = None,
        average: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """→ p (B, K) float64, π (B,) float64 or None, abstain (B,) bool."""
        features = (None if part is None else part.double() for part in (last, middle, average))
        seen = Seen(logits.double(), *features)
        linear = self._of("linear_")
        a, c = linear["weight"], linear["bias"]
        p = ((seen.logits * a if a.ndim == 1 else seen.logits @ a.T) + c).softmax(dim=1)
        familiarity = None
        if self.alpha is not None:
            arrays = self._of("familiarity_")
            s = two_layer_mahalanobis(seen, p, arrays)
            as_strange = (arrays["distances"] >= s.unsqueeze(1)).sum(dim=1)
            dev = 1 + len(arrays["distances"])
            familiarity = (1 + as_strange).double() / dev
            share = ((as_strange + RHO).double() / (self.alpha * dev)).clamp(max=1).unsqueeze(1)
            p = share * p + (1 - share) / p.shape[1]
        abstain = p.amax(dim=1) < self._of("rule_")["thresholds"][p.argmax(dim=1)]
        if self.score is not None:
            abstain = abstain | (SCORES[self.score](seen, p, self._of("score_")) >= self.cut)
        return p, familiarity, abstain


# Both together, as transformers loads them.


class CalibrantConfig(PreTrainedConfig):  # type: ignore[misc]
    """The classifier's own config, as a dictionary, and what ``Decision`` is made of."""

    model_type = "calibrant"

    classifier: dict[str, Any] | None = None
    decision: dict[str, Any] | None = None
    reads_layers: bool = False  # whether the decision looks at more than the logits
    reads_types: bool = False  # whether the classifier tells the second text of a pair from the first


@dataclass
class Decided(ModelOutput):  # type: ignore[misc]
    """``logits`` are log p, so that whoever takes their softmax has the probabilities."""

    logits: Tensor | None = None  # (B, K)
    familiarity: Tensor | None = None  # (B,); None where it is not told
    abstain: Tensor | None = None  # (B,) bool


class CalibrantForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """For answering; it is not made for training."""

    config: CalibrantConfig
    config_class = CalibrantConfig
    base_model_prefix = "classifier"
    _supports_sdpa = True

    def __init__(self, config: CalibrantConfig) -> None:
        super().__init__(config)
        settings = dict(config.classifier or {})
        settings |= {"id2label": config.id2label, "label2id": config.label2id}
        kind = settings.pop("model_type")
        if kind == PooledConfig.model_type:
            self.classifier = PooledForSequenceClassification(PooledConfig(**settings))
        else:
            own = AutoConfig.for_model(kind, **settings)
            self.classifier = AutoModelForSequenceClassification.from_config(own, trust_remote_code=False)
        self.decision = Decision(**(config.decision or {}))
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        """All are loaded."""

    def get_input_embeddings(self) -> nn.Module:
        """The classifier's."""
        embeddings: nn.Module = self.classifier.get_input_embeddings()
        return embeddings

    def see(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """What ``Decision`` takes: the logits and, where it reads them, the features of layers."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.config.reads_types and token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        if not self.config.reads_layers:
            return (self.classifier(**inputs).logits,)
        said = self.classifier(**inputs, output_hidden_states=True)
        features = [mean(layer, attention_mask) for layer in said.hidden_states]
        return said.logits, features[-1], features[len(features) // 2], torch.stack(features).mean(dim=0)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Decided:
        """(B, T) → the decision; ``token_type_ids`` are 1 on the second text of a pair."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        p, familiarity, abstain = self.decision(*self.see(input_ids, attention_mask, token_type_ids))
        return Decided(p.clamp(min=1e-300).log().float(), familiarity, abstain)


class CalibrantPipeline(TextClassificationPipeline):  # type: ignore[misc]
    """``text-classification``, with familiarity and abstain beside each score."""

    def check_model_type(self, supported_models: Any) -> None:
        """It is made for one."""

    def postprocess(self, model_outputs: Any, **how: Any) -> Any:
        """The base class's answer, and these two."""
        answer = super().postprocess(model_outputs, **how)
        also: dict[str, Any] = {"abstain": bool(model_outputs["abstain"][0])}
        if model_outputs.get("familiarity") is not None:
            also = {"familiarity": float(model_outputs["familiarity"][0]), **also}
        return answer | also if isinstance(answer, dict) else [each | also for each in answer]
