"""``calibrant study significance``."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.options import Json
from calibrant.cli.printing import say, say_json


def significance(
    study: Annotated[Path, typer.Argument(help="The study's folder.")] = Path("runs/study-laptop"),
    metric: Annotated[
        str,
        typer.Option(help="ece, accuracy, nll, …, or misclassification.NAME and ood.NAME of a detection."),
    ] = "ece",
    method: Annotated[
        str, typer.Option(help="The one that is compared to all others.")
    ] = "manifold-smoothing",
    level: Annotated[float, typer.Option(help="Of significance, for all comparisons of a dataset.")] = 0.05,
    dataset: Annotated[str | None, typer.Option(help="Only this one [all that were measured].")] = None,
    json_: Json = False,
) -> None:
    """Test whether a method differs from the others by more than chance, paired over seeds.

    \b
    Example:  calibrant study significance runs/study-laptop --metric ood.nbaucc_0.5 --dataset 20ng
    """
    from dataclasses import asdict

    from calibrant.registry import pick
    from calibrant.study.cells import read_cells
    from calibrant.study.significance import compare, left_out, remarks

    cells = read_cells(study)
    if dataset is not None:
        by_dataset = {
            cell.key.dataset: [c for c in cells if c.key.dataset == cell.key.dataset] for cell in cells
        }
        cells = pick("dataset of the study", dataset, by_dataset)
    comparisons = compare(cells, metric, method, level)
    notes = remarks(comparisons, level) + left_out(cells)
    if json_:
        result = {"metric": metric, "method": method, "level": level, "notes": notes}
        say_json({**result, "comparisons": [asdict(c) for c in comparisons]})
        return
    from calibrant.cli.tables import plain_table

    for name in dict.fromkeys(c.dataset for c in comparisons):
        rows = [
            {
                "against": c.other,
                "seeds": c.seeds,
                "difference": f"{c.difference:+.4f}",
                "effect": f"{c.effect:+.2f}",
                "p": f"{c.p:.3g}",
                "Holm": f"{c.p_holm:.3g}",
                "is": f"{c.verdict} *" if c.verdict in ("better", "worse") else c.verdict,
            }
            for c in comparisons
            if c.dataset == name
        ]
        say(f"{metric} of {method} on {name}\n{plain_table(rows)}\n")
    for note in notes:
        say(note)
