"""What the faults of the published scripts change: each is switched on by itself, on 20ng-15 at full size.

    CALIBRANT_DATA=… python benchmarks/faults.py          # goes on where it was interrupted
    CALIBRANT_DATA=… python benchmarks/faults.py --table

A study for each fault lies in results/faults/<fault>, with a cell of the row that it concerns, trained with
the settings of the preset ``laptop``. Without a fault the row is that of results/evidence. Only training has
the fault.
"""

import argparse
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import torch

from calibrant.models.split import SplitModel
from calibrant.objectives.functional import cosine_distance
from calibrant.objectives.manifold import on_step
from calibrant.objectives.solvers.base import Solver
from calibrant.study import measuring
from calibrant.study.cells import read_cells
from calibrant.study.plan import plan, request, waves
from calibrant.types import silent

OUT = Path(__file__).parents[1] / "results" / "faults"


@contextmanager
def gradients_never_zeroed():
    """The baseline's script adds up the gradients of all steps; here clipping to norm 1 holds them back."""
    nothing = lambda self, set_to_none=True: None  # noqa: E731
    with (
        patch.object(torch.nn.Module, "zero_grad", nothing),
        patch.object(torch.optim.Optimizer, "zero_grad", nothing),
    ):
        yield


@contextmanager
def wrong_masks():
    """A partner runs under the mask of the text that it is the partner of."""

    def on(self, model, mask, x, hidden, partners, delta):
        constant = x.detach()
        with torch.no_grad():
            target = model.features(model.encode(constant[partners], mask), mask)
        distance = cosine_distance(model.features(hidden, mask), target).sum()
        (gradient,) = torch.autograd.grad(distance, x, retain_graph=True)
        return on_step(constant, constant, gradient, delta)

    with patch.object(Solver, "_on", on):
        yield


@contextmanager
def padding_in_the_mean():
    """The feature of a text is the mean over all positions of its batch."""
    with patch.object(SplitModel, "features", staticmethod(lambda hidden, mask: hidden.mean(dim=1))):
        yield


FAULTS = {  # fault: the row that it concerns, and the fault
    "gradients-never-zeroed": ("bert", gradients_never_zeroed),
    "wrong-masks": ("manifold-smoothing", wrong_masks),
    "padding-in-the-mean": ("manifold-smoothing", padding_in_the_mean),
}


def run(fault: str, dataset: str, out: Path) -> None:
    row, broken = FAULTS[fault]
    cells = plan(request("laptop", [dataset], [row], seeds=[0]), {})
    ((job,), _) = waves(cells)
    train = measuring.train

    def with_the_fault(*args, **kwargs):
        with broken():
            return train(*args, **kwargs)

    with patch.object(measuring, "train", with_the_fault):
        measuring.measure_job((out / fault).absolute(), job, silent)


def table(out: Path) -> None:
    print("| fault | row | accuracy | confidence | ECE | mistakes | OOD |\n|---|---|---|---|---|---|---|")
    for fault, (row, _) in FAULTS.items():
        for cell in read_cells(out / fault) if (out / fault).exists() else ():
            m = cell.metrics
            numbers = [m["accuracy"], m["mean_confidence_test"], m["ece"]]
            numbers += [m["misclassification"]["nbaucc_0.5"], m["ood"]["nbaucc_0.5"]]
            print(f"| {fault} | {row} | {' | '.join(f'{100 * number:.1f}' for number in numbers)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--faults", nargs="*", default=list(FAULTS), choices=FAULTS)
    parser.add_argument("--dataset", default="20ng-15")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if arguments.table:
        return table(arguments.out)
    torch.set_num_threads(1)
    for fault in arguments.faults:
        run(fault, arguments.dataset, arguments.out)


if __name__ == "__main__":
    main()
