"""``calibrant demo``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Where the two runs, summary.json and report.html go.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Train a plain and a calibrated classifier on 20 Newsgroups and compare them, in minutes.

    Example:  calibrant demo
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.demo import ABOUT
        from calibrant.demo import demo as run_demo

        summary = run_demo(out, seed, progress)
    if json_:
        typer.echo(json.dumps(summary))
        return
    from calibrant.cli.tables import plain_table

    typer.echo("\n".join(ABOUT) + "\n")
    typer.echo(plain_table([_row(name, metrics) for name, metrics in summary["metrics"].items()]))
    typer.echo(
        "\nTexts drawn at random; what the first model gets right, what it gets wrong, unfamiliar ones:\n"
    )
    typer.echo(plain_table([_example(example) for example in summary["examples"]]))
    typer.echo(f"\nNumbers: {out}/summary.json   Report: {out}/report.html")


def _row(name: str, metrics: dict[str, Any]) -> dict[str, str]:
    def percent(value: float) -> str:
        return f"{100 * value:.1f} %"

    return {
        "method": name,
        "accuracy ↑": percent(metrics["accuracy"]),
        "ECE ↓": percent(metrics["ece"]),
        "NBAUCC₀.₅ wrong ↑": f"{100 * metrics['misclassification']['nbaucc_0.5']:.1f}",
        "NBAUCC₀.₅ unfamiliar ↑": f"{100 * metrics['ood']['nbaucc_0.5']:.1f}",
        "confidence familiar": percent(metrics["mean_confidence_test"]),
        "confidence unfamiliar ↓": percent(metrics["mean_confidence_ood"]),
    }


def _example(example: dict[str, Any]) -> dict[str, str]:
    answers = {
        name: f"{answer['label']} {100 * answer['confidence']:.0f} %"
        for name, answer in example["answers"].items()
    }
    return {
        "kind": example["kind"],
        "text": f"{example['text'][:44]}…",
        "truth": example["truth"] or "–",
        **answers,
    }
