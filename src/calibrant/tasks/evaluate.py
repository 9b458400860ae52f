"""``calibrant evaluate``: measure a run on test text and on unfamiliar text, and keep what was found."""

import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._system.progress import in_notebook
from calibrant.classifier import load
from calibrant.data import datasets
from calibrant.data.named import as_name, read_named
from calibrant.data.splits import warn_of_overlap
from calibrant.decide.rule import Rule
from calibrant.decide.verdict import Known, verdict
from calibrant.errors import UserError
from calibrant.metrics.measure import measure, measure_scores
from calibrant.metrics.miscalibration import miscalibration
from calibrant.pages.entry import Entry
from calibrant.registry import pick
from calibrant.runs.card import abstention_in_words, rule_in_words, settings_in_words
from calibrant.runs.record import ThresholdRecord
from calibrant.runs.store import Run
from calibrant.runs.texts import columns_of, own_splits
from calibrant.types import Outputs, Prediction, Progress, Texts


@dataclass(frozen=True)
class Evaluated:
    """Predictions and metrics of one run, and the texts behind them."""

    entry: Entry
    test: Texts
    ood: Texts | None
    notes: list[str] = field(repr=False)  # what was measured on
    rule_notes: list[str] = field(repr=False)  # the rule of abstention and what it did, where the run has one


def evaluate(
    run: Path | str,
    *,
    test: Path | str | None = None,
    ood: Path | str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    pair_column: str | None = None,
    scores: bool = False,
    progress: Progress | None = in_notebook,
) -> Evaluated:
    """Measure a run. ``test`` and ``ood`` are files or names of datasets; a run that was trained on a
    dataset is measured on that dataset's own where they are not given. With ``scores`` every score of
    unfamiliarity is measured too, and a stored rule of abstention always is."""
    classifier = load(run)
    own = classifier.own_run("Measurements")
    config, columns = own.config, columns_of(own, text_column, label_column, pair_column)
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
    stored = own.record.threshold
    test_prediction = _prediction(outputs, rule, stored, labels)
    ood_outputs = ood_prediction = None
    if ood_texts is not None:  # whatever labels it has are none of the run's
        ood_outputs = classifier.outputs(ood_texts.texts, needs, progress, f"unfamiliar {name}")
        ood_prediction = _prediction(ood_outputs, rule, stored)
    metrics = measure(test_prediction, ood_prediction)
    if scores:
        found = {kind: score(outputs) for kind, score in kinds.items()}
        found_ood = None
        if ood_outputs is not None:
            found_ood = {kind: score(ood_outputs) for kind, score in kinds.items()}
        metrics["scores"] = measure_scores(found, test_prediction.predicted != labels, found_ood)
    parts = {"test": test_texts, "ood": ood_texts}
    measured_on = {part: texts.provenance() for part, texts in parts.items() if texts is not None}
    classifier.own_run("Measurements").record_metrics(
        metrics, {part: asdict(about) for part, about in measured_on.items()}
    )
    notes = [f"{part}: {about.n} texts, {about.source}" for part, about in measured_on.items()]
    rule_notes = []
    if stored is not None:
        rule_notes = [rule_in_words(stored), abstention_in_words(metrics["abstention"])]
    entry = _entry(own, test_prediction, ood_prediction, metrics, as_name(ood) or own_ood)
    return Evaluated(entry, test_texts, ood_texts, notes, rule_notes)


def _entry(
    run: Run, test: Prediction, ood: Prediction | None, metrics: dict[str, Any], ood_name: str | None
) -> Entry:
    """What a page shows of it, the verdict included."""
    record = run.record
    calibrator, stored = record.calibrator, record.threshold
    known = Known(
        path=str(run.path),
        classes=len(run.label_names),
        calibrator=None if calibrator is None else calibrator.name,
        abstains=stored is not None,
        turns_away=stored is not None and stored.promise.ood_rate is not None,
        ood=ood_name,
    )
    found = verdict(metrics, miscalibration(test), known)
    return Entry(
        run.name,
        test,
        ood,
        metrics,
        label_names=run.label_names,
        promised_risk=None if stored is None else stored.promise.risk,
        settings=settings_in_words(run.name, record),
        verdict=(*found.words, found.reason),
        command=found.command,
    )


def _prediction(
    outputs: Outputs, rule: Rule, stored: ThresholdRecord | None, labels: NDArray[np.integer] | None = None
) -> Prediction:
    answered = None if stored is None else rule.answers(outputs)
    return Prediction(outputs.probabilities, labels, outputs.familiarity, answered)


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


def _read_if_available(ood: str, columns: tuple[str, str, str | None], source: str | None) -> Texts | None:
    """Nobody named it: what is measured on familiar text need not wait for it."""
    try:
        return read_named(ood, columns, source, labelled=False)
    except UserError as reason:
        warnings.warn(f"Measured on familiar text only. {reason}", stacklevel=3)
        return None
