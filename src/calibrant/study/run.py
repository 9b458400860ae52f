"""Run a study: search, choose, then train and measure the cells. Whatever is finished is left alone.

STUDY/study.json         the preset, and how many threads a training has
      runs/<training>/   run directories
      search/            what trainings of the search said of dev, and Optuna's journal
      chosen.json        the hyper-parameters that followed
      cells/             what was measured (cells.py)
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from calibrant._system.atomic import holds_anything, remove_folder, write_json
from calibrant.errors import Busy, Diverged, UserError
from calibrant.study.cells import Key
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
)
from calibrant.types import Progress, silent

logger = logging.getLogger(__name__)
Failure = tuple[Job, UserError]
RECORD = "study.json"
WAIT = 20.0
"""Seconds until a process that has nothing else to do looks again at what others are at."""
BEFORE = {CACHE, "figures"}
"""What --dry-run and the figures that need no cells may leave in a folder before a study begins in it."""


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    cells: int  # asked for; all are finished now
    measured: int  # of those, not there when it began
    jobs: int  # trainings, those of the search included, and ensembles
    seconds: float
    elsewhere: int = 0  # jobs that another process of the same study was at


def run_programme(
    study: Path | str,
    parts: Sequence[Request],
    executor: Executor | None = None,
    drop_runs: bool = False,
    progress: Progress = silent,
) -> Outcome:
    """Do one part after another. What fails in one does not cost the others, and is told at the end.

    Several processes may be at the same study: each takes jobs that no other is at, and waits for theirs
    at the end.
    """
    started, failures = time.monotonic(), dict[int, UserError]()
    outcomes = dict.fromkeys(range(len(parts)), Outcome(0, 0, 0, 0.0))
    left = list(outcomes)
    while left:
        for number in left:
            try:
                done = run_study(study, parts[number], executor, drop_runs, progress, parts)
            except UserError as error:
                if len(parts) == 1:
                    raise
                logger.warning("%s", error)
                failures[number] = error
            else:
                before = outcomes[number]  # what was elsewhere then is among the jobs of this round again
                outcomes[number] = replace(
                    done,
                    measured=before.measured + done.measured,
                    jobs=before.jobs - before.elsewhere + done.jobs,
                )
        left = [number for number in left if number not in failures and outcomes[number].elsewhere]
        if left:
            time.sleep(WAIT)
    for first in failures.values():
        raise first
    cells, measured, jobs = (
        sum(getattr(outcome, name) for outcome in outcomes.values()) for name in ("cells", "measured", "jobs")
    )
    return Outcome(cells, measured, jobs, round(time.monotonic() - started, 1))


def run_study(
    study: Path | str,
    asked: Request,
    executor: Executor | None = None,
    drop_runs: bool = False,
    progress: Progress = silent,
    programme: Sequence[Request] = (),
) -> Outcome:
    """Do what is asked and not there yet, but for what another process does just now.

    Args:
        study: the folder; one of another preset is refused.
        asked: what ``plan.request`` made.
        executor: where the trainings run; this process by default.
        drop_runs: remove the weights of a training once no cell that is asked for needs them.
        progress: hears of each training and of the whole.
        programme: what else is asked for, before or after; its cells need weights, too.
    """
    study, started = Path(study).absolute(), time.monotonic()
    check_study(study, asked)
    search = Search(study, asked)
    search.check()
    executor = _begin(study, asked, Local() if executor is None else executor)
    measured = set[Key]()

    def drop(trainings: Iterable[str]) -> None:
        if not drop_runs:
            return
        chosen = settings(read_chosen(study))
        cells = [cell for each in (asked, *programme) for cell in plan(each, chosen)]
        missing = [cell for cell in cells if cell.key not in measured and not cell.finished(study)]
        needed = {training.fingerprint for cell in missing for training in cell.trainings}
        for fingerprint in set(trainings) - needed:
            remove_folder(study / "runs" / fingerprint)

    def looked(job: Job) -> None:
        drop(training.fingerprint for training in search.choose())

    looks, undone = search.jobs(), list[Failure]()
    if search.grids:
        import_optuna()  # before hours of training
        work = partial(look_at_dev, study, asked.preset)
        undone = _do(executor, work, looks, progress, "search", looked)
        _tell(undone, len(looks))
        search.choose()  # what was looked at in full before this command
        if not undone:
            search.refuse_hopeless()

    # Only now, since the cells follow from the choice, and only they read test texts.
    chosen = settings(read_chosen(study))
    _tell_of_defaults(asked, chosen)
    cells = [
        cell
        for cell in plan(asked, chosen)
        if (asked.chooser(cell.key.dataset), cell.key.method) not in search.grids
    ]
    todo = [cell for cell in cells if not cell.finished(study)]
    for dataset in dict.fromkeys(cell.key.dataset for cell in todo):
        held_out(dataset, asked.preset.max_test_samples)  # what is missing is told before hours of training
    both = waves(todo)

    def done(job: Job) -> None:
        measured.update(cell.key for cell in job.cells)
        drop(training.fingerprint for training in job.trainings)

    drop(looked_at(study))
    for wave in both:
        lost = {t.fingerprint: why for job, why in undone for t in job.trainings}
        whole = [job for job in wave if lost.keys().isdisjoint(t.fingerprint for t in job.trainings)]
        undone += [(job, _of_member(job, lost)) for job in wave if job not in whole]
        undone += _do(executor, partial(measure_job, study), whole, progress, "study", done)
    jobs = sum(map(len, both))
    _tell(undone, jobs)
    seconds = round(time.monotonic() - started, 1)
    return Outcome(
        len(cells), len(todo) - sum(len(j.cells) for j, _ in undone), len(looks) + jobs, seconds, len(undone)
    )


def _of_member(job: Job, lost: Mapping[str, UserError]) -> UserError:
    """Why a job cannot be done whose trainings are not all there."""
    reasons = [lost[t.fingerprint] for t in job.trainings if t.fingerprint in lost]
    broken = [why for why in reasons if not isinstance(why, Busy)]
    return UserError("a member of it failed.") if broken else reasons[0]


def check_study(study: Path, asked: Request) -> None:
    """Refuse a folder that is something else, or a study of another preset."""
    record = _record(study)
    if record is None:
        if study.is_file() or (study.is_dir() and holds_anything(study, BEFORE)):
            raise UserError(f"{study} exists and is not a study of calibrant's; give another --out.")
    elif record["preset"] != asked.preset.name:
        raise UserError(
            f"{study} holds a study with --preset {record['preset']}, and --preset {asked.preset.name} would "
            "mix two kinds of results; give another --out."
        )


def _record(study: Path) -> dict[str, Any] | None:
    """``study.json``; None where no study has begun."""
    path = study / RECORD
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return {"preset": record["preset"], "threads": record.get("threads")}  # the first studies wrote none
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
    threads = executor.threads if first is None else first
    write_json(study / RECORD, {"preset": asked.preset.name, "threads": threads})
    return executor


def _tell_of_defaults(asked: Request, chosen: Chosen) -> None:
    if "main" in asked.parts:
        for dataset in asked.datasets:
            found = chosen.get(asked.chooser(dataset), {})
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
    """All jobs; those are returned that could not be done, which do not cost the others.

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
            if isinstance(failure, Busy):
                continue
            broken = [failed for failed, why in failures if not isinstance(why, Diverged | Busy)]
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


def _tell(undone: Sequence[Failure], jobs: int) -> None:
    if failures := [(job, why) for job, why in undone if not isinstance(why, Busy)]:
        first, why = failures[0]
        if jobs == 1:
            raise why
        raise UserError(
            f"{len(failures)} of {jobs} trainings could not be done, the first ({first}) because: {why} "
            "The others are done, and the same command tries these again."
        )
