"""``calibrant list``."""

from enum import StrEnum
from typing import Annotated

import typer

from calibrant.cli.printing import say, say_json


class Kind(StrEnum):
    """What can be listed."""

    methods = "methods"
    objectives = "objectives"
    solvers = "solvers"
    inferences = "inferences"
    calibrators = "calibrators"
    scores = "scores"
    metrics = "metrics"
    datasets = "datasets"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also cost, citation and what else is known.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """List what can be named in the other commands.

    \b
    Example:  calibrant list methods
    """
    from calibrant.tasks import list as task

    rows = task.list_(kind, details=verbose or json_)
    if json_:
        say_json(rows)
        return
    from calibrant.cli.tables import blocks, plain_table

    if verbose:
        said = {"cost": "cost of training (plain is 1)"}
        say(blocks([{said.get(key, key): value for key, value in row.items()} for row in rows]))
    else:
        say(plain_table([{"name": row["name"], "what it does": row["about"]} for row in rows]))
