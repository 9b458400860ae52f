"""All parts of a corpus: found, answered wherever they are, added up. A killed run goes on with the rest."""

import logging
from collections.abc import Sequence
from pathlib import Path

from calibrant.calibrators import calibrated
from calibrant.classifier import Classifier, load
from calibrant.corpus import manifest
from calibrant.corpus.answers import added, renamed
from calibrant.corpus.engines import Engine
from calibrant.corpus.files import File, Folder, find
from calibrant.corpus.manifest import Asked, Manifest, Source, Total
from calibrant.corpus.part import Job
from calibrant.corpus.pieces import index
from calibrant.corpus.statistics import Then, then
from calibrant.data.files import check_columns
from calibrant.decide.sets import SetRule
from calibrant.errors import UserError
from calibrant.runs.record import digest
from calibrant.runs.texts import columns_of
from calibrant.types import Progress, Provenance

logger = logging.getLogger(__name__)
FOLDERS = ("parts", "rejected", "statistics")


def answer_corpus(
    run: Path | str,
    files: Sequence[str],
    out: str,
    *,
    engine: Engine,
    text_column: str | None,
    pair_column: str | None,
    threshold: float | None,
    top: int,
    sets: tuple[float, str, bool] | None,
    dev: Path | str | None,
    progress: Progress,
) -> Total:
    """Write the answers on all rows of the files into a folder; see ``tasks.predict`` for the arguments."""
    found, folder = find(files), Folder(out)
    folder.begin([manifest.FILE, *FOLDERS])
    with folder.alone(), engine.ready():
        classifier = load(run)
        compare, about = _dev(classifier, dev, progress)
        rule = None if sets is None else classifier.set_rule(*sets)
        own = classifier.own_run("Answers")
        top = min(top, len(classifier.label_names))
        text, _, pair = columns_of(own, text_column, pair_column=pair_column)
        asked = Asked(
            run=Path(run).name,
            answering=own.record.answering,
            rule=manifest.rule_of(own),
            threshold=threshold,
            text_column=text,
            pair_column=pair,
            top=top,
            sets=None if rule is None else digest([rule.method, rule.q.tolist()]),
            dev=about,
        )
        begun = _begun(folder, asked, found)
        if begun.total is not None:
            logger.info("%s: all of it was done before", folder.place)
            return begun.total
        _answer(run, folder, begun, classifier, rule, compare, engine, progress)
        done = begun.model_copy(update={"total": manifest.total(folder, begun.parts)})
        done.write(folder)
        assert done.total is not None
        return done.total


def _dev(
    classifier: Classifier, dev: Path | str | None, progress: Progress
) -> tuple[Then | None, Provenance | None]:
    """The answers on dev, to compare with; None where these cannot be had, which is no reason to stop."""
    try:
        answers = classifier.answer_dev(dev, progress)
    except UserError as error:
        if dev is not None:
            raise
        logger.warning("`calibrant monitor` will not read these answers. %s", error)
        return None, None
    said = calibrated(answers.outputs, classifier.calibrator)
    return then(classifier.calibrator, said), answers.texts


def _begun(folder: Folder, asked: Asked, files: list[File]) -> Manifest:
    """The manifest of the folder; a new one where there is none, refused where it is another's."""
    known = manifest.read(folder)
    if known is not None:
        if known.asked != asked:
            before, now = known.asked.model_dump(), asked.model_dump()
            other = next(name for name in now if before[name] != now[name])
            raise UserError(
                f"{folder.place} was begun with another {_TOLD.get(other, other)}; name a new folder, or ask "
                "for the same."
            )
        if [source.file for source in known.sources] != files:
            raise UserError(
                f"{folder.place} was begun with other files, or these have changed since; name a new folder."
            )
        return known
    sources = []
    for file in files:
        columns, pieces = index(file)
        sources.append(Source(file=file, columns=columns, pieces=pieces))
    for source in sources:
        address, columns = source.file.address, source.columns
        if columns:
            check_columns(address, columns, asked.text_column, asked.pair_column)
        for name in columns:
            if columns.count(name) > 1:
                raise UserError(
                    f"{address}: {columns.count(name)} columns are called {name!r}; rename all but one."
                )
    if not any(source.pieces for source in sources):
        raise UserError(f"{files[0].address}: no rows; a corpus needs at least one text.")
    begun = Manifest(asked=asked, sources=sources)
    begun.write(folder)
    return begun


_TOLD = {
    "answering": "model or calibrator",
    "rule": "rule of abstention",
    "threshold": "--threshold",
    "text_column": "--text-column",
    "pair_column": "--pair-column",
    "top": "--top",
    "sets": "--coverage, --set-method or --set-per-class",
    "dev": "--dev",
}


def _answer(
    run: Path | str,
    folder: Folder,
    begun: Manifest,
    classifier: Classifier,
    rule: SetRule | None,
    compare: Then | None,
    engine: Engine,
    progress: Progress,
) -> None:
    columns = {name for source in begun.sources for name in source.columns}
    job = Job(
        run=str(Path(run).absolute()),
        folder=folder,
        files=[source.file for source in begun.sources],
        columns=[source.columns for source in begun.sources],
        text_column=begun.asked.text_column,
        pair_column=begun.asked.pair_column,
        names=renamed(added(begun.asked.top, rule is not None), columns, "The corpus"),
        threshold=begun.asked.threshold,
        top=begun.asked.top,
        sets=rule,
        then=compare,
    )
    there = folder.names("statistics")
    left = [part for part in begun.parts if f"{part.name}.json" not in there]
    rows = sum(part.piece.rows for part in begun.parts)
    done = rows - sum(part.piece.rows for part in left)
    if done:
        logger.info("%s: goes on after %d of %d rows", folder.place, done, rows)

    def moved(more: int) -> None:
        nonlocal done
        done += more
        progress("predict", done, rows)

    moved(0)
    if left:
        engine.answer(job, classifier, left, moved)
