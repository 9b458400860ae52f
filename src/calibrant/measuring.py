"""Measure a run on test text and on text of another world, and keep what was found."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from calibrant import artifact
from calibrant.artifact import Run
from calibrant.card import abstention_in_words, rule_in_words
from calibrant.data import datasets
from calibrant.data.named import read_named
from calibrant.data.splits import warn_of_overlap
from calibrant.errors import UserError
from calibrant.evaluation import evaluate, evaluate_rule, evaluate_scores
from calibrant.fitting import load_again
from calibrant.prediction import load
from calibrant.registry import pick
from calibrant.report.page import Entry
from calibrant.scoring import fitted_scores, usable_scores
from calibrant.types import Prediction, Progress, Texts


@dataclass(frozen=True)
class Measured:
    """Predictions and metrics of one run, and the texts behind them."""

    entry: Entry
    test: Texts
    ood: Texts | None
    label_names: tuple[str, ...]
    notes: list[str]  # what was measured on
    rule_notes: list[str]  # the rule of abstention and what it did, where the run has one


def measure(
    path: Path | str,
    test: str | None = None,
    ood: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: Progress | None = None,
    scores: bool = False,
) -> Measured:
    """Evaluate a run. ``test`` and ``ood`` are files or names of datasets; a run that was trained on a
    dataset is measured on that dataset's own where they are not given. With ``scores`` every score of
    unfamiliarity is measured too, and a stored rule of abstention always is."""
    classifier = load(path)
    config = classifier.run.config
    own_ood = None
    columns = text_column or config.text_column, label_column or config.label_column
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
    name, labels = classifier.run.name, classifier.class_ids(test_texts)
    kinds = fitted_scores(classifier, usable_scores(classifier), progress) if scores else {}
    _warn_of_overlap(classifier.run, test_texts)
    rule = classifier.rule  # not before: a lost score of its own has been fitted again
    features = scores or rule.uses_features
    outputs = classifier.outputs(test_texts.texts, features, progress, f"test {name}")
    test_prediction = Prediction(outputs.probabilities, labels)
    ood_outputs = ood_prediction = None
    if ood_texts is not None:  # whatever labels it has belong to another world
        ood_outputs = classifier.outputs(ood_texts.texts, features, progress, f"unfamiliar {name}")
        ood_prediction = Prediction(ood_outputs.probabilities)
    metrics = evaluate(test_prediction, ood_prediction)
    wrong = test_prediction.predicted != labels
    if scores:
        found, found_ood = (
            None if made is None else {kind: score(made) for kind, score in kinds.items()}
            for made in (outputs, ood_outputs)
        )
        assert found is not None
        metrics["scores"] = evaluate_scores(found, wrong, found_ood)
    stored = classifier.run.record.get("threshold")
    if stored is not None:
        ood_answered = None if ood_outputs is None else rule.answers(ood_outputs)
        metrics["abstention"] = evaluate_rule(rule.answers(outputs), wrong, ood_answered)
    measured_on = {
        part: texts.provenance()
        for part, texts in (("test", test_texts), ("ood", ood_texts))
        if texts is not None
    }
    classifier.run.record_metrics(metrics, measured_on)
    notes = [f"{part}: {about['n']} texts, {about['source']}" for part, about in measured_on.items()]
    rule_notes = []
    if stored is not None:
        rule_notes = [rule_in_words(stored), abstention_in_words(metrics["abstention"])]
    entry = Entry(name, test_prediction, ood_prediction, metrics)
    return Measured(entry, test_texts, ood_texts, classifier.label_names, notes, rule_notes)


def measure_all(
    paths: Sequence[Path | str],
    test: str | None = None,
    ood: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: Progress | None = None,
) -> list[Measured]:
    """Evaluate several runs on the same texts, as ``measure`` does; each is named by its folder."""
    names = [str(Path(path)) for path in paths]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name} is named twice; name each run once.")
        artifact.load(name)  # before long work: all of them are runs
    measured: list[Measured] = []
    for name in names:
        one = measure(name, test, ood, text_column, label_column, progress)
        if measured and _fingerprints(one) != _fingerprints(measured[0]):
            raise UserError(
                f"{names[0]} and {name} have test texts of their own, so their numbers do not compare; name "
                "the same texts for all with --test and --ood."
            )
        measured.append(replace(one, entry=replace(one.entry, name=name)))
    return measured


def _fingerprints(measured: Measured) -> list[str | None]:
    return [None if texts is None else texts.fingerprint for texts in (measured.test, measured.ood)]


def _warn_of_overlap(run: Run, test: Texts) -> None:
    """Where the training texts can still be had."""
    try:
        train = load_again(run.config, run.record["data"]).train
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
