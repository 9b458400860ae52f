"""Four processes change one run as fast as they can, and one reads it: no change is lost, nothing is mixed.

Each changes a part of its own and looks whether it is there afterwards. What belongs to a calibrator goes
with it, so a rule or figures may be refused, or be gone; another calibrator's they must never be.
"""

import os
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from calibrant.calibrators import Calibrator, Temperature
from calibrant.errors import UserError
from calibrant.runs import store
from soak.commands import COMMANDS
from soak.trial import Bench

START = "ruled"


def race(bench: Bench, updates: int) -> tuple[str, str]:
    """All of them, in equal parts."""
    here = bench.folder("race")
    COMMANDS["threshold"].begin(bench.world, here)
    run, each = here / "run", -(-updates // 4)
    fitted = store.load(bench.world / "calibrate-second" / "run").calibrator()
    jobs: list[Callable[[], None]] = [
        lambda: _calibrate(run, each, fitted),
        lambda: _rule(run, each),
        lambda: _measure(run, each),
        lambda: _describe(run, each),
    ]
    pids = [_forked(job, here) for job in jobs]
    reader = _forked(lambda: _read(run, here / "stop"), here)
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1]]
    (here / "stop").touch()
    if os.waitpid(reader, 0)[1]:
        failed.append(reader)
    if failed:
        return "failed", f"race: {(here / f'{failed[0]}.error').read_text()}"
    bench.clear("race")
    return "held", ""


def _forked(job: Callable[[], None], here: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        warnings.simplefilter("ignore")
        # What is told of a rule or of figures that do not fit what answers must not come up.
        warnings.filterwarnings("error", message=".*is not used")
        job()
        os._exit(0)
    except BaseException:
        (here / f"{os.getpid()}.error").write_text(traceback.format_exc())
        os._exit(1)


def _calibrate(path: Path, times: int, fitted: Calibrator) -> None:
    for number in range(times):
        run = store.load(path)
        calibrator = fitted if number % 2 else Temperature(1 + number)
        run.calibrated(calibrator, run.record.data.dev)
        now = store.load(path)
        assert now.record.calibrator is not None
        assert now.record.calibrator.name == calibrator.name
        if not number % 2:
            assert now.calibrator() == calibrator


def _rule(path: Path, times: int) -> None:
    done = 0
    while done < times:
        run = store.load(path)
        rule = store.load(path.parents[1] / START / "run").record.threshold
        assert rule is not None
        mine = rule.model_copy(update={"rule": rule.rule.model_copy(update={"threshold": done / times})})
        try:
            run.ruled(mine)
        except UserError as error:
            if "another calibrator" not in str(error):
                raise
            continue  # recalibrated meanwhile
        now = store.load(path).record
        if now.answering == run.record.answering:
            assert now.threshold is not None
            assert now.threshold.rule.threshold == done / times
        done += 1


def _measure(path: Path, times: int) -> None:
    found = store.load(path.parents[1] / START / "run").metrics()
    assert found is not None
    for number in range(times):
        run = store.load(path)
        run.record_metrics(found["metrics"] | {"nll": float(number)}, found["measured_on"])
        kept = store.load(path).metrics()
        assert kept is None or kept["metrics"]["nll"] <= number


def _describe(path: Path, times: int) -> None:
    for number in range(times):
        store.load(path).updated(machine=f"machine {number}")
        assert store.load(path).record.machine == f"machine {number}"


def _read(path: Path, stop: Path) -> None:
    """As ``predict`` does: what is read while it changes is read again."""
    while not stop.exists():
        run = store.load(path)
        try:
            run.calibrator()
            run.metrics()
        except (UserError, UserWarning):
            assert run.stored() != run
        time.sleep(0.01)
