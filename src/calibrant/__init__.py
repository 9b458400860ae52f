"""calibrant: text classifiers whose confidence means something.

    data/ ─► models/ ─► objectives/ ─► training ─► runs/ ─► inference/ ─► calibrators/ ─► classifier ─►
    text in  embed ·    what training  one loop    a run    how many      a map fitted    label and
             encode ·   minimises      (HF         on disk  passes        on dev          confidence
             head                      Trainer)
    metrics/ ─► pages/ service/ study/
    one number  what people
    each        look at

scores/ tell how unfamiliar a text is, decide/ when to answer. tasks/ has a file per verb: ``calibrant train``
on the command line is ``calibrant.train(...)`` here. Nothing heavy is loaded until it is used.
"""

from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.classifier import Classifier as Classifier
    from calibrant.classifier import load as load
    from calibrant.config import RunConfig as RunConfig
    from calibrant.errors import UserError as UserError
    from calibrant.sklearn import CalibrantClassifier as CalibrantClassifier
    from calibrant.tasks.audit import audit as audit
    from calibrant.tasks.calibrate import calibrate as calibrate
    from calibrant.tasks.demo import demo as demo
    from calibrant.tasks.evaluate import evaluate as evaluate
    from calibrant.tasks.export import export as export
    from calibrant.tasks.monitor import monitor as monitor
    from calibrant.tasks.predict import predict as predict
    from calibrant.tasks.report import report as report
    from calibrant.tasks.serve import serve as serve
    from calibrant.tasks.threshold import threshold as threshold
    from calibrant.tasks.train import train as train
    from calibrant.training import CalibratedTrainer as CalibratedTrainer
    from calibrant.types import Decision as Decision
    from calibrant.types import Outputs as Outputs
    from calibrant.types import Prediction as Prediction

__version__ = "0.1.0"
_VERBS = [module.name for module in iter_modules([f"{__path__[0]}/tasks"]) if module.name != "list"]
_HOME = {verb: f"tasks.{verb}" for verb in _VERBS} | {
    "CalibrantClassifier": "sklearn",
    "CalibratedTrainer": "training",
    "Classifier": "classifier",
    "Decision": "types",
    "Outputs": "types",
    "Prediction": "types",
    "RunConfig": "config",
    "UserError": "errors",
    "load": "classifier",
}
__all__ = sorted(_HOME)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    import importlib
    import warnings

    with warnings.catch_warnings():  # tqdm asks for widgets, in a notebook, and calibrant's bars need none
        warnings.filterwarnings("ignore", message="IProgress not found")
        return getattr(importlib.import_module(f"calibrant.{_HOME[name]}"), name)
