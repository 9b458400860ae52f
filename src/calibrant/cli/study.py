"""``calibrant study``: the paper's experiments."""

import typer

from calibrant.cli import study_run

app = typer.Typer(
    help="The paper's experiments: run the grid, and draw what has been measured.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("run")(study_run.run)
