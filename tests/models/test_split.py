import pytest
import torch
import transformers as hf

from calibrant.errors import UserError
from calibrant.models.split import SplitModel, type_embeddings
from support.encoders import FAMILIES, SMALL, tiny
from support.tiny import tiny_bert


@pytest.fixture(params=FAMILIES)
def split(request):
    return SplitModel(tiny(request.param).eval())


def padded_batch(padding):
    torch.manual_seed(1)
    ids = torch.randint(5, 64, (3, 8))
    mask = torch.ones_like(ids)
    mask[1, 5:], mask[2, 2:] = 0, 0
    return ids.masked_fill(mask == 0, padding), mask


def test_the_three_parts_compose_to_the_model(split):
    ids, mask = padded_batch(split.model.config.pad_token_id or 0)
    expected = split.model(input_ids=ids, attention_mask=mask).logits
    hidden = split.encode(split.embed(ids), mask)
    torch.testing.assert_close(split.head(hidden, mask), expected, rtol=1e-4, atol=1e-5)
    split.verify()


def test_the_types_of_pairs_go_with_the_embeddings(split):
    """Where a model has them; the path from embeddings is then told none."""
    ids, mask = padded_batch(split.model.config.pad_token_id or 0)
    types = torch.zeros_like(ids)
    types[:, 1:] = 1
    types *= mask
    types[0, 4:] = 0
    known = type_embeddings(split.model) is not None
    assert known == (split.model.config.model_type in ("bert", "roberta", "xlm-roberta", "albert", "electra"))
    told = {"token_type_ids": types} if known else {}
    expected = split.model(input_ids=ids, attention_mask=mask, **told).logits
    torch.testing.assert_close(split(split.embed(ids, types), mask), expected, rtol=1e-4, atol=1e-5)
    if known:
        assert not torch.allclose(expected, split.model(input_ids=ids, attention_mask=mask).logits)


def test_no_gradient_reaches_padding(split):
    ids, mask = padded_batch(split.model.config.pad_token_id or 0)
    x = split.embed(ids).detach().requires_grad_()
    hidden = split.encode(x, mask)
    for value in (split.features(hidden, mask).square().sum(), split.head(hidden, mask).square().sum()):
        (gradient,) = torch.autograd.grad(value, x, retain_graph=True)
        assert (gradient[mask == 0] == 0).all()
        assert (gradient[mask == 1] != 0).any()


def test_features_are_the_mean_over_a_texts_own_tokens():
    hidden = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [100.0, 100.0]], [[5.0, 6.0], [7.0, 7.0], [9.0, 8.0]]])
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    torch.testing.assert_close(SplitModel.features(hidden, mask), torch.tensor([[2.0, 3.0], [7.0, 7.0]]))


def test_embeddings_are_the_word_embeddings_alone():
    model = tiny_bert()
    ids = torch.tensor([[7, 9]])
    assert torch.equal(
        SplitModel(model).embed(ids), model.bert.embeddings.word_embeddings.weight[[7, 9]][None]
    )


def test_a_decoder_that_pools_wrongly_is_refused():
    config = hf.GPT2Config(
        vocab_size=64, n_embd=32, n_layer=1, n_head=4, n_positions=64, num_labels=3, pad_token_id=0
    )
    with pytest.raises(UserError, match=r"GPT2ForSequenceClassification cannot.*Use an encoder"):
        SplitModel(hf.GPT2ForSequenceClassification(config)).verify()


def test_a_model_without_an_embedding_path_is_refused():
    config = hf.T5Config(
        vocab_size=64,
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=1,
        num_heads=4,
        num_labels=3,
        decoder_start_token_id=0,
    )
    with pytest.raises(UserError, match="T5ForSequenceClassification cannot be calibrated"):
        SplitModel(hf.T5ForSequenceClassification(config)).verify()


@pytest.mark.parametrize("padding", [0, 1, 63])
def test_padding_may_be_any_id(padding):
    torch.manual_seed(0)
    config = hf.BertConfig(**{**SMALL, "pad_token_id": padding})
    SplitModel(hf.BertForSequenceClassification(config)).verify()
