"""Fitted scores on disk: RUN/scores/NAME.safetensors, with their fingerprints in the run's record."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from calibrant._system.atomic import write_bytes
from calibrant._system.failures import writing
from calibrant._system.lock import alone
from calibrant.errors import UserError
from calibrant.registry import pick
from calibrant.runs.store import Run
from calibrant.scores import FittedScore, Score, scores


def save_scores(run: Run, fitted: Iterable[FittedScore]) -> Run:
    """The run with these, written."""
    with alone(run.path):
        now = run.stored().record
        if now.model_digest != run.record.model_digest:
            raise UserError(f"{run.path} has got another model while scores were fitted for it; try again.")
        digests = dict(now.scores)
        for score in fitted:
            arrays = {name: np.ascontiguousarray(array) for name, array in score.arrays().items()}
            content = save(arrays)
            path = _path(run, score.name)
            with writing(path.parent, "The run is as it was."):
                path.parent.mkdir(exist_ok=True)
            write_bytes(path, content)
            digests[score.name] = hashlib.sha256(content).hexdigest()
        return run.updated(scores=digests, scores_for=now.model_digest)


def load_score(run: Run, name: str) -> Score:
    """The score of that name, as it was fitted for the run where it needs to be."""
    kind = pick("score", name, scores())
    if not kind.learns:
        return kind()
    content = _path(run, name).read_bytes() if is_saved(run, name) else b""
    if hashlib.sha256(content).hexdigest() != run.record.scores.get(name):
        raise UserError(
            f"{_path(run, name)} is missing or not the file that was saved with the run; restore it, or "
            f"remove it and fit it again with `calibrant evaluate {run.path} --test test.csv --scores`."
        )
    try:
        score = kind(**load(content))
        if isinstance(score, FittedScore):
            score.check()
        return score
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{_path(run, name)} is damaged ({error}); remove it, and it is made again."
        ) from error


def is_saved(run: Run, name: str) -> bool:
    """Whether it was fitted, and its file is there."""
    return name in run.record.scores and _path(run, name).exists()


def _path(run: Run, name: str) -> Path:
    return run.path / "scores" / f"{name}.safetensors"
