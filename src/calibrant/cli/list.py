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
    verbose: Annotated[bool, typer.Option("--verbose", help="Of methods: choices, cost, citation.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON list.")] = False,
) -> None:
    """List what can be named in the other commands.

    \b
    Example:  calibrant list methods
    """
    from calibrant.tasks import list as task

    rows = task.list_(kind)
    if json_:
        say_json(rows)
        return
    from calibrant.cli.tables import plain_table

    if not verbose:
        rows = [{"name": row["name"], "about": row["about"]} if "about" in row else row for row in rows]
    # Who and when are enough for a table; --json has the titles.
    short = [
        {name: value.split(")")[0] + ")" if name == "citation" else value for name, value in row.items()}
        for row in rows
    ]
    say(plain_table(short))
