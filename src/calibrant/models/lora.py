"""LoRA: the encoder stays as it came, and small matrices beside its linear layers are trained.

    y = W·x + b + 2·B·A·x        A (rank, i), B (o, rank), B = 0 at the start

The factor is peft's alpha over the rank, with alpha = 2·rank. The head is trained as a whole: all modules
outside the encoder, and the pooler of encoders that have one. What is trained is saved by peft as an adapter;
merged, W + 2·B·A, it is a classifier like any other.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from calibrant.errors import UserError

TIMES_RANK = 2


def unwrapped(model: Any) -> PreTrainedModel:
    """The classifier under peft's wrapper, with the adapter in it; any other model as it is."""
    return model if isinstance(model, PreTrainedModel) else model.get_base_model()


def check_peft_installed() -> None:
    """Refuse early."""
    try:
        import peft  # noqa: F401
    except ImportError as error:
        missing = "--lora needs peft, which is not installed: pip install 'calibrant[lora]'."
        raise UserError(missing) from error


def with_lora(model: PreTrainedModel, rank: int, targets: Sequence[str] | None, name: str) -> Any:
    """The model in peft's wrapper, with adapters of this rank at the linear layers that end in ``targets``.

    None stands for every linear layer of the encoder; ``name`` is what the user calls the model.
    """
    from peft import LoraConfig, get_peft_model

    head = list(_head(model))
    layers = [
        path
        for path, module in model.named_modules()
        if isinstance(module, nn.Linear) and not any(f"{path}.".startswith(f"{part}.") for part in head)
    ]
    there = sorted({path.rpartition(".")[2] for path in layers})
    if not there:
        raise UserError(f"--lora: {name} has no linear layers for adapters to go with; leave it out.")
    for target in targets or ():
        if target not in there:
            raise UserError(
                f"--lora-targets: {name} has no linear layer {target!r}; it has {', '.join(there)}."
            )
    config = LoraConfig(
        r=rank,
        lora_alpha=TIMES_RANK * rank,
        target_modules=[path for path in layers if path.rpartition(".")[2] in (targets or there)],
        modules_to_save=head,
    )
    return get_peft_model(model, config)


def _head(model: PreTrainedModel) -> Iterator[str]:
    """The modules that turn hidden states into logits, where they have weights."""
    encoder, pooler = model.base_model_prefix, getattr(model.base_model, "pooler", None)
    for name, module in model.named_children():
        if name != encoder and any(True for _ in module.parameters()):
            yield name
    if pooler is not None:
        yield f"{encoder}.pooler"
