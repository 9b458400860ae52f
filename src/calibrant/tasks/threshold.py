"""``calibrant threshold``: learn when a finished run should answer, and keep the rule there."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant._system.progress import in_notebook
from calibrant.classifier import Classifier, load
from calibrant.data.named import read_named
from calibrant.decide.risk import Sample, Selection, make_plan, naive_selection, select, smallest_risk
from calibrant.decide.rule import Rule, cut
from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.runs.record import LearntOnRecord, OnDevRecord, PromiseRecord, RuleRecord, ThresholdRecord
from calibrant.runs.texts import columns_of, dev_texts, own_splits
from calibrant.scores.max_probability import MaxProbability
from calibrant.types import Outputs, Progress, Texts

DEFAULT_SCORE = MaxProbability.name
"""It needs no fitting and no features, and is what training for calibration improves on unfamiliar text."""

LARGEST_PILOT = 1000
"""So many of the run's own dev texts are enough to tell where a rule can be proved."""
OWN_PILOT = 1 / 3
"""The share of the texts that serves as the pilot where there are no others: see results/promises."""
SHARED = 0.05
"""More of the texts than this are no chance duplicates of the run's own."""


@dataclass(frozen=True)
class Unfamiliar:
    """Text that should not be answered, and the share of it that may be."""

    file: Path | str  # or a dataset's name
    rate: float
    score: str


@dataclass(frozen=True)
class Learnt:
    """The rule as stored in the run, and the naive threshold beside it."""

    stored: ThresholdRecord
    naive: dict[str, float] | None  # threshold, coverage and risk on dev; None where not even that exists
    never: tuple[str, ...] = ()  # classes for which nothing could be promised
    chosen_from: int = 0  # models that these texts chose from, where they are the run's own dev texts

    def __repr__(self) -> str:
        rule, promise, dev = self.stored.rule, self.stored.promise, self.stored.dev
        return f"Learnt(threshold={rule.threshold:.4f}, risk={promise.risk:g}, coverage={dev.coverage:.4f})"


def threshold(
    run: Path | str,
    *,
    risk: float,
    dev: Path | str | None = None,
    confidence: float = 0.95,
    per_class: bool = False,
    ood: Path | str | None = None,
    ood_rate: float | None = None,
    score: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    pair_column: str | None = None,
    progress: Progress | None = in_notebook,
) -> Learnt:
    """Find the rule that answers most while its promises hold, and store it in the run.

    The rule for unfamiliar text comes first, from those texts alone; the threshold is then learnt on the dev
    texts that pass it. The two samples are independent, so each promise holds with its confidence. Where a
    threshold can be proved is guessed from a pilot: the run's own dev texts.

    On the run's own dev texts a third is the pilot. They chose the best of several models (epochs, or points
    between the start and the end), so the error that the promise allows is shared among these: it then holds
    for each, and so for the chosen one.

    Args:
        run: its folder.
        risk: at most this share of the answers is wrong.
        dev: a labelled file; the run's own dev texts where it is not given.
        confidence: how sure each promise is, over the draw of the texts it was learnt on.
        per_class: a threshold for each class, so that the promise holds for the answers with that class; each
            with this confidence, not all of them together.
        ood: unfamiliar text to be turned away too, a file or a dataset's name.
        ood_rate: at most this share of it is answered.
        score: what tells it; the largest probability where it is not given.
        text_column, label_column, pair_column: of the files; as in training where they are not given.
        progress: told of each batch.
    """
    _check_share("--risk", risk)
    _check_share("--confidence", confidence)
    unfamiliar = _unfamiliar(ood, ood_rate, score)
    classifier = load(run)
    own = classifier.own_run("Rules")
    columns = columns_of(own, text_column, label_column, pair_column)
    texts = dev_texts(own, dev, columns)
    _check_not_by_heart(own, texts)
    pilot_texts, is_own = _pilot_texts(own, texts), texts.fingerprint == own.record.data.dev.fingerprint
    gate, ood_texts = Rule(threshold=0.0), None
    if unfamiliar is not None:
        ood_texts = read_named(unfamiliar.file, columns, own.config.source, labelled=False)
        gate = _gate(classifier, unfamiliar, ood_texts, confidence, progress)
    asked = _ask(classifier, texts, gate, progress, "dev")
    if unfamiliar is not None and not asked.familiar.any():
        raise UserError(
            f"To answer at most {unfamiliar.rate:g} of {unfamiliar.file} by the score {unfamiliar.score!r} "
            f"would turn away all {len(texts)} dev texts; allow a higher --ood-rate or take another --score."
        )
    piloting = None if pilot_texts is None else _ask(classifier, pilot_texts, gate, progress, "pilot")
    pilot, tested = _divided(asked, piloting)
    chosen_from = _chosen_from(own) if is_own else 0
    level = 1 - (1 - confidence) / max(chosen_from, 1)

    def learn(part: NDArray[np.bool_]) -> float | None:
        found = select(asked.sample[part], make_plan(pilot, int(part.sum()), risk, level), risk, level)
        return None if found is None else found.threshold

    if per_class:
        thresholds = _per_class(classifier, tested, asked.predicted, learn)
    else:
        one = learn(tested)
        thresholds = {} if one is None else dict.fromkeys(classifier.label_names, one)
    if not thresholds:
        missed = pilot, asked.sample[tested], risk, confidence, level, texts, per_class
        raise UserError(_nothing_promised(*missed))
    rule = Rule(
        np.array([thresholds.get(name, math.inf) for name in classifier.label_names]), gate.score, gate.cut
    )
    figures = _figures(asked.sample, rule.answers(asked.outputs))
    stored = ThresholdRecord(
        rule=RuleRecord(
            threshold=min(thresholds.values()),
            thresholds=thresholds if per_class else None,
            score=None if unfamiliar is None else unfamiliar.score,
            cut=None if unfamiliar is None else gate.cut,
        ),
        promise=PromiseRecord(
            risk=risk, ood_rate=None if unfamiliar is None else unfamiliar.rate, confidence=confidence
        ),
        learnt_on=LearntOnRecord(
            dev=texts.provenance(), ood=None if ood_texts is None else ood_texts.provenance()
        ),
        dev=OnDevRecord(**figures, turned_away=float(1 - asked.familiar.mean())),
        learnt_for=own.record.answering,
    )
    classifier.own_run("Rules").ruled(stored)
    never = tuple(name for name in classifier.label_names if name not in thresholds)
    naive = None
    if not per_class:
        plan = make_plan(pilot, int(tested.sum()), risk, level)
        naive = _naive(asked, naive_selection(asked.sample[tested], plan, risk))
    return Learnt(stored, naive, never, chosen_from)


def remove_rule(run: Path | str) -> None:
    """Let the run answer everything."""
    store.load(run).ruled(None)


def _unfamiliar(ood: Path | str | None, rate: float | None, score: str | None) -> Unfamiliar | None:
    if (ood is None) != (rate is None):
        raise UserError(
            "--ood and --ood-rate go together: the unfamiliar text, and the share to be answered."
        )
    if ood is None or rate is None:
        if score is not None:
            raise UserError("--score goes with --ood: it is learnt from unfamiliar text.")
        return None
    _check_share("--ood-rate", rate)
    return Unfamiliar(ood, rate, DEFAULT_SCORE if score is None else score)


def _check_share(option: str, value: float) -> None:
    if not 0 < value < 1:
        raise UserError(f"{option} must lie between 0 and 1, both excluded, got {value:g}.")


def _gate(
    classifier: Classifier,
    unfamiliar: Unfamiliar,
    ood: Texts,
    confidence: float,
    progress: Progress | None,
) -> Rule:
    """The rule for unfamiliar text alone."""
    score = classifier.fitted_scores([unfamiliar.score], progress)[unfamiliar.score]
    outputs = classifier.outputs(ood.texts, score.needs, progress, "unfamiliar")
    u = cut(score(outputs), unfamiliar.rate, confidence)
    if u is None:
        needed = math.ceil(math.log(1 - confidence) / math.log(1 - unfamiliar.rate))
        smallest = 1 - (1 - confidence) ** (1 / len(ood))
        raise UserError(
            f"--ood-rate {unfamiliar.rate:g} cannot be promised with confidence {confidence:g} from "
            f"{len(ood)} texts ({unfamiliar.file}): it takes {needed}, and these allow "
            f"{_rounded_up(smallest):g}."
        )
    return Rule(0.0, score, u)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What a run says of n labelled texts, and which of them pass the rule for unfamiliar text."""

    outputs: Outputs
    sample: Sample
    familiar: NDArray[np.bool_]  # (n,)

    @property
    def predicted(self) -> NDArray[np.integer]:
        """(n,) classes."""
        return np.asarray(self.outputs.probabilities.argmax(axis=1))


def _ask(classifier: Classifier, texts: Texts, gate: Rule, progress: Progress | None, label: str) -> _Asked:
    labels = classifier.class_ids(texts)  # a label that training never saw is told before the work
    outputs = classifier.outputs(texts.texts, gate.needs, progress, label)
    p = outputs.probabilities
    sample = Sample(p.max(axis=1), p.argmax(axis=1) != labels)
    return _Asked(outputs, sample, gate.answers(outputs))


def _divided(asked: _Asked, piloting: _Asked | None) -> tuple[Sample, NDArray[np.bool_]]:
    """The pilot, and which texts are tested: all that are familiar, or those that their own pilot leaves."""
    n, tested = len(asked.familiar), asked.familiar
    pilot = None if piloting is None else piloting.sample[piloting.familiar]
    if pilot is None or not len(pilot):
        in_pilot = np.random.default_rng(0).permutation(n) < OWN_PILOT * n
        pilot, tested = asked.sample[asked.familiar & in_pilot], asked.familiar & ~in_pilot
    if not len(pilot) or not tested.any():
        raise UserError(f"{n} dev texts are too few to promise anything; give more.")
    return pilot, tested


def _check_not_by_heart(run: store.Run, texts: Texts) -> None:
    fitted = run.record.calibrator
    if fitted is not None and (flaw := fitted.by_heart(texts.provenance())):
        raise UserError(f"{flaw}, so they can promise nothing; name other labelled texts with --dev.")


def _pilot_texts(run: store.Run, texts: Texts) -> Texts | None:
    """Some of the run's own dev texts; None where they cannot be had, or could have had a hand in the texts.

    That is so if these are the run's own, or if they fitted the calibrator that the pilot is answered with.
    """
    fitted = run.record.calibrator
    if fitted is not None and fitted.fitted_on.fingerprint == texts.fingerprint:
        return None
    if texts.fingerprint == run.record.data.dev.fingerprint:
        return None
    try:
        own = own_splits(run).dev
    except UserError:
        return None
    shared = len(set(texts.texts) & set(own.texts))
    if shared > SHARED * len(texts):
        raise UserError(
            f"{shared} of the {len(texts)} texts ({texts.source}) are the run's own dev texts, which chose "
            "its weights and fitted its calibrator; leave these out, or leave --dev out to learn on "
            "the run's own."
        )
    chosen = np.random.default_rng(0).permutation(len(own))[:LARGEST_PILOT]
    labels = None if own.labels is None else [own.labels[i] for i in chosen]
    return Texts([own.texts[i] for i in chosen], labels, own.source, own.fingerprint)


def _chosen_from(run: store.Run) -> int:
    """How many models dev chose from: epochs or points between them, and in an ensemble all combinations."""
    members = range(2, 2 + len(run.record.members))
    runs = [run, *(store.load(run.member(number)) for number in members)]
    return math.prod(one.record.chosen_from for one in runs)


def _per_class(
    classifier: Classifier,
    tested: NDArray[np.bool_],
    predicted: NDArray[np.integer],
    learn: Callable[[NDArray[np.bool_]], float | None],
) -> dict[str, float]:
    """The thresholds of the classes that may be answered.

    The pilot has too few texts of a class to guess from, so all of it serves for each.
    """
    found = {}
    for number, name in enumerate(classifier.label_names):
        part = tested & (predicted == number)
        one = learn(part) if part.any() else None
        if one is not None:
            found[name] = one
    return found


def _nothing_promised(
    pilot: Sample,
    sample: Sample,
    risk: float,
    confidence: float,
    level: float,
    texts: Texts,
    per_class: bool,
) -> str:
    what = f"--risk {risk:g} cannot be promised with confidence {confidence:g} from {len(texts)} dev texts"
    if per_class:
        return f"{what} for any class; give more dev texts, allow more risk, or leave --per-class out."
    found = smallest_risk(pilot, sample, risk, level)
    if found is None:
        return f"{what}, and no other risk either; give more dev texts."
    smallest, best = found
    return (
        f"{what}; the smallest that can be is {smallest:g}, answering {best.answered / len(texts):.1%} of "
        "them. Give more dev texts or allow more risk; that smallest one was found by looking at these "
        "texts, so to promise it take new ones."
    )


def _rounded_up(share: float) -> float:
    """To three digits, so that what a message says can be had is enough."""
    return math.ceil(share * 1000) / 1000


def _naive(asked: _Asked, found: Selection | None) -> dict[str, float] | None:
    """The threshold that promises nothing, and its figures."""
    if found is None:
        return None
    answered = asked.familiar & (asked.sample.confidence >= found.threshold)
    return {"threshold": found.threshold, **_figures(asked.sample, answered)}


def _figures(sample: Sample, answered: NDArray[np.bool_]) -> dict[str, float]:
    return {"coverage": float(answered.mean()), "risk": float(sample.wrong[answered].mean())}
