"""What dev texts add: calibrators that are fitted on them, the simplest of the best, and advice."""

from dataclasses import dataclass
from typing import Any

from calibrant.audits.heard import Heard
from calibrant.calibrators import Calibrator, new_calibrator
from calibrant.decide.advice import Advice, Candidate, advise, candidates, choose
from calibrant.errors import UserError
from calibrant.methods import TEMPERATURE_THEN_FAMILIARITY
from calibrant.metrics.miscalibration import Miscalibration
from calibrant.pages.entry import Entry
from calibrant.types import Progress


@dataclass(frozen=True)
class Remedy:
    """What was fitted, what it does on test, and what to do."""

    fitted: list[Candidate]
    on_test: dict[str, dict[str, Any]]  # what ``evaluate`` gives with each, by name
    chosen: Candidate
    entry: Entry  # the model with the chosen one
    familiar: Entry | None  # the model with a temperature and familiarity, where they could be fitted
    advice: Advice


def find_remedy(heard: Heard, as_it_is: Entry, found: Miscalibration, progress: Progress | None) -> Remedy:
    """Chosen by dev alone, so that what is measured on test does not flatter it."""
    fitted = candidates(heard.outputs["dev"], heard.labels["dev"], progress)
    familiarity = _familiarity(heard)
    familiar = None if familiarity is None else heard.entry("with familiarity", familiarity)
    entries = {
        candidate.name: heard.entry(f"with {candidate.name}", candidate.calibrator) for candidate in fitted
    }
    chosen = choose(fitted)
    after = entries[chosen.name]
    advice = advise(
        found,
        None if chosen.calibrator is None else chosen.calibrator.summary(),
        as_it_is.metrics,
        after.metrics,
        None if familiar is None else familiar.metrics,
        classes=len(heard.label_names),
    )
    on_test = {name: entry.metrics for name, entry in entries.items()}
    return Remedy(fitted, on_test, chosen, after, familiar, advice)


def _familiarity(heard: Heard) -> Calibrator | None:
    """Fitted on dev, by the distance from train or from half of dev; None where that cannot be done."""
    dev, y = heard.outputs["dev"], heard.labels["dev"]
    if dev.features is None:
        return None
    if "train" in heard.outputs:
        train = heard.outputs["train"], heard.labels["train"]
    else:
        known, rest = slice(0, None, 2), slice(1, None, 2)
        train, dev, y = (dev[known], y[known]), dev[rest], y[rest]
    try:
        return new_calibrator(TEMPERATURE_THEN_FAMILIARITY).fit(dev, y, train)
    except UserError:  # of the number of texts; what else dev says does not depend on it
        return None
