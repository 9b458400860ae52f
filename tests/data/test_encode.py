import pickle
import random

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from calibrant.data.encode import (
    Collate,
    EncodedTexts,
    check_texts,
    cut,
    cut_in_words,
    encode,
    model_inputs,
    pad,
)
from calibrant.errors import UserError
from calibrant.types import Pair
from support.tiny import WITH_TYPES, corpus, tiny_tokenizer

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


def test_a_pair_is_tokenised_once_and_told_by_its_types():
    tokenizer = tiny_tokenizer(model_input_names=WITH_TYPES)
    pairs = [Pair("my card", "a refund"), Pair("lost", "the box is lost")]
    rows = encode(tokenizer, pairs, 32)
    batch = model_inputs(rows, tokenizer.pad_token_id)
    expected = tokenizer(["my card", "lost"], ["a refund", "the box is lost"], padding=True)
    assert {name: values.tolist() for name, values in batch.items()} == dict(expected)
    assert batch["token_type_ids"].tolist()[0] == [0, 0, 0, 0, 1, 1, 1, 0]
    assert Collate(0)([{"input_ids": row, "labels": 1} for row in rows]).keys() == {*batch, "labels"}
    assert model_inputs(encode(tokenizer, ["my card"], 32), 0).keys() == {"input_ids", "attention_mask"}


def test_the_longer_text_of_a_pair_is_cut_first():
    tokenizer = tiny_tokenizer(model_input_names=WITH_TYPES)
    pair = Pair("card " * 40, "refund box")
    (row,) = encode(tokenizer, [pair], 12)
    ids = model_inputs([row], 0)["input_ids"][0].tolist()
    assert tokenizer.decode(ids) == f"[CLS] {'card ' * 7}[SEP] refund box [SEP]"
    assert cut(tokenizer, [pair, Pair("card", "box")], 12) == [True, False]
    assert cut_in_words(tokenizer, [pair] * 9, 12).startswith("100% of the training texts are longer")


def test_a_pair_is_one_text_to_all_others():
    pair = Pair("a card", "a box")
    again = pickle.loads(pickle.dumps(pair))
    assert (again.first, again.second, again) == ("a card", "a box", pair)
    assert check_texts([("a card", "a box"), pair, ["a card", "a box"]]) == [pair] * 3
    with pytest.raises(UserError, match=r"^Some of the texts are pairs, and some are not"):
        check_texts(["a card", ("a card", "a box")])
    with pytest.raises(UserError, match=r"^Text 1 of 1 is not a string, but int\.$"):
        check_texts([("a card", 5)])
