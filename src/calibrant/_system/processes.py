"""The processes that train together, one for each GPU: torchrun or accelerate launch starts them.

The first of them is the main process. It alone writes and speaks. A process that was started alone is the
main one, and all here costs it nothing.
"""

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import distributed as dist

from calibrant._system.device import device
from calibrant.errors import Elsewhere, Lost, UserError

T = TypeVar("T")
Arrays = dict[str, NDArray[Any]]
LONG = timedelta(days=1)
"""To wait for the main process, which may fit or measure for long. One that dies is noticed at once."""
UNTESTED = {"ACCELERATE_USE_FSDP": "FSDP", "ACCELERATE_USE_DEEPSPEED": "DeepSpeed"}
LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed")
"""What gloo says of a process that is gone."""

_group: dist.ProcessGroup | None = None  # in which processes wait for each other; None: the default one
_told: Exception | None = None  # the last error that all processes know of


def launched() -> int:
    """How many processes the launcher has started."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def count() -> int:
    """How many train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this one, from 0."""
    return dist.get_rank() if count() > 1 else 0


def is_main() -> bool:
    """Whether this is the one that writes and speaks."""
    return rank() == 0


def check_launcher() -> None:
    """Refuse ways to share a model that nobody has tried with the objectives."""
    for variable, name in UNTESTED.items():
        if os.environ.get(variable, "").lower() in ("1", "true"):
            raise UserError(
                f"calibrant does not train with {name}, which nobody has tested with its objectives; start "
                "it with torchrun, or configure `accelerate launch` for plain data-parallel training (DDP)."
            )


@contextmanager
def together() -> Iterator[None]:
    """All processes of the launcher go through this block; what ends it in one ends it in all."""
    global _group
    check_launcher()
    _meet()
    if count() == 1:
        yield
        return
    _group = dist.new_group(backend="gloo", timeout=LONG)  # a GPU would be busy with waiting
    try:
        with nullcontext() if is_main() else _silence():
            yield
    except Exception as error:
        if error is not _told:
            dist.destroy_process_group()  # whoever waits for this process notices, even if it lives on
        if _is_lost(error):
            raise Lost(
                "Another process of this training has ended, so this one ends, too. The same command goes on "
                "from the last checkpoint."
            ) from error
        raise
    finally:
        _group = None


def _meet() -> None:
    if launched() == 1 or count() > 1:
        return
    from accelerate import PartialState

    PartialState._reset_state()
    PartialState(cpu=device().type == "cpu")
    if count() != launched():
        raise UserError(
            f"The launcher has started {launched()} processes (WORLD_SIZE), and they do not find each other; "
            "start them with torchrun or `accelerate launch`, or unset WORLD_SIZE to train with one."
        )


def leave() -> None:
    """At the end of the process: each says goodbye to the others."""
    if count() > 1:
        dist.destroy_process_group()


def on_main(work: Callable[[], T]) -> T:
    """What the main process makes of this alone, once all have come here. The others get it, too."""
    if count() == 1:
        return work()
    dist.barrier(_group)  # what others still read may be about to go
    found, error = _tried(work) if is_main() else (None, None)
    _tell(error)
    answer = [found]
    dist.broadcast_object_list(answer, src=0, group=_group)
    return answer[0]  # type: ignore[return-value]


def one_first(work: Callable[[], T]) -> T:
    """What each process makes of this; on each machine one before the others, since it may download."""
    if count() == 1:
        return work()
    first = int(os.environ.get("LOCAL_RANK") or 0) == 0
    found, error = _tried(work) if first else (None, None)
    _tell(error)
    if not first:
        found, error = _tried(work)
    _tell(error)
    return found  # type: ignore[return-value]


def in_shares(items: Sequence[T], work: Callable[[Sequence[T]], Arrays]) -> Arrays:
    """Arrays with a row for each item, of which each process made its share; on the main one, else none."""
    n = count()
    if n == 1:
        return work(items)
    found, error = _tried(lambda: work(items[rank() :: n]))
    _tell(error)
    parts: list[Any] | None = [None] * n if is_main() else None
    dist.gather_object(found, parts, dst=0, group=_group)
    if parts is None:
        return {}
    whole = {name: np.empty((len(items), *own.shape[1:]), own.dtype) for name, own in parts[0].items()}
    for i, part in enumerate(parts):
        for name, rows in part.items():
            whole[name][i::n] = rows
    return whole


def main_says(yes: bool) -> bool:
    """What the main process says, where each has an answer of its own."""
    if count() == 1:
        return yes
    said = torch.tensor([yes])
    dist.broadcast(said, src=0, group=_group)
    return bool(said)


def _tried(work: Callable[[], T]) -> tuple[T | None, Exception | None]:
    try:
        return work(), None
    except Exception as error:
        return None, error


def _tell(error: Exception | None) -> None:
    """Raise one's own error, or ``Elsewhere`` where another process has one."""
    global _told
    sentences: list[str | None] = [None] * count()
    dist.all_gather_object(sentences, None if error is None else str(error), group=_group)
    failed = [(number, sentence) for number, sentence in enumerate(sentences) if sentence is not None]
    if not failed:
        return
    _told = error or Elsewhere("Process {} of this training failed: {}".format(*failed[0]))
    raise _told


def _is_lost(error: Exception) -> bool:
    """Whether it tells of another process that is gone; gloo and NCCL have an error of their own each."""
    kinds = (dist.DistBackendError, dist.DistNetworkError)
    gloo = isinstance(error, RuntimeError) and any(words in str(error) for words in LOST)
    return isinstance(error, kinds) or gloo


@contextmanager
def _silence() -> Iterator[None]:
    """What calibrant logs or warns of is told by the main process."""
    logger = logging.getLogger("calibrant")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(before)
