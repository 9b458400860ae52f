"""``calibrant monitor``: compare what a run answers on new texts with what it answered on dev."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._system.lock import alone
from calibrant._system.progress import in_notebook
from calibrant.calibrators import calibrated
from calibrant.classifier import Classifier, load
from calibrant.corpus import manifest
from calibrant.corpus.statistics import Statistics
from calibrant.corpus.statistics import then as then_of
from calibrant.data import datasets
from calibrant.data.named import read_named
from calibrant.data.splits import check_labels
from calibrant.decide.drift import (
    Interval,
    Shift,
    abstention_shift,
    calibration_error,
    confidence_shift,
    expected_accuracy,
    gap_shift,
    seen_from,
    share,
)
from calibrant.decide.follow import Counts, Followed, add_up
from calibrant.errors import UserError
from calibrant.runs import follow as kept_looks
from calibrant.runs.dev import DevAnswers
from calibrant.runs.record import ThresholdRecord
from calibrant.runs.store import Run
from calibrant.runs.texts import columns_of
from calibrant.types import Outputs, Progress, Provenance, Texts

TOLERANCE = 0.1
LARGE = 0.5
"""Texts are too few to tell if not even a move of so many of them would be seen."""


@dataclass(frozen=True)
class Side:
    """What is known of the dev texts, or of the new ones; None: nothing."""

    texts: Provenance
    confidence: float  # the mean
    accuracy: Interval | None = None
    ece: Interval | None = None
    abstained: Interval | None = None  # by the run's own rule, where it has one
    risk: Interval | None = None  # the share of wrong answers, abstentions left out


@dataclass(frozen=True)
class Monitored:
    """Then, now, and whether the difference is both more than chance and more than the tolerance.

    Where it follows, all looks so far decide, and there is no tolerance.
    """

    moved: bool | None  # None: too few texts to tell
    level: float
    tolerance: float
    confidence_shift: Shift
    gap_shift: Shift | None  # with labels
    abstention_shift: Shift | None  # where the run's rule has a score
    expected_accuracy: Interval  # now, from the confidence
    unseen_labels: int | None  # new texts whose label training never saw; their answers are wrong
    then: Side
    now: Side
    followed: Followed | None = None  # with --follow

    def __repr__(self) -> str:
        return f"Monitored(moved={self.moved}, {self.then.texts.n} dev texts, {self.now.texts.n} new ones)"


def monitor(
    run: Path | str,
    *,
    new: Path | str,
    dev: Path | str | None = None,
    level: float = 0.01,
    tolerance: float | None = None,
    follow: bool = False,
    restart: bool = False,
    text_column: str | None = None,
    label_column: str | None = None,
    pair_column: str | None = None,
    progress: Progress | None = in_notebook,
) -> Monitored:
    """Whether the texts of ``new`` are like dev's to the run.

    Args:
        run: its folder.
        new: a file of texts, or a dataset's name. Where there are labels, what they say is measured too. Or a
            folder that ``predict`` wrote: its manifest is read, and no text.
        dev: a labelled file, columns as in training, to compare with, this once [what the run keeps, or its
            dev texts].
        level: how often chance alone may say "moved"; all intervals are of 1 − level. Where it follows, that
            is at all looks together, for ever.
        tolerance: how far, as a share of texts, is not worth an alarm [0.1].
        follow: add these texts to all that were followed before, and let all of them decide.
        restart: forget those first.
        text_column: of ``new`` [as in training].
        label_column: of ``new``; named here, it must be there [as in training, if there].
        progress: told of each batch.
    """
    _check_options(level, tolerance, follow, restart)
    tolerance = TOLERANCE if tolerance is None else tolerance
    classifier, new = load(run), str(new)
    corpus = manifest.there(new)
    if corpus and (text_column or label_column or pair_column):
        raise UserError(f"{new}: the answers on a corpus, whose columns are not read; leave them out.")
    texts = None if corpus else _new_texts(classifier, new, text_column, label_column, pair_column)
    answers = classifier.answer_dev(None, progress) if dev is None else classifier.answers_on(dev, progress)
    if not follow and (flaw := classifier.by_heart(answers)):
        warnings.warn(
            f"{flaw}, so that new text may look moved that is not; name other labelled texts with --dev.",
            stacklevel=2,
        )
    said = calibrated(answers.outputs, classifier.calibrator)
    p = said.probabilities
    then, then_right = p.max(axis=1), p.argmax(axis=1) == answers.labels
    now = (
        _Now(*manifest.seen(new, classifier.own_run("Answers"), answers.texts))
        if texts is None
        else _asked(classifier, texts, said, progress)
    )
    seen, labelled = now.statistics.seen, now.labelled
    then_ruled = now_ruled = None
    stored = classifier.own_run("Rules").record.threshold
    if stored is not None:
        then_ruled = _ruled_then(classifier, stored, said, answers.texts, then_right)
        now_ruled = _Ruled(seen.m, now.statistics.abstained, None if labelled is None else labelled.wrong)
    shifts = {"confidence": confidence_shift(then, seen)}
    if labelled is not None:
        shifts["gap"] = gap_shift(then, then_right, labelled.confidence, labelled.right)
    if then_ruled is not None and now_ruled is not None and classifier.rule.score is not None:
        shifts["abstention"] = abstention_shift(
            then_ruled.abstained, then_ruled.n, now_ruled.abstained, now_ruled.n
        )
    all_looks = None
    if follow:
        looking = classifier.own_run("Looks")
        with alone(looking.path):  # nobody else's look is lost
            if restart:
                kept_looks.restart(looking)
            all_looks = _followed(looking, answers, now, level)
    return Monitored(
        moved=_moved(shifts, tolerance, level / len(shifts), len(then), seen.m, all_looks),
        level=level,
        tolerance=tolerance,
        confidence_shift=shifts["confidence"],
        gap_shift=shifts.get("gap"),
        abstention_shift=shifts.get("abstention"),
        expected_accuracy=expected_accuracy(then, then_right, seen, level),
        unseen_labels=None if labelled is None else labelled.unseen,
        then=Side(
            answers.texts,
            float(then.mean()),
            **_measured(then, then_right, level),
            **({} if then_ruled is None else then_ruled.intervals(level)),
        ),
        now=Side(
            now.texts,
            seen.mean,
            **({} if labelled is None else _measured(labelled.confidence, labelled.right, level)),
            **({} if now_ruled is None else now_ruled.intervals(level)),
        ),
        followed=all_looks,
    )


def _check_options(level: float, tolerance: float | None, follow: bool, restart: bool) -> None:
    if not 0 < level < 1:
        raise UserError(f"--level must lie between 0 and 1, both excluded, got {level:g}.")
    if restart and not follow:
        raise UserError("--restart goes with --follow: it forgets what was followed so far.")
    if follow and tolerance is not None:
        raise UserError("--tolerance is for a single look; with --follow leave it out.")
    if tolerance is not None and not 0 <= tolerance < 1:
        raise UserError(f"--tolerance must be 0 or more and below 1, got {tolerance:g}.")


def _moved(
    shifts: Mapping[str, Shift], tolerance: float, level: float, n: int, m: int, looks: Followed | None
) -> bool | None:
    """By all looks, where they are followed; else by the shifts, each at this level, of m texts from n."""
    if looks is not None:
        return looks.alarm_at is not None or (False if looks.enough else None)
    if any(shift.beyond(tolerance, level) for shift in shifts.values()):
        return True
    return None if seen_from(n, m, level) > LARGE else False


@dataclass(frozen=True, eq=False)
class _Labelled:
    """What labels say of the m new texts."""

    confidence: NDArray[Any]  # (m,)
    right: NDArray[Any]  # (m,)
    wrong: int  # of those that the run's rule answers
    unseen: int  # texts whose label training never saw


@dataclass(frozen=True, eq=False)
class _Now:
    """What is known of the new texts."""

    texts: Provenance
    statistics: Statistics
    labelled: _Labelled | None = None


def _asked(classifier: Classifier, texts: Texts, said: Outputs, progress: Progress | None) -> _Now:
    """Of texts, which are answered now."""
    outputs = classifier.outputs(texts.texts, classifier.rule.needs, progress)
    answered, about, labelled = classifier.rule.answers(outputs), texts.provenance(), None
    if texts.labels is not None:
        p = outputs.probabilities
        right = np.array(classifier.label_names)[p.argmax(axis=1)] == np.array(texts.labels)
        unseen = sum(label not in classifier.label_names for label in texts.labels)
        labelled = _Labelled(p.max(axis=1), right, int((answered & ~right).sum()), unseen)
    compared = then_of(classifier.calibrator, said)
    looked = compared.look(classifier.calibrator, outputs, answered, int(about.fingerprint, 16))
    return _Now(about, looked, labelled)


def _followed(run: Run, answers: DevAnswers, now: _Now, level: float) -> Followed:
    """What all looks say, this one included; the run keeps it. The same texts count once."""
    known = kept_looks.read(run, answers.texts)
    seen = [look.texts.fingerprint for look in known.looks]
    if now.texts.fingerprint in seen:
        warnings.warn(
            f"These very texts ({now.texts.source}) were counted before, as look "
            f"{seen.index(now.texts.fingerprint) + 1}, and are not counted again.",
            stacklevel=3,
        )
    else:
        look = kept_looks.Look(texts=now.texts, counts=now.statistics.followed)
        known = known.model_copy(update={"looks": [*known.looks, look]})
        kept_looks.write(run, known)
    looks: list[dict[str, Counts]] = [
        {name: np.array(counts) for name, counts in look.counts.items()} for look in known.looks
    ]
    return add_up(looks, answers.texts.n, level)


@dataclass(frozen=True)
class _Ruled:
    """What the run's rule does with n texts."""

    n: int
    abstained: int
    wrong: int | None  # of the answers; None without labels

    def intervals(self, level: float) -> dict[str, Interval]:
        """The share abstained, and the risk where it is known and anything is answered."""
        found = {"abstained": share(self.abstained, self.n, level)}
        if self.wrong is not None and self.abstained < self.n:
            found["risk"] = share(self.wrong, self.n - self.abstained, level)
        return found


def _ruled(answered: NDArray[Any], right: NDArray[Any] | None) -> _Ruled:
    wrong = None if right is None else int((answered & ~right).sum())
    return _Ruled(len(answered), int((~answered).sum()), wrong)


def _ruled_then(
    classifier: Classifier,
    stored: ThresholdRecord,
    said: Outputs,
    texts: Provenance,
    right: NDArray[Any],
) -> _Ruled | None:
    """On dev. For a rule that reads what is not kept there are but the figures that were stored with it, of
    the texts that it was learnt on; None where these are others."""
    if all(getattr(said, need) is not None for need in classifier.rule.needs):
        return _ruled(classifier.rule.answers(said), right)
    learnt_on = stored.learnt_on.dev
    if learnt_on.fingerprint != texts.fingerprint:
        warnings.warn(
            f"How many texts the rule of abstention turned away then is not known: it was learnt on "
            f"{learnt_on.source}; to compare with these, name them with --dev.",
            stacklevel=3,
        )
        return None
    answered = round(stored.dev.coverage * learnt_on.n)
    return _Ruled(learnt_on.n, learnt_on.n - answered, round(stored.dev.risk * answered))


def _new_texts(
    classifier: Classifier,
    new: str,
    text_column: str | None,
    label_column: str | None,
    pair_column: str | None,
) -> Texts:
    own = classifier.own_run("Comparisons")
    columns = columns_of(own, text_column, label_column, pair_column)
    texts = read_named(new, columns, own.config.source, labelled=None if label_column is None else True)
    if texts.labels is not None and not set(texts.labels) & set(classifier.label_names):
        if new not in datasets():  # the wrong column, most likely; a dataset of unfamiliar text is no mistake
            check_labels(texts, classifier.label_names)
        texts = replace(texts, labels=None)
    return texts


def _measured(confidence: NDArray[Any], right: NDArray[Any], level: float) -> dict[str, Interval]:
    return {
        "accuracy": share(int(right.sum()), len(right), level),
        "ece": calibration_error(confidence, right, level),
    }
