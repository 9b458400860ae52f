"""What a model has answered while it was trained: a second pass would say the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from calibrant._system import processes
from calibrant.types import Outputs


@dataclass(frozen=True)
class Said:
    """Of the model as it is kept, on the main process; None where it was not asked."""

    on_train: Outputs | None = None
    on_dev: Outputs | None = None


def in_shares(items: Sequence[Any], answer: Callable[[Sequence[Any]], Outputs]) -> Outputs | None:
    """The answers to all of them, on the main process; each process answers its share."""

    def answered(own: Sequence[Any]) -> dict[str, Any]:
        outputs = answer(own)
        named = {field.name: getattr(outputs, field.name) for field in fields(outputs)}
        return {name: array for name, array in named.items() if array is not None}

    found = processes.in_shares(items, answered)
    return Outputs(**found) if found else None
