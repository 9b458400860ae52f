"""``calibrant threshold``."""

from typing import Annotated

import typer

from calibrant.cli.options import Dev, Json, LabelColumn, PairColumn, RunFolder, TextColumn, belong, there
from calibrant.cli.printing import say, say_json
from calibrant.errors import UserError


def threshold(
    run: RunFolder,
    risk: Annotated[
        float | None, typer.Option(help="At most this share of the answers may be wrong, as 0.02.")
    ] = None,
    dev: Dev = None,
    confidence: Annotated[float, typer.Option(help="How sure the promise is.")] = 0.95,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="A threshold for each class; the promise holds for each.")
    ] = False,
    ood: Annotated[
        str | None,
        typer.Option(
            callback=there, help="Unfamiliar text to be turned away too: a file or a dataset's name."
        ),
    ] = None,
    ood_rate: Annotated[
        float | None, typer.Option(help="At most this share of it may be answered, as 0.05.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Finds unfamiliar text; see `calibrant list scores` [max-probability].")
    ] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    pair_column: PairColumn = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the stored rule away.")] = False,
    json_: Json = False,
) -> None:
    """Learn when to abstain, so that the answers keep a stated risk; all that the run answers then obeys it.

    \b
    Example:  calibrant threshold runs/tickets --dev dev.csv --risk 0.02
    """
    if (risk is None) != remove:
        raise UserError("Give either --risk, as in --risk 0.02, or --remove.")
    columns = {"text_column": text_column, "label_column": label_column, "pair_column": pair_column}
    asked = {"dev": dev, "per_class": per_class, "ood": ood, "ood_rate": ood_rate, "score": score}
    belong(not remove, "--risk; to take a rule away, leave it out", **asked, **columns)
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.tasks import threshold as task

        if risk is None:
            task.remove_rule(run)
            if json_:
                say_json({"run": str(run), "threshold": None})
            else:
                say(f"{run}: no rule.")
            return
        learnt = task.threshold(
            run,
            risk=risk,
            dev=dev,
            confidence=confidence,
            per_class=per_class,
            ood=ood,
            ood_rate=ood_rate,
            score=score,
            **columns,
            progress=progress,
        )
    stored, naive = learnt.stored, learnt.naive
    if json_:
        told = {"naive": naive, "never": learnt.never, "chosen_from": learnt.chosen_from}
        say_json({"run": str(run), **stored.model_dump(), **told})
        return
    from calibrant.runs.card import rule_in_words, threshold_in_words

    on_dev = stored.dev
    say(f"{run}: {rule_in_words(stored)}")
    say(f"On the dev texts it answers {on_dev.coverage:.1%}, of which {on_dev.risk:.1%} are wrong.")
    if ood is not None:
        say(f"The score turns away {on_dev.turned_away:.1%} of them as unfamiliar.")
    if learnt.never:
        say(
            f"Never answered, for want of texts or of certainty, {len(learnt.never)} classes: "
            f"{', '.join(learnt.never)}."
        )
    if learnt.chosen_from:
        say(
            "These are the run's own dev texts: a third of them only guided the search, and the error that "
            f"the promise allows was shared among the {learnt.chosen_from} models that they chose from. "
            "Other texts, with --dev, allow more."
        )
    if naive is not None:
        say(
            f"The naive threshold {threshold_in_words(naive['threshold'])} would answer "
            f"{naive['coverage']:.1%} of them with {naive['risk']:.1%} wrong, and promise nothing: "
            f"{100 * (naive['coverage'] - on_dev.coverage):.1f} points of coverage are the price."
        )
    say(f"Next, on other texts: calibrant evaluate {run} --test test.csv")
