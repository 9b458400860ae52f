"""Tiny random-weight classifiers of every encoder family that is supported."""

import torch
import transformers as hf

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
}


def tiny(family):
    torch.manual_seed(0)
    cls, config = FAMILIES[family]
    return cls(config)
