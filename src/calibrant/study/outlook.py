"""What a study would do, and how long it would take: ``calibrant study run --dry-run``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibrant.runs import record
from calibrant.runs.place import FILE
from calibrant.study.cells import Key
from calibrant.study.estimate import asking_seconds, measured_times, place, training_seconds
from calibrant.study.plan import Job, Request, Training, plan, waves
from calibrant.study.run import check_study
from calibrant.study.search import Search, read_chosen, settings
from calibrant.types import Progress, silent


def outlook(study: Path | str, asked: Sequence[Request], progress: Progress = silent) -> dict[str, Any]:
    """The jobs with what they hold and an estimate of their time, as a JSON object.

    Where hyper-parameters are still to be chosen, the trainings that depend on them are planned with the last
    of their grid, which costs as much. Nothing is trained; steps are timed once and kept in the folder. Of
    test texts only their number is looked at.
    """
    study, preset = Path(study).absolute(), asked[0].preset
    jobs, cells, finished, planned = list[tuple[str, Job]](), 0, 0, set[Key]()
    for part in asked:
        check_study(study, part)
    searches = [Search(study, part) for part in asked]
    chosen = {dataset: dict(rows) for dataset, rows in settings(read_chosen(study)).items()}
    for dataset, row in (key for search in searches for key in search.grids):
        last = {name: values[-1] for name, values in preset.grids[row].items()}
        chosen.setdefault(dataset, {})[row] = last
    for part, search in zip(asked, searches, strict=True):
        search.check()
        own = [cell for cell in plan(part, chosen) if cell.key not in planned]
        planned.update(cell.key for cell in own)
        todo = [cell for cell in own if not cell.finished(study)]
        cells, finished = cells + len(own), finished + len(own) - len(todo)
        jobs += [("search", job) for job in search.jobs()]
        jobs += [("cells", job) for wave in waves(todo) for job in wave]
    trainings = [training for _, job in jobs for training in job.trainings]
    times = measured_times(study, trainings, preset.max_test_samples, progress)
    seen: set[str] = set()
    rows: list[dict[str, Any]] = []
    for what, job in jobs:
        first = job.trainings[0]
        untrained = [t for t in job.trainings if t.fingerprint not in seen and not _trained(study, t)]
        seen.update(t.fingerprint for t in job.trainings)
        seconds = sum(training_seconds(t, times[place(t)]) for t in untrained)
        seconds += asking_seconds(job, times[place(first)])
        rows.append(
            {
                "for": what,
                "dataset": first.config.dataset,
                "seed": first.config.seed,
                "training": first.what,
                "steps": sum(t.steps for t in untrained),
                "cells": [cell.key.row for cell in job.cells],
                "seconds": round(seconds, 1),
            }
        )
    return {
        "study": str(study),
        "preset": preset.name,
        "cells": cells,
        "finished": finished,
        "jobs": rows,
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }


def _trained(study: Path, training: Training) -> bool:
    folder = training.folder(study)
    return (folder / FILE).exists() and record.read(folder).status == "complete"
