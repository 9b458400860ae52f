"""One training loop for every objective, on ``transformers.Trainer``: its start, and what happens beside."""

from calibrant.training.callbacks import EpochLines, Sealing, StopByItself, Watch
from calibrant.training.interpolating import copied, interpolate
from calibrant.training.start import start_head
from calibrant.training.trainer import CRITERIA, CalibratedTrainer, dev_metrics

__all__ = [
    "CRITERIA",
    "CalibratedTrainer",
    "EpochLines",
    "Sealing",
    "StopByItself",
    "Watch",
    "copied",
    "dev_metrics",
    "interpolate",
    "start_head",
]
