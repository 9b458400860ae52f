"""``calibrant report``: measure runs on the same texts and set them side by side on one page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibrant._system.progress import in_notebook
from calibrant.errors import UserError
from calibrant.pages.entry import Entry
from calibrant.pages.examples import telling_examples
from calibrant.pages.figures import check_figures_place, write_figures
from calibrant.pages.page import check_place, write_report
from calibrant.runs import store
from calibrant.tasks.evaluate import Evaluated, evaluate
from calibrant.types import Progress


def report(
    runs: Path | str | Sequence[Path | str],
    *,
    out: Path | str,
    test: Path | str | None = None,
    ood: Path | str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    pair_column: str | None = None,
    figures: Path | str | None = None,
    progress: Progress | None = in_notebook,
) -> list[Entry]:
    """Evaluate a run or several, as ``evaluate`` does, and write the page; each is named by its folder.

    With ``figures``, a folder, the figures are also written there, each as SVG and PNG.
    """
    check_report(out, figures)
    names = [str(Path(path)) for path in ([runs] if isinstance(runs, str | Path) else runs)]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name} is named twice; name each run once.")
        store.load(name)  # before long work: all of them are runs
    if not names:
        raise UserError("report takes one run or more; name them.")
    measured: list[Evaluated] = []
    for name in names:
        one = evaluate(
            name,
            test=test,
            ood=ood,
            text_column=text_column,
            label_column=label_column,
            pair_column=pair_column,
            progress=progress,
        )
        if measured and _fingerprints(one) != _fingerprints(measured[0]):
            raise UserError(
                f"{names[0]} and {name} have test texts of their own, so their numbers do not compare; name "
                "the same texts for all with --test and --ood."
            )
        measured.append(replace(one, entry=replace(one.entry, name=name)))
    entries = [one.entry for one in measured]
    rules = [f"{one.entry.name}: {note}" for one in measured for note in one.rule_notes]
    title = f"calibrant: {names[0]}" if len(names) == 1 else "Runs side by side"
    write_measured(out, title, measured, notes=measured[0].notes + rules, figures=figures, progress=progress)
    return entries


def check_report(out: Path | str, figures: Path | str | None) -> None:
    """Refuse, before long work, places that cannot be written to."""
    check_place(Path(out))
    if figures is not None:
        check_figures_place(Path(figures))


def write_measured(
    out: Path | str,
    title: str,
    measured: Sequence[Evaluated],
    *,
    notes: Sequence[str],
    figures: Path | str | None = None,
    progress: Progress | None = None,
) -> None:
    """The page, and the figures as files, of runs that were measured on the same texts."""
    entries = [one.entry for one in measured]
    examples = []
    for one in measured:
        others = [entry for entry in entries if entry is not one.entry]
        examples += telling_examples(one.entry, others, one.test, one.ood)
    write_report(out, title, entries, examples=examples, notes=notes, progress=progress)
    if figures is not None:
        write_figures(figures, entries)


def _fingerprints(measured: Evaluated) -> list[str | None]:
    return [None if texts is None else texts.fingerprint for texts in (measured.test, measured.ood)]
