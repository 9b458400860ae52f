"""``calibrant report``: measure runs on the same texts and set them side by side on one page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibrant.errors import UserError
from calibrant.pages.page import Entry, check_place, write_report
from calibrant.runs import store
from calibrant.tasks.evaluate import Evaluated, evaluate
from calibrant.types import Progress


def report(
    runs: Sequence[Path | str],
    *,
    out: Path | str,
    test: str | None = None,
    ood: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: Progress | None = None,
) -> list[Entry]:
    """Evaluate several runs, as ``evaluate`` does, and write the page; each is named by its folder."""
    check_place(Path(out))
    names = [str(Path(path)) for path in runs]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name} is named twice; name each run once.")
        store.load(name)  # before long work: all of them are runs
    measured: list[Evaluated] = []
    for name in names:
        one = evaluate(
            name, test=test, ood=ood, text_column=text_column, label_column=label_column, progress=progress
        )
        if measured and _fingerprints(one) != _fingerprints(measured[0]):
            raise UserError(
                f"{names[0]} and {name} have test texts of their own, so their numbers do not compare; name "
                "the same texts for all with --test and --ood."
            )
        measured.append(replace(one, entry=replace(one.entry, name=name)))
    entries = [one.entry for one in measured]
    rules = [f"{one.entry.name}: {note}" for one in measured for note in one.rule_notes]
    write_report(out, "Runs side by side", entries, notes=measured[0].notes + rules)
    return entries


def _fingerprints(measured: Evaluated) -> list[str | None]:
    return [None if texts is None else texts.fingerprint for texts in (measured.test, measured.ood)]
