"""``calibrant evaluate``: measure a run on test text and on unfamiliar text, and keep what was found."""

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path

from calibrant.classifier import load
from calibrant.data import datasets
from calibrant.data.named import read_named
from calibrant.data.splits import warn_of_overlap
from calibrant.errors import UserError
from calibrant.metrics.measure import measure, measure_rule, measure_scores
from calibrant.pages.page import Entry
from calibrant.registry import pick
from calibrant.runs.card import abstention_in_words, rule_in_words
from calibrant.runs.store import Run
from calibrant.runs.texts import columns_of, own_splits
from calibrant.types import Prediction, Progress, Texts


@dataclass(frozen=True)
class Evaluated:
    """Predictions and metrics of one run, and the texts behind them."""

    entry: Entry
    test: Texts
    ood: Texts | None
    label_names: tuple[str, ...]
    notes: list[str]  # what was measured on
    rule_notes: list[str]  # the rule of abstention and what it did, where the run has one


def evaluate(
    run: Path | str,
    *,
    test: str | None = None,
    ood: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    scores: bool = False,
    progress: Progress | None = None,
) -> Evaluated:
    """Measure a run. ``test`` and ``ood`` are files or names of datasets; a run that was trained on a
    dataset is measured on that dataset's own where they are not given. With ``scores`` every score of
    unfamiliarity is measured too, and a stored rule of abstention always is."""
    classifier = load(run)
    own = classifier.own_run("Measurements")
    config, columns = own.config, columns_of(own, text_column, label_column)
    own_ood = None
    if test is None:
        if config.dataset is None:
            raise UserError("--test is missing: name a labelled file with text that training has not seen.")
        test = config.dataset
        own_ood = pick("dataset", test, datasets()).ood
    test_texts = read_named(test, columns, config.source, labelled=True)
    ood_texts = None
    if ood is not None:
        ood_texts = read_named(ood, columns, config.source, labelled=False)
    elif own_ood is not None:
        ood_texts = _read_if_available(own_ood, columns, config.source)
    name, labels = own.name, classifier.class_ids(test_texts)
    kinds = classifier.fitted_scores(classifier.usable_scores(), progress) if scores else {}
    _warn_of_overlap(own, test_texts)
    rule = classifier.rule  # not before: a lost score of its own has been fitted again
    needs = rule.needs.union(*(score.needs for score in kinds.values()))
    outputs = classifier.outputs(test_texts.texts, needs, progress, f"test {name}")
    test_prediction = Prediction(outputs.probabilities, labels)
    ood_outputs = ood_prediction = None
    if ood_texts is not None:  # whatever labels it has are none of the run's
        ood_outputs = classifier.outputs(ood_texts.texts, needs, progress, f"unfamiliar {name}")
        ood_prediction = Prediction(ood_outputs.probabilities)
    metrics = measure(test_prediction, ood_prediction)
    wrong = test_prediction.predicted != labels
    if scores:
        found = {kind: score(outputs) for kind, score in kinds.items()}
        found_ood = None
        if ood_outputs is not None:
            found_ood = {kind: score(ood_outputs) for kind, score in kinds.items()}
        metrics["scores"] = measure_scores(found, wrong, found_ood)
    stored = own.record.threshold
    if stored is not None:
        ood_answered = None if ood_outputs is None else rule.answers(ood_outputs)
        metrics["abstention"] = measure_rule(rule.answers(outputs), wrong, ood_answered)
    parts = {"test": test_texts, "ood": ood_texts}
    measured_on = {part: texts.provenance() for part, texts in parts.items() if texts is not None}
    classifier.own_run("Measurements").record_metrics(
        metrics, {part: asdict(about) for part, about in measured_on.items()}
    )
    notes = [f"{part}: {about.n} texts, {about.source}" for part, about in measured_on.items()]
    rule_notes = []
    if stored is not None:
        rule_notes = [rule_in_words(stored), abstention_in_words(metrics["abstention"])]
    entry = Entry(name, test_prediction, ood_prediction, metrics)
    return Evaluated(entry, test_texts, ood_texts, classifier.label_names, notes, rule_notes)


def _warn_of_overlap(run: Run, test: Texts) -> None:
    """Where the training texts can still be had."""
    try:
        train = own_splits(run).train
    except UserError as reason:
        warnings.warn(
            f"Whether it was trained on any of the test texts could not be checked. {reason}", stacklevel=3
        )
        return
    warn_of_overlap(train, test)


def _read_if_available(ood: str, columns: tuple[str, str], source: str | None) -> Texts | None:
    """Nobody named it: what is measured on familiar text need not wait for it."""
    try:
        return read_named(ood, columns, source, labelled=False)
    except UserError as reason:
        warnings.warn(f"Measured on familiar text only. {reason}", stacklevel=3)
        return None
