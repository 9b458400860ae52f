"""``calibrant predict``: what a run says of texts, a few thousand at a time."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._system.atomic import check_folder
from calibrant._system.progress import in_notebook
from calibrant._system.rows import format_of, write_rows
from calibrant.classifier import Classifier, load
from calibrant.data.files import texts_of
from calibrant.data.tables import read_table
from calibrant.decide.sets import SetRule, check_request
from calibrant.errors import UserError
from calibrant.runs.store import load as load_run
from calibrant.runs.texts import columns_of
from calibrant.types import Progress

logger = logging.getLogger(__name__)
DIGITS = 4
AT_ONCE = 4096
"""Texts that are answered together, so that an interruption keeps what was answered before."""


def predict(
    run: Path | str,
    *,
    texts: Sequence[str | None] | None = None,
    file: str | None = None,
    text_column: str | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    set_method: str = "lac",
    set_per_class: bool = False,
    dev: str | None = None,
    top: int | None = None,
    progress: Progress | None = in_notebook,
) -> Iterator[dict[str, Any]]:
    """A row for each text: label, confidence, abstain and probabilities, and with ``coverage`` its ``set``.

    A row of the file without text, and a text that is None, have an answer without label.

    Args:
        run: its folder.
        texts: to be classified; or
        file: with the texts, as for training.
        text_column: of the file; as in training where it is not given.
        threshold: abstain below this confidence, 0 never; the run's own rule where it is not given.
        coverage: add the labels that hold the true one for this share of the texts.
        set_method: "lac" (smallest sets) or "aps" (larger where unsure).
        set_per_class: that share for each class, not over all texts.
        dev: a labelled file to fit the sets on from now on; the run's dev texts where it is not given.
        top: keep only the probabilities of that many labels, the most probable first.
        progress: told of each batch.
    """
    if (texts is None) == (file is None):
        raise UserError("predict takes either texts or a file with texts; give one of the two.")
    if coverage is not None:
        check_request(coverage, set_method)
    classifier = load(run)
    if texts is None:
        column, _ = columns_of(classifier.own_run("Columns"), text_column)
        texts = texts_of(read_table(file or ""), file or "", column)
    if blank := sum(text is None for text in texts):
        logger.warning("%d of %d texts are blank; their answers are empty.", blank, len(texts))
    rule = None
    if coverage is not None:
        classifier.answer_dev(dev, progress)
        rule = classifier.set_rule(coverage, set_method, set_per_class)
    return _rows(classifier, texts, threshold, rule, top, progress)


def decide_table(
    run: Path | str,
    file: str,
    out: Path,
    *,
    kind: str | None = None,
    text_column: str | None = None,
    top: int | None = None,
    **options: Any,
) -> dict[str, int]:
    """Write a file with all columns and rows of ``file``, in their order, and what the run says beside them.

    Args:
        run: its folder.
        file: with the texts, as for training.
        out: the file to write.
        kind: "csv", "jsonl" or "parquet"; as the name of ``out`` tells where it is not given.
        text_column: of the file; as in training where it is not given.
        top: add that many labels, the most probable first.
        options: others of ``predict``.

    Returns:
        How many texts there were, and how many of them were blank or abstained on.
    """
    kind = format_of(out, kind)
    check_folder(out.parent, "the file with the answers")
    if out.is_dir() or (out.exists() and Path(file).exists() and out.samefile(file)):
        what = "a folder" if out.is_dir() else "the file to read"
        raise UserError(f"--out {out} is {what}; name a new file.")
    columns, rows = table = read_table(file)
    for name in columns:
        if columns.count(name) > 1:
            raise UserError(f"{file}: {columns.count(name)} columns are called {name!r}; rename all but one.")
    texts = texts_of(table, file, columns_of(load_run(run), text_column)[0])
    found = predict(run, texts=texts, top=top, **options)
    answers = [_flat(answer, 1 if top is None else top) for answer in found]
    added = _renamed(list(dict.fromkeys(name for answer in answers for name in answer)), columns, file)
    joined = [
        row | {added[name]: value for name, value in answer.items()}
        for (_, row), answer in zip(rows, answers, strict=True)
    ]
    write_rows(out, kind, [*columns, *added.values()], joined)
    blank = sum(answer["label"] is None for answer in answers)
    return {
        "texts": len(answers),
        "blank": blank,
        "abstained": sum(answer["abstain"] for answer in answers) - blank,
    }


def _flat(answer: dict[str, Any], top: int) -> dict[str, Any]:
    """A row of a table: with ``top``, the second label in a column of its own, and so on."""
    others = list(answer["probabilities"].items())[1:top]
    row = {name: _rounded(answer[name]) for name in ("label", "confidence", "familiarity", "abstain")}
    for rank, (label, p) in enumerate(others, start=2):
        row |= {f"label_{rank}": label, f"confidence_{rank}": _rounded(p)}
    return row | ({"set": answer["set"]} if "set" in answer else {})


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _renamed(names: Sequence[str], columns: Sequence[str], file: str) -> dict[str, str]:
    """What each new column is called, where the file may have one of its name: the true label, say."""
    called = {name: f"predicted_{name}" if name in columns else name for name in names}
    for name, other in called.items():
        if other in columns:
            raise UserError(f"{file}: has columns {name!r} and {other!r} already; rename one of them.")
        if other != name:
            logger.info("%s has a column %r; the answer is in %r", file, name, other)
    return called


def _rows(
    classifier: Classifier,
    texts: Sequence[str | None],
    threshold: float | None,
    rule: SetRule | None,
    top: int | None,
    progress: Progress | None,
) -> Iterator[dict[str, Any]]:
    for start in range(0, len(texts), AT_ONCE):

        def moved(what: str, done: int, total: int, start: int = start) -> None:
            if progress is not None:
                progress(what, start + done, len(texts))

        some = texts[start : start + AT_ONCE]
        there = [text for text in some if text is not None]
        decisions = classifier.predict(there, threshold=threshold, progress=moved) if there else []
        rows = [asdict(decision) for decision in decisions]
        if rule is not None and rows:
            p = np.array([list(decision.probabilities.values()) for decision in decisions])
            for row, labels in zip(rows, rule.labels(p, classifier.label_names), strict=True):
                row["set"] = labels
        if top is not None:
            for row in rows:
                ranked = sorted(row["probabilities"].items(), key=lambda item: -item[1])
                row["probabilities"] = dict(ranked[:top])
        answered = iter(rows)
        for text in some:
            yield _nothing(rule) if text is None else next(answered)


def _nothing(rule: SetRule | None) -> dict[str, Any]:
    """The answer where there is no text."""
    empty: dict[str, Any] = {"label": None, "confidence": None, "familiarity": None, "abstain": True}
    return empty | {"probabilities": {}} | ({} if rule is None else {"set": []})
