"""``calibrant monitor``."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Json, PairColumn, RunFolder, TextColumn, there
from calibrant.cli.printing import say, say_json
from calibrant.errors import visible

if TYPE_CHECKING:
    from calibrant.decide.drift import Interval
    from calibrant.decide.follow import Followed
    from calibrant.tasks.monitor import Monitored

MOVED, TOO_FEW = 3, 4
"""Exit codes that stop a pipeline: neither success nor a user's mistake."""


def monitor(
    run: RunFolder,
    file: Annotated[
        str,
        typer.Argument(
            callback=there,
            help="New texts: a file as for training, labels optional, a dataset's name, or a folder that "
            "`predict` wrote.",
        ),
    ],
    level: Annotated[
        float, typer.Option(help="How often chance alone may say that it moved; intervals are of 1 − level.")
    ] = 0.01,
    tolerance: Annotated[
        float | None, typer.Option(help="How far, as a share of texts, is not worth an alarm [0.1].")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Add up all looks so far: false alarms stay below the level for ever."),
    ] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="With --follow: forget the looks so far.")
    ] = False,
    text_column: TextColumn = None,
    pair_column: PairColumn = None,
    label_column: Annotated[
        str | None, typer.Option(help="Column that holds the label [as in training, if it is there].")
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            callback=there,
            help="Labelled file to compare with this once, columns as in training [what it keeps].",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Tell whether new text is still like dev's to a run; exit code 3 if it has moved, 4 if too few.

    \b
    Example:  calibrant monitor runs/tickets this-week.csv && echo "still familiar"
    Example:  calibrant monitor runs/tickets this-week.csv --follow    # every week
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import monitor as task

        found = task.monitor(
            run,
            new=file,
            dev=dev,
            level=level,
            tolerance=tolerance,
            follow=follow,
            restart=restart,
            text_column=text_column,
            label_column=label_column,
            pair_column=pair_column,
            progress=progress,
        )
    if json_:
        say_json({"run": str(run), **asdict(found)})
    else:
        say(_told(found))
    if found.moved is not False:
        raise typer.Exit(TOO_FEW if found.moved is None else MOVED)


def _told(found: "Monitored") -> str:
    from calibrant.cli.tables import plain_table

    then, now = found.then, found.now
    rows = [
        ("texts", then.texts.n, now.texts.n),
        ("mean confidence", f"{100 * then.confidence:.1f} %", f"{100 * now.confidence:.1f} %"),
        ("accuracy, expected", None, _shown(found.expected_accuracy)),
        ("accuracy, measured", _shown(then.accuracy), _shown(now.accuracy)),
        ("ECE", _shown(then.ece), _shown(now.ece)),
        ("abstained", _shown(then.abstained), _shown(now.abstained)),
        ("wrong among the answered", _shown(then.risk), _shown(now.risk)),
    ]
    known = [row for row in rows if row[1:] != (None, None)]
    lines = [
        f"then: {visible(then.texts.source)}; now: {visible(now.texts.source)}",
        plain_table([dict(zip(("", "then", "now"), row, strict=True)) for row in known]),
    ]
    if found.unseen_labels:
        lines.append(f"labels that training never saw, counted as wrong: {found.unseen_labels}")
    lines += _shifts_told(found) if found.followed is None else _followed_told(found.followed)
    verdict = {True: "MOVED", False: "not moved", None: "too few texts to tell"}[found.moved]
    of_what = f"level {found.level:g}" + (", all looks together" if found.followed is not None else "")
    after = ": do not rely on the accuracy that is expected." if found.moved else ""
    lines.append(f"{verdict} ({of_what}){after}")
    return "\n".join(lines)


def _shifts_told(found: "Monitored") -> list[str]:
    shifts = (
        ("confidence, distance", found.confidence_shift),
        ("accuracy beyond what was expected", found.gap_shift),
        ("abstained, more than then", found.abstention_shift),
    )
    return [
        f"{what}: {100 * shift.distance:.1f} % (tolerance {100 * found.tolerance:g} %), p = {shift.p:.2g}"
        for what, shift in shifts
        if shift is not None
    ]


def _followed_told(followed: "Followed") -> list[str]:
    lines = [
        f"followed: {followed.texts} texts in {followed.looks} looks; "
        f"{100 * followed.unfamiliar_now:.1f} % are as unfamiliar as "
        f"the least familiar {100 * followed.unfamiliar_then:.1f} % of dev",
        f"chance alone would ever show as much with a probability of {followed.p:.2g} at most",
    ]
    if followed.alarm_at is not None:
        lines.append(f"alarm since look {followed.alarm_at}; once the cause is dealt with, --restart")
    return lines


def _shown(interval: "Interval | None") -> str | None:
    if interval is None:
        return None
    value, low, high = (100 * x for x in (interval.value, interval.low, interval.high))
    return f"{value:.1f} % ({low:.1f}–{high:.1f})"
