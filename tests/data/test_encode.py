import random

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from calibrant.data.encode import Collate, EncodedTexts, check_texts, encode, pad
from calibrant.errors import UserError
from support.tiny import corpus, tiny_tokenizer

TEXTS = [text for text, _ in corpus(12)]


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


def test_encode_then_pad_is_what_the_tokenizer_does(tokenizer):
    ids, mask = pad(encode(tokenizer, TEXTS, 64), tokenizer.pad_token_id)
    expected = tokenizer(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(ids, expected["input_ids"])
    assert torch.equal(mask, expected["attention_mask"])
    assert (mask == 0).any()  # else padding was not tested
    assert (ids.dtype, mask.dtype) == (torch.int64, torch.int64)


def test_padding_is_on_the_right():
    ids, mask = pad([[5, 6, 7], [8], [9, 10]], padding=1)
    assert ids.tolist() == [[5, 6, 7], [8, 1, 1], [9, 10, 1]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]


def test_a_token_that_equals_the_padding_is_attended_to():
    ids, mask = pad([[0, 3], [0]], padding=0)
    assert mask.tolist() == [[1, 1], [1, 0]]
    assert ids.tolist() == [[0, 3], [0, 0]]


def test_special_tokens_survive_the_cut(tokenizer):
    long = "invoice " * 50
    (row,) = encode(tokenizer, [long], max_length=10)
    assert len(row) == 10
    assert (row[0], row[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)


def test_the_model_may_take_less_than_was_asked():
    tokenizer = tiny_tokenizer()
    tokenizer.model_max_length = 16
    (row,) = encode(tokenizer, ["invoice " * 50], max_length=128)
    assert len(row) == 16


def test_half_a_character_is_refused(tokenizer):
    with pytest.raises(UserError) as refused:
        encode(tokenizer, ["fine", "bro\udce9ken"], 10)
    assert str(refused.value) == "Text 2 of 2 holds half a character (surrogates not allowed); is it UTF-8?"


def test_items_and_batch():
    data = EncodedTexts([[2, 5, 3], [2, 3]], [1, 0])
    assert len(data) == 2
    assert data[1] == {"input_ids": [2, 3], "labels": 0}
    batch = Collate(padding=9)([data[0], data[1]])
    assert batch["input_ids"].tolist() == [[2, 5, 3], [2, 3, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch["labels"].tolist() == [1, 0]


def bpe():
    """Byte-level, as GPT-2's: a space belongs to the word behind it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        ["the parcel was lost today 1234 !!"] * 9, trainers.BpeTrainer(vocab_size=300)
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="!")


@pytest.mark.parametrize("tokenizer", [tiny_tokenizer(), bpe()], ids=["words", "byte-level"])
@pytest.mark.parametrize("seed", range(5))
def test_a_long_text_is_cut_before_it_is_tokenised_and_its_tokens_are_the_same(tokenizer, seed, monkeypatch):
    rng = random.Random(seed)
    parts = ["parcel", "lost", "12345678", " ", "\n", "!!", "é", "x" * 50, "."]
    text = "".join(rng.choice(parts) + rng.choice(["", " "]) for _ in range(60_000))
    whole = tokenizer(text, truncation=True, max_length=32, return_attention_mask=False)["input_ids"]
    seen, call = [], type(tokenizer).__call__

    def watched(self, texts, **options):
        seen.append(sum(map(len, [texts] if isinstance(texts, str) else texts)))
        return call(self, texts, **options)

    monkeypatch.setattr(type(tokenizer), "__call__", watched)
    assert encode(tokenizer, [text], 32) == [whole]
    assert max(seen) <= 20_000 < len(text)


def test_what_is_no_text_is_called_by_its_type():
    with pytest.raises(UserError, match=r"^Text 2 of 2 is not a string, but int\.$"):
        check_texts(["a card", 5])
