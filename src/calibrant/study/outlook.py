"""What a study would do, and how long it would take: ``calibrant study run --dry-run``."""

from pathlib import Path
from typing import Any

from calibrant.runs import record
from calibrant.runs.place import FILE
from calibrant.study.estimate import cell_seconds, measured_times, place, training_seconds
from calibrant.study.plan import Request, Training, plan, waves
from calibrant.study.run import in_study
from calibrant.study.search import Search, read_chosen, settings
from calibrant.types import Progress, silent


def outlook(study: Path | str, asked: Request, progress: Progress = silent) -> dict[str, Any]:
    """The jobs with what they hold and an estimate of their time, as a JSON object.

    Where hyper-parameters are still to be chosen, the trainings that depend on them are planned with the
    default ones, which cost as much. Nothing is trained; steps are timed once and kept in the folder.
    """
    study = Path(study).absolute()
    asked = in_study(study, asked)
    search = Search(study, asked)
    search.check()
    cells = plan(asked, settings(read_chosen(study)))
    todo = [cell for cell in cells if not cell.finished(study)]
    jobs = [("search", job) for job in search.jobs()]
    jobs += [("cells", job) for wave in waves(todo) for job in wave]
    times = measured_times(study, [t for _, job in jobs for t in job.trainings], progress)
    seen: set[str] = set()
    rows: list[dict[str, Any]] = []
    for what, job in jobs:
        first = job.trainings[0]
        untrained = [t for t in job.trainings if t.fingerprint not in seen and not _trained(study, t)]
        seen.update(t.fingerprint for t in job.trainings)
        seconds = sum(training_seconds(t, times[place(t)]) for t in untrained)
        seconds += sum(cell_seconds(cell, times[place(first)]) for cell in job.cells)
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
        "preset": asked.preset.name,
        "cells": len(cells),
        "finished": len(cells) - len(todo),
        "jobs": rows,
        "seconds": round(sum(row["seconds"] for row in rows), 1),
    }


def _trained(study: Path, training: Training) -> bool:
    folder = training.folder(study)
    return (folder / FILE).exists() and record.read(folder).status == "complete"
