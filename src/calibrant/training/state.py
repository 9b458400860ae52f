"""Where a training was, as its checkpoint says."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from transformers import TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from calibrant._system.strict_json import loads
from calibrant.errors import UserError


def read_state(checkpoint: Path) -> TrainerState:
    """Where training was; refused where the file does not say so, for the Trainer believes all of it."""
    path = checkpoint / TRAINER_STATE_NAME
    try:
        raw = loads(path.read_bytes())
        _State.model_validate(raw)
        return TrainerState(**raw)
    except (ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{path} is damaged ({reason}); remove {checkpoint} and run the same command again."
        ) from error


class _State(BaseModel):
    """What the Trainer reads back."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    global_step: int = Field(ge=0, lt=2**31)
    epoch: float = Field(ge=0, lt=2**31)
    max_steps: int = Field(ge=0, lt=2**31)
    log_history: list[dict[str, int | float]]
    best_metric: float | None = None
    best_global_step: int | None = Field(None, ge=0, lt=2**31)
    best_model_checkpoint: str | None = None
    train_batch_size: int | None = Field(None, ge=1, lt=2**31)
    stateful_callbacks: dict[str, Any] = {}
