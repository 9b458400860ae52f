"""``calibrant audit``: measure a classifier that somebody else trained, and say what to do."""

import shlex
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from calibrant._system.progress import in_notebook
from calibrant._system.quiet import quiet
from calibrant.calibrators import Calibrator, calibrated, new_calibrator
from calibrant.classifier import Classifier
from calibrant.data.files import read_file
from calibrant.data.labels import match_labels
from calibrant.data.probabilities import class_names, read_probabilities
from calibrant.data.splits import warn_of_overlap
from calibrant.decide.advice import Advice, Candidate, advise, candidates, choose, in_words
from calibrant.errors import UserError
from calibrant.exports.checked import checked
from calibrant.exports.plain import check_plain, check_target
from calibrant.methods import TEMPERATURE_THEN_FAMILIARITY
from calibrant.metrics.base import check_probabilities
from calibrant.metrics.measure import measure
from calibrant.metrics.miscalibration import Miscalibration, miscalibration
from calibrant.models.pretrained import load_trained, longest_text
from calibrant.models.split import can_be_split
from calibrant.pages.entry import Entry
from calibrant.runs.card import FOLDED, FRONT, Form, code, figures_in_words, use_in_words
from calibrant.runs.place import FILE as RECORD
from calibrant.tasks.export import write_folder
from calibrant.types import Needs, Outputs, Prediction, Progress, Texts

SAME = 1e-4  # probabilities that differ by rounding only
FEWEST_DEV_TEXTS = 20
LEAST = 1e-12  # what a probability of 0 counts as: it has no logarithm


@dataclass(frozen=True)
class Question:
    """What is to be audited: the arguments of ``audit``, as a user types them."""

    model: str | None
    test: str
    ood: str | None = None
    dev: str | None = None
    train: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    pair_column: str | None = None
    max_length: int | None = None
    export: str | None = None
    probabilities: str | None = None
    dev_probabilities: str | None = None
    ood_probabilities: str | None = None

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
    familiar: Entry | None  # the model with a temperature and familiarity, where they could be fitted
    advice: Advice


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


@dataclass(frozen=True)
class Heard:
    """What a classifier says of all texts, and what they are."""

    outputs: dict[str, Outputs]  # of test, and of ood, dev and train where they are given
    labels: dict[str, NDArray[np.integer]]  # (n,) of each but ood
    label_names: tuple[str, ...]
    subject: Classifier | None = None  # None where only its probabilities are known


@dataclass(frozen=True)
class Evidence:
    """What the model says of the texts that it is measured on."""

    test: Outputs
    labels: NDArray[np.integer]  # (n,), of test
    ood: Outputs | None
    label_names: tuple[str, ...]

    def entry(self, name: str, calibrator: Calibrator | None) -> Entry:
        """With this calibrator."""
        test = Prediction(calibrated(self.test, calibrator).probabilities, self.labels)
        ood = None if self.ood is None else Prediction(calibrated(self.ood, calibrator).probabilities)
        return Entry(name, test, ood, measure(test, ood), self.label_names)


def audit(
    model: str | None = None,
    *,
    test: str,
    ood: str | None = None,
    dev: str | None = None,
    train: str | None = None,
    text_column: str = "text",
    label_column: str = "label",
    pair_column: str | None = None,
    max_length: int | None = None,
    export: str | None = None,
    probabilities: str | None = None,
    dev_probabilities: str | None = None,
    ood_probabilities: str | None = None,
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
    question = Question(
        *(model, test, ood, dev, train, text_column, label_column, pair_column, max_length, export),
        *(probabilities, dev_probabilities, ood_probabilities),
    )
    _check(question)
    texts = _read(question)
    provenance = {part: asdict(these.provenance()) for part, these in texts.items()}
    familiarity = new_calibrator(TEMPERATURE_THEN_FAMILIARITY)
    if model is not None:
        heard = _asked(model, question, texts, familiarity.needs, progress)
    else:
        heard = _given(question, texts)
    said, labels, names, subject = heard.outputs, heard.labels, heard.label_names, heard.subject

    evidence = Evidence(said["test"], labels["test"], said.get("ood"), names)
    as_it_is = evidence.entry(model or probabilities or "", None)
    found = miscalibration(as_it_is.test)
    words = in_words(as_it_is.metrics, found, len(names))
    remedy = None
    if "dev" in texts:
        fitted = candidates(said["dev"], labels["dev"], progress)
        familiar = None if said["dev"].features is None else _familiar(familiarity, said, labels)
        remedy = _remedy(as_it_is, found, evidence, fitted, familiar)
    next_command = _next(question, remedy, subject)  # asked before folding, which changes the model
    exported = None
    if (
        remedy is not None
        and subject is not None
        and export is not None
        and remedy.chosen.calibrator is not None
    ):
        exported = _export(export, subject, remedy, provenance, progress)
    length = None if subject is None else subject.max_length
    return Audit(length, provenance, as_it_is, found, words, remedy, exported, next_command)


def _asked(
    model: str, question: Question, texts: dict[str, Texts], needs: Needs, progress: Progress | None
) -> Heard:
    """The model itself; for what familiarity needs only where that can be fitted."""
    subject = _subject(model, question.max_length)
    if question.export is not None:
        check_plain(subject.models[0])
    labelled = [part for part in texts if part != "ood"]
    ids = match_labels([texts[part] for part in labelled], subject.label_names)
    if "dev" not in texts or not can_be_split(subject.models[0]):
        needs = frozenset()
    said = {
        part: subject.outputs(these.texts, needs, progress=progress, label=part)
        for part, these in texts.items()
    }
    return Heard(said, dict(zip(labelled, ids, strict=True)), subject.label_names, subject)


def _given(question: Question, texts: dict[str, Texts]) -> Heard:
    """What somebody else's classifier has said: log p stands for its logits."""
    paths = {
        "test": question.probabilities,
        "ood": question.ood_probabilities,
        "dev": question.dev_probabilities,
    }
    files = {part: read_probabilities(path) for part, path in paths.items() if path is not None}
    for part, file in files.items():
        if len(file.values) != len(texts[part]):
            raise UserError(
                f"{file.path} has {len(file.values)} rows for the {len(texts[part])} texts of --{part}; give "
                "a row for each, in the same order."
            )
        try:
            check_probabilities(file.values)
        except UserError as error:
            raise UserError(f"{file.path}: {error}") from error
    labelled = {part: these for part, these in texts.items() if part != "ood"}
    names = class_names(list(files.values()), labelled.values())
    class_of = {name: i for i, name in enumerate(names)}
    said = {
        part: Outputs(np.log(np.clip(file.values.astype(np.float64), LEAST, 1.0)))
        for part, file in files.items()
    }
    labels = {
        part: np.array([class_of[label] for label in these.labels or ()]) for part, these in labelled.items()
    }
    return Heard(said, labels, names)


@quiet()
def _subject(name: str, max_length: int | None) -> Classifier:
    """A model that somebody else trained, of which nothing is asked but its forward pass."""
    model, tokenizer = load_trained(name)
    names = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
    subject = Classifier([model], tokenizer, names, longest_text(tokenizer, max_length))
    # One that reads the padding behind a text, as XLNet does: its figures would be wrong.
    alone, beside = (softmax(subject.outputs(texts).logits[0]) for texts in (["a"], ["a", "a a a a a a a a"]))
    if not np.abs(alone - beside).max() <= SAME:  # so that NaN fails
        raise UserError(
            f"{type(model).__name__} gives a text other probabilities when it is padded on the right to the "
            "length of another, and cannot be measured."
        )
    return subject


def _check(question: Question) -> None:
    """Refuse options that do not go together."""
    given = question.probabilities
    if (question.model is None) == (given is None):
        raise UserError(
            "Give either --model, or --probabilities of another classifier for the texts of --test."
        )
    if given is not None:
        for option in ("train", "max_length", "export"):
            if getattr(question, option) is not None:
                raise UserError(
                    f"--{option.replace('_', '-')} asks for the model itself, and --probabilities are all "
                    "that is known of it; leave it out, or give --model."
                )
    for part in ("dev", "ood"):
        file, said = getattr(question, part), getattr(question, f"{part}_probabilities")
        if said is not None and (file is None or given is None):
            missing = "--probabilities" if given is None else f"--{part}"
            raise UserError(f"--{part}-probabilities goes with {missing}; name a file.")
        if given is not None and file is not None and said is None:
            raise UserError(f"--{part} has no --{part}-probabilities: what the classifier says of its texts.")
    if question.model is not None and (Path(question.model) / RECORD).exists():
        raise UserError(
            f"{question.model} is a run of calibrant's; measure it with `calibrant evaluate`, or audit its "
            f"plain model, {question.model}/model."
        )
    if question.train is not None and question.dev is None:
        raise UserError("--train is where familiarity begins, which is fitted on --dev; name one.")
    if question.export is not None:
        if question.dev is None:
            raise UserError(
                "--export writes the model with a calibrator, which is fitted on --dev; name one."
            )
        check_target(question.export)


def _read(question: Question) -> dict[str, Texts]:
    """Test, and ood and dev where they are given; refuse first what would fail after all the work."""
    columns = question.text_column, question.label_column, question.pair_column
    texts = {"test": read_file(question.test, *columns, labelled=True)}
    if question.ood is not None:
        texts["ood"] = read_file(question.ood, *columns)
    if question.train is not None:
        texts["train"] = read_file(question.train, *columns, labelled=True)
    if question.dev is not None:
        texts["dev"] = read_file(question.dev, *columns, labelled=True)
        if len(texts["dev"]) < FEWEST_DEV_TEXTS:
            raise UserError(
                f"{question.dev}: {len(texts['dev'])} dev texts are too few to choose a calibrator by; give "
                f"{FEWEST_DEV_TEXTS} or more, better some hundreds."
            )
        warn_of_overlap(texts["dev"], texts["test"])
    return texts


def _familiar(
    calibrator: Calibrator, said: dict[str, Outputs], labels: dict[str, NDArray[np.integer]]
) -> Calibrator | None:
    """Fitted on dev, by the distance from train or from one half of dev; None where dev has too few texts."""
    dev, y = said["dev"], labels["dev"]
    known, rest = slice(0, None, 2), slice(1, None, 2)
    if "train" in said:
        train = said["train"], labels["train"]
    else:
        train, dev, y = (dev[known], y[known]), dev[rest], y[rest]
    try:
        return calibrator.fit(dev, y, train)
    except UserError:  # of the number of texts; what else dev says does not depend on it
        return None


def _remedy(
    as_it_is: Entry,
    found: Miscalibration,
    evidence: Evidence,
    fitted: list[Candidate],
    familiarity: Calibrator | None,
) -> Remedy:
    entries = {
        candidate.name: evidence.entry(f"with {candidate.name}", candidate.calibrator) for candidate in fitted
    }
    chosen = choose(fitted)
    after = entries[chosen.name]
    familiar = None if familiarity is None else evidence.entry("with familiarity", familiarity)
    advice = advise(
        found,
        None if chosen.calibrator is None else chosen.calibrator.summary(),
        as_it_is.metrics,
        after.metrics,
        None if familiar is None else familiar.metrics,
        classes=after.test.probabilities.shape[1],
    )
    on_test = {name: entry.metrics for name, entry in entries.items()}
    return Remedy(fitted, on_test, chosen, after, familiar, advice)


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


def _export(
    folder: str, subject: Classifier, remedy: Remedy, provenance: dict[str, Any], progress: Progress | None
) -> str:
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
