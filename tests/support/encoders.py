"""Tiny random-weight classifiers of every encoder family that is supported."""

import copy

import torch
import transformers as hf

from calibrant.models.t5 import T5EncoderConfig, T5EncoderForSequenceClassification
from calibrant.models.textcnn import TextCNNConfig, TextCNNForSequenceClassification

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "num_labels": 3,
}
FAMILIES = {
    "bert": (hf.BertForSequenceClassification, hf.BertConfig(**SMALL)),
    "roberta": (hf.RobertaForSequenceClassification, hf.RobertaConfig(**SMALL)),
    "albert": (hf.AlbertForSequenceClassification, hf.AlbertConfig(**SMALL, embedding_size=16)),
    "electra": (hf.ElectraForSequenceClassification, hf.ElectraConfig(**SMALL, embedding_size=16)),
    "distilbert": (
        hf.DistilBertForSequenceClassification,
        hf.DistilBertConfig(vocab_size=64, dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_labels=3),
    ),
    "deberta-v2": (hf.DebertaV2ForSequenceClassification, hf.DebertaV2Config(**SMALL, pooler_hidden_size=32)),
    "mpnet": (hf.MPNetForSequenceClassification, hf.MPNetConfig(**SMALL)),
    "xlm-r": (hf.XLMRobertaForSequenceClassification, hf.XLMRobertaConfig(**SMALL)),
    "modernbert": (
        hf.ModernBertForSequenceClassification,
        hf.ModernBertConfig(
            **SMALL, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2
        ),
    ),
    "t5": (
        T5EncoderForSequenceClassification,
        T5EncoderConfig(vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, num_labels=3),
    ),
    "textcnn": (
        TextCNNForSequenceClassification,
        TextCNNConfig(vocab_size=64, embedding_size=32, filters=10, num_labels=3),
    ),
}


def tiny(family):
    torch.manual_seed(0)
    cls, config = FAMILIES[family]
    return cls(copy.deepcopy(config))  # tests change it


def tiny_gpt(padding):
    """A decoder, which answers by its last token."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64}
    sizes |= {"bos_token_id": 2, "eos_token_id": 3}
    return hf.GPT2ForSequenceClassification(hf.GPT2Config(**sizes, num_labels=3, pad_token_id=padding))


def assert_says_the_same(family, switch):
    """What ``switch`` does to a model in place changes none of its answers; the model, and it switched."""
    ids = torch.randint(5, 64, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    model = tiny(family).eval()
    switched = copy.deepcopy(model)
    switch(switched)
    expected = model(input_ids=ids, attention_mask=mask).logits
    torch.testing.assert_close(switched(input_ids=ids, attention_mask=mask).logits, expected)
    return model, switched
