"""Training as TensorBoard, MLflow or Weights & Biases show it, by transformers' own integrations.

They get the loss terms and the dev figures. One callback adds a picture of what the model says on dev.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from transformers import EvalPrediction, Trainer, TrainerCallback
from transformers.integrations import MLflowCallback, TensorBoardCallback, WandbCallback

from calibrant._system import processes
from calibrant.errors import UserError
from calibrant.registry import pick

Draw = Callable[[NDArray[np.floating], NDArray[np.integer]], NDArray[np.uint8]]
"""Probabilities (n, K) and true classes (n,) to a picture, (height, width, 3)."""
Send = Callable[[NDArray[np.uint8], int], None]
"""Of a picture, and the step at which it was drawn."""
PICTURE = "eval/reliability"


def check_trackers(names: Sequence[str]) -> None:
    """Refuse what is no tracker, or is not installed."""
    for name in names:
        pick("tracker", name, TRACKERS)
        if find_spec(name) is None:
            raise UserError(f"--report-to {name} needs a package that is not installed: pip install {name}.")


def track(trainer: Trainer, names: Sequence[str], folder: Path, draw: Draw) -> None:
    """Report a training to these trackers; TensorBoard's files go into a folder of the run's."""
    trainer.args.run_name = str(folder)
    pictures = Pictures(draw)
    for name in names:
        integration, send = TRACKERS[name](folder / name)
        trainer.add_callback(integration)
        pictures.sends.append(send)
    trainer.add_callback(pictures)
    trainer.compute_metrics = pictures.of(trainer.compute_metrics)


class Pictures(TrainerCallback):  # type: ignore[misc]
    """Sends, whenever dev is measured, a picture of what the model answered there."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.sends: list[Send] = []
        self.seen: EvalPrediction | None = None

    def of(self, measure: Callable[[EvalPrediction], dict[str, float]]) -> Any:
        """The same measure. It alone is shown the answers, which callbacks are not."""

        def measured(prediction: EvalPrediction) -> dict[str, float]:
            self.seen = prediction
            return measure(prediction)

        return measured

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After each epoch; not of a model that has diverged."""
        if self.seen is None or not state.is_world_process_zero:
            return
        logits = np.asarray(self.seen.predictions, dtype=np.float64)
        if np.isfinite(logits).all():
            picture = self.draw(softmax(logits, axis=1), np.asarray(self.seen.label_ids))
            for send in self.sends:
                send(picture, state.global_step)


def _tensorboard(folder: Path) -> tuple[TrainerCallback, Send]:
    from torch.utils.tensorboard import SummaryWriter

    writer: Any = SummaryWriter(str(folder)) if processes.is_main() else None
    return TensorBoardCallback(writer), lambda picture, step: writer.add_image(
        PICTURE, picture, step, dataformats="HWC"
    )


def _mlflow(folder: Path) -> tuple[TrainerCallback, Send]:
    def send(picture: NDArray[np.uint8], step: int) -> None:
        import mlflow

        mlflow.log_image(picture, key=PICTURE, step=step)

    return MLflowCallback(), send


def _wandb(folder: Path) -> tuple[TrainerCallback, Send]:
    def send(picture: NDArray[np.uint8], step: int) -> None:
        import wandb

        wandb.log({PICTURE: wandb.Image(picture), "train/global_step": step})

    return WandbCallback(), send


TRACKERS: dict[str, Callable[[Path], tuple[TrainerCallback, Send]]] = {
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
    "wandb": _wandb,
}
