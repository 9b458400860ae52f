"""``calibrant study run``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.options import Json
from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError

Several = list[str] | None


def run(
    preset: Annotated[
        str,
        typer.Option(help="laptop (minutes a run), paper (its settings; needs a GPU) or smoke (seconds)."),
    ] = "laptop",
    datasets: Annotated[Several, typer.Option(help="Names, as a,b or repeated [the preset's].")] = None,
    methods: Annotated[
        Several, typer.Option(help="Rows of the tables; see `calibrant list methods` [the paper's nine].")
    ] = None,
    seeds: Annotated[Several, typer.Option(help="Whole numbers, as 0,1,2 [the preset's].")] = None,
    parts: Annotated[
        Several, typer.Option(help="Of main, search, ablation, parameters and textcnn [main].")
    ] = None,
    search_dataset: Annotated[
        str | None, typer.Option(help="Choose hyper-parameters on this one, for all [on each its own].")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The study's folder [runs/study-PRESET].")] = None,
    executor: Annotated[str, typer.Option(help="local (this process) or ray (a Ray cluster).")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Of a running Ray cluster [one of this machine's cores].")
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads for each training, on which results depend a little [as the study began: all cores "
            "with local, 1 with ray]."
        ),
    ] = None,
    drop_runs: Annotated[
        bool, typer.Option("--drop-runs", help="Remove trained weights once their cells are measured.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the plan, with an estimate of the time.")
    ] = False,
    json_: Json = False,
) -> None:
    """Train and measure a grid of datasets, methods and seeds. Interrupted, the same command goes on.

    \b
    Example:  calibrant study run --preset laptop --datasets 20ng-15,20ng --seeds 0,1,2 --dry-run
    """
    wanted = {"datasets": _several(datasets), "methods": _several(methods), "parts": _several(parts)}
    numbers = [_seed(seed) for seed in _several(seeds)]
    if threads is not None and threads < 1:
        raise UserError(f"--threads must be at least 1, got {threads}.")
    if address is not None and executor != "ray":
        raise UserError("--address is of a Ray cluster; it goes with --executor ray.")
    from calibrant.cli.console import working

    study = Path("runs") / f"study-{preset}" if out is None else out
    with working() as progress:
        from calibrant.registry import pick
        from calibrant.study.executors import executors
        from calibrant.study.outlook import outlook
        from calibrant.study.plan import request
        from calibrant.study.run import run_study

        asked = request(preset, seeds=numbers, search_dataset=search_dataset, **wanted)
        kind = pick("executor", executor, executors())
        where: dict[str, Any] = {"threads": threads} | ({} if address is None else {"address": address})
        if dry_run:
            result = outlook(study, asked, progress)
        else:
            outcome = run_study(study, asked, kind(**where), drop_runs, progress)
            result = {"study": str(study), **asdict(outcome)}
    if json_:
        say_json(result)
    elif dry_run:
        say(_plan(result))
    else:
        say(
            f"{study}: {result['cells']} cells, {result['measured']} of them measured now, in "
            f"{_time(result['seconds'])}.\nNext: calibrant study table {study}"
        )


def _plan(result: dict[str, Any]) -> str:
    """A line for each training, and the sums."""
    from calibrant.cli.tables import plain_table

    rows = [
        {
            "for": job["for"],
            "dataset": job["dataset"],
            "seed": job["seed"],
            "training": job["training"],
            "steps": job["steps"],
            "measured": " ".join(job["cells"]),
            "time": _time(job["seconds"]),
        }
        for job in result["jobs"]
    ]
    left = f"{result['cells'] - result['finished']} of {result['cells']} cells are to be measured"
    return (
        f"{plain_table(rows)}\n\n{left}, by {len(rows)} jobs: about {_time(result['seconds'])} one after "
        "another, if this machine does nothing else."
    )


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _several(values: list[str] | None) -> list[str]:
    """`a,b` and repeated options alike."""
    return [name for value in values or () for name in value.replace(" ", "").split(",") if name]


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UserError(f"--seeds: expected whole numbers such as 0,1,2, got {text!r}.") from error
