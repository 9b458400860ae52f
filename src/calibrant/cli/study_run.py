"""``calibrant study run``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.options import Json, belong
from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError

Several = list[str] | None


def run(
    preset: Annotated[
        str,
        typer.Option(
            help="laptop (whole datasets on two cores: a day), paper (its settings; needs a GPU) or smoke "
            "(generated sentences: a minute)."
        ),
    ] = "laptop",
    datasets: Annotated[Several, typer.Option(help="Names, as a,b or repeated [the preset's].")] = None,
    methods: Annotated[
        Several,
        typer.Option(help="Rows of the tables: `calibrant list methods` and some more [the preset's]."),
    ] = None,
    seeds: Annotated[Several, typer.Option(help="Whole numbers, as 0,1,2 [the preset's].")] = None,
    parts: Annotated[
        Several, typer.Option(help="Of main, search, ablation, parameters and textcnn [main].")
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

    Without --datasets, --methods, --seeds and --parts it does the preset's programme (docs/study.md).
    Started twice, the two share the work.

    \b
    Example:  calibrant study run --preset laptop --datasets 20ng-15,20ng --seeds 0,1,2 --dry-run
    """
    wanted = {"datasets": _several(datasets), "methods": _several(methods), "parts": _several(parts)}
    numbers = [_seed(seed) for seed in _several(seeds)]
    if threads is not None and threads < 1:
        raise UserError(f"--threads must be at least 1, got {threads}.")
    belong(executor == "ray", "--executor ray; it is of a Ray cluster", address=address)
    from calibrant.cli.console import working

    study = Path("runs") / f"study-{preset}" if out is None else out
    with working() as progress:
        from calibrant.registry import pick
        from calibrant.study.executors import executors
        from calibrant.study.outlook import outlook
        from calibrant.study.plan import requests
        from calibrant.study.run import run_programme

        asked = requests(preset, seeds=numbers, **wanted)
        kind = pick("executor", executor, executors())
        where: dict[str, Any] = {"threads": threads} | ({} if address is None else {"address": address})
        if dry_run:
            result = outlook(study, asked, progress)
        else:
            outcome = run_programme(study, asked, kind(**where), drop_runs, progress)
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
    """A line for each training of a dataset, all its seeds together, and the sums."""
    from calibrant.cli.tables import plain_table

    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    datasets: dict[str, float] = {}
    for job in result["jobs"]:
        rows_of = ", ".join(job["cells"]) or job["training"].split()[0]  # of a search, or a member
        groups.setdefault((job["for"], job["dataset"], rows_of), []).append(job)
        datasets[job["dataset"]] = datasets.get(job["dataset"], 0.0) + job["seconds"]
    rows = [
        {
            "for": what,
            "dataset": dataset,
            "rows": rows_of,
            "seeds": ",".join(dict.fromkeys(str(job["seed"]) for job in jobs)),
            "steps": sum(job["steps"] for job in jobs),
            "time": _time(sum(job["seconds"] for job in jobs)),
        }
        for (what, dataset, rows_of), jobs in groups.items()
    ]
    sums = "\n".join(f"{dataset}: {_time(seconds)}" for dataset, seconds in datasets.items())
    left = f"{result['cells'] - result['finished']} of {result['cells']} cells are to be measured"
    return (
        f"{plain_table(rows)}\n\n{sums}\n\n{left}, by {len(result['jobs'])} jobs: about "
        f"{_time(result['seconds'])} one after another, if this machine does nothing else."
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
