"""``calibrant calibrate``."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Dev, Json, LabelColumn, PairColumn, RunFolder, TextColumn, belong
from calibrant.cli.printing import say, say_json
from calibrant.errors import visible

if TYPE_CHECKING:
    from calibrant.runs.record import ThresholdRecord


def calibrate(
    run: RunFolder,
    calibrator: Annotated[
        str, typer.Option(help="See `calibrant list calibrators`; none removes the one that is there.")
    ] = "temperature",
    dev: Dev = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_column: PairColumn = None,
    json_: Json = False,
) -> None:
    """Fit a calibrator to a trained run and keep it there; all that the run answers then obeys it.

    \b
    Example:  calibrant calibrate runs/tickets --dev dev.csv --calibrator temperature
    """
    columns = {"text_column": text_column, "label_column": label_column, "pair_column": pair_column}
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.methods import NO_CALIBRATOR
        from calibrant.tasks import calibrate as task

        if calibrator == NO_CALIBRATOR:
            belong(False, "a calibrator; to remove one, leave it out", dev=dev, **columns)
            rule = task.remove_calibrator(run)
            if json_:
                result = {"run": str(run), "calibrator": None, "removed_rule": _as_json(rule)}
                say_json(result)
            else:
                say(f"{run}: no calibrator.")
                _tell_of(rule, run)
            return
        done = task.calibrate(
            run,
            calibrator=calibrator,
            dev=dev,
            **columns,
            progress=progress,
        )
    if json_:
        result = {"run": str(run), "calibrator": calibrator, "dev": asdict(done.dev.provenance())}
        figures = {"before": done.before, "after": done.after, "removed_rule": _as_json(done.removed_rule)}
        say_json({**result, **figures})
        return
    before, after = done.before, done.after
    say(f"{run}: {done.calibrator.summary()}, fitted on {len(done.dev)} texts, {visible(done.dev.source)}")
    say(
        f"there: NLL {before['nll']:.3f} → {after['nll']:.3f}, ECE {before['ece']:.1%} → {after['ece']:.1%}, "
        f"accuracy {before['accuracy']:.1%} → {after['accuracy']:.1%}"
    )
    _tell_of(done.removed_rule, run)
    say(f"Next, on other texts: calibrant evaluate {run} --test test.csv")


def _as_json(rule: "ThresholdRecord | None") -> dict[str, Any] | None:
    return None if rule is None else rule.model_dump()


def _tell_of(removed_rule: "ThresholdRecord | None", run: Path) -> None:
    if removed_rule is not None:
        say(
            "The rule of abstention no longer holds and was removed; learn it again with `calibrant "
            f"threshold {run} …`."
        )
