"""What an objective must keep to."""

import json
import re
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import torch

from calibrant.models import fast
from calibrant.models.split import SplitModel
from calibrant.objectives.base import Loss, Objective
from calibrant.testing.expect import expect, expect_named_and_cited
from calibrant.types import Batch

# The same number on every key of a query leaves its softmax as it is: the gradient is rounding noise.
KEY_BIAS = re.compile(r"\b(key|k|k_lin)\.bias$")


def check_objective(objective: Objective | type[Objective], model: Any = None) -> None:
    """A finite loss whose gradient reaches every weight, in float32 and bfloat16, of one text, too; the same
    loss under a seed; the model is left as it was, and hyper-parameters go through JSON.

    Args:
        objective: with its defaults if a class is given.
        model: a transformers classifier of three classes and 64 or more tokens; a tiny BERT if none is given.
    """
    if isinstance(objective, type):
        objective = objective()
    expect_named_and_cited(objective)
    check_hyper_parameters(objective)
    model = tiny_bert() if model is None else model
    for dtype in (torch.float32, torch.bfloat16):
        _check_gradients(objective, _training(model), dtype)
    _check_seed(objective, _training(model))
    _check_one_text(objective, _training(model))
    _check_evaluation_mode(objective, _training(model).eval())


def tiny_bert() -> Any:
    """Of random weights and two layers."""
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
            num_labels=3,
        )
    )


def make_batch(model: Any, texts: int = 4) -> Batch:
    """Of eight random tokens each, the last text with padding."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 64, (texts, 8), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, 5:] = 0
    ids[mask == 0] = model.config.pad_token_id or 0
    return Batch(ids, mask, torch.arange(texts) % 3)


def loss_of(objective: Objective, model: Any, texts: int = 4) -> Loss:
    """Under a seed."""
    torch.manual_seed(1)
    return objective.loss(SplitModel(model), make_batch(model, texts))


def check_hyper_parameters(objective: Objective) -> None:
    """What a run's record keeps of it gives it back."""
    settings = json.loads(json.dumps(asdict(objective)))  # type: ignore[call-overload]
    expect(
        type(objective)(**settings) == objective,
        f"{objective.name}: its hyper-parameters are not the same after JSON, {settings}",
    )


def _training(model: Any) -> Any:
    """A copy, as it is while training."""
    model = deepcopy(model).train()
    fast.apply(model)
    return model


def _check_gradients(objective: Objective, model: Any, dtype: torch.dtype) -> None:
    where = f"{objective.name}, {dtype}"
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        loss = loss_of(objective, model)
    expect(
        loss.total.shape == (), f"{where}: the loss has shape {tuple(loss.total.shape)}, expected a number"
    )
    expect(loss.total.dtype == torch.float32, f"{where}: the loss is {loss.total.dtype}, expected float32")
    expect(torch.isfinite(loss.total), f"{where}: the loss is {loss.total}")
    left = [name for name, weight in model.named_parameters() if weight.grad is not None]
    expect(not left, f"{where}: a gradient was left behind on {left}")
    loss.total.backward()  # type: ignore[no-untyped-call]
    for name, weight in model.named_parameters():
        expect(weight.grad is not None, f"{where}: no gradient reaches {name}")
        expect(torch.isfinite(weight.grad).all(), f"{where}: the gradient of {name} is not finite")
        expect(KEY_BIAS.search(name) or weight.grad.any(), f"{where}: the gradient of {name} is 0")
    expect(all(module.training for module in model.modules()), f"{where}: it left the training mode")
    expect("ce" in loss.terms, f"{where}: the terms lack 'ce', the cross-entropy")
    unexplained = sorted(set(loss.terms) - set(objective.terms))
    expect(not unexplained, f"{where}: say in `terms` what {unexplained} are")
    attached = [name for name, term in loss.terms.items() if term.requires_grad]
    expect(not attached, f"{where}: detach the terms {attached}, they are for the log")


def _check_seed(objective: Objective, model: Any) -> None:
    once, twice = loss_of(objective, model).total, loss_of(objective, model).total
    expect(once == twice, f"{objective.name}: the same seed gives {once} and {twice}")


def _check_one_text(objective: Objective, model: Any) -> None:
    loss = loss_of(objective, model, texts=1).total
    loss.backward()  # type: ignore[no-untyped-call]
    finite = all(torch.isfinite(weight.grad).all() for weight in model.parameters())
    expect(torch.isfinite(loss) and finite, f"{objective.name}: a batch of one text is not finite")


def _check_evaluation_mode(objective: Objective, model: Any) -> None:
    loss_of(objective, model)
    expect(
        not any(module.training for module in model.modules()),
        f"{objective.name}: it left the evaluation mode",
    )
