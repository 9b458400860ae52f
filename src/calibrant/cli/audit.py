"""``calibrant audit``."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from calibrant.cli.options import Json, Page, there
from calibrant.cli.printing import say, say_json


def audit(
    test: Annotated[
        str, typer.Option(callback=there, help="Labelled file with text that its training has not seen.")
    ],
    model: Annotated[
        str | None, typer.Option(help="A trained classifier: a directory or an id of the hub.")
    ] = None,
    probabilities: Annotated[
        str | None,
        typer.Option(
            help="Instead of --model: what any classifier says of --test, a row a text; .npy, or .csv with a "
            "header of class names."
        ),
    ] = None,
    ood: Annotated[
        str | None, typer.Option(callback=there, help="File with unfamiliar text; labels are not needed.")
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            callback=there, help="Another labelled file: calibrators are fitted, and advice is given."
        ),
    ] = None,
    dev_probabilities: Annotated[str | None, typer.Option(help="The same of --dev.")] = None,
    ood_probabilities: Annotated[str | None, typer.Option(help="The same of --ood.")] = None,
    train: Annotated[
        str | None,
        typer.Option(
            callback=there,
            help="Labelled texts it was trained on: familiarity is a distance from these [half of --dev].",
        ),
    ] = None,
    text_column: Annotated[str, typer.Option(help="Column that holds the text.")] = "text",
    label_column: Annotated[
        str, typer.Option(help="Column that holds the label: the model's name for it, or its id.")
    ] = "label",
    pair_column: Annotated[
        str | None, typer.Option(help="Column that holds the second text, where the model reads pairs.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=4, help="Tokens at which a text is cut [what the model can take].")
    ] = None,
    export: Annotated[
        str | None, typer.Option(help="Also write the model with the calibrator folded in, as a new folder.")
    ] = None,
    report: Page = None,
    json_: Json = False,
) -> None:
    """Measure a classifier that you already have: is its confidence right, and what to do if not.

    \b
    Example:  calibrant audit --model my-model --test test.csv --ood other.csv --dev dev.csv
              calibrant audit --probabilities said.npy --test test.csv
    """
    from calibrant.cli.console import working

    with working() as progress:
        from calibrant.pages.page import check_place, write_report
        from calibrant.tasks import audit as task

        if report is not None:
            check_place(report)
        found = task.audit(
            model,
            test=test,
            ood=ood,
            dev=dev,
            train=train,
            text_column=text_column,
            label_column=label_column,
            pair_column=pair_column,
            max_length=max_length,
            export=export,
            probabilities=probabilities,
            dev_probabilities=dev_probabilities,
            ood_probabilities=ood_probabilities,
            progress=progress,
        )
    remedy = found.remedy
    reasons = [] if remedy is None else remedy.advice.reasons
    if report is not None:
        judged = replace(found.as_it_is, verdict=[*found.words, *reasons], command=found.next_command)
        entries = [judged] if remedy is None else [judged, remedy.entry]
        notes = [f"{part}: {about['n']} texts, {about['source']}" for part, about in found.texts.items()]
        write_report(report, f"calibrant audit: {found.as_it_is.name}", entries, notes=notes)
    if json_:
        say_json(found.as_json())
        return
    say("\n".join(found.words))
    if remedy is None:
        say("With --dev, another labelled file, it would fit calibrators and say what to do.")
    else:
        from calibrant.cli.tables import plain_table

        rows = [
            {
                "calibrator": row["name"],
                "NLL, dev": f"{row['dev_nll']:.3f}",
                "NLL, test": f"{row['nll']:.3f}",
                "ECE, test": f"{row['ece']:.1%}",
                "accuracy, test": f"{row['accuracy']:.1%}",
            }
            for row in found.table()
        ]
        chosen = f"chosen there, as the simplest that is as good as the best: {remedy.chosen.name}"
        say(f"\nCalibrators fitted on dev (NLL by cross-validation); {chosen}.")
        say(f"{plain_table(rows)}\n")
        if remedy.familiar is not None:
            say(f"{plain_table(_familiarity(remedy.entry.metrics, remedy.familiar.metrics))}\n")
        say("\n".join([*reasons, f"Advice: {remedy.advice.in_words()}."]))
        if found.exported is not None:
            advised = remedy.advice.action == "calibrate"
            how = "Written" if advised else "Written as you asked, though the advice is another"
            what = f"a plain transformers model with {remedy.chosen.name} folded in"
            say(f"{how}: {found.exported}, {what}.")
        elif export is not None:
            say("Nothing was exported: dev says that no calibrator helps.")
    if report is not None:
        say(f"Report: {report}")
    say(f"Next: {found.next_command}")


def _familiarity(without: dict[str, Any], with_it: dict[str, Any]) -> list[dict[str, str]]:
    """What familiarity would do, a row each."""
    unfamiliar = without["ood"] is not None
    return [
        {
            "": title,
            "ECE, test": f"{measured['ece']:.1%}",
            "confidence, test": f"{measured['mean_confidence_test']:.1%}",
            "confidence, ood": f"{measured['mean_confidence_ood']:.1%}" if unfamiliar else "–",
            "AUROC, ood": f"{measured['ood']['auroc']:.2f}" if unfamiliar else "–",
        }
        for title, measured in (("with this calibrator", without), ("temperature and familiarity", with_it))
    ]
