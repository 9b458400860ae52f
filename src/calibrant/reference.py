"""Have a run answer dev texts, and keep what it said of those that its sets are fitted on."""

import logging

from calibrant import dev as kept
from calibrant.calibration import dev_texts
from calibrant.data.files import NoColumn
from calibrant.errors import UserError
from calibrant.prediction import Classifier
from calibrant.types import Progress

logger = logging.getLogger(__name__)


def answer_dev(
    classifier: Classifier, dev: str | None = None, progress: Progress | None = None
) -> kept.DevAnswers:
    """The run's answers on dev: those it keeps, or where it keeps none its own dev texts' from now on.

    ``dev`` names a labelled file, with columns as in training, to be answered and kept instead. Sets promise
    more on texts that chose neither the best epoch nor the calibrator, as the run's own dev texts did.
    """
    classifier.check_own("Answers on dev")
    before = kept.read(classifier.run)
    if before is not None and dev is None:
        return before
    answers = answers_on(classifier, dev, progress)
    if before is None or before.texts["fingerprint"] != answers.texts["fingerprint"]:
        kept.write(classifier.run, answers)
        if dev is not None:
            logger.info("%s keeps its answers on %s: sets are now fitted on these", classifier.run.path, dev)
    return answers


def answers_on(classifier: Classifier, dev: str | None, progress: Progress | None = None) -> kept.DevAnswers:
    """Its answers on a labelled file or its own dev texts. They are not kept; those that are serve here."""
    run, config = classifier.run, classifier.run.config
    try:
        texts = dev_texts(run, dev, (config.text_column, config.label_column))
    except NoColumn as error:
        raise UserError(
            f"--dev {dev}: no column {error.column!r}, and its columns are those of training; rename it."
        ) from error
    before = kept.read(run)
    if before is not None and before.texts["fingerprint"] == texts.fingerprint:
        return before
    labels = classifier.class_ids(texts)
    return kept.DevAnswers(classifier.logits(texts.texts, progress, "dev"), labels, texts.provenance())
