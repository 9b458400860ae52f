"""What a run becomes: a classifier, and the only prediction loop."""

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import calibrant.models  # noqa: F401  so that transformers knows our own architectures when a run is loaded
from calibrant._system.device import device
from calibrant._system.quiet import quiet
from calibrant.calibrators import Calibrator, calibrated
from calibrant.data.encode import check_texts, cut, encode, model_inputs
from calibrant.data.files import NoColumn
from calibrant.data.splits import check_labels
from calibrant.decide.rule import Rule
from calibrant.decide.sets import SetRule, fit_sets
from calibrant.errors import NotWritten, UserError
from calibrant.inference import Inference, SinglePass, inferences
from calibrant.models import fast
from calibrant.models.pretrained import load_saved
from calibrant.registry import pick
from calibrant.runs import dev as kept
from calibrant.runs import hub, store
from calibrant.runs.scores import is_saved, load_score, save_scores
from calibrant.runs.texts import columns_of, dev_texts, own_train
from calibrant.scores import Score, scores
from calibrant.types import Decision, Needs, Outputs, Prediction, Progress, Text, Texts

logger = logging.getLogger(__name__)
BATCH_SIZE = 32
NOTHING_MORE: Needs = frozenset()


@torch.inference_mode()
def outputs_of(
    inference: Inference,
    models: Sequence[Any],
    rows: Sequence[Sequence[int]],
    padding: int,
    needs: Needs = NOTHING_MORE,
    progress: Progress | None = None,
    label: str = "predict",
) -> Outputs:
    """What models, in evaluation mode, say of tokenised texts."""
    found = {"logits": np.empty((len(rows), models[0].config.num_labels), dtype=np.float32)}
    for chosen, inputs in _batches(rows, padding, models[0].device, progress, label):
        for name, part in inference.outputs(models, needs=needs, **inputs).items():
            if name not in found:
                found[name] = np.empty((len(rows), *part.shape[1:]), dtype=np.float32)
            found[name][chosen] = part.float().cpu().numpy()
    return Outputs(found.pop("logits").astype(np.float64), **found)


def _batches(
    rows: Sequence[Sequence[int]],
    padding: int,
    device: torch.device,
    progress: Progress | None,
    label: str,
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """The prediction loop: which texts, and what the models take of them.

    Texts of like length share a batch, so that little padding is computed.
    """
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]), reverse=True)
    for start in range(0, len(order), BATCH_SIZE):
        chosen = order[start : start + BATCH_SIZE]
        inputs = model_inputs([rows[i] for i in chosen], padding)
        yield chosen, {name: values.to(device) for name, values in inputs.items()}
        if progress is not None:
            progress(label, start + len(chosen), len(order))


@dataclass(eq=False)
class Classifier:
    """Models with all that it takes to answer. ``calibrant.load`` makes one of a run.

    One that was made otherwise (somebody else's model, or a run's weights asked in another way) has no
    ``run``: no rule, no sets and no fitted scores, which belong to a run as it answers by itself.
    """

    models: Sequence[Any] = field(repr=False)  # the members, in evaluation mode
    tokenizer: Any = field(repr=False)
    label_names: tuple[str, ...]  # K, in the order of the columns of ``predict_proba``
    max_length: int
    inference: Inference = field(default_factory=SinglePass)
    calibrator: Calibrator | None = None
    run: store.Run | None = field(default=None, repr=False)
    _not_kept: kept.DevAnswers | None = field(default=None, init=False, repr=False)  # in a read-only run

    def __repr__(self) -> str:
        run = "" if self.run is None else f"{str(self.run.path)!r}, "
        calibrator = None if self.calibrator is None else self.calibrator.name
        return f"Classifier({run}{len(self.label_names)} classes, calibrator={calibrator!r})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The K classes, in the order of the columns of ``predict_proba`` and of ``Outputs``."""
        return self.label_names

    def __post_init__(self) -> None:
        for model in self.models:
            fast.apply(model.to(device()).eval())

    def outputs(
        self,
        texts: Sequence[Text],
        needs: Needs = NOTHING_MORE,
        progress: Progress | None = None,
        label: str = "predict",
    ) -> Outputs:
        """What the models say of each text or pair, and what the calibrator makes of it, of one pass."""
        needs |= self._calibrator_needs
        rows, padding = self._rows(texts), self.tokenizer.pad_token_id
        said = outputs_of(self.inference, self.models, rows, padding, needs, progress, label)
        if not rows:
            return said
        answered = calibrated(said, self.calibrator)
        if not np.isfinite(answered.probabilities).all():
            raise UserError(
                "The model answers with NaN or infinity: its weights or its calibrator are damaged; restore "
                "them, or train again."
            )
        return answered

    def predict_proba(
        self, texts: Sequence[Text], progress: Progress | None = None, label: str = "predict"
    ) -> NDArray[np.floating]:
        """Class probabilities, (n, K): the calibrator's, if any; columns in the order of ``labels``."""
        return self.outputs(texts, progress=progress, label=label).probabilities

    def predict(
        self, texts: Sequence[Text], threshold: float | None = None, progress: Progress | None = None
    ) -> list[Decision]:
        """A label, its confidence and whether to abstain, for each text, or pair (text, second text).

        The rule stored with the run says when to abstain; a ``threshold`` on the confidence takes its place,
        and 0 answers everything.
        """
        rule = self.rule if threshold is None else Rule(threshold)
        outputs = self.outputs(texts, rule.needs, progress)
        decisions = []
        told = outputs.familiarity
        familiarity = [None] * len(outputs) if told is None else told.tolist()
        rows = zip(outputs.probabilities, familiarity, rule.answers(outputs), strict=True)
        for row, pi, answered in rows:
            best = int(row.argmax())
            probabilities = dict(zip(self.label_names, map(float, row), strict=True))
            decisions.append(
                Decision(self.label_names[best], float(row[best]), pi, not answered, probabilities)
            )
        return decisions

    def cut(self, texts: Sequence[Text]) -> list[bool]:
        """Whether each text is longer than the model reads."""
        return cut(self.tokenizer, self._checked(texts), self.max_length)

    @cached_property
    def rule(self) -> Rule:
        """When to answer, as stored with the run; always, where nothing is."""
        stored = None if self.run is None else self.run.record.threshold
        if self.run is None or stored is None:
            return Rule(threshold=0.0)
        rule, threshold = stored.rule, np.array(stored.rule.threshold)
        if rule.thresholds is not None:
            threshold = np.array([rule.thresholds.get(name, np.inf) for name in self.label_names])
        if rule.score is None or rule.cut is None:
            return Rule(threshold)
        return Rule(threshold, load_score(self.run, rule.score), rule.cut)

    def predict_set(
        self,
        texts: Sequence[Text],
        coverage: float = 0.9,
        method: str = "lac",
        per_class: bool = False,
        progress: Progress | None = None,
    ) -> list[list[str]]:
        """The labels that a text may have, most probable first: the true one is among them for ``coverage``
        of the texts like those of dev. ``method`` is "lac" (smallest sets) or "aps" (larger where unsure).
        """
        rule = self.set_rule(coverage, method, per_class)
        return rule.labels(self.predict_proba(texts, progress), self.label_names)

    def set_rule(self, coverage: float = 0.9, method: str = "lac", per_class: bool = False) -> SetRule:
        """Which labels are in a set, from what the run answered on dev."""
        run = self.own_run("Sets")
        answers = self.kept_answers()
        if answers is None:
            raise UserError(
                f"{run.path} keeps no answers on dev yet, which sets are fitted on; call "
                "`classifier.answer_dev()` first, once."
            )
        if flaw := self.by_heart(answers):
            warnings.warn(
                f"{flaw}, so that sets hold the true label less often than asked; name other labelled texts "
                "with --dev.",
                stacklevel=2,
            )
        p = calibrated(answers.outputs, self.calibrator).probabilities
        return fit_sets(p, answers.labels, coverage, method, per_class, self.label_names)

    def kept_answers(self) -> kept.DevAnswers | None:
        """What the run keeps of its answers on dev; None where it keeps none."""
        if self._not_kept is not None:
            return self._not_kept
        return kept.read(self.own_run("Answers on dev"), self._calibrator_needs)

    def answer_dev(self, dev: Path | str | None = None, progress: Progress | None = None) -> kept.DevAnswers:
        """The run's answers on dev: those it keeps, or where it keeps none its own dev texts' from now on.

        ``dev`` names a labelled file, with columns as in training, to be answered and kept instead. Sets
        promise more on texts that chose neither the weights nor the calibrator, as the run's own did.
        """
        run, before = self.own_run("Answers on dev"), self.kept_answers()
        if before is not None and dev is None:
            return before
        answers = self.answers_on(dev, progress)
        if before is None or before.texts.fingerprint != answers.texts.fingerprint:
            try:
                kept.write(run, answers)
                if dev is not None:
                    logger.info("%s keeps its answers on %s: sets are now fitted on these", run.path, dev)
            except NotWritten as error:
                self._not_kept = answers
                warnings.warn(f"The answers on dev are not kept with the run. {error}", stacklevel=2)
        return answers

    def answers_on(self, dev: Path | str | None, progress: Progress | None = None) -> kept.DevAnswers:
        """Its answers on a labelled file, or on its own dev texts; this keeps none of them."""
        run = self.own_run("Answers on dev")
        try:
            texts = dev_texts(run, dev, columns_of(run))
        except NoColumn as error:
            raise UserError(
                f"--dev {dev}: no column {error.column!r}, and its columns are those of training; rename it."
            ) from error
        before = self.kept_answers()
        if before is not None and before.texts.fingerprint == texts.fingerprint:
            return before
        outputs = self.outputs(texts.texts, progress=progress, label="dev")
        # As they are kept: what a calibrator makes of them changes with it.
        return kept.DevAnswers(replace(outputs, calibrated=None), self.class_ids(texts), texts.provenance())

    def by_heart(self, answers: kept.DevAnswers) -> str | None:
        """What is wrong with dev texts that the calibrator was fitted on; None where nothing is."""
        stored = self.own_run("Answers on dev").record.calibrator
        return None if stored is None else stored.by_heart(answers.texts)

    def usable_scores(self) -> list[str]:
        """The names of all scores that say something of this classifier."""
        return [name for name, kind in scores().items() if self._usable(kind)]

    def fitted_scores(self, names: Iterable[str], progress: Progress | None = None) -> dict[str, Score]:
        """Scores by name, ready to use: ``scores["knn"](classifier.outputs(texts, {"features"}))`` is (n,).

        Those that learn and are not saved with the run yet are fitted on its training texts, all in one
        pass over these, and saved.
        """
        kinds = {name: pick("score", name, scores()) for name in names}
        for name, kind in kinds.items():
            if not self._usable(kind):
                raise UserError(
                    f"The score {name!r} says nothing of a run that averages several passes "
                    f"({self.inference.name}); take another of {', '.join(self.usable_scores())}."
                )
        if not any(kind.learns for kind in kinds.values()):
            return {name: kind() for name, kind in kinds.items()}
        run = self.own_run("Fitted scores")
        missing: list[Any] = [k() for name, k in kinds.items() if k.learns and not is_saved(run, name)]
        if missing:
            train = own_train(run, ", ".join(score.name for score in missing))
            needs = NOTHING_MORE.union(*(score.needs for score in missing))
            outputs = self.outputs(train.texts, needs, progress, f"train {run.name}")
            labels = self.class_ids(train)
            missing = [score.fit(outputs, labels) for score in missing]
            try:
                self.run = run = save_scores(run, missing)
            except NotWritten as error:
                warnings.warn(f"Fitted scores are not kept with the run. {error}", stacklevel=2)
        fresh = {score.name: score for score in missing}
        return {name: fresh[name] if name in fresh else load_score(run, name) for name in kinds}

    def prediction(
        self, texts: Texts, progress: Progress | None = None, label: str = "predict"
    ) -> Prediction:
        """Probabilities and familiarity, beside the true classes where the texts have labels."""
        labels = None if texts.labels is None else self.class_ids(texts)
        outputs = self.outputs(texts.texts, progress=progress, label=label)
        return Prediction(outputs.probabilities, labels, outputs.familiarity)

    def class_ids(self, texts: Texts) -> NDArray[np.integer]:
        """The true classes of labelled texts, (n,); refused where training never saw the label."""
        check_labels(texts, self.label_names)
        class_of = {name: i for i, name in enumerate(self.label_names)}
        return np.array([class_of[name] for name in texts.labels or ()])

    def own_run(self, what: str) -> store.Run:
        """The run; refused where this classifier has none."""
        if self.run is None:
            raise UserError(f"{what} belong to a run as it answers by itself; take calibrant.load(run).")
        return self.run

    @property
    def _calibrator_needs(self) -> Needs:
        return NOTHING_MORE if self.calibrator is None else self.calibrator.needs

    def _usable(self, kind: type[Score]) -> bool:
        return not (kind.needs_own_logits and self.inference.averages)

    def _rows(self, texts: Sequence[Text]) -> list[list[int]]:
        """Token ids of each text, once all have been looked at."""
        found = self._checked(texts)
        return encode(self.tokenizer, found, self.max_length) if found else []

    def _checked(self, texts: Sequence[Text]) -> list[str]:
        return check_texts(texts, None if self.run is None else self.run.config.pair_column is not None)


@quiet()
def of_run(run: store.Run) -> Classifier:
    """The classifier of a run whose models are all there."""
    calibrator, inference = run.calibrator(), _inference(run)
    models, tokenizer = load_saved(run.model_dirs)
    for folder, model in zip(run.model_dirs, models, strict=True):
        if model.config.id2label != dict(enumerate(run.label_names)):
            raise UserError(
                f"{folder}/config.json has other labels (id2label) than the run's record; restore both, or "
                "train again."
            )
    return Classifier(
        models=models,
        tokenizer=tokenizer,
        label_names=run.label_names,
        max_length=run.config.max_length,
        inference=inference,
        calibrator=calibrator,
        run=run,
    )


def _inference(run: store.Run) -> Inference:
    settings = dict(run.record.inference)
    kind = pick("inference", settings.pop("name"), inferences())
    try:
        return kind(**settings)
    except TypeError as error:
        raise UserError(f"{run.path}: the record's inference is damaged ({error}); restore it.") from error


def load(path: Path | str) -> Classifier:
    """The classifier of a run directory, or of a run on the hub, as in "user/model"."""
    if isinstance(path, str) and hub.is_hub_name(path):
        path = hub.fetch(path)
    run = store.load(path)
    try:
        return of_run(run)
    except UserError:
        if run.stored() == run:
            raise
    return load(path)  # it has got another calibrator between the reading of the two
