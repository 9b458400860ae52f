"""What makes a model quick, behind one door.

``apply`` switches a model over in place, ``remove`` gives it back as it came.
Weights, names and saved files stay what they are, and so do the answers, up to rounding.

The parts lean on how transformers builds its models, which another version may do otherwise. So the door asks
the model before and after: where a part fails or changes an answer, the model stays as it came, and a warning
says so.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from calibrant.models.fast import dropout, first_token, linear
from calibrant.models.fast.first_token import first_token_only

PARTS = (dropout, linear, first_token)
ROUNDING = 1e-3  # of the largest logit


def apply(model: Any) -> None:
    """Cheaper dropout, matrix products by oneDNN, and a last layer that can leave tokens out."""
    try:
        before = _answer(model)
        for part in PARTS:
            part.apply(model)
        after = _answer(model)
        if torch.allclose(
            after, before, rtol=0, atol=ROUNDING * float(before.nan_to_num().abs().max()), equal_nan=True
        ):
            return
        why = "they change its answers"
    except Exception as error:  # whatever a version that nobody has tried does
        why = f"{type(error).__name__}: {error}"
    remove(model)
    import transformers

    warnings.warn(
        f"{type(model).__name__} of transformers {transformers.__version__} is not as calibrant knows it "
        f"({why}). It works without calibrant's shortcuts: slower, with the same results.",
        stacklevel=2,
    )


def remove(model: Any) -> None:
    """Undo ``apply``; a model that was never switched stays as it is."""
    for part in PARTS:
        part.remove(model)


def _answer(model: Any) -> Tensor:
    """Logits of a padded batch, without dropout, by a pass that needs the first token only."""
    from calibrant.models.split import SplitModel  # which knows of the first token, too

    split = SplitModel(model)
    ids, mask = split.padded_batch()
    with torch.no_grad(), split.dropout_off(), first_token_only():
        logits: Tensor = model(input_ids=ids, attention_mask=mask).logits
    return logits.float()
