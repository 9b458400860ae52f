"""``calibrant predict``: what a run says of texts, a few thousand at a time."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from calibrant._system.atomic import check_folder
from calibrant._system.progress import in_notebook
from calibrant._system.rows import format_of, write_rows
from calibrant.classifier import Classifier, load
from calibrant.corpus.answers import AT_ONCE, added, answer, by_row, renamed
from calibrant.corpus.engines import Engine
from calibrant.corpus.engines.local import Local
from calibrant.corpus.manifest import Total
from calibrant.corpus.run import answer_corpus
from calibrant.data.encode import check_list
from calibrant.data.files import arriving, texts_of
from calibrant.data.tables import Table, read_table
from calibrant.decide.rule import Rule
from calibrant.decide.sets import SetRule, check_request
from calibrant.errors import UserError
from calibrant.runs.texts import columns_of
from calibrant.types import Progress, Text, silent

logger = logging.getLogger(__name__)


def predict(
    run: Path | str,
    *,
    texts: Sequence[Text | None] | None = None,
    file: Path | str | None = None,
    stream: IO[bytes] | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    set_method: str = "lac",
    set_per_class: bool = False,
    dev: Path | str | None = None,
    top: int | None = None,
    progress: Progress | None = in_notebook,
) -> Iterator[dict[str, Any]]:
    """A row for each text: label, confidence, abstain and probabilities, and with ``coverage`` its ``set``.

    A row of the file without text, a blank line, and a text that is None, have an answer without label.

    Args:
        run: its folder.
        texts: to be classified, or pairs (text, second text); or
        file: with the texts, as for training; or
        stream: with a text a line. What has come is answered, before more is waited for.
        text_column: of the file; as in training where it is not given.
        pair_column: the same, of the second texts of pairs.
        threshold: abstain below this confidence, 0 never; the run's own rule where it is not given.
        coverage: add the labels that hold the true one for this share of the texts.
        set_method: "lac" (smallest sets) or "aps" (larger where unsure).
        set_per_class: that share for each class, not over all texts.
        dev: a labelled file to fit the sets on from now on; the run's dev texts where it is not given.
        top: keep only the probabilities of that many labels, the most probable first.
        progress: told of each batch.
    """
    if sum(source is not None for source in (texts, file, stream)) != 1:
        raise UserError("predict takes texts, a file with texts or a stream of lines; give one of them.")
    if file is None and (text_column is not None or pair_column is not None):
        raise UserError("text_column and pair_column go with a file that has columns; leave them out.")
    check_list(texts)
    _check_sets(coverage, set_method, set_per_class, dev)
    classifier = load(run)
    if file is not None:
        texts = _texts_of(classifier, read_table(file), file, text_column, pair_column)
    rule = _set_rule(classifier, coverage, set_method, set_per_class, dev, progress)
    if texts is not None:
        slices = [texts[start : start + AT_ONCE] for start in range(0, len(texts), AT_ONCE)]
        return _rows(classifier, slices, len(texts), threshold, rule, top, progress)
    assert stream is not None
    return _rows(classifier, arriving(stream, "standard input"), 0, threshold, rule, top, None)


def predict_file(
    run: Path | str,
    file: Path | str,
    out: Path,
    *,
    kind: str | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    set_method: str = "lac",
    set_per_class: bool = False,
    dev: Path | str | None = None,
    top: int | None = None,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Write a file with all columns and rows of ``file``, in their order, and what the run says beside them.

    Args:
        run: its folder.
        file: with the texts, as for training.
        out: the file to write.
        kind: "csv", "jsonl" or "parquet"; as the name of ``out`` tells where it is not given.
        text_column: of the file; as in training where it is not given.
        pair_column: the same, of the second texts of pairs.
        threshold: as the other options, of ``predict``.
        coverage: the same.
        set_method: the same.
        set_per_class: the same.
        dev: the same.
        top: add that many labels, the most probable first.
        progress: told of each batch.

    Returns:
        How many texts there were, and how many of them were blank or abstained on.
    """
    _check_sets(coverage, set_method, set_per_class, dev)
    kind = format_of(out, kind)
    check_folder(out.parent, "the file with the answers")
    if out.exists() and Path(file).exists() and out.samefile(file):
        raise UserError(f"--out {out} is the file to read; name a new file.")
    columns, rows = table = read_table(file)
    for name in columns:
        if columns.count(name) > 1:
            raise UserError(f"{file}: {columns.count(name)} columns are called {name!r}; rename all but one.")
    classifier = load(run)
    texts = _texts_of(classifier, table, file, text_column, pair_column)
    top = min(1 if top is None else top, len(classifier.label_names))
    sets = _set_rule(classifier, coverage, set_method, set_per_class, dev, progress)
    called = renamed(added(top, sets is not None), columns, str(file))
    there = [text for text in texts if text is not None]
    rule = classifier.rule if threshold is None else Rule(threshold)
    found = answer(classifier, there, rule, top, sets, progress)
    answers, nothing = by_row(found), dict.fromkeys(called) | _nothing(sets)
    joined = []
    for (_, row), text in zip(rows, texts, strict=True):
        said = nothing if text is None else next(answers)
        joined.append(row | {name: said[what] for what, name in called.items()})
    write_rows(out, kind, [*columns, *called.values()], joined)
    _tell_blanks(len(texts) - len(there), len(texts))
    abstained = sum(found["abstain"][1])
    return {"texts": len(texts), "blank": len(texts) - len(there), "abstained": abstained}


def predict_corpus(
    run: Path | str,
    files: Sequence[str],
    out: str,
    *,
    engine: Engine | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    threshold: float | None = None,
    coverage: float | None = None,
    set_method: str = "lac",
    set_per_class: bool = False,
    dev: Path | str | None = None,
    top: int | None = None,
    progress: Progress | None = None,
) -> Total:
    """Write all rows of many files, and what the run says beside them, into the parts of a folder.

    What was killed goes on where it was. A row without a text, or that cannot be read, is put aside.

    Args:
        run: its folder.
        files: names or patterns (``corpus/*.parquet``) of Parquet, CSV, TSV or JSON-lines files, here or at
            an address that fsspec knows.
        out: the folder to write, here or at such an address.
        engine: where the work is done; this process where it is not given.
        text_column: of the files; as in training where it is not given.
        pair_column: the same, of the second texts of pairs.
        threshold: as the other options, of ``predict``.
        coverage: the same.
        set_method: the same.
        set_per_class: the same.
        dev: the same.
        top: add that many labels, the most probable first.
        progress: told of the rows that are done.

    Returns:
        What all parts come to; it is in ``manifest.json``, too, which ``monitor`` reads.
    """
    _check_sets(coverage, set_method, set_per_class, dev)
    return answer_corpus(
        run,
        files,
        out,
        engine=Local() if engine is None else engine,
        text_column=text_column,
        pair_column=pair_column,
        threshold=threshold,
        top=1 if top is None else top,
        sets=None if coverage is None else (coverage, set_method, set_per_class),
        dev=dev,
        progress=silent if progress is None else progress,
    )


def _check_sets(coverage: float | None, method: str, per_class: bool, dev: Path | str | None) -> None:
    if coverage is not None:
        check_request(coverage, method)
    elif method != "lac" or per_class or dev is not None:
        raise UserError(
            "set_method, set_per_class and dev go with coverage; add, for instance, coverage=0.9."
        )


def _texts_of(
    classifier: Classifier, table: Table, file: Path | str, text_column: str | None, pair_column: str | None
) -> list[str | None]:
    own = classifier.own_run("Columns")
    text, _, pair = columns_of(own, text_column, pair_column=pair_column)
    return texts_of(table, file, text, pair)


def _set_rule(
    classifier: Classifier,
    coverage: float | None,
    method: str,
    per_class: bool,
    dev: Path | str | None,
    progress: Progress | None,
) -> SetRule | None:
    if coverage is None:
        return None
    classifier.answer_dev(dev, progress)
    return classifier.set_rule(coverage, method, per_class)


def _rows(
    classifier: Classifier,
    slices: Iterable[Sequence[Text | None]],
    total: int,
    threshold: float | None,
    rule: SetRule | None,
    top: int | None,
    progress: Progress | None,
) -> Iterator[dict[str, Any]]:
    blank = n = 0
    for some in slices:

        def moved(what: str, done: int, of_these: int, before: int = n) -> None:
            if progress is not None:
                progress(what, before + done, total)

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
            yield _nothing(rule) | {"probabilities": {}} if text is None else next(answered)
        n, blank = n + len(some), blank + len(some) - len(there)
    _tell_blanks(blank, n)


def _nothing(rule: SetRule | None) -> dict[str, Any]:
    """The answer where there is no text."""
    empty: dict[str, Any] = {"label": None, "confidence": None, "familiarity": None, "abstain": True}
    return empty if rule is None else empty | {"set": []}


def _tell_blanks(blank: int, n: int) -> None:
    if blank:
        logger.warning("%d of %d texts are blank; their answers are empty.", blank, n)
