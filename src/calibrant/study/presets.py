"""How each dataset is trained, in three sizes: the one place to edit.

Every method of a study gets the same settings; only what an objective minimises differs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calibrant.config import RunConfig

Grid = Mapping[str, tuple[float, ...]]
"""Values to try for each hyper-parameter."""

GRIDS: dict[str, Grid] = {
    "label-smoothing": {"smoothing": (0.05, 0.1)},
    "entropy-regularized": {"beta": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)},
    "vat": {"epsilon": (1e-3, 1e-4, 1e-5)},
    "mixup": {"alpha": (0.1, 0.2, 0.3, 0.4)},
    "manifold-mixup": {"alpha": (0.2, 0.4, 1.0, 2.0, 4.0)},
}
"""By row, as in the paper's appendix. The paper searches none for its own method."""

PARAMETERS: dict[str, tuple[float, ...]] = {
    "delta_on": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    "delta_off": (1e-4, 1e-3, 5e-3, 2e-2, 1e-1),
    "delta_y": (0.05, 0.1, 0.2, 0.3, 0.5),
}
"""Of the parameter study. The paper's text names the points of δ_on, and of the others the defaults and
δ_y = 0.2 only; the rest is ours. The defaults of every preset are among them."""


PAPER_METHODS = (
    *("bert", "temperature-scaling", "mc-dropout", "label-smoothing", "entropy-regularized", "vat"),
    *("mixup", "manifold-mixup", "manifold-smoothing"),
)
"""The nine rows of the paper's tables."""

ALL = (
    *PAPER_METHODS,
    *("manifold-smoothing-searched", "deep-ensemble", "linear-probe", "calibrant", "constant", "oracle"),
)
"""These nine, and what the paper has not."""

Slice = Mapping[str, Sequence[Any]]
"""A part of a study, as ``plan.request`` takes it: datasets, methods, seeds and parts."""


@dataclass(frozen=True)
class Preset:
    """Settings of ``RunConfig`` for each dataset."""

    name: str
    settings: Mapping[str, Any]  # of every dataset
    datasets: Mapping[str, Mapping[str, Any]]  # what differs for each; their order is that of the tables
    seeds: tuple[int, ...]
    objectives: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Hyper-parameters that differ from the objectives' own."""
    methods: tuple[str, ...] = PAPER_METHODS
    """The rows."""
    programme: tuple[Slice, ...] = ({},)
    """What is run, and in which order, where nobody names a part of it."""
    grids: Mapping[str, Grid] = field(default_factory=lambda: GRIDS)
    """What a search tries, by row."""
    searched_on: Mapping[str, str] = field(default_factory=dict)
    """Of a dataset, the one whose hyper-parameters it takes; those that are not named have their own."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """What differs for the trainings of a search."""
    search_share: int = 1
    """A search trains on one in so many of the training texts, and looks at all dev texts."""
    textcnn: Mapping[str, Any] = field(default_factory=dict)
    """What differs for TextCNN, which starts from random weights and so wants larger steps."""
    max_test_samples: int | None = None
    """How many test texts, and how many unfamiliar ones, a cell is measured on at most."""

    def config(self, dataset: str, **more: Any) -> RunConfig:
        """Of a training on this dataset."""
        return RunConfig(**{**self.settings, **self.datasets[dataset], "dataset": dataset, **more})


_20NG = {"max_length": 150}
_YAHOO = {"learning_rate": 1e-5, "batch_size": 16, "epochs": 5}

PAPER = Preset(
    "paper",
    settings={
        "model": "bert-base-uncased",
        "max_length": 256,
        "epochs": 10,
        "batch_size": 32,
        "learning_rate": 5e-5,
    },
    datasets={
        "20ng-15": _20NG,
        "20ng": _20NG,
        "wos-100": {},
        "wos": {},
        "yahoo-8": _YAHOO,
        "yahoo": _YAHOO,
    },
    seeds=(0, 1, 2, 3, 4),
    # As printed. The objective's own solver is cheaper, and starts at the text itself.
    objectives={"manifold-smoothing": {"solver": "pgd", "random_start_on": True, "random_start_off": True}},
    textcnn={"learning_rate": 1e-3},
)

_PLAIN = ("bert", "temperature-scaling", "calibrant", "linear-probe", "constant", "oracle")
_ALONE = tuple(row for row in ALL if row != "deep-ensemble")

# The texts of each set, whole. Every training starts where the default method does, with the linear probe,
# and keeps its weights by the same rule: so that what differs is the objective, and four epochs are enough.
_START = {"start": "probe", "pooling": "first+mean", "keep": "interpolation"}

LAPTOP = Preset(
    "laptop",
    settings={
        "model": "minilm",
        "max_length": 128,
        "epochs": 4,
        "batch_size": 32,
        "learning_rate": 2e-4,
        **_START,
    },
    datasets={"20ng-15": {}, "20ng": {}, "yahoo-8": {}, "yahoo": {}, "banking77": {}},
    seeds=(0,),
    methods=ALL,
    programme=(
        # About 24 hours of two cores. First what the paper's own values stand beside, then the quickest
        # datasets, each with its search: what is cut off leaves whole columns. Ensembles, ablation and
        # parameter study at full size would take longer than all this; they are run where they are named.
        {"datasets": ("20ng-15", "20ng"), "methods": _PLAIN},
        {"datasets": ("banking77",), "methods": _ALONE, "parts": ("search", "main")},
        {"datasets": ("yahoo-8",), "methods": _ALONE, "parts": ("search", "main")},
        {"datasets": ("20ng-15",), "methods": _ALONE, "parts": ("search", "main")},
        {"datasets": ("20ng",), "methods": ("manifold-smoothing",)},
        {"datasets": ("yahoo",), "methods": (*_PLAIN, "manifold-smoothing")},
        {"datasets": ("banking77",), "methods": _ALONE, "seeds": (1, 2)},
        {"datasets": ("20ng-15",), "methods": (*_PLAIN, "manifold-smoothing"), "seeds": (1,)},
    ),
    grids={**GRIDS, "manifold-smoothing-searched": {"delta_off": PARAMETERS["delta_off"]}},
    searched_on={"20ng": "20ng-15", "yahoo": "yahoo-8"},
    search={"epochs": 2, "max_length": 64},
    search_share=5,
    textcnn={"learning_rate": 1e-3, "epochs": 10, "start": None, "pooling": None, "keep": "refinement"},
    max_test_samples=8000,  # all of 20ng; of Yahoo! titles enough for an interval of one point
)

SMOKE = Preset(
    "smoke",
    settings={"model": "textcnn", "max_length": 16, "epochs": 3, "batch_size": 32, "learning_rate": 3e-3},
    datasets={"smoke": {}},
    seeds=(0, 1),
)

PRESETS = {preset.name: preset for preset in (LAPTOP, PAPER, SMOKE)}
