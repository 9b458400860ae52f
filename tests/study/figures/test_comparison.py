import pytest

from calibrant.study.figures.base import NotMeasured
from calibrant.study.figures.comparison import side_by_side


def test_the_smallest_seed_that_all_three_have(make):
    for seed in (2, 10):
        make.three(seed)
    make(seed=0)
    assert {
        title: (c.key.method, c.key.variant, c.key.seed) for title, c in side_by_side(make.of()).items()
    } == {
        "TextCNN": ("bert", "model=textcnn", 2),
        "minilm, plain": ("bert", "", 2),
        "minilm, manifold smoothing": ("manifold-smoothing", "", 2),
    }


def test_what_is_missing_and_how_to_get_it(make):
    make()
    with pytest.raises(NotMeasured) as error:
        side_by_side(make.of())
    assert str(error.value) == (
        f"{make.path} has no cells of TextCNN (bert,model=textcnn), nor of manifold-smoothing on 20ng-15; "
        "get them with `calibrant study run --datasets 20ng-15 --methods bert,manifold-smoothing "
        f"--parts main,textcnn --out {make.path}`."
    )


def test_models_of_different_seeds_are_not_compared(make):
    make(seed=0)
    make(seed=1, model="textcnn")
    make(seed=1, method="manifold-smoothing")
    with pytest.raises(
        NotMeasured, match="no cells of one seed for TextCNN, bert and manifold-smoothing alike"
    ):
        side_by_side(make.of())
