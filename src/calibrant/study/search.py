"""Hyper-parameters chosen by dev ECE over the preset's grids, among those that cost no accuracy.

    h* = argmin_h  ECE(h)   where   acc(h) ≥ a − 2·√(a(1 − a)/n),   a = max_h acc(h)

ECE(h) and acc(h) are means over seeds s of what a training with h and s has on the n texts of dev. The paper
does not say the condition; without it a model that learns nothing, and knows, is the best calibrated.

A preset may have the trainings of a search see a part of the training texts only, for less time. They are
then looked at on those texts of the whole dev set that this part does not hold.

Nothing here looks at test texts: trainings see train and dev, and a study's cells are planned from the choice
that this leaves in ``chosen.json``.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._system.atomic import write_json
from calibrant._system.lock import alone
from calibrant.classifier import of_run
from calibrant.errors import Diverged, UserError
from calibrant.fitting.outcome import training_times
from calibrant.metrics.dev import dev_figures
from calibrant.runs.texts import load_splits
from calibrant.study.cells import variant
from calibrant.study.measuring import mine, trained
from calibrant.study.plan import Chosen, Job, Request, Training, for_search, training
from calibrant.study.presets import Preset
from calibrant.types import Progress, Texts

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
        where = dict.fromkeys(map(asked.chooser, asked.datasets))
        self.grids: dict[tuple[str, str], Points] = {}
        for dataset, method in product(where, asked.methods):
            if "search" in asked.parts and method in asked.preset.grids:
                points = self._points(dataset, method)
                if chosen.get(dataset, {}).get(method, {}).get("fingerprint") != _fingerprint(points):
                    self.grids[dataset, method] = points

    def check(self) -> None:
        """Refuse to search where there is nothing to choose, or once test results are known."""
        grids = self.asked.preset.grids
        if "search" in self.asked.parts and not grids.keys() & set(self.asked.methods):
            raise UserError(
                f"--parts search: none of {', '.join(self.asked.methods)} has hyper-parameters to search; "
                f"add one of {', '.join(grids)} to --methods, or leave out that part."
            )
        for dataset, method in self.grids:
            using = [name for name in self.asked.preset.datasets if self.asked.chooser(name) == dataset]
            # What was measured with other hyper-parameters (`--parts parameters`) tells of the points, too.
            for measured in with_results(self.study, using, (method, f"{method}__*")):
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

    def choose(self) -> list[Training]:
        """Write into ``chosen.json`` what has been looked at in full; the trainings that no cell will use."""
        with alone(self.study):
            return self._choose()

    def _choose(self) -> list[Training]:
        lost: list[Training] = []
        for (dataset, method), points in list(self.grids.items()):
            if not all(_path(self.study, t).exists() for of in points.values() for t in of):
                continue
            failed = self._failed(points)
            means = self._means(f"{dataset}, {method}, {_fingerprint(points)}", method, points, failed)
            if not means:
                continue
            accuracies = {point: self._mean("dev_accuracy", points[point]) for point in means}
            n = self._looked(points[next(iter(means))][0])["n_dev"]
            best = min(without_loss(accuracies, n), key=means.__getitem__)
            chosen = read_chosen(self.study)
            chosen.setdefault(dataset, {})[method] = {
                "settings": self._parameters(points[best][0], method),
                "dev_ece": means,
                "dev_accuracy": accuracies,
                "failed": failed,
                "seeds": [t.config.seed for t in points[best]],
                "fingerprint": _fingerprint(points),
            }
            write_json(self.study / "chosen.json", chosen)
            del self.grids[dataset, method]
            cells_use_it = not for_search(self.asked.preset, dataset)
            lost += [t for point, of in points.items() if point != best or not cells_use_it for t in of]
        return lost

    def refuse_hopeless(self) -> None:
        """Once all jobs are done, what is not chosen has not one point that could be."""
        for (dataset, method), points in self.grids.items():
            reason = next(iter(self._failed(points).values()))
            raise UserError(
                f"No point of the grid of {method} on {dataset} can be chosen, since all of them failed: "
                f"{reason}"
            )

    def _points(self, dataset: str, method: str) -> Points:
        grid = self.asked.preset.grids[method]
        points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        more = for_search(self.asked.preset, dataset)
        return {
            variant(point): tuple(
                training(self.asked.preset, dataset, method, point, seed, **more) for seed in self.asked.seeds
            )
            for point in points
        }

    def _failed(self, points: Points) -> dict[str, str]:
        """The points with a training that diverged, and what was said of it."""
        said = {point: [self._looked(t).get("failed") for t in of] for point, of in points.items()}
        return {point: next(filter(None, of)) for point, of in said.items() if any(of)}

    def _means(self, name: str, method: str, points: Points, failed: Mapping[str, str]) -> dict[str, float]:
        """Mean dev ECE of each point, in the order of the grid; Optuna keeps the trials in a journal."""
        optuna, grid = import_optuna(), self.asked.preset.grids[method]
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        journal = optuna.storages.journal.JournalFileBackend(str(self.study / "search" / "journal.log"))
        sampler = optuna.samplers.GridSampler(grid, seed=0)
        trials = optuna.create_study(
            storage=optuna.storages.JournalStorage(journal),
            study_name=name,
            sampler=sampler,
            direction="minimize",
            load_if_exists=True,
        )

        def mean_dev_ece(trial: Any) -> float:
            point = {name: trial.suggest_categorical(name, values) for name, values in grid.items()}
            if variant(point) in failed:
                raise optuna.TrialPruned(failed[variant(point)])
            return self._mean("dev_ece", points[variant(point)])

        def values() -> dict[str, float]:
            return {variant(trial.params): trial.value for trial in trials.trials if trial.value is not None}

        if not sampler.is_exhausted(trials):
            trials.optimize(mean_dev_ece)  # until it is
        for point in points.keys() - values().keys() - failed.keys():
            # Ctrl-C fails a trial, and to the sampler a failed one is done.
            trials.enqueue_trial(self._parameters(points[point][0], method))
            trials.optimize(mean_dev_ece, n_trials=1)
        found = values()
        return {point: found[point] for point in points if point in found}

    def _mean(self, figure: str, trainings: Sequence[Training]) -> float:
        return float(np.mean([self._looked(t)[figure] for t in trainings]))

    def _parameters(self, training: Training, method: str) -> dict[str, Any]:
        return {name: training.config.objective[name] for name in self.asked.preset.grids[method]}

    def _looked(self, training: Training) -> dict[str, Any]:
        return dict(json.loads(_path(self.study, training).read_text(encoding="utf-8")))


def without_loss(accuracies: Mapping[str, float], n: int) -> list[str]:
    """The points whose accuracy on n texts is within two standard errors of the best one's."""
    best = max(accuracies.values())
    return [point for point, a in accuracies.items() if a >= best - 2 * math.sqrt(best * (1 - best) / n)]


def look_at_dev(study: Path, preset: Preset, job: Job, progress: Progress) -> None:
    """Train, and write down what the model says of dev, or that it diverged."""
    (training,) = job.trainings
    with mine(study, job):
        if _path(study, training).exists():  # another process was quicker
            return
        _path(study, training).parent.mkdir(exist_ok=True)
        try:
            run = trained(study, training, progress)
        except Diverged as error:  # with these hyper-parameters, which is something to know of them
            found: dict[str, Any] = {"failed": str(error)}
        else:
            classifier, dev = of_run(run), unseen_dev(preset, training)
            probabilities = classifier.predict_proba(dev.texts, progress, "dev")
            figures = dev_figures(probabilities, classifier.class_ids(dev))
            found = {"n_dev": len(dev)} | {f"dev_{name}": value for name, value in figures.items()}
            found |= training_times([run])
        write_json(_path(study, training), {"config": training.config.model_dump(), **found})


def unseen_dev(preset: Preset, training: Training) -> Texts:
    """The dataset's dev texts but those that this training sees."""
    dev = load_splits(preset.config(str(training.config.dataset))).dev
    seen = set(load_splits(training.config).train.texts)
    kept = [(t, label) for t, label in zip(dev.texts, dev.labels or (), strict=True) if t not in seen]
    return replace(dev, texts=[text for text, _ in kept], labels=[label for _, label in kept])


def with_results(study: Path, datasets: Iterable[str], methods: Iterable[str]) -> list[Path]:
    """The folders that hold cells, of methods (or patterns, ``vat__*`` for variants) on these datasets."""
    wanted = product(datasets, methods)
    folders = [f for dataset, method in wanted for f in (study / "cells" / dataset).glob(method)]
    return sorted(folder for folder in folders if any(folder.glob("seed-*.json")))


def looked_at(study: Path) -> list[str]:
    """Fingerprints of the trainings of all searches so far."""
    return [path.stem for path in (study / "search").glob("*.json")]


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


def _fingerprint(points: Points) -> str:
    """Of all that determines the choice."""
    trainings = [t for of in points.values() for t in of]
    return trainings[0].config.fingerprint(trainings=[t.fingerprint for t in trainings])
