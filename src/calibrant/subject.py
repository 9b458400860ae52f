"""The model under audit, which somebody else trained."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from transformers.tokenization_utils_base import LARGE_INTEGER

from calibrant.data.encode import encode
from calibrant.device import device
from calibrant.errors import UserError
from calibrant.inference import SinglePass
from calibrant.models.linear import use_convolved_linear
from calibrant.models.pretrained import load_trained
from calibrant.models.split import SplitModel
from calibrant.prediction import predict_logits
from calibrant.types import Progress, Texts

SAME = 1e-4  # probabilities that differ by rounding only
ENOUGH_TOKENS = 512  # of a text, where neither model nor tokenizer has a limit


class Subject:
    """What a ``Classifier`` is for a run, with nothing asked but its forward pass."""

    def __init__(self, name: str, max_length: int | None) -> None:
        self.model, self.tokenizer = load_trained(name)
        use_convolved_linear(self.model.to(device()))
        config, limit = self.model.config, self.tokenizer.model_max_length
        self.label_names = [str(config.id2label[i]) for i in range(config.num_labels)]
        if max_length is None:
            max_length = ENOUGH_TOKENS if limit > LARGE_INTEGER else limit
        self.max_length = min(max_length, limit)
        self._check_padding()

    def logits(self, texts: Texts, progress: Progress | None, what: str) -> NDArray[np.float64]:
        """(n, K)."""
        rows, padding = encode(self.tokenizer, texts.texts, self.max_length), self.tokenizer.pad_token_id
        return predict_logits(SinglePass(), [self.model], rows, padding, progress, what).astype(np.float64)

    def _check_padding(self) -> None:
        """Refuse a model that reads the padding behind a text, as XLNet does: its figures would be wrong."""
        short, long = (Texts(texts, None, "", "") for texts in (["a"], ["a", "a a a a a a a a"]))
        alone, beside = (softmax(self.logits(texts, None, "")[0]) for texts in (short, long))
        if not np.abs(alone - beside).max() <= SAME:  # so that NaN fails
            raise UserError(
                f"{type(self.model).__name__} gives a text other probabilities when it is padded on the "
                "right to the length of another, and cannot be measured."
            )

    def can_be_trained_again(self) -> bool:
        """Whether the training objectives can take it apart."""
        try:
            SplitModel(self.model).verify()
        except UserError:
            return False
        return True
