"""What the objectives are made of, as pure functions of tensors."""

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, log_softmax


def cosine_distance(a: Tensor, b: Tensor) -> Tensor:
    """D_x(a, b) = 1 − cos(a, b); (B, h), (B, h) → (B,)."""
    return 1 - cosine_similarity(a, b, dim=-1)


def kl_divergence(target: Tensor, logits: Tensor) -> Tensor:
    """KL(target ‖ softmax(logits)), 0·log 0 = 0; (B, K), (B, K) → (B,)."""
    log_p = log_softmax(logits, dim=-1)
    return (torch.xlogy(target, target) - target * log_p).sum(dim=-1)


def negative_entropy(logits: Tensor) -> Tensor:
    """−H(softmax(logits)), from log-softmax so that it is finite everywhere; (B, K) → (B,)."""
    log_p = log_softmax(logits, dim=-1)
    return (log_p.exp() * log_p).sum(dim=-1)
