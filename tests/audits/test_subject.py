"""Somebody else's model: how its texts are padded, and where they are cut."""

import numpy as np
import pytest
import torch
import transformers as hf

from calibrant.audits.subject import load_subject
from calibrant.errors import UserError
from support.encoders import tiny, tiny_gpt
from support.tiny import corpus, tiny_tokenizer


@pytest.mark.parametrize("told", [None, -1, 4], ids=["none", "none in older configs", "another"])
def test_a_decoder_is_padded_with_what_it_looks_for(tmp_path, told):
    """It answers by its last token, so that padding which it does not know would speak for the text."""
    tiny_gpt(told).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    subject = load_subject(str(tmp_path), max_length=None)
    texts = [text for text, _ in corpus(8, seed=6)]
    together = subject.outputs(texts).logits
    alone = [subject.outputs([text]).logits[0] for text in texts]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
    assert np.ptp(together, axis=0).max() > 0.01
    assert subject.models[0].config.pad_token_id == subject.tokenizer.pad_token_id == (4 if told == 4 else 0)


def test_a_model_that_reads_padding_is_refused(tmp_path):
    """XLNet, which answers by the last position, whatever is there, and says that it takes -1 tokens."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "d_model": 32, "n_layer": 1, "n_head": 2, "d_inner": 32, "num_labels": 3}
    hf.XLNetForSequenceClassification(hf.XLNetConfig(**sizes, pad_token_id=0)).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(UserError) as refused:
        load_subject(str(tmp_path), max_length=None)
    assert str(refused.value) == (
        "XLNetForSequenceClassification gives a text other probabilities when it is padded on the right to "
        "the length of another, and cannot be measured."
    )


@pytest.mark.parametrize("family", ["textcnn", "t5"])
def test_a_model_without_a_limit(tmp_path, family):
    """Neither its config nor its tokenizer has one; a text of 10³⁰ tokens is beyond any library."""
    tiny(family).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert load_subject(str(tmp_path), max_length=600).max_length == 600
    subject = load_subject(str(tmp_path), max_length=None)
    assert subject.max_length == 512
    z = subject.outputs(["card " * n for n in (510, 600)]).logits
    np.testing.assert_allclose(z[0], z[1], rtol=0, atol=1e-6)  # with two special tokens, 510 are all of it
