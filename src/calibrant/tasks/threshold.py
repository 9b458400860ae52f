"""``calibrant threshold``: learn when a finished run should answer, and keep the rule there."""

import math
from dataclasses import dataclass
from pathlib import Path

from calibrant.classifier import Classifier, load
from calibrant.data.named import read_named
from calibrant.decide.rule import Rule, Selection, cut, naive_selection, select, smallest_risk
from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.runs.record import LearntOnRecord, OnDevRecord, PromiseRecord, RuleRecord, ThresholdRecord
from calibrant.runs.texts import columns_of, dev_texts
from calibrant.scores.max_probability import MaxProbability
from calibrant.types import Progress, Texts

DEFAULT_SCORE = MaxProbability.name
"""It needs no fitting and no features, and is what training for calibration improves on unfamiliar text."""


@dataclass(frozen=True)
class Unfamiliar:
    """Text that should not be answered, and the share of it that may be."""

    file: str  # or a dataset's name
    rate: float
    score: str


@dataclass(frozen=True)
class Learnt:
    """The rule as stored in the run, and the naive threshold beside it."""

    stored: ThresholdRecord
    naive: dict[str, float] | None  # threshold, coverage and risk on dev; None where not even that exists


def threshold(
    run: Path | str,
    *,
    risk: float,
    dev: str | None = None,
    confidence: float = 0.95,
    ood: str | None = None,
    ood_rate: float | None = None,
    score: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    progress: Progress | None = None,
) -> Learnt:
    """Find the rule that answers most while its promises hold, and store it in the run.

    The rule for unfamiliar text comes first, from those texts alone; the threshold is then learnt on the dev
    texts that pass it. The two samples are independent, so each promise holds with its confidence.

    Args:
        run: its folder.
        risk: at most this share of the answers is wrong.
        dev: a labelled file; the run's own dev texts where it is not given.
        confidence: how sure each promise is, over the draw of the texts it was learnt on.
        ood: unfamiliar text to be turned away too, a file or a dataset's name.
        ood_rate: at most this share of it is answered.
        score: what tells it; the largest probability where it is not given.
        text_column, label_column: of the files; as in training where they are not given.
        progress: told of each batch.
    """
    _check_share("--risk", risk)
    _check_share("--confidence", confidence)
    unfamiliar = _unfamiliar(ood, ood_rate, score)
    classifier = load(run)
    own = classifier.own_run("Rules")
    columns = columns_of(own, text_column, label_column)
    texts = dev_texts(own, dev, columns)
    fitted = own.record.calibrator
    if fitted is not None and (flaw := fitted.by_heart(texts.provenance())):
        raise UserError(f"{flaw}, so they can promise nothing; name other labelled texts with --dev.")
    labels = classifier.class_ids(texts)
    gate, ood_texts = Rule(threshold=0.0), None
    if unfamiliar is not None:
        ood_texts = read_named(unfamiliar.file, columns, own.config.source, labelled=False)
        gate = _gate(classifier, unfamiliar, ood_texts, confidence, progress)
    outputs = classifier.outputs(texts.texts, gate.needs, progress, "dev")
    familiar = gate.answers(outputs)
    if unfamiliar is not None and not familiar.any():
        raise UserError(
            f"To answer at most {unfamiliar.rate:g} of {unfamiliar.file} by the score {unfamiliar.score!r} "
            f"would turn away all {len(texts)} dev texts; allow a higher --ood-rate or take another --score."
        )
    p = outputs.probabilities[familiar]
    c, wrong, classes = p.max(axis=1), p.argmax(axis=1) != labels[familiar], p.shape[1]
    selection = select(c, wrong, risk, confidence, classes)
    if selection is None:
        smallest, best = smallest_risk(c, wrong, confidence, classes)
        raise UserError(
            f"--risk {risk:g} cannot be promised with confidence {confidence:g} from {len(texts)} dev texts; "
            f"the smallest that can be is {_rounded_up(smallest):g}, answering "
            f"{best.answered / len(texts):.1%} of them. Give more dev texts or allow more risk; that "
            "smallest one was found by looking at these texts, so to promise it take new ones."
        )
    naive = naive_selection(c, wrong, risk, classes)
    stored = ThresholdRecord(
        rule=RuleRecord(
            threshold=selection.threshold,
            score=None if unfamiliar is None else unfamiliar.score,
            cut=None if unfamiliar is None else gate.cut,
        ),
        promise=PromiseRecord(
            risk=risk, ood_rate=None if unfamiliar is None else unfamiliar.rate, confidence=confidence
        ),
        learnt_on=LearntOnRecord(
            dev=texts.provenance(), ood=None if ood_texts is None else ood_texts.provenance()
        ),
        dev=OnDevRecord(**_figures(selection, len(texts)), turned_away=float(1 - familiar.mean())),
        learnt_for=own.record.answering,
    )
    classifier.own_run("Rules").ruled(stored)
    if naive is None:
        return Learnt(stored, None)
    return Learnt(stored, {"threshold": naive.threshold, **_figures(naive, len(texts))})


def remove_rule(run: Path | str) -> None:
    """Let the run answer everything."""
    store.load(run).ruled(None)


def _unfamiliar(ood: str | None, rate: float | None, score: str | None) -> Unfamiliar | None:
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


def _rounded_up(share: float) -> float:
    """To three digits, so that what a message says can be had is enough."""
    return math.ceil(share * 1000) / 1000


def _figures(selection: Selection, n: int) -> dict[str, float]:
    return {"coverage": selection.answered / n, "risk": selection.wrong / selection.answered}
