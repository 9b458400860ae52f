"""A scikit-learn classifier of texts: ``calibrant train`` behind ``fit``, and what the run answers."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from calibrant._system.atomic import write_text
from calibrant.classifier import of_run
from calibrant.config import RunConfig
from calibrant.data.files import is_empty
from calibrant.errors import UserError
from calibrant.methods import DEFAULT
from calibrant.tasks.train import train

TEXTS, RUN = "train.jsonl", "run"


class CalibrantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fine-tunes a text classifier whose probabilities can be believed.

    Args:
        model: a directory or a hub id; ``minilm`` is the default encoder.
        method: a row of ``calibrant list methods``.
        epochs, batch_size, learning_rate, max_length: of training, as in ``RunConfig``.
        settings: any other setting of ``RunConfig``, by name.
        folder: where to keep the training texts and the run, which ``calibrant.load(folder + "/run")`` opens
            again. None keeps all in memory, as cross-validation wants it.
        random_state: the seed of training; an int makes ``fit`` repeatable. None: 0 with a folder, else any.

    Attributes:
        classes_: the labels, sorted, as ``y`` had them.
        classifier_: the ``calibrant.Classifier``, which also tells familiarity and when to abstain.

    One text in five is held out of training, for the choice of the weights and for the calibrator.
    """

    def __init__(
        self,
        *,
        model: str = "minilm",
        method: str = DEFAULT,
        epochs: int = 8,
        batch_size: int = 32,
        learning_rate: float | None = None,
        max_length: int = 128,
        settings: dict[str, Any] | None = None,
        folder: str | Path | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.model = model
        self.method = method
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_length = max_length
        self.settings = settings
        self.folder = folder
        self.random_state = random_state

    def fit(self, X: Sequence[str], y: ArrayLike) -> Self:
        """Train on texts (n,) and their labels (n,): numbers or names."""
        if y is None:
            raise UserError("CalibrantClassifier requires y to be passed, but the target y is None.")
        texts, labels = _texts(X), column_or_1d(y, warn=True)
        check_consistent_length(texts, labels)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        names = [str(label).strip() for label in self.classes_]  # as a file's labels are read
        if "" in names or len(set(names)) < len(names):
            raise UserError("Labels must differ in more than white space, and none may be empty.")
        for i, text in enumerate(texts):
            if is_empty(text):
                raise UserError(f"X[{i}] is an empty text; drop it, and its label.")
        rows = [
            json.dumps({"text": text, "label": str(label)}) + "\n"
            for text, label in zip(texts, labels, strict=True)
        ]
        if self.folder is None:
            with TemporaryDirectory(prefix="calibrant-") as folder:
                self.classifier_ = of_run(self._train(Path(folder), "".join(rows)))
            self.classifier_.run = None  # what is read from its folder is gone: sets, fitted scores
        else:
            self.classifier_ = of_run(self._train(Path(self.folder), "".join(rows)))
        self._columns = [self.classifier_.label_names.index(name) for name in names]
        return self

    def _train(self, folder: Path, rows: str) -> Any:
        path = folder / TEXTS
        if path.exists() and path.read_text(encoding="utf-8") != rows:
            raise UserError(f"{folder} holds a fit to other texts; give another folder, or remove it.")
        seed = self.random_state
        if seed is None and self.folder is not None:
            seed = 0  # so that what was interrupted there goes on
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        own = ("model", "method", "epochs", "batch_size", "learning_rate", "max_length")
        given = {name: getattr(self, name) for name in own} | {"train": str(path), "seed": int(seed)}
        if twice := sorted(given.keys() & (self.settings or {}).keys()):
            raise UserError(
                f"`settings` names {twice[0]!r}, which is an argument of CalibrantClassifier's own."
            )
        config = RunConfig(**given, **(self.settings or {}))
        folder.mkdir(parents=True, exist_ok=True)
        write_text(path, rows)
        return train(config, out=folder / RUN)

    def predict_proba(self, X: Sequence[str]) -> NDArray[np.floating]:
        """Probabilities (n, K), columns in the order of ``classes_``."""
        check_is_fitted(self)
        return self.classifier_.predict_proba(_texts(X))[:, self._columns]

    def predict(self, X: Sequence[str]) -> NDArray[Any]:
        """The most probable label of each text, (n,)."""
        p = self.predict_proba(X)
        return np.asarray(self.classes_[p.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:
        """Texts, and no table of numbers."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


def _texts(X: Any) -> list[str]:
    """A list of strings, or one sentence on what was given."""
    if isinstance(X, str):
        raise UserError("X must be a sequence of texts, got one string; put it into a list.")
    values = list(X)
    for i, value in enumerate(values):
        if not isinstance(value, str):
            raise UserError(
                f"X must be a sequence of texts, one string each, and X[{i}] is of type "
                f"{type(value).__name__}; of a table give one column."
            )
    if not values:
        raise UserError("X must hold at least one text, got none.")
    return [str(value) for value in values]
