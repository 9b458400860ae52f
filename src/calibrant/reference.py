"""Have a run answer its dev texts, once, and keep what it said."""

from calibrant import dev as kept
from calibrant.calibration import dev_texts
from calibrant.prediction import Classifier
from calibrant.types import Progress


def answer_dev(
    classifier: Classifier, dev: str | None = None, progress: Progress | None = None
) -> kept.DevAnswers:
    """The run's answers on dev: those it keeps, or where it keeps none its own dev texts' from now on.

    ``dev`` names a labelled file, with columns as in training, to be answered and kept instead. Sets promise
    more on texts that chose neither the best epoch nor the calibrator, as the run's own dev texts did.
    """
    run, config = classifier.run, classifier.run.config
    before = kept.read(run)
    if before is not None and dev is None:
        return before
    texts = dev_texts(run, dev, (config.text_column, config.label_column))
    if before is not None and before.texts["fingerprint"] == texts.fingerprint:
        return before
    labels = classifier.class_ids(texts)
    answers = kept.DevAnswers(classifier.logits(texts.texts, progress, "dev"), labels, texts.provenance())
    kept.write(run, answers)
    return answers
