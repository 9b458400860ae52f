from dataclasses import replace

import pytest

from calibrant.data.catalog.smoke import GeneratedSource
from calibrant.errors import UserError
from calibrant.methods import METHODS
from calibrant.recipe import read_recipe
from calibrant.study.plan import ABLATION, plan, request, requests, training, waves
from calibrant.study.presets import PAPER_METHODS, PARAMETERS, PRESETS
from calibrant.study.rows import ROWS


@pytest.fixture(autouse=True)
def generated(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)


def cells_of(*methods, chosen=None, **more):
    return plan(request("smoke", methods=methods, **more), chosen or {})


def test_what_is_left_out_is_the_presets():
    asked = request("smoke")
    assert asked.datasets == ("smoke",)
    assert asked.methods == PAPER_METHODS
    assert asked.seeds == PRESETS["smoke"].seeds
    assert asked.parts == ("main",)
    assert len(PAPER_METHODS) == 9


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            {"preset": "labtop"},
            "Unknown preset 'labtop'; did you mean 'laptop'? Known: laptop, paper, smoke.",
        ),
        (
            {"preset": "smoke", "datasets": ["20ng"]},
            "Unknown dataset of the preset smoke '20ng'. Known: smoke.",
        ),
        ({"methods": ["brt"]}, "Unknown method 'brt'; did you mean 'bert'? Known: calibrant, "),
        ({"parts": ["mian"]}, "Unknown part 'mian'; did you mean 'main'? Known: main, search, "),
        ({"seeds": [0, -1]}, "--seeds: a seed lies between 0 and 2³² − 1, got -1."),
        ({"seeds": [2**32]}, "--seeds: a seed lies between 0 and 2³² − 1, got 4294967296."),
    ],
)
def test_refused(wrong, sentence):
    with pytest.raises(UserError) as refused:
        request(**wrong)
    assert str(refused.value).startswith(sentence)


def test_rows_that_share_an_objective_share_the_training():
    cells = cells_of(*PAPER_METHODS, seeds=[0, 1])
    first, second = waves(cells)
    assert (len(cells), len(first), second) == (18, 14, [])
    shared = next(job for job in first if job.trainings[0].config.method == "bert")
    assert [cell.key.method for cell in shared.cells] == ["bert", "temperature-scaling", "mc-dropout"]
    assert sum(len(job.cells) for job in first) == 18
    assert len({cell.fingerprint for cell in cells}) == 18


def test_members_of_an_ensemble_are_plain_trainings_of_the_next_seeds():
    first, second = waves(cells_of("bert", "deep-ensemble", seeds=[0, 1]))
    assert [job.trainings[0].config.seed for job in first] == [0, 1, 2, 3, 4, 5]
    assert [[cell.key.method for cell in job.cells] for job in first] == [["bert"]] * 2 + [[]] * 4
    assert [[t.config.seed for t in job.trainings] for job in second] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    assert str(second[0]) == "cross-entropy on smoke, seed 0, 5 together"


def test_a_variant_that_says_what_is_the_default_is_not_trained_again():
    cells = cells_of("manifold-smoothing", seeds=[0], parts=["main", "ablation", "parameters"])
    points = sum(map(len, PARAMETERS.values()))
    assert all(len(values) == 5 for values in PARAMETERS.values())
    assert len(cells) == len(ABLATION) + points  # the main cell is the ablation's "both"
    by_variant = {cell.key.variant: cell for cell in cells}
    default = by_variant[""].trainings
    assert by_variant["delta_on=0.0001"].trainings == default
    assert by_variant["delta_off=0.001"].trainings == by_variant["delta_y=0.1"].trainings == default
    assert len(waves(cells)[0]) == len(cells) - 3
    alone = by_variant["delta_on=0.01,lambda_off=0"].trainings[0]
    assert alone.what == "manifold-smoothing delta_on=0.01,lambda_off=0.0"
    assert by_variant["lambda_on=0"].trainings[0].config.objective["lambda_on"] == 0


def test_textcnn_is_one_whatever_the_presets_encoder(monkeypatch):
    cut = {**PRESETS["smoke"].settings, "model": "minilm", "layers": 3}
    monkeypatch.setitem(PRESETS, "smoke", replace(PRESETS["smoke"], settings=cut, textcnn={}))
    encoder, textcnn = (cell.trainings[0] for cell in cells_of("bert", seeds=[0], parts=["main", "textcnn"]))
    assert (encoder.config.model, encoder.config.layers) == ("minilm", 3)
    assert (textcnn.config.model, textcnn.config.layers) == ("textcnn", None)
    assert str(encoder) == "cross-entropy on smoke, seed 0"
    assert str(textcnn) == "cross-entropy textcnn on smoke, seed 0"


def test_every_preset_stands_among_the_points_of_its_parameter_study():
    for preset in PRESETS.values():
        own = preset.objectives.get("manifold-smoothing", {})
        for name, default in (("delta_on", 1e-4), ("delta_off", 1e-3), ("delta_y", 0.1)):
            assert own.get(name, default) in PARAMETERS[name]


def test_all_that_determines_a_training_is_in_its_name(monkeypatch):
    preset = PRESETS["smoke"]

    def name(preset=preset, method="mixup", settings=(), seed=0):
        return training(preset, "smoke", method, dict(settings), seed).fingerprint

    names = {
        name(),
        name(seed=1),
        name(method="vat"),
        name(settings={"alpha": 0.3}),
        name(preset=replace(preset, settings={**preset.settings, "epochs": 5})),
        name(preset=replace(preset, objectives={"mixup": {"alpha": 0.5}})),
        name(preset=replace(preset, settings={**preset.settings, "max_train_samples": 100})),
    }
    assert len(names) == 7
    assert name(settings={"alpha": 0.2}) == name()  # the default, said aloud
    assert name(method="temperature-scaling") == name(method="mc-dropout") == name(method="bert")


def test_what_was_chosen_goes_into_the_cells():
    chosen = {"smoke": {"mixup": {"alpha": 0.4}}}
    (cell,) = cells_of("mixup", seeds=[0], chosen=chosen)
    assert cell.trainings[0].config.objective == {"name": "mixup", "alpha": 0.4}
    assert cell.key.variant == ""
    (other,) = cells_of("mixup", seeds=[0])
    assert cell.fingerprint != other.fingerprint


def test_planning_reads_no_test_texts(monkeypatch):
    read = GeneratedSource.read

    def only_train(self, split):
        assert split != "test"
        return read(self, split)

    monkeypatch.setattr(GeneratedSource, "read", only_train)
    preset = replace(PRESETS["smoke"], settings={**PRESETS["smoke"].settings, "max_train_samples": 90})
    monkeypatch.setitem(PRESETS, "smoke", preset)
    assert cells_of("bert", seeds=[0])[0].trainings[0].steps == 3 * 3  # 72 texts, 32 a step, 3 epochs


def test_rows_that_answer_for_the_model_and_those_of_another_calibrator_share_plain_training(monkeypatch):
    """Where all start alike, the default method is plain training with another calibrator."""
    alike = {"start": "probe", "pooling": "first+mean", "keep": "interpolation"}
    settings = {**PRESETS["smoke"].settings, "model": "minilm", **alike}
    monkeypatch.setitem(PRESETS, "smoke", replace(PRESETS["smoke"], settings=settings))
    plain = ("bert", "temperature-scaling", "mc-dropout", "calibrant", "constant", "oracle")
    ((shared, probe), _) = waves(cells_of(*plain, "linear-probe", seeds=[0]))
    assert [cell.key.method for cell in shared.cells] == list(plain)
    assert [cell.key.method for cell in probe.cells] == ["linear-probe"]
    assert (shared.trainings[0].config.method, probe.trainings[0].config.method) == ("bert", "linear-probe")
    assert (shared.trainings[0].steps > 0, probe.trainings[0].steps) == (True, 0)


def test_a_preset_is_run_in_its_own_order_unless_a_part_is_named():
    programme = requests("laptop")
    first = programme[0]
    assert (first.datasets, first.seeds, first.parts) == (("20ng-15", "20ng"), (0,), ("main",))
    for part in programme:  # hyper-parameters are searched before the rows that have some are measured
        searched = {
            (part.chooser(d), m) for d in part.datasets for m in part.methods if m in part.preset.grids
        }
        before = [p for p in programme[: programme.index(part) + 1] if "search" in p.parts]
        if part.parts == ("main",):
            assert searched <= {(d, m) for p in before for d in p.datasets for m in p.methods}
    rows = {(d, m) for part in programme if 0 in part.seeds for d in part.datasets for m in part.methods}
    for dataset in ("20ng-15", "banking77", "yahoo-8"):
        assert {m for d, m in rows if d == dataset} >= set(PAPER_METHODS) | {
            "constant",
            "oracle",
            "calibrant",
        }
    seeds = {
        (d, s) for part in programme if "calibrant" in part.methods for d in part.datasets for s in part.seeds
    }
    assert {d for d, s in seeds if s == 0} == set(PRESETS["laptop"].datasets)
    assert {d for d, s in seeds if s == 1} == {"banking77", "20ng-15"}
    assert requests("laptop", seeds=[1], datasets=["20ng"]) == [request("laptop", ["20ng"], seeds=[1])]


def test_hyper_parameters_are_those_of_the_dataset_that_chose(monkeypatch):
    preset = replace(PRESETS["smoke"], searched_on={"smoke": "another"})
    monkeypatch.setitem(PRESETS, "smoke", preset)
    (cell,) = cells_of("mixup", seeds=[0], chosen={"another": {"mixup": {"alpha": 0.4}}})
    assert cell.trainings[0].config.objective["alpha"] == 0.4


@pytest.mark.parametrize("method", ROWS)
def test_the_training_of_every_row_can_be_read(method):
    """Its config names a row, and makes the row's choices but for inference and calibrator."""
    config = training(PRESETS["smoke"], "smoke", method, {}, seed=0, model="minilm").config
    row, made = METHODS[ROWS[method].method], read_recipe(config).method
    assert config.method in METHODS
    assert (made.objective, made.start, made.frozen, made.pooling) == (
        row.objective,
        row.start,
        row.frozen,
        row.pooling,
    )
    assert (made.inference, made.calibrator) == ("single", None)
