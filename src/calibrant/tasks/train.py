"""``calibrant train``: from settings to a run on disk."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibrant._system import processes
from calibrant._system.progress import in_notebook
from calibrant.config import RunConfig
from calibrant.data.doubts import doubt
from calibrant.fitting.job import Job
from calibrant.fitting.run import fit
from calibrant.recipe import read_recipe
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.types import Progress, Splits, Texts, silent

logger = logging.getLogger(__name__)


def train(
    config: RunConfig, *, out: Path | str, progress: Progress = in_notebook, report_to: Sequence[str] = ()
) -> Run:
    """Train as the settings say and leave a run in ``out``.

    A finished run of the same settings and data is returned as it is; an interrupted one resumes
    from its last checkpoint. Started by torchrun or accelerate launch, the processes share each step.
    ``report_to`` names trackers that are told of each epoch: tensorboard, mlflow, wandb.
    """
    if report_to:
        from calibrant.training.tracking import check_trackers

        check_trackers(report_to)
    with processes.together():
        recipe, splits = processes.one_first(lambda: (read_recipe(config), _texts(config)))
        progress = progress if processes.is_main() else silent
        label = f"train {recipe.method.name}"
        run = fit(Job(config, recipe, splits, Path(out), progress, label, report_to))
    largest = Counter(splits.dev.labels or ()).most_common(1)[0][1] / len(splits.dev)
    if run.training.dev_accuracy <= largest:
        logger.warning(
            "It is no better than always answering with the largest class, which is right in %.0f %% of the "
            "dev texts. Check that the labels belong to the texts.",
            100 * largest,
        )
    return run


def _texts(config: RunConfig) -> Splits:
    splits = load_splits(config)
    if config.dataset is None:
        doubt(_whole_file(config, splits), config.text_column, config.label_column)
    return splits


def _whole_file(config: RunConfig, splits: Splits) -> Texts:
    """The user's training texts, those included that were cut off for dev."""
    train, dev = splits.train, splits.dev
    if config.dev is not None:
        return train
    return replace(
        train, texts=[*train.texts, *dev.texts], labels=[*(train.labels or ()), *(dev.labels or ())]
    )
