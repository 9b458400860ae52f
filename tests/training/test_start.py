"""The probe that a training starts from, and where a study keeps it."""

import numpy as np
import pytest
import torch

from calibrant.training import start
from calibrant.training.start import kept_probes, start_head
from support.tiny import tiny_bert

ROWS = [[2, 5 + i % 7, 6 + i % 5, 3] for i in range(24)]
LABELS = np.array([i % 3 for i in range(24)])


@pytest.fixture
def fitted(monkeypatch):
    """One entry for each probe that was fitted."""
    calls, fit = [], start.fit_probe
    monkeypatch.setattr(start, "fit_probe", lambda *args: calls.append(1) or fit(*args))
    return calls


def probed(rows=ROWS, labels=LABELS, change=None):
    model = tiny_bert().eval()
    torch.nn.init.normal_(model.classifier.weight)  # random, whatever the seed
    if change is not None:
        change(model)
    start_head(model, rows, labels, padding=0)
    return model.classifier.weight.detach().clone()


def test_a_probe_is_fitted_once_for_the_same_texts_and_encoder(tmp_path, fitted):
    alone = probed()
    with kept_probes(tmp_path / "probes"):
        first, second = probed(), probed()
        assert len(fitted) == 2  # that without a place to keep it, and the first of these
        assert torch.equal(alone, first)
        assert torch.equal(first, second)
        probed(rows=ROWS[::-1])
        probed(labels=LABELS[::-1].copy())
        probed(change=lambda model: model.bert.embeddings.word_embeddings.weight.data.mul_(2))
        assert len(fitted) == 5
        assert len(list((tmp_path / "probes").iterdir())) == 5 - 1
    probed()
    assert len(fitted) == 6
