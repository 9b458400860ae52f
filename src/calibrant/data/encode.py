"""The only way from text to tensors: tokenise once, pad each batch to its own longest text."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from calibrant.data.files import is_empty
from calibrant.errors import UserError
from calibrant.types import Pair

LONG, LONG_AT_MOST = 20_000, 320_000
"""Characters up to which all of a text is tokenised, whatever is kept, and beyond which none is read."""
SAMPLE = 2000
"""Texts, about, from which lengths are told."""
CHARACTERS = 16
"""Of a token, as a rule, at most; of what is kept all is read."""


def check_list(texts: Sequence[Any] | None) -> None:
    """Refuse one string, whose letters would be taken for texts."""
    if isinstance(texts, str):
        raise UserError("predict takes a list of texts, not one string; write [text].")


def check_texts(texts: Sequence[Any], pairs: bool | None = None) -> list[str]:
    """The texts, a tuple or list of two as a ``Pair``; refused where they cannot be classified.

    ``pairs`` says what is expected; None takes either.
    """
    check_list(texts)
    found = []
    for number, text in enumerate(texts, start=1):
        parts = list(text) if isinstance(text, tuple | list) else _parts(text)
        for part in parts:
            if not isinstance(part, str):
                raise UserError(f"Text {number} of {len(texts)} is not a string, but {type(part).__name__}.")
            if is_empty(part):
                raise UserError(f"Text {number} of {len(texts)} is empty; there is nothing to classify.")
        if len(parts) > 2 or not parts:
            raise UserError(f"Text {number} of {len(texts)} has {len(parts)} parts; a pair has two.")
        if pairs is not None and pairs != (len(parts) == 2):
            raise UserError(f"Text {number} of {len(texts)} is {_NO_PAIR if pairs else _PAIR}")
        found.append(text if isinstance(text, str) else Pair(*parts) if len(parts) == 2 else parts[0])
    if len({isinstance(text, Pair) for text in found}) > 1:
        raise UserError("Some of the texts are pairs, and some are not; give one kind at a time.")
    check_characters(found)
    return found


_NO_PAIR = (
    "one text, and the run was trained on pairs; give both texts, as (text, second text) or as two columns "
    "of a file."
)
_PAIR = "a pair, and the run was trained on single texts; give the text alone."


def _parts(text: Any) -> list[Any]:
    return [text.first, text.second] if isinstance(text, Pair) else [text]


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
    return _tokenised(tokenizer, texts, most, truncation="longest_first", max_length=most)


def _tokenised(tokenizer: Any, texts: Sequence[str], most: int, **how: Any) -> list[list[int]]:
    """A row of tokens for each text or ``Pair``, of which about ``most`` will be read.

    Tokens of type 1, as those of a pair's second text are for models that tell the two apart, are kept as
    their complement, ~id, so that a row is a list of numbers; ``model_inputs`` takes both from it.
    """
    columns = zip(*map(_parts, texts), strict=True)  # one of texts, or two of pairs
    read = [[_beginning(tokenizer, text, most) for text in column] for column in columns]
    found = tokenizer(*read, return_attention_mask=False, **how)
    if len(read) == 1 or "token_type_ids" not in found:
        ids: list[list[int]] = found["input_ids"]
        return ids
    rows = zip(found["input_ids"], found["token_type_ids"], strict=True)
    return [[~token if kind else token for token, kind in zip(*row, strict=True)] for row in rows]


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
    lengths = sorted(map(len, _tokenised(tokenizer, some, most, verbose=False)))
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
    rows, longest = _tokenised(tokenizer, texts, most, verbose=False), max(LONG_AT_MOST, CHARACTERS * most)
    return [len(row) > most or len(text) > longest for row, text in zip(rows, texts, strict=True)]


def pad(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    """Rows and attention mask, (B, T) each, padded on the right as absolute positions want it."""
    lengths = torch.tensor([len(row) for row in rows])
    mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
    ids = torch.full(mask.shape, padding)
    ids[mask] = torch.tensor([token for row in rows for token in row])
    return ids, mask.long()


def model_inputs(rows: Sequence[Sequence[int]], padding: int) -> dict[str, Tensor]:
    """What a model's ``forward`` takes: (B, T) ids, mask and, of pairs where it reads them, types."""
    ids, mask = pad(rows, padding)
    types = ids < 0
    if not types.any():
        return {"input_ids": ids, "attention_mask": mask}
    return {
        "input_ids": torch.where(types, ~ids, ids),
        "attention_mask": mask,
        "token_type_ids": types.long(),
    }


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
        labels = torch.tensor([item["labels"] for item in items])
        return model_inputs([item["input_ids"] for item in items], self.padding) | {"labels": labels}
