"""One run that is to be trained, and the members of an ensemble as runs of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from calibrant.config import RunConfig
from calibrant.inference.single import SinglePass
from calibrant.methods import NO_CALIBRATOR, named
from calibrant.recipe import Recipe
from calibrant.runs.store import Run
from calibrant.types import Needs, Progress, Splits


@dataclass(frozen=True)
class Job:
    """What it is trained from, where it goes, and who is told."""

    config: RunConfig
    recipe: Recipe  # what the settings ask for
    splits: Splits
    out: Path
    progress: Progress
    label: str  # what progress and the lines of the epochs call it
    report_to: Sequence[str]  # trackers

    @property
    def needs(self) -> Needs:
        """What the calibrator reads beside the logits."""
        calibrator = self.recipe.calibrator
        return frozenset() if calibrator is None else calibrator.needs

    def members(self, run: Run) -> list["Job"]:
        """Itself, and the others of an ensemble: plain runs inside its own run, with the next seeds."""
        n = self.recipe.inference.members
        if n == 1:
            return [self]
        method = named(replace(self.recipe.method, inference="single", calibrator=None))
        alone = replace(self.recipe, method=method, inference=SinglePass(), calibrator=None)
        settings = self.config.model_dump()
        settings |= {"inference": {"name": "single"}, "calibrator": NO_CALIBRATOR}
        others = [
            replace(
                self,
                config=RunConfig(**settings | {"seed": self.config.seed + number - 1}),
                recipe=alone,
                out=run.member(number),
            )
            for number in range(2, n + 1)
        ]
        return [
            replace(job, label=f"{self.label}, member {number} of {n}")
            for number, job in enumerate([self, *others], start=1)
        ]
