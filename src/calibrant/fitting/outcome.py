"""How a training went, for the record."""

from collections.abc import Sequence

from calibrant.runs.record import TrainingRecord
from calibrant.runs.store import Run

KEPT_FIGURES = ("accuracy", "confidence", "nll")
"""Of those that dev is measured by."""


def outcome(
    steps: int, seconds: dict[str, float], best: dict[str, float], history: list[dict[str, float]]
) -> TrainingRecord:
    """Of one model; ``best`` is the entry of the history that is kept."""
    return TrainingRecord(
        steps=steps,
        **{name: round(value, 1) for name, value in seconds.items()},
        best_epoch=best["epoch"],
        share=best.get("share"),
        **{f"dev_{name}": best[f"eval_{name}"] for name in KEPT_FIGURES},
        history=history,
    )


def training_times(runs: Sequence[Run]) -> dict[str, float]:
    """Of all of them together, by the clocks that every one was timed with."""
    times = {clock: [getattr(run.training, clock) for run in runs] for clock in ("seconds", "work_seconds")}
    return {clock: round(sum(each), 1) for clock, each in times.items() if None not in each}
