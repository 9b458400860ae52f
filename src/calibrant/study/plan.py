"""The grid as data: which cells there are, and which training each of them needs.

Cells that differ only in how a trained model is asked (temperature scaling, MC dropout) share one
training, the members of an ensemble are the plain trainings of the next seeds, and a variant that says
what is the default anyway is the default. All of that follows from one rule: a training is named by a
fingerprint of what determines it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

from calibrant.config import RunConfig
from calibrant.errors import UserError
from calibrant.inference import Inference
from calibrant.methods import AXES, METHODS, NO_CALIBRATOR, Method
from calibrant.objectives import objectives
from calibrant.recipe import OWN, make, read_recipe
from calibrant.registry import pick
from calibrant.runs.texts import load_splits
from calibrant.study.cells import Key, read_cell, variant
from calibrant.study.defaults import beside_defaults
from calibrant.study.presets import PARAMETERS, PRESETS, Preset
from calibrant.study.rows import ROWS

ABLATION: tuple[dict[str, Any], ...] = (
    {},
    {"lambda_on": 0},
    *({"lambda_off": 0, "delta_on": delta} for delta in (1e-2, 1e-3, 1e-4, 1e-5)),
)
"""Both terms, R_off alone, and R_on alone at four sizes."""

TEXTCNN = {"model": "textcnn"}
"""The variant of plain training that the paper's first figure sets beside the encoder, whose layers it has
not."""

PARTS = ("main", "search", "ablation", "parameters", "textcnn")

Chosen = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Hyper-parameters that a search found: of the objective, by dataset and method."""


@dataclass(frozen=True)
class Request:
    """What a user asked for, checked."""

    preset: Preset
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    parts: tuple[str, ...]

    def chooser(self, dataset: str) -> str:
        """The dataset whose hyper-parameters this one takes."""
        return self.preset.searched_on.get(dataset, dataset)


def request(
    preset: str = "laptop",
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    seeds: Sequence[int] = (),
    parts: Sequence[str] = (),
) -> Request:
    """A request; what is left out is the preset's: its datasets, rows and seeds, and ``main``."""
    chosen = pick("preset", preset, PRESETS)
    for dataset in datasets:
        pick(f"dataset of the preset {preset}", dataset, chosen.datasets)
    for method in methods:
        pick("method", method, ROWS)
    for part in parts:
        pick("part", part, dict.fromkeys(PARTS))
    for seed in seeds:
        if not 0 <= seed < 2**32:
            raise UserError(f"--seeds: a seed lies between 0 and 2³² − 1, got {seed}.")
    return Request(
        chosen,
        _once(datasets) or tuple(chosen.datasets),
        _once(methods) or chosen.methods,
        _once(seeds) or chosen.seeds,
        _once(parts) or ("main",),
    )


def requests(preset: str = "laptop", **named: Sequence[Any]) -> list[Request]:
    """What is named of a preset; where nothing is, its programme in its order."""
    if any(named.values()):
        return [request(preset, **named)]
    return [request(preset, **part) for part in pick("preset", preset, PRESETS).programme]


@dataclass(frozen=True)
class Training:
    """One run directory."""

    config: RunConfig  # the objective's hyper-parameters all written out
    fingerprint: str  # of all that determines it: settings and texts
    steps: int
    model: str | None = None  # where it is not the preset's

    def folder(self, study: Path) -> Path:
        """Where it is, or will be."""
        return study / "runs" / self.fingerprint

    @property
    def what(self) -> str:
        """The objective, hyper-parameters that differ from its own, and a model that is not the preset's."""
        objective = self.config.objective
        return " ".join(filter(None, (objective["name"], beside_defaults(objective), self.model)))

    def __str__(self) -> str:
        return f"{self.what} on {self.config.dataset}, seed {self.config.seed}"


@dataclass(frozen=True)
class Planned:
    """A cell that is to be, and how to ask the trained models for it."""

    key: Key
    trainings: tuple[Training, ...]  # several for an ensemble
    inference: Inference
    max_test_samples: int | None
    fingerprint: str

    def finished(self, study: Path) -> bool:
        """Whether it is there, of these very settings and training texts; one of others is measured anew.

        The texts that it was tested on are only recorded: plans are made before those may be read.
        """
        path = self.key.path(study)
        return path.exists() and read_cell(path).fingerprint == self.fingerprint


@dataclass(frozen=True)
class Job:
    """What one worker does without asking the others: train what is not trained, and measure its cells."""

    trainings: tuple[Training, ...]
    cells: tuple[Planned, ...] = ()

    def __str__(self) -> str:
        together = f", {len(self.trainings)} together" if len(self.trainings) > 1 else ""
        return f"{self.trainings[0]}{together}"


def waves(cells: Sequence[Planned]) -> tuple[list[Job], list[Job]]:
    """Every training once, with the cells that need no other; then the cells that need several."""
    trainings = {t.fingerprint: t for cell in cells for t in cell.trainings}
    alone = [cell for cell in cells if len(cell.trainings) == 1]
    first = [
        Job((training,), tuple(cell for cell in alone if cell.trainings == (training,)))
        for training in trainings.values()
    ]
    return first, [Job(cell.trainings, (cell,)) for cell in cells if len(cell.trainings) > 1]


def plan(asked: Request, chosen: Chosen) -> list[Planned]:
    """The cells of all parts but the search, which has none; ``chosen`` is what that found."""
    return [_planned(asked, chosen, *which) for which in dict.fromkeys(_variants(asked))]


def training(
    preset: Preset, dataset: str, row: str, settings: Mapping[str, Any], seed: int, **more: Any
) -> Training:
    """The training that a row needs, with these hyper-parameters over the preset's own."""
    method = METHODS[ROWS[row].method]
    objective = make(
        "objective",
        method.objective,
        objectives(),
        {**preset.objectives.get(method.objective, {}), **settings},
    )
    written_out = {"name": method.objective, **asdict(objective)}  # type: ignore[call-overload]
    own = {axis: preset.settings[axis] for axis in OWN if axis in preset.settings}

    def axes(of: Method) -> list[Any]:
        return [getattr(replace(of, **own), axis) for axis in AXES]

    alone = replace(method, inference="single", calibrator=None)
    shared = [name for name, other in METHODS.items() if axes(other) == axes(alone)]
    name = shared[0] if shared else method.name
    more = more if shared else {"calibrator": NO_CALIBRATOR, **more}
    config = preset.config(dataset, method=name, objective=written_out, seed=seed, **more)
    data = _data(preset.config(dataset, max_train_samples=config.max_train_samples).model_dump_json())
    steps = 0 if method.frozen else -(-data["train"]["n"] // config.batch_size) * config.epochs
    fingerprint = config.fingerprint(data=data, objective_settings=written_out)
    other_model = None if config.model == preset.config(dataset).model else config.model
    return Training(config, fingerprint, steps, other_model)


def _once(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


def _variants(asked: Request) -> Iterator[tuple[str, str, int, tuple[tuple[str, Any], ...]]]:
    for dataset in asked.datasets:
        for seed in asked.seeds:
            if "main" in asked.parts:
                for method in asked.methods:
                    yield dataset, method, seed, ()
            if "ablation" in asked.parts:
                for settings in ABLATION:
                    yield dataset, "manifold-smoothing", seed, tuple(settings.items())
            if "parameters" in asked.parts:
                for name, values in PARAMETERS.items():
                    for value in values:
                        yield dataset, "manifold-smoothing", seed, ((name, value),)
            if "textcnn" in asked.parts:
                yield dataset, "bert", seed, tuple(TEXTCNN.items())


def _planned(
    asked: Request,
    chosen: Chosen,
    dataset: str,
    method: str,
    seed: int,
    differing: tuple[tuple[str, Any], ...],
) -> Planned:
    preset, found = asked.preset, chosen.get(asked.chooser(dataset), {}).get(method, {})
    textcnn = dict(differing) == TEXTCNN
    if textcnn:
        settings, more = found, {**TEXTCNN, "layers": None, **preset.textcnn}
    else:
        settings, more = {**found, **dict(differing)}, {}
    recipe = read_recipe(RunConfig(dataset=dataset, method=ROWS[method].method))
    members = [
        training(preset, dataset, method, settings, seed + i, **more) for i in range(recipe.inference.members)
    ]
    fingerprint = members[0].config.fingerprint(
        training=members[0].fingerprint,
        inference={"name": recipe.inference.name, **asdict(recipe.inference)},  # type: ignore[call-overload]
        answers=ROWS[method].name,
        max_test_samples=preset.max_test_samples,
    )
    key = Key(dataset, method, seed, variant(dict(differing)))
    return Planned(key, tuple(members), recipe.inference, preset.max_test_samples, fingerprint)


def for_search(preset: Preset, dataset: str) -> dict[str, Any]:
    """Settings of a search's training that differ from the preset's."""
    if preset.search_share == 1:
        return dict(preset.search)
    whole = sum(part["n"] for part in _data(preset.config(dataset).model_dump_json()).values())
    return {**preset.search, "max_train_samples": ceil(whole / preset.search_share)}


@cache
def _data(config: str) -> dict[str, Any]:
    """What records say of the texts that settings ask for.

    Train and dev only: the plan is made before hyper-parameters are chosen.
    """
    return load_splits(RunConfig.model_validate_json(config)).provenance()
