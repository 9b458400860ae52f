"""What a caption says of the cells behind a figure: made from their records, so that it cannot drift."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.methods import Method
from calibrant.study.cells import Cell
from calibrant.study.defaults import beside_defaults


def encoder(cell: Cell) -> str:
    """The name of the encoder; of a directory, its last part."""
    return Path(str(cell.config["model"])).name


def about(cells: Sequence[Cell], preset: str | None) -> str:
    """Sentences on the texts, settings, hyper-parameters and seeds of these cells of one dataset."""
    texts = "; or ".join(_distinct(_texts(cell.data) for cell in cells))
    settings = "; ".join(_distinct(_settings(cell.config) for cell in cells))
    named = "" if preset is None else f" ({preset})"
    others = _distinct(
        f"{cell.key.method} with {hyper_parameters}"
        for cell in cells
        if not cell.key.variant and (hyper_parameters := beside_defaults(cell.objective))
    )
    beside = f" {'; '.join(others)}." if others else ""
    return f"{cells[0].key.dataset}: {texts}. Settings{named}: {settings}.{beside} {seeds(cells)}."


def seeds(cells: Iterable[Cell]) -> str:
    """Which seeds; by method where they differ.

    So a method that is not finished yet is seen to rest on fewer.
    """
    of: dict[str, list[int]] = {}
    for cell in cells:
        of[cell.key.row] = sorted({*of.get(cell.key.row, []), cell.key.seed})
    if len(set(map(tuple, of.values()))) == 1:
        return _seeds(next(iter(of.values())))
    return "; ".join(f"{name}: {_seeds(found).lower()}" for name, found in of.items())


def _seeds(found: Sequence[int]) -> str:
    return f"Seed{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}"


def _texts(data: Mapping[str, Any]) -> str:
    parts = {"train": "trained on", "test": "tested on", "ood": "unfamiliar are"}
    return "; ".join(
        f"{title} {data[part]['n']} texts ({data[part]['source']})"
        for part, title in parts.items()
        if part in data
    )


def _settings(config: Mapping[str, Any]) -> str:
    layers = "" if config["layers"] is None else f", its first {config['layers']} layers"
    rate = config["learning_rate"] or Method("").learning_rate  # of the paper's rows
    return (
        f"{config['model']}{layers}, {config['max_length']} tokens, {config['epochs']} epochs, "
        f"batches of {config['batch_size']}, learning rate {rate:g}"
    )


def _distinct(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))
