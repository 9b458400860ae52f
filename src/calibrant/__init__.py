"""calibrant: text classifiers whose confidence means something.

    data/ ─► models/ ─► objectives/ ─► training ─► artifact ─► inference/ ─► calibrators/ ─► Prediction ─►
    text in  embed ·    what training  one loop    a run       how many      a map fitted    probabilities
             encode ·   minimises      (HF         on disk     passes        on dev          and labels
             head                      Trainer)
    scores/ ─────► metrics/ ─► report/
    how unfamiliar  one number  what people
    a text is       each        look at

Imports point only leftwards. Nothing heavy is loaded until it is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.abstention import learn_rule
    from calibrant.auditing import audit
    from calibrant.calibration import calibrate
    from calibrant.config import RunConfig
    from calibrant.errors import UserError
    from calibrant.evaluation import evaluate
    from calibrant.exporting import export
    from calibrant.fitting import fit
    from calibrant.measuring import measure
    from calibrant.monitoring import monitor
    from calibrant.prediction import Classifier, load
    from calibrant.reference import answer_dev
    from calibrant.training import CalibratedTrainer
    from calibrant.types import Decision, Prediction

__version__ = "0.1.0"
__all__ = [
    "CalibratedTrainer",
    "Classifier",
    "Decision",
    "Prediction",
    "RunConfig",
    "UserError",
    "answer_dev",
    "audit",
    "calibrate",
    "evaluate",
    "export",
    "fit",
    "learn_rule",
    "load",
    "measure",
    "monitor",
]

_HOME = {
    "CalibratedTrainer": "training",
    "Classifier": "prediction",
    "Decision": "types",
    "Prediction": "types",
    "RunConfig": "config",
    "UserError": "errors",
    "answer_dev": "reference",
    "audit": "auditing",
    "calibrate": "calibration",
    "evaluate": "evaluation",
    "export": "exporting",
    "fit": "fitting",
    "learn_rule": "abstention",
    "load": "prediction",
    "measure": "measuring",
    "monitor": "monitoring",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"calibrant.{_HOME[name]}"), name)
