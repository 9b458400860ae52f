"""Hyper-parameters of the baselines, chosen by dev ECE over the paper's grids.

    h* = argmin_h  1/S · Σ_s ECE_dev(training with h and seed s)

The paper searches none for its own method. Nothing here reads test texts: trainings see train and dev, and
a study's cells are planned from the choice that this leaves in ``chosen.json``.
"""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from calibrant.atomic import write_json
from calibrant.errors import UserError
from calibrant.fitting import load_splits
from calibrant.prediction import Classifier
from calibrant.study.cells import variant
from calibrant.study.measuring import dev_figures, train
from calibrant.study.plan import Chosen, Job, Request, Training, training
from calibrant.types import Progress

GRIDS: dict[str, dict[str, tuple[float, ...]]] = {
    "label-smoothing": {"smoothing": (0.05, 0.1)},
    "entropy-regularized": {"beta": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)},
    "vat": {"epsilon": (1e-3, 1e-4, 1e-5)},
    "mixup": {"alpha": (0.1, 0.2, 0.3, 0.4)},
    "manifold-mixup": {"alpha": (0.2, 0.4, 1.0, 2.0, 4.0)},
}
"""By method, as in the paper's appendix."""

Points = dict[str, tuple[Training, ...]]
"""The trainings of each point of a grid, one a seed, by the point's ``variant``."""


def read_chosen(study: Path) -> dict[str, Any]:
    """``chosen.json``: by dataset and method the settings, and how they were found."""
    path = study / "chosen.json"
    if not path.exists():
        return {}
    try:
        chosen = json.loads(path.read_text(encoding="utf-8"))
        settings(chosen)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({error}); restore it, or remove it and search again.") from error
    return dict(chosen)


def settings(chosen: Mapping[str, Any]) -> Chosen:
    """Only the settings, as a plan takes them."""
    return {
        dataset: {method: dict(found["settings"]) for method, found in methods.items()}
        for dataset, methods in chosen.items()
    }


class Search:
    """The searches that a request asks for and that ``chosen.json`` does not hold yet."""

    def __init__(self, study: Path, asked: Request) -> None:
        self.study, self.asked = study, asked
        chosen = read_chosen(study)
        where = asked.datasets if asked.search_dataset is None else (asked.search_dataset,)
        self.grids: dict[tuple[str, str], Points] = {}
        for dataset, method in product(where, asked.methods):
            if "search" in asked.parts and method in GRIDS:
                points = self._points(dataset, method)
                if chosen.get(dataset, {}).get(method, {}).get("fingerprint") != _fingerprint(points):
                    self.grids[dataset, method] = points

    def check(self) -> None:
        """Refuse to choose once test results are known."""
        for dataset, method in self.grids:
            using = (dataset,) if self.asked.search_dataset is None else self.asked.preset.datasets
            for measured in (self.study / "cells" / name / method for name in using):
                if any(measured.glob("seed-*.json")):
                    raise UserError(
                        f"{measured} holds test results, and hyper-parameters are chosen before those are "
                        "known; leave out the part `search`, remove that folder, or give another --out."
                    )

    def trainings(self) -> list[Training]:
        """All that are asked for, each once."""
        found = {t.fingerprint: t for points in self.grids.values() for of in points.values() for t in of}
        return list(found.values())

    def jobs(self) -> list[Job]:
        """Those that have not been looked at on dev."""
        return [Job((t,)) for t in self.trainings() if not _path(self.study, t).exists()]

    def choose(self) -> None:
        """Write ``chosen.json``, once all jobs are done."""
        chosen = read_chosen(self.study)
        for (dataset, method), points in self.grids.items():
            means = self._means(f"{dataset}, {method}, {_fingerprint(points)}", method, points)
            best = min(means, key=means.__getitem__)
            chosen.setdefault(dataset, {})[method] = {
                "settings": _parameters(points[best][0], method),
                "dev_ece": means,
                "seeds": [t.config.seed for t in points[best]],
                "fingerprint": _fingerprint(points),
            }
        write_json(self.study / "chosen.json", chosen)

    def _points(self, dataset: str, method: str) -> Points:
        grid = GRIDS[method]
        points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        return {
            variant(point): tuple(
                training(self.asked.preset, dataset, method, point, seed) for seed in self.asked.seeds
            )
            for point in points
        }

    def _means(self, name: str, method: str, points: Points) -> dict[str, float]:
        """Mean dev ECE of each point, in the order of the grid; Optuna keeps the trials in a journal."""
        optuna = import_optuna()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        journal = optuna.storages.journal.JournalFileBackend(str(self.study / "search" / "journal.log"))
        sampler = optuna.samplers.GridSampler(GRIDS[method], seed=0)
        trials = optuna.create_study(
            storage=optuna.storages.JournalStorage(journal),
            study_name=name,
            sampler=sampler,
            direction="minimize",
            load_if_exists=True,
        )

        def mean_dev_ece(trial: Any) -> float:
            point = {name: trial.suggest_categorical(name, values) for name, values in GRIDS[method].items()}
            return float(np.mean([self._dev_ece(t) for t in points[variant(point)]]))

        def values() -> dict[str, float]:
            return {variant(trial.params): trial.value for trial in trials.trials if trial.value is not None}

        if not sampler.is_exhausted(trials):
            trials.optimize(mean_dev_ece)  # until it is
        for point in points.keys() - values().keys():
            # Ctrl-C fails a trial, and to the sampler a failed one is done.
            trials.enqueue_trial(_parameters(points[point][0], method))
            trials.optimize(mean_dev_ece, n_trials=1)
        found = values()
        return {point: found[point] for point in points}

    def _dev_ece(self, training: Training) -> float:
        return float(json.loads(_path(self.study, training).read_text(encoding="utf-8"))["dev_ece"])


def look_at_dev(study: Path, job: Job, progress: Progress) -> None:
    """Train, and write down what the model says of dev."""
    (training,) = job.trainings
    run = train(study, training, progress)
    classifier, dev = Classifier(run), load_splits(run.config).dev
    probabilities = softmax(classifier.logits(dev.texts, progress, "dev"), axis=1)
    found = dev_figures(probabilities, classifier.class_ids(dev))
    _path(study, training).parent.mkdir(exist_ok=True)
    write_json(_path(study, training), {"config": run.record["config"], **found})


def import_optuna() -> Any:
    """Optuna, or where to get it."""
    try:
        import optuna
        import optuna.storages.journal
    except ImportError as error:
        raise UserError(
            "The part `search` needs Optuna, which is not installed: pip install 'calibrant[study]'."
        ) from error
    return optuna


def _path(study: Path, training: Training) -> Path:
    return study / "search" / f"{training.fingerprint}.json"


def _parameters(training: Training, method: str) -> dict[str, Any]:
    return {name: training.config.objective[name] for name in GRIDS[method]}


def _fingerprint(points: Points) -> str:
    """Of all that determines the choice."""
    trainings = [t for of in points.values() for t in of]
    return trainings[0].config.fingerprint(trainings=[t.fingerprint for t in trainings])
