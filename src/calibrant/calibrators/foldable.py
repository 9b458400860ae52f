"""Calibrators that a plain model can carry inside it."""

from abc import ABC, abstractmethod

from calibrant.calibrators.base import Floats


class Foldable(ABC):
    """A calibrator that is affine in the logits, p = softmax(A·z + c).

    The logits are themselves affine in what the head's last layer sees, z = W·h + b, so that the layer can
    take the calibrator in:

        A·(W·h + b) + c = (A·W)·h + (A·b + c).
    """

    @abstractmethod
    def fold(self, weight: Floats, bias: Floats) -> tuple[Floats, Floats]:
        """A·W and A·b + c, (K, h) and (K,) → the same shapes."""
