"""Faster matrix products on a CPU.

torch gives float32 products to MKL and convolutions to oneDNN, which on the machine we measured is up to an
eighth faster at the sizes of an encoder. A linear layer is a convolution over the tokens whose window is one
token wide, so it can have those:

    y = x·Wᵀ + b        (B, T, i) → (B, T, o)
"""

import os

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

TOKENS, TOKENS_OF_A_TEXT = 1024, 16
"""From which on it is worth it."""


class ConvolvedLinear(nn.Linear):
    """``nn.Linear`` by oneDNN for many tokens on the CPU, and as ever for the rest."""

    def forward(self, input: Tensor) -> Tensor:
        """(…, i) → (…, o)."""
        if (
            input.dim() == 3
            and input.shape[0] * input.shape[1] >= TOKENS
            and input.shape[1] >= TOKENS_OF_A_TEXT
            and input.device.type == "cpu"
            and input.dtype == self.weight.dtype == torch.float32
        ):
            # As an image of T × 1 pixels whose channels lie side by side in memory: nothing is copied.
            pixels = input.unsqueeze(2).permute(0, 3, 1, 2)
            return conv2d(pixels, self.weight[:, :, None, None], self.bias).permute(0, 2, 3, 1).squeeze(2)
        return super().forward(input)


def apply(model: nn.Module) -> None:
    """Switch a model over, in place."""
    libraries = torch.backends.mkl, torch.backends.mkldnn
    if not all(library.is_available() for library in libraries):
        return  # torch multiplies with another library here, which was not measured
    # oneDNN keeps a kernel for each shape it has met, up to 1,024 of them: in a service, which meets them
    # all, a tenth of its memory. To make one anew takes no time that could be measured.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = ConvolvedLinear


def remove(model: nn.Module) -> None:
    """Switch it back."""
    for module in model.modules():
        if type(module) is ConvolvedLinear:
            module.__class__ = nn.Linear  # type: ignore[assignment]
