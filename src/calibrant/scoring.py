"""The scores of a run: those that mean something for it, fitted on its training texts and kept with it."""

from collections.abc import Iterable

from calibrant.errors import UserError
from calibrant.fitting import load_again
from calibrant.prediction import Classifier
from calibrant.registry import pick
from calibrant.scores import FeatureScore, Score, scores
from calibrant.scores.files import is_saved, load_score, save_scores
from calibrant.types import Progress


def usable_scores(classifier: Classifier) -> list[str]:
    """The names of all scores that say something of this run."""
    return [name for name, kind in scores().items() if _usable(kind, classifier)]


def fitted_scores(
    classifier: Classifier, names: Iterable[str], progress: Progress | None = None
) -> dict[str, Score]:
    """Scores by name, ready to use: ``scores["knn"](classifier.outputs(texts))`` is (n,).

    Those that need fitting and are not saved with the run yet are fitted on its training texts, all in one
    pass over these, and saved.
    """
    kinds = {name: pick("score", name, scores()) for name in names}
    if any(issubclass(kind, FeatureScore) for kind in kinds.values()):
        classifier.check_own("Fitted scores")
    for name, kind in kinds.items():
        if not _usable(kind, classifier):
            raise UserError(
                f"The score {name!r} says nothing of a run that averages several passes "
                f"({classifier.inference.name}); take another of {', '.join(usable_scores(classifier))}."
            )
    missing = [
        kind()
        for name, kind in kinds.items()
        if issubclass(kind, FeatureScore) and not is_saved(classifier.run, name)
    ]
    if missing:
        _fit(classifier, missing, progress)
    return {name: load_score(classifier.run, name) for name in kinds}


def _usable(kind: type[Score], classifier: Classifier) -> bool:
    return not (kind.needs_own_logits and classifier.inference.averages)


def _fit(classifier: Classifier, unfitted: list[FeatureScore], progress: Progress | None) -> None:
    run, names = classifier.run, ", ".join(score.name for score in unfitted)
    try:
        train = load_again(run.config, run.record["data"]).train
    except UserError as reason:
        why = str(reason).rstrip(".")
        raise UserError(
            f"{names}: fitted on the run's training texts, and these cannot be had again ({why}); restore "
            "them, or use scores that need no fitting."
        ) from reason
    labels = classifier.class_ids(train)
    features = classifier.outputs(train.texts, progress=progress, label=f"train {run.name}").features
    assert features is not None
    classifier.run = save_scores(run, [score.fit(features, labels) for score in unfitted])
