"""``calibrant demo``."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.printing import say, say_json
from calibrant.errors import visible


def demo(
    out: Annotated[Path, typer.Option(help="Where the three runs, summary.json and report.html go.")] = Path(
        "runs/demo"
    ),
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Train plain, by the paper and by default on 20 Newsgroups, and compare them, in minutes.

    \b
    Example:  calibrant demo
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import demo as task

        summary = task.demo(out, seed=seed, progress=progress)
    if json_:
        say_json(summary)
        return
    from calibrant.cli.tables import plain_table

    say("\n".join(task.ABOUT) + "\n")
    say(plain_table(_rows(summary["metrics"])))
    say("\nTexts drawn at random: some that the first model gets right, some wrong, some near, some far.\n")
    for example in summary["examples"]:
        say(f"{example['kind']}: {visible(example['text'][:70])}…\n    {_answers(example)}")
    say(f"\nNumbers: {out}/summary.json   Report: {out}/report.html")


def _rows(metrics: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """The figures, a row each, with a column for each method."""
    shown: dict[str, Callable[[dict[str, Any]], str]] = {
        "accuracy ↑": lambda m: f"{100 * m['accuracy']:.1f} %",
        "ECE ↓": lambda m: f"{100 * m['ece']:.1f} %",
        "NBAUCC₀.₅, finding its mistakes ↑": lambda m: f"{100 * m['misclassification']['nbaucc_0.5']:.1f}",
        "NBAUCC₀.₅, finding near text ↑": lambda m: f"{100 * m['ood']['nbaucc_0.5']:.1f}",
        "NBAUCC₀.₅, finding far text ↑": lambda m: f"{100 * m['far']['nbaucc_0.5']:.1f}",
        "AUROC, near text ↑": lambda m: f"{100 * m['ood']['auroc']:.1f}",
        "AUROC, far text ↑": lambda m: f"{100 * m['far']['auroc']:.1f}",
        "mean confidence, familiar text": lambda m: f"{100 * m['mean_confidence_test']:.1f} %",
        "mean confidence, near text ↓": lambda m: f"{100 * m['mean_confidence_ood']:.1f} %",
        "mean confidence, far text ↓": lambda m: f"{100 * m['far']['mean_confidence']:.1f} %",
    }
    return [
        {"": title} | {name: show(measured) for name, measured in metrics.items()}
        for title, show in shown.items()
    ]


def _answers(example: dict[str, Any]) -> str:
    answers = [
        f"{name}: {visible(answer['label'])} {100 * answer['confidence']:.0f} %"
        for name, answer in example["answers"].items()
    ]
    return " | ".join([f"truth: {visible(example['truth'])}", *answers])
