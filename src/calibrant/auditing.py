"""Measure a classifier that somebody else trained, and say what to do about its confidence."""

import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant.advice import Advice, advise, in_words
from calibrant.artifact import RECORD
from calibrant.calibrators import Calibrator
from calibrant.card import FOLDED, FRONT, figures_in_words, use_in_words
from calibrant.choosing import Candidate, candidates, choose
from calibrant.data.files import read_file
from calibrant.data.labels import match_labels
from calibrant.data.splits import warn_of_overlap
from calibrant.errors import UserError
from calibrant.evaluation import evaluate
from calibrant.exporting import check_plain, check_target, write_plain
from calibrant.miscalibration import Miscalibration, miscalibration
from calibrant.report.page import Entry
from calibrant.subject import Subject
from calibrant.types import Prediction, Progress, Texts

FEWEST_DEV_TEXTS = 20


@dataclass(frozen=True)
class Question:
    """What is to be audited: the arguments of ``audit``, as a user types them."""

    model: str
    test: str
    ood: str | None = None
    dev: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    max_length: int | None = None
    export: str | None = None

    def command(self, verb: str, **changes: str | None) -> str:
        """A command line with the options that were given, and changes to them; None leaves one out."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        defaults = {field.name: field.default for field in fields(self)}
        options = {name: value for name, value in given.items() if value != defaults[name]} | changes
        words = [
            word
            for name, value in options.items()
            if value is not None
            for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        return shlex.join(["calibrant", verb, *words])


@dataclass(frozen=True)
class Remedy:
    """What dev texts add: calibrators fitted on them, and advice."""

    fitted: list[Candidate]
    on_test: dict[str, dict[str, Any]]  # what ``evaluate`` gives with each, by name
    chosen: Candidate
    entry: Entry  # the model with the chosen one
    advice: Advice


@dataclass(frozen=True)
class Audit:
    """What was found."""

    max_length: int
    texts: dict[str, Any]  # where test, ood and dev come from
    as_it_is: Entry
    miscalibration: Miscalibration
    words: list[str]  # the same as sentences
    remedy: Remedy | None  # None without dev
    exported: str | None
    next_command: str

    def table(self) -> list[dict[str, Any]]:
        """Of each calibrator its NLL on dev texts left out of its fit, and what it does on test."""
        if self.remedy is None:
            return []
        on_test = self.remedy.on_test
        return [
            {"name": candidate.name, "foldable": candidate.foldable, "dev_nll": candidate.dev_nll}
            | {name: on_test[candidate.name][name] for name in ("nll", "ece", "accuracy")}
            for candidate in self.remedy.fitted
        ]

    def as_json(self) -> dict[str, Any]:
        """What ``calibrant audit --json`` prints."""
        remedy = self.remedy
        return {
            "model": self.as_it_is.name,
            "max_length": self.max_length,
            "texts": self.texts,
            "metrics": self.as_it_is.metrics,
            "miscalibration": asdict(self.miscalibration) | {"direction": self.miscalibration.direction},
            "calibrators": self.table(),
            "calibrator": None if remedy is None else remedy.chosen.name,
            "metrics_calibrated": None if remedy is None else remedy.entry.metrics,
            "advice": None if remedy is None else asdict(remedy.advice),
            "exported": self.exported,
            "next": self.next_command,
        }


@dataclass(frozen=True)
class Evidence:
    """What the model makes of the texts that it is measured on."""

    logits: NDArray[np.float64]  # (n, K), of test
    labels: NDArray[np.integer]  # (n,)
    ood_logits: NDArray[np.float64] | None  # (m, K)

    def entry(self, name: str, calibrator: Calibrator | None) -> Entry:
        """With this calibrator."""

        def probabilities(z: NDArray[np.float64]) -> NDArray[np.float64]:
            p: NDArray[np.float64] = softmax(z, axis=1) if calibrator is None else calibrator.probabilities(z)
            return p

        test = Prediction(probabilities(self.logits), self.labels)
        ood = None if self.ood_logits is None else Prediction(probabilities(self.ood_logits))
        return Entry(name, test, ood, evaluate(test, ood))


def audit(
    model: str,
    test: str,
    ood: str | None = None,
    dev: str | None = None,
    text_column: str = "text",
    label_column: str = "label",
    max_length: int | None = None,
    export: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Measure a model on test and on unfamiliar text; with dev texts, fit calibrators and give advice.

    The calibrator is chosen by dev alone, so that what is measured on test does not flatter it.

    Args:
        model: a directory or a hub id.
        test: a labelled file.
        ood: a file of unfamiliar texts.
        dev: another labelled file.
        text_column, label_column: of the files.
        max_length: in tokens; what the model can take where it is not given.
        export: where to write the model with its calibrator folded in.
        progress: told of each batch.
    """
    question = Question(model, test, ood, dev, text_column, label_column, max_length, export)
    texts = _read(question)
    provenance = {part: these.provenance() for part, these in texts.items()}
    subject = Subject(model, max_length)
    if export is not None:
        check_plain(subject.model)
    labelled = [part for part in texts if part != "ood"]
    ids = match_labels([texts[part] for part in labelled], subject.label_names)
    labels = dict(zip(labelled, ids, strict=True))
    logits = {part: subject.logits(these, progress, part) for part, these in texts.items()}

    evidence = Evidence(logits["test"], labels["test"], logits.get("ood"))
    as_it_is = evidence.entry(model, None)
    found = miscalibration(as_it_is.test)
    words = in_words(as_it_is.metrics, found, len(subject.label_names))
    remedy = None
    if "dev" in texts:
        fitted = candidates(logits["dev"], labels["dev"], progress)
        remedy = _remedy(as_it_is, found, evidence, fitted)
    next_command = _next(question, remedy, subject)  # asked before folding, which changes the model
    exported = None
    if remedy is not None and export is not None and remedy.chosen.calibrator is not None:
        exported = _export(export, subject, remedy, provenance, progress)
    return Audit(subject.max_length, provenance, as_it_is, found, words, remedy, exported, next_command)


def _read(question: Question) -> dict[str, Texts]:
    """Test, and ood and dev where they are given; refuse first what would fail after all the work."""
    if (Path(question.model) / RECORD).exists():
        raise UserError(
            f"{question.model} is a run of calibrant's; measure it with `calibrant evaluate`, or audit its "
            f"plain model, {question.model}/model."
        )
    if question.export is not None:
        if question.dev is None:
            raise UserError(
                "--export writes the model with a calibrator, which is fitted on --dev; name one."
            )
        check_target(question.export, onnx=False)
    columns = question.text_column, question.label_column
    texts = {"test": read_file(question.test, *columns, labelled=True)}
    if question.ood is not None:
        texts["ood"] = read_file(question.ood, *columns)
    if question.dev is not None:
        texts["dev"] = read_file(question.dev, *columns, labelled=True)
        if len(texts["dev"]) < FEWEST_DEV_TEXTS:
            raise UserError(
                f"{question.dev}: {len(texts['dev'])} dev texts are too few to choose a calibrator by; give "
                f"{FEWEST_DEV_TEXTS} or more, better some hundreds."
            )
        warn_of_overlap(texts["dev"], texts["test"])
    return texts


def _remedy(as_it_is: Entry, found: Miscalibration, evidence: Evidence, fitted: list[Candidate]) -> Remedy:
    entries = {
        candidate.name: evidence.entry(f"with {candidate.name}", candidate.calibrator) for candidate in fitted
    }
    chosen = choose(fitted)
    after = entries[chosen.name]
    advice = advise(
        found,
        None if chosen.calibrator is None else chosen.calibrator.summary(),
        as_it_is.metrics,
        after.metrics,
        classes=after.test.probabilities.shape[1],
    )
    return Remedy(fitted, {name: entry.metrics for name, entry in entries.items()}, chosen, after, advice)


def _next(question: Question, remedy: Remedy | None, subject: Subject) -> str:
    """What to type now."""
    name = Path(question.model).name
    if remedy is None:
        return question.command("audit", dev="dev.csv")
    if remedy.advice.action == "retrain":
        # A model that training cannot take apart, such as a decoder, gives way to the default encoder.
        model = question.model if subject.can_be_trained_again() else None
        gone = dict.fromkeys(("test", "ood", "export"))
        return question.command(
            "train", train="train.csv", **gone, model=model, method="manifold-smoothing", out=f"runs/{name}"
        )
    if remedy.advice.action == "calibrate":
        if question.export is None:
            return question.command("audit", export=f"{name}-calibrated")
        return question.command("audit", model=question.export, export=None)  # the same questions to it
    return question.command("audit", report="audit.html", export=None)


def _export(
    folder: str, subject: Subject, remedy: Remedy, provenance: dict[str, Any], progress: Progress | None
) -> str:
    """The model with the chosen calibrator, as ``calibrant export`` writes a run."""
    labels, about = subject.label_names, provenance["dev"]
    measured = {"metrics": remedy.entry.metrics, "measured_on": provenance}
    lines = [
        *FRONT,
        f"# A text classifier of {len(labels)} classes, calibrated with calibrant",
        "",
        *use_in_words(subject.max_length, onnx=False),
        "## Calibration",
        "",
        f"Calibrator: `{remedy.chosen.name}`, fitted on {about['n']} texts ({about['source']}). {FOLDED}",
        "",
        *figures_in_words(measured, len(labels)),
        "",
    ]
    model, tokenizer, calibrator = subject.model, subject.tokenizer, remedy.chosen.calibrator
    card, length = "\n".join(lines), subject.max_length
    write_plain(folder, model, tokenizer, calibrator, length, card, onnx=False, progress=progress)
    return folder
