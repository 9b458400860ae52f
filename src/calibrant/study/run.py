"""Run a study: search, choose, then train and measure the cells. Whatever is finished is left alone.

STUDY/study.json         the preset, whose hyper-parameters all use, and how many threads a training has
      runs/<training>/   run directories
      search/            what trainings of the search said of dev, and Optuna's journal
      chosen.json        the hyper-parameters that followed
      cells/             what was measured (cells.py)
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from calibrant._system.atomic import holds_anything, remove_folder, write_json
from calibrant.errors import Diverged, UserError
from calibrant.study.estimate import CACHE, weight
from calibrant.study.executors import Executor
from calibrant.study.executors.base import Work
from calibrant.study.executors.local import Local
from calibrant.study.measuring import held_out, measure_job
from calibrant.study.plan import Chosen, Job, Request, plan, waves
from calibrant.study.search import (
    Search,
    import_optuna,
    look_at_dev,
    looked_at,
    read_chosen,
    settings,
    with_results,
)
from calibrant.types import Progress, silent

logger = logging.getLogger(__name__)
Failure = tuple[Job, UserError]
RECORD = "study.json"
BEFORE = {CACHE, "figures"}
"""What --dry-run and the figures that need no cells may leave in a folder before a study begins in it."""


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    cells: int  # asked for; all are finished now
    measured: int  # of those, by this command
    jobs: int  # trainings, those of the search included, and ensembles
    seconds: float


def run_study(
    study: Path | str,
    asked: Request,
    executor: Executor | None = None,
    drop_runs: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Do what is asked and not there yet.

    Args:
        study: the folder; one of another preset is refused.
        asked: what ``plan.request`` made.
        executor: where the trainings run; this process by default.
        drop_runs: remove the weights of a training once no cell that is asked for needs them.
        progress: hears of each training and of the whole.
    """
    study, started = Path(study).absolute(), time.monotonic()
    asked = in_study(study, asked)
    search = Search(study, asked)
    search.check()
    executor = _begin(study, asked, Local() if executor is None else executor)
    needed = Counter[str]()

    def drop(trainings: Iterable[str]) -> None:
        for fingerprint in trainings:
            if drop_runs and not needed[fingerprint]:
                remove_folder(study / "runs" / fingerprint)

    # Points of a grid can be cells that are asked for whatever is chosen, those of the parameter study.
    before = plan(asked, settings(read_chosen(study))) if search.grids else []
    needed.update(training.fingerprint for cell in before for training in cell.trainings)

    def looked(job: Job) -> None:
        drop(training.fingerprint for training in search.choose())

    looks = search.jobs()
    if search.grids:
        import_optuna()  # before hours of training
        _tell(_do(executor, partial(look_at_dev, study), looks, progress, "search", looked), len(looks))
        search.choose()  # what was looked at in full before this command
        search.refuse_hopeless()

    # Only now, since the cells follow from the choice, and only they read test texts.
    chosen = settings(read_chosen(study))
    _tell_of_defaults(asked, chosen)
    cells = plan(asked, chosen)
    todo = [cell for cell in cells if not cell.finished(study)]
    for dataset in dict.fromkeys(cell.key.dataset for cell in todo):
        held_out(dataset, asked.preset.max_test_samples)  # what is missing is told before hours of training
    both = waves(todo)
    needed.clear()
    needed.update(t.fingerprint for wave in both for job in wave for t in job.trainings)

    def measured(job: Job) -> None:
        trained = [training.fingerprint for training in job.trainings]
        needed.subtract(trained)
        drop(trained)

    drop(looked_at(study))
    failures: list[Failure] = []
    for wave in both:
        lost = {training.fingerprint for job, _ in failures for training in job.trainings}
        whole = [job for job in wave if lost.isdisjoint(training.fingerprint for training in job.trainings)]
        failures += [(job, UserError("a member of it failed.")) for job in wave if job not in whole]
        failures += _do(executor, partial(measure_job, study), whole, progress, "study", measured)
    jobs = sum(map(len, both))
    _tell(failures, jobs)
    return Outcome(len(cells), len(todo), len(looks) + jobs, round(time.monotonic() - started, 1))


def in_study(study: Path, asked: Request) -> Request:
    """The request, with what the folder already settles; refused where the two do not go together."""
    record = _record(study)
    if record is None:
        if study.is_file() or (study.is_dir() and holds_anything(study, BEFORE)):
            raise UserError(f"{study} exists and is not a study of calibrant's; give another --out.")
        return asked
    preset, search_dataset = record["preset"], record["search_dataset"]
    if preset != asked.preset.name:
        raise UserError(
            f"{study} holds a study with --preset {preset}, and --preset {asked.preset.name} would mix two "
            "kinds of results; give another --out."
        )
    if asked.search_dataset is None:
        return replace(asked, search_dataset=search_dataset)
    if search_dataset not in (None, asked.search_dataset):
        raise UserError(
            f"{study} holds a study with --search-dataset {search_dataset}, got {asked.search_dataset}; "
            "leave it out or give another --out."
        )
    if search_dataset is None:
        others = [dataset for dataset in asked.preset.datasets if dataset != asked.search_dataset]
        for measured in with_results(study, others, asked.preset.grids):
            raise UserError(
                f"{measured} was measured with hyper-parameters of its own, and --search-dataset "
                f"{asked.search_dataset} would give the next cells others; leave it out or give another "
                "--out."
            )
    return asked


def _record(study: Path) -> dict[str, Any] | None:
    """``study.json``; None where no study has begun."""
    path = study / RECORD
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        settled = {name: record[name] for name in ("preset", "search_dataset")}
        return {**settled, "threads": record.get("threads")}  # which the first studies did not write
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); restore it or give another --out.") from error


def _begin(study: Path, asked: Request, executor: Executor) -> Executor:
    """Write ``study.json``; the executor, with as many threads as the study began with unless it says others.

    Results depend on them a little, and one study's should not depend on where a part of it ran.
    """
    began = _record(study)
    first = None if began is None else began["threads"]
    if executor.threads is None:
        executor = replace(executor, threads=executor.own_threads() if first is None else first)
    study.mkdir(parents=True, exist_ok=True)
    record = {"preset": asked.preset.name, "search_dataset": asked.search_dataset}
    write_json(study / RECORD, {**record, "threads": executor.threads if first is None else first})
    return executor


def _tell_of_defaults(asked: Request, chosen: Chosen) -> None:
    if "main" in asked.parts:
        for dataset in asked.datasets:
            found = chosen.get(asked.search_dataset or dataset, {})
            if unsearched := [
                name for name in asked.methods if name in asked.preset.grids and name not in found
            ]:
                logger.info(
                    "%s: no search; the default hyper-parameters of %s", dataset, ", ".join(unsearched)
                )


def _do(
    executor: Executor,
    work: Work,
    jobs: Sequence[Job],
    progress: Progress,
    what: str,
    after: Callable[[Job], None],
) -> list[Failure]:
    """All jobs, and those that could not be done, which do not cost the others.

    Unless all fail so far, and two of different methods have: then it is more than those. One that diverges
    tells of its own hyper-parameters only.
    """
    if not jobs:
        return []
    total, done, started = sum(map(weight, jobs)), 0.0, time.monotonic()
    failures: list[Failure] = []
    progress(what, 0, round(total))
    for number, (job, failure) in enumerate(executor.run(work, jobs, progress), start=1):
        done += weight(job)
        progress(what, round(done), round(total))
        left = timedelta(seconds=round((time.monotonic() - started) * (total - done) / done))
        if failure is not None:
            failures.append((job, failure))
            broken = [failed for failed, why in failures if not isinstance(why, Diverged)]
            methods = {failed.trainings[0].config.method for failed in broken}
            if len(broken) == number and len(methods) > 1:
                raise failure
            logger.warning("%s could not be done: %s", job, failure)
            continue
        after(job)
        end = datetime.now().astimezone() + left
        logger.info(
            "%s: %d of %d done (%s); about %s left, until %s",
            what,
            number,
            len(jobs),
            job,
            left,
            f"{end:%H:%M}",
        )
    return failures


def _tell(failures: Sequence[Failure], jobs: int) -> None:
    if failures:
        first, why = failures[0]
        if jobs == 1:
            raise why
        raise UserError(
            f"{len(failures)} of {jobs} trainings could not be done, the first ({first}) because: {why} "
            "The others are done, and the same command tries these again."
        )
