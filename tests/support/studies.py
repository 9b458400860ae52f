"""What tests of studies share."""

from dataclasses import asdict

from calibrant.study.cells import read_cells


def lasting(study):
    """What two runs of a study must agree in: all of its cells but how long it took, and where."""
    cells = {}
    for cell in read_cells(study):
        record = asdict(cell)
        del record["machine"], record["training"]["seconds"], record["training"]["work_seconds"]
        cells[cell.key] = record
    return cells
