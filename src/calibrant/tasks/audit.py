"""``calibrant audit``: measure a classifier that somebody else trained, and say what to do."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from calibrant._system.progress import in_notebook
from calibrant.audits.heard import hear
from calibrant.audits.question import Question
from calibrant.audits.remedy import Remedy, find_remedy
from calibrant.classifier import Classifier
from calibrant.data.named import as_name
from calibrant.decide.advice import in_words
from calibrant.exports.checked import checked
from calibrant.metrics.miscalibration import Miscalibration, miscalibration
from calibrant.models.split import can_be_split
from calibrant.pages.entry import Entry
from calibrant.runs.card import FOLDED, FRONT, Form, code, figures_in_words, use_in_words
from calibrant.tasks.export import write_folder
from calibrant.types import Progress


@dataclass(frozen=True)
class Audit:
    """What was found."""

    max_length: int | None  # None where no model was asked
    texts: dict[str, Any]  # where test, ood and dev come from
    as_it_is: Entry
    miscalibration: Miscalibration
    words: list[str]  # the same as sentences
    remedy: Remedy | None  # None without dev
    exported: str | None
    next_command: str

    def __repr__(self) -> str:
        return f"Audit({self.as_it_is!r}, next: {self.next_command!r})"

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
            "calibrator_state": None
            if remedy is None or remedy.chosen.calibrator is None
            else remedy.chosen.calibrator.state(),
            "metrics_calibrated": None if remedy is None else remedy.entry.metrics,
            "metrics_familiarity": None
            if remedy is None or remedy.familiar is None
            else remedy.familiar.metrics,
            "advice": None if remedy is None else asdict(remedy.advice),
            "exported": self.exported,
            "next": self.next_command,
        }


def audit(
    model: Path | str | None = None,
    *,
    test: Path | str,
    ood: Path | str | None = None,
    dev: Path | str | None = None,
    train: Path | str | None = None,
    text_column: str = "text",
    label_column: str = "label",
    pair_column: str | None = None,
    max_length: int | None = None,
    export: Path | str | None = None,
    probabilities: Path | str | None = None,
    dev_probabilities: Path | str | None = None,
    ood_probabilities: Path | str | None = None,
    progress: Progress | None = in_notebook,
) -> Audit:
    """Measure a classifier on test and on unfamiliar text; with dev texts, fit calibrators and give advice.

    The calibrator is chosen by dev alone, so that what is measured on test does not flatter it.

    Args:
        model: a directory or a hub id; or give ``probabilities``.
        test: a labelled file.
        ood: a file of unfamiliar texts.
        dev: another labelled file.
        train: texts that the model was trained on, or like them: familiarity is a distance from these. Where
            they are not given, half of dev takes their place.
        text_column, label_column: of the files.
        pair_column: of the second texts, where the classifier reads pairs.
        max_length: in tokens; what the model can take where it is not given.
        export: where to write the model with its calibrator folded in.
        probabilities, dev_probabilities, ood_probabilities: what any other classifier says of these files, a
            row (K,) for each text: ``.npy``, or ``.csv`` with a header of class names.
        progress: told of each batch.
    """
    subjects = (model, probabilities, dev_probabilities, ood_probabilities)
    model, probabilities, dev_probabilities, ood_probabilities = map(as_name, subjects)
    export = as_name(export)
    question = Question(
        *(model, str(test), as_name(ood), as_name(dev), as_name(train)),
        *(text_column, label_column, pair_column, max_length, export),
        *(probabilities, dev_probabilities, ood_probabilities),
    )
    question.check()
    texts = question.read()
    provenance = {part: asdict(these.provenance()) for part, these in texts.items()}
    heard = hear(question, texts, progress)
    as_it_is = heard.entry(model or probabilities or "", None)
    found = miscalibration(as_it_is.test)
    words = in_words(as_it_is.metrics, found, len(heard.label_names))
    remedy = None if dev is None else find_remedy(heard, as_it_is, found, progress)
    subject, exported = heard.subject, None
    next_command = _next(question, remedy, subject)  # asked before folding, which changes the model
    if (
        export is not None
        and subject is not None
        and remedy is not None
        and remedy.chosen.calibrator is not None
    ):
        exported = _export(export, subject, remedy, provenance)
    length = None if subject is None else subject.max_length
    return Audit(length, provenance, as_it_is, found, words, remedy, exported, next_command)


def _next(question: Question, remedy: Remedy | None, subject: Classifier | None) -> str:
    """What to type now."""
    name = Path(question.model).name if question.model else Path(question.probabilities or "").stem
    if remedy is None:
        more = {} if subject is not None else {"dev_probabilities": "dev.npy"}
        return question.command("audit", dev="dev.csv", **more)
    if remedy.advice.action == "retrain":
        # A model that training cannot take apart, such as a decoder, gives way to the default encoder.
        model = question.model if subject is not None and can_be_split(subject.models[0]) else None
        said = ("probabilities", "dev_probabilities", "ood_probabilities")
        gone = dict.fromkeys(("test", "ood", "export", *said))
        train = question.train or "train.csv"
        return question.command("train", **gone, train=train, model=model, out=f"runs/{name}")
    if remedy.advice.action == "calibrate" and subject is not None:
        if question.export is None:
            return question.command("audit", export=f"{name}-calibrated")
        return question.command("audit", model=question.export, export=None)  # the same questions to it
    return question.command("audit", report="audit.html", export=None)


def _export(folder: str, subject: Classifier, remedy: Remedy, provenance: dict[str, Any]) -> str:
    """The model with the chosen calibrator, as ``calibrant export`` writes a run."""
    labels, about = subject.label_names, provenance["dev"]
    measured = {"metrics": remedy.entry.metrics, "measured_on": provenance}
    lines = [
        FRONT,
        f"# A text classifier of {len(labels)} classes, calibrated with calibrant",
        "",
        *use_in_words(Form(Path(folder).name, subject.max_length)),
        "## Calibration",
        "",
        f"Calibrator: {code(remedy.chosen.name)}, fitted on {about['n']} texts ({code(about['source'])}). "
        f"{FOLDED}",
        "",
        *figures_in_words(measured, len(labels)),
        "",
    ]
    mended = replace(subject, calibrator=remedy.chosen.calibrator)
    mended.models[0].cpu()
    write_folder(folder, mended, checked(mended), "\n".join(lines), {})
    return folder
