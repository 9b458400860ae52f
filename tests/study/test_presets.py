import pytest

from calibrant.objectives import ManifoldSmoothing
from calibrant.study.presets import PRESETS


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_dataset_has_settings_that_hold(preset):
    for dataset in preset.datasets:
        config = preset.config(dataset, seed=3)
        assert (config.dataset, config.seed) == (dataset, 3)
    assert len(set(preset.seeds)) == len(preset.seeds) >= 1


@pytest.mark.parametrize(
    ("dataset", "max_length", "learning_rate", "batch_size", "epochs"),
    [
        ("20ng-15", 150, 5e-5, 32, 10),
        ("20ng", 150, 5e-5, 32, 10),
        ("wos-100", 256, 5e-5, 32, 10),
        ("wos", 256, 5e-5, 32, 10),
        ("yahoo-8", 256, 1e-5, 16, 5),
        ("yahoo", 256, 1e-5, 16, 5),
    ],
)
def test_the_papers_own(dataset, max_length, learning_rate, batch_size, epochs):
    config = PRESETS["paper"].config(dataset)
    assert config.model == "bert-base-uncased"
    assert config.max_train_samples is None
    assert (config.max_length, config.learning_rate) == (max_length, learning_rate)
    assert (config.batch_size, config.epochs) == (batch_size, epochs)
    (settings,) = PRESETS["paper"].objectives.values()
    assert ManifoldSmoothing(**settings) == ManifoldSmoothing(
        *(1, 1, 1e-4, 1e-3, 0.1, "pgd"), steps=1, share=1, random_start_on=True, random_start_off=True
    )
    assert len(PRESETS["paper"].seeds) == 5
    assert PRESETS["paper"].max_test_samples is None
