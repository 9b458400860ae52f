"""A tiny encoder built in memory, and a small labelled corpus that it can learn."""

import random
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

WORDS = {
    "billing": ["invoice", "charge", "refund", "payment", "card", "price", "receipt", "bank"],
    "shipping": ["parcel", "courier", "delivery", "late", "address", "tracking", "box", "lost"],
    "account": ["password", "login", "email", "locked", "reset", "profile", "username", "sign"],
}
WITH_TYPES = ["input_ids", "token_type_ids", "attention_mask"]  # of a tokenizer such as BERT's
FILLER = ["the", "my", "a", "is", "was", "please", "help", "with", "and", "i", "it", "now", "today"]
UNFAMILIAR = ["galaxy", "violin", "recipe", "goalkeeper", "enzyme", "glacier", "sonnet", "tractor"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_text(words: list[str], rng: random.Random) -> str:
    return " ".join(rng.choice(words if rng.random() < 0.5 else FILLER) for _ in range(rng.randint(4, 14)))


def corpus(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """n distinct (text, label) rows."""
    rng, rows = random.Random(seed), {}
    while len(rows) < n:
        label = rng.choice(list(WORDS))
        rows.setdefault(make_text(WORDS[label], rng), label)
    return list(rows.items())


def pair_corpus(n: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """n rows (question, answer, label), where the label is the answer's and the question is of any."""
    questions, answers = corpus(n, seed + 1000), corpus(n, seed)
    return [
        (question, answer, label) for (question, _), (answer, label) in zip(questions, answers, strict=True)
    ]


def noisy_corpus(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """The same with one label in ten drawn at random, for what needs a model that errs."""
    rng = random.Random(seed)
    return [(text, rng.choice(list(WORDS)) if rng.random() < 0.1 else y) for text, y in corpus(n, seed)]


def tiny_tokenizer(**more: Any) -> PreTrainedTokenizerFast:
    words = SPECIAL + FILLER + UNFAMILIAR + [word for words in WORDS.values() for word in words]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        **more,
    )


def tiny_bert(labels: int = 3, dropout: float = 0.1, layers: int = 2) -> BertForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        num_labels=labels,
    )
    return BertForSequenceClassification(config)
