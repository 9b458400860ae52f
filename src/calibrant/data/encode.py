"""The only way from text to tensors: tokenise once, pad each batch to its own longest text."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibrant.data.files import is_empty
from calibrant.errors import UserError

LONG, LONG_AT_MOST = 20_000, 320_000
"""Characters up to which all of a text is tokenised, whatever is kept, and beyond which none is read."""
SAMPLE = 2000
"""Texts, about, from which lengths are told."""
CHARACTERS = 16
"""Of a token, as a rule, at most; of what is kept all is read."""


def check_texts(texts: Sequence[str]) -> None:
    """Refuse what cannot be classified: no text at all, or one that no tokenizer takes."""
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UserError(f"Text {number} of {len(texts)} is not a string, but {type(text).__name__}.")
        if is_empty(text):
            raise UserError(f"Text {number} of {len(texts)} is empty; there is nothing to classify.")
    check_characters(texts)


def check_characters(texts: Sequence[str]) -> None:
    """Refuse what no tokenizer takes."""
    for number, text in enumerate(texts, start=1):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:  # a tokenizer would say something about input sequences
            raise UserError(
                f"Text {number} of {len(texts)} holds half a character ({error.reason}); is it UTF-8?"
            ) from error


def encode(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[list[int]]:
    """Token ids of each text, special tokens included, cut to ``max_length`` or what the model can take."""
    check_characters(texts)
    most = min(max_length, tokenizer.model_max_length)
    ids: list[list[int]] = tokenizer(
        [_beginning(tokenizer, text, most) for text in texts],
        truncation=True,
        max_length=most,
        return_attention_mask=False,
    )["input_ids"]
    return ids


def _beginning(tokenizer: Any, text: str, most: int) -> str:
    """As much of a very long text as its first tokens come from; 10 MB would take a minute and a gigabyte.

    A tokenizer takes a text apart into words, and each word into tokens by itself. So the tokens of a
    beginning are those of the whole text, but for its last word. It is long enough once the words before the
    last have as many tokens as are kept. Text without so many words is read up to ``LONG_AT_MOST``.
    """
    text = text[: max(LONG_AT_MOST, CHARACTERS * most)]
    length = max(LONG, CHARACTERS * most)
    while length < len(text) and tokenizer.is_fast:  # others do not tell of words
        beginning = text[:length]
        space = max(beginning.rfind(" "), beginning.rfind("\n"))
        beginning = beginning[:space] if space > length // 2 else beginning
        words = tokenizer(beginning, add_special_tokens=False, verbose=False).word_ids()
        if words and words[-1] is not None and len(words) - words.count(words[-1]) >= most:
            return beginning
        length *= 4
    return text


def cut_in_words(tokenizer: Any, texts: Sequence[str], max_length: int) -> str | None:
    """How many texts ``encode`` cuts and what length would keep 95 % of them whole; None for up to 5 %.

    Told from a sample: tokenising twice would be felt with many texts.
    """
    most = min(max_length, tokenizer.model_max_length)
    some = texts[:: max(1, len(texts) // SAMPLE)]
    read = [_beginning(tokenizer, text, most) for text in some]
    ids = tokenizer(read, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
    lengths = sorted(map(len, ids))
    enough = lengths[math.ceil(0.95 * len(lengths)) - 1]
    if enough <= most:
        return None
    share = sum(length > most for length in lengths) / len(lengths)
    told = f"{share:.0%} of the training texts are longer than {most} tokens, and are cut there."
    if enough > tokenizer.model_max_length:
        return f"{told} 95 % have up to {enough}; the model reads at most {tokenizer.model_max_length}."
    return f"{told} --max-length {enough} would keep 95 % of them whole."


def cut(tokenizer: Any, texts: Sequence[str], max_length: int) -> list[bool]:
    """Whether ``encode`` leaves something of each text out."""
    most = min(max_length, tokenizer.model_max_length)
    read = [_beginning(tokenizer, text, most) for text in texts]
    ids = tokenizer(read, truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
    return [
        len(row) > most or len(part) < len(text) for row, part, text in zip(ids, read, texts, strict=True)
    ]


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Ids and attention mask, (B, T) each, padded on the right as absolute positions want it."""
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    ids = torch.full(mask.shape, padding)
    ids[mask] = torch.tensor([token for row in rows for token in row])
    return ids, mask.long()


class EncodedTexts(torch.utils.data.Dataset[dict[str, Any]]):
    """Tokenised texts with class ids, as ``transformers.Trainer`` takes them."""

    def __init__(self, rows: list[list[int]], labels: Sequence[int]) -> None:
        self.rows, self.labels = rows, labels

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.rows[index], "labels": self.labels[index]}


class Collate:
    """A batch of the Trainer's from items of ``EncodedTexts``."""

    def __init__(self, padding: int) -> None:
        self.padding = padding

    def __call__(self, items: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Items of unequal length → (B, T) ids and mask, (B,) labels."""
        ids, mask = pad([item["input_ids"] for item in items], self.padding)
        labels = torch.tensor([item["labels"] for item in items])
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}
