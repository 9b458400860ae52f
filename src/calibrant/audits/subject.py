"""A model that somebody else trained, of which nothing is asked but its forward pass."""

import numpy as np
from scipy.special import softmax

from calibrant._system.quiet import quiet
from calibrant.classifier import Classifier
from calibrant.errors import UserError
from calibrant.models.pretrained import load_trained, longest_text

SAME = 1e-4  # probabilities that differ by rounding only


@quiet()
def load_subject(name: str, max_length: int | None) -> Classifier:
    """The model of a directory or of the hub, which answers with its own class names."""
    model, tokenizer = load_trained(name)
    names = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
    subject = Classifier([model], tokenizer, names, longest_text(tokenizer, max_length))
    # One that reads the padding behind a text, as XLNet does: its figures would be wrong.
    alone, beside = (softmax(subject.outputs(texts).logits[0]) for texts in (["a"], ["a", "a a a a a a a a"]))
    if not np.abs(alone - beside).max() <= SAME:  # so that NaN fails
        raise UserError(
            f"{type(model).__name__} gives a text other probabilities when it is padded on the right to the "
            "length of another, and cannot be measured."
        )
    return subject
