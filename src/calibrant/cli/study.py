"""``calibrant study``: the paper's experiments."""

import typer

from calibrant.cli import study_figure, study_run, study_significance, study_table

app = typer.Typer(
    help="The paper's experiments: run the grid, and draw what has been measured.",
    rich_markup_mode=None,
)
app.command("run")(study_run.run)
app.command("table")(study_table.table)
app.command("figure")(study_figure.figure)
app.command("significance")(study_significance.significance)
