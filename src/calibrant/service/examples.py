"""Texts to try on the page.

Those of a run that was trained on a public dataset are some of its dev texts. A user's own texts are nobody
else's business: they are shown only where a file with examples is named.
"""

from pathlib import Path

from calibrant.data.files import read_file
from calibrant.errors import UserError
from calibrant.runs.store import Run
from calibrant.runs.texts import own_splits

FAMILIAR, LONGEST = 5, 400
UNFAMILIAR = (
    "The goalkeeper tuned his violin on the glacier before the enzyme sang.",
    "Fold the egg whites into the batter, then bake for forty minutes.",
)


def from_file(run: Run, file: Path | str) -> list[str]:
    """The first texts of a file, whose column is that of training."""
    if run.config.pair_column is not None:
        raise UserError("--examples are texts to try on the page, which asks no pairs; leave it out.")
    return list(read_file(file, run.config.text_column).texts[:20])


def public(run: Run) -> list[str]:
    """A few familiar texts, where there are any to show, and some that are unfamiliar to most runs."""
    if run.config.pair_column is not None:
        return []
    if run.config.dataset is None:
        return list(UNFAMILIAR)
    try:
        texts = [text for text in own_splits(run).dev.texts if len(text) <= LONGEST]
    except (UserError, OSError):  # not on this machine, or no network: the page does without
        return list(UNFAMILIAR)
    return [*texts[:: max(1, len(texts) // FAMILIAR)][:FAMILIAR], *UNFAMILIAR]
