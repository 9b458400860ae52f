"""Hyper-parameters are chosen by dev ECE, and before test texts are read."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.data.catalog.smoke import GeneratedSource
from calibrant.errors import Diverged, UserError
from calibrant.methods import METHODS
from calibrant.objectives import objectives
from calibrant.runs.texts import load_splits
from calibrant.study import run, search
from calibrant.study.cells import Key, read_cell
from calibrant.study.outlook import outlook
from calibrant.study.plan import plan, request
from calibrant.study.presets import GRIDS, PARAMETERS, PRESETS
from calibrant.study.run import run_study
from calibrant.study.search import Search, read_chosen, without_loss

SHORT = replace(PRESETS["smoke"], settings={**PRESETS["smoke"].settings, "epochs": 1})


@pytest.fixture(autouse=True)
def generated(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.setitem(PRESETS, "smoke", SHORT)


@pytest.fixture
def test_is_closed(monkeypatch):
    """From here on nothing may read the test split; called, it is open again."""
    read = GeneratedSource.read

    def closed(self, split):
        if split == "test":
            raise UserError("The test split was read.")
        return read(self, split)

    monkeypatch.setattr(GeneratedSource, "read", closed)
    return lambda: monkeypatch.setattr(GeneratedSource, "read", read)


def asking(*parts, methods=("label-smoothing",), seeds=(0, 1)):
    return request("smoke", methods=methods, seeds=seeds, parts=parts)


def test_the_papers_grids():
    assert {method: len(next(iter(grid.values()))) for method, grid in GRIDS.items()} == {
        "label-smoothing": 2,
        "entropy-regularized": 7,
        "vat": 3,
        "mixup": 4,
        "manifold-mixup": 5,
    }
    for method, grid in GRIDS.items():
        for name, values in grid.items():
            for value in values:
                assert getattr(objectives()[METHODS[method].objective](**{name: value}), name) == value


def test_the_choice_is_written_before_test_texts_are_read(tmp_path, monkeypatch, test_is_closed):
    study = tmp_path / "study"
    asked = asking("search", "main")
    with pytest.raises(UserError, match=r"^The test split was read\.$"):
        run_study(study, asked)
    found = read_chosen(study)["smoke"]["label-smoothing"]

    # what is chosen has the lowest mean over the seeds of what the trainings say of dev
    ece = {}
    for path in (study / "search").glob("*.json"):
        looked = json.loads(path.read_text())
        smoothing = looked["config"]["objective"]["smoothing"]
        ece.setdefault(smoothing, {})[looked["config"]["seed"]] = looked["dev_ece"]
    assert {smoothing: sorted(of) for smoothing, of in ece.items()} == {0.05: [0, 1], 0.1: [0, 1]}
    means = {f"smoothing={smoothing}": np.mean(list(of.values())) for smoothing, of in ece.items()}
    assert found["dev_ece"] == pytest.approx(means, abs=1e-12)
    best = min(means, key=means.get)
    assert f"smoothing={found['settings']['smoothing']}" == best
    assert found["seeds"] == [0, 1]
    assert not (study / "cells").exists()

    # once it is written the cells follow from it, and the search is not made again
    test_is_closed()
    written = (study / "chosen.json").read_bytes()
    monkeypatch.setattr(
        "calibrant.fitting.model.fit_model", must_not_train
    )  # the chosen ones are trained already
    outcome = run_study(study, asked)
    assert (outcome.cells, outcome.measured, outcome.jobs) == (2, 2, 2)
    assert (study / "chosen.json").read_bytes() == written
    cell = read_cell(Key("smoke", "label-smoothing", 0).path(study))
    assert cell.objective == {"name": "label-smoothing", **found["settings"]}
    assert cell.training["dev_ece"] == ece[found["settings"]["smoothing"]][0]

    # other seeds would choose anew, with test results known
    with pytest.raises(UserError) as refused:
        run_study(study, asking("search", seeds=[0]))
    assert str(refused.value) == (
        f"{study}/cells/smoke/label-smoothing holds test results, and hyper-parameters are chosen before "
        "those are known; leave out the part `search`, remove that folder, or give another --out."
    )
    assert run_study(study, asking("main", seeds=[0])).measured == 0  # the choice that is there is kept


def test_a_part_of_the_texts_is_trained_on_and_the_rest_of_dev_looked_at(tmp_path, monkeypatch):
    preset = replace(SHORT, search_share=4, search={"epochs": 2})
    monkeypatch.setitem(PRESETS, "smoke", preset)
    study = tmp_path / "study"
    run_study(study, asking("search", "main", seeds=[0]), drop_runs=True)
    found = [json.loads(path.read_text()) for path in (study / "search").glob("*.json")]
    assert [(one["config"]["max_train_samples"], one["config"]["epochs"]) for one in found] == [(50, 2)] * 2
    whole = load_splits(preset.config("smoke")).dev
    seen = set(load_splits(preset.config("smoke", max_train_samples=50)).train.texts)
    unseen = [text for text in whole.texts if text not in seen]
    assert [one["n_dev"] for one in found] == [len(unseen)] * 2
    assert 20 < len(unseen) < len(whole)
    cell = read_cell(Key("smoke", "label-smoothing", 0).path(study))
    assert (cell.config["max_train_samples"], cell.config["epochs"]) == (None, 1)
    assert (
        cell.objective["smoothing"] == read_chosen(study)["smoke"]["label-smoothing"]["settings"]["smoothing"]
    )
    assert list((study / "runs").iterdir()) == []


def must_not_train(*args):
    raise AssertionError("it was trained again")


def test_an_interrupted_search_goes_on(tmp_path, monkeypatch, test_is_closed):
    study, seen = tmp_path / "study", []

    def interrupt(what, done, total):
        seen.append(what)
        if what.startswith("2 of 2") and done == 3:
            raise KeyboardInterrupt

    asked = asking("search", seeds=[0])
    with pytest.raises(KeyboardInterrupt):
        run_study(study, asked, progress=interrupt)
    assert len(list((study / "search").glob("*.json"))) == 1
    assert read_chosen(study) == {}
    assert len(Search(study, asked).jobs()) == 1

    means = Search._means

    def killed_in_its_second_trial(self, *rest):
        mean = self._mean
        values = iter([True, False])

        def once(*figure):
            if not next(values):
                raise KeyboardInterrupt
            return mean(*figure)

        self._mean = once
        return means(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Search, "_means", killed_in_its_second_trial)
        with pytest.raises(KeyboardInterrupt):
            run_study(study, asked)
    outcome = run_study(study, asked, drop_runs=True)
    assert (outcome.cells, outcome.jobs) == (0, 0)
    chosen = read_chosen(study)["smoke"]["label-smoothing"]
    assert set(chosen["dev_ece"]) == {"smoothing=0.05", "smoothing=0.1"}
    assert Search(study, asked).grids == {}
    assert list((study / "runs").iterdir()) == []


def test_one_dataset_chooses_for_all_or_each_for_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path))
    (tmp_path / "banking77").mkdir()
    rows = "".join(f"text {i} of {label},{label}\n" for label in "ab" for i in range(10))
    (tmp_path / "banking77" / "train.csv").write_text(f"text,label\n{rows}")
    monkeypatch.setitem(PRESETS, "smoke", replace(SHORT, datasets={"banking77": {}, "smoke": {}}))
    each = asking("search", "main", methods=["bert", "mixup", "manifold-smoothing"], seeds=[0])
    assert set(Search(tmp_path, each).grids) == {("banking77", "mixup"), ("smoke", "mixup")}
    one = replace(each, preset=replace(each.preset, searched_on={"smoke": "banking77"}))
    (points,) = Search(tmp_path, one).grids.values()
    assert list(points) == [f"alpha={alpha}" for alpha in (0.1, 0.2, 0.3, 0.4)]
    assert {t.config.dataset for of in points.values() for t in of} == {"banking77"}
    chosen = {"banking77": {"mixup": {"alpha": 0.3}}}
    for asked, expected in ((one, [0.3, 0.3]), (each, [0.3, 0.2])):
        cells = [cell for cell in plan(asked, chosen) if cell.key.method == "mixup"]
        assert [cell.trainings[0].config.objective["alpha"] for cell in cells] == expected
    # test results of any dataset that will use the choice forbid it
    (tmp_path / "cells" / "smoke" / "mixup").mkdir(parents=True)
    (tmp_path / "cells" / "smoke" / "mixup" / "seed-0.json").write_text("{}")
    with pytest.raises(UserError, match="cells/smoke/mixup holds test results"):
        Search(tmp_path, one).check()
    banking = replace(each, datasets=("banking77",))
    Search(tmp_path, banking).check()
    # and so do those of a point of the grid, from the parameter study
    point = tmp_path / "cells" / "banking77" / "mixup__alpha=0.1"
    point.mkdir(parents=True)
    (point / "seed-0.json").write_text("{}")
    with pytest.raises(UserError, match=r"cells/banking77/mixup__alpha=0\.1 holds test results"):
        Search(tmp_path, banking).check()
    (point / "seed-0.json").unlink()
    Search(tmp_path, banking).check()


@pytest.fixture
def looks(monkeypatch):
    """In place of training, a folder and figures of dev; points may be ``diverging`` or ``idle``."""
    seen, diverging, idle = [], set(), set()

    def trained(study, training, progress):
        (name,) = GRIDS[training.config.method]
        point = training.config.objective[name]
        seen.append((point, sorted(path.name for path in (study / "runs").glob("*"))))
        if point in diverging:
            raise Diverged(f"{point} diverged.")
        training.folder(study).mkdir(parents=True, exist_ok=True)
        took = SimpleNamespace(seconds=1.0, work_seconds=None)
        return SimpleNamespace(config=training.config, point=point, training=took)

    monkeypatch.setattr(search, "trained", trained)
    monkeypatch.setattr(search, "of_run", Looked)
    monkeypatch.setattr(
        search,
        "dev_figures",
        lambda probabilities, point: {"ece": point, "accuracy": 0.1 if point in idle else 0.9},
    )
    return SimpleNamespace(seen=seen, diverging=diverging, idle=idle)


class Looked:
    """A classifier whose dev ECE is its hyper-parameter."""

    def __init__(self, run):
        self.point = run.point

    def predict_proba(self, *args):
        return np.full((1, 2), 0.5)

    def class_ids(self, dev):
        return self.point


def test_what_lost_is_dropped_as_soon_as_its_grid_is_looked_at(tmp_path, looks):
    asked = asking("search", methods=["label-smoothing", "vat"], seeds=[0])
    outcome = run_study(tmp_path / "study", asked, drop_runs=True)
    assert [point for point, _ in looks.seen] == [0.05, 0.1, 1e-3, 1e-4, 1e-5]
    # its own among them; of the two of the first grid one is left
    assert [len(runs) for _, runs in looks.seen] == [1, 2, 2, 3, 4]
    assert (outcome.jobs, list((tmp_path / "study" / "runs").iterdir())) == (5, [])
    chosen = read_chosen(tmp_path / "study")["smoke"]
    assert {method: found["settings"] for method, found in chosen.items()} == {
        "label-smoothing": {"smoothing": 0.05},
        "vat": {"epsilon": 1e-5},
    }


def test_points_that_are_asked_for_as_cells_too_are_not_dropped(tmp_path, looks, monkeypatch):
    monkeypatch.setitem(GRIDS, "manifold-smoothing", {"delta_off": PARAMETERS["delta_off"]})
    trained = []
    monkeypatch.setattr(
        run,
        "measure_job",
        lambda study, job, progress: trained.append(job.trainings[0].folder(study).exists()),
    )
    asked = asking("search", "parameters", methods=["manifold-smoothing"], seeds=[0])
    run_study(tmp_path / "study", asked, drop_runs=True)
    assert (len(trained), sum(trained)) == (5 + 4 + 4, 5)
    assert list((tmp_path / "study" / "runs").iterdir()) == []


def test_a_point_that_diverges_is_left_out_of_the_choice(tmp_path, looks):
    looks.diverging.add(0.05)
    asked = asking("search")
    run_study(tmp_path / "study", asked)
    found = read_chosen(tmp_path / "study")["smoke"]["label-smoothing"]
    assert found["settings"] == {"smoothing": 0.1}
    assert found["dev_ece"] == {"smoothing=0.1": 0.1}
    assert found["failed"] == {"smoothing=0.05": "0.05 diverged."}
    assert run_study(tmp_path / "study", asked).jobs == 0


def test_what_learns_nothing_is_not_chosen_however_well_it_knows(tmp_path, looks):
    looks.idle.add(0.05)
    run_study(tmp_path / "study", asking("search"))
    found = read_chosen(tmp_path / "study")["smoke"]["label-smoothing"]
    assert found["settings"] == {"smoothing": 0.1}
    assert found["dev_ece"] == {"smoothing=0.05": 0.05, "smoothing=0.1": 0.1}
    assert found["dev_accuracy"] == {"smoothing=0.05": 0.1, "smoothing=0.1": 0.9}


def test_a_loss_of_accuracy_is_one_of_more_than_two_standard_errors():
    accuracies = {"best": 0.8, "near": 0.77, "far": 0.75}  # of 400 texts: 2 · √(0.8 · 0.2 / 400) = 0.04
    assert without_loss(accuracies, 400) == ["best", "near"]
    assert without_loss(accuracies, 100) == ["best", "near", "far"]
    assert without_loss({"all right": 1.0, "as good": 1.0, "one wrong": 0.99}, 100) == [
        "all right",
        "as good",
    ]


def test_a_grid_of_which_every_point_diverges_is_refused_and_the_others_are_chosen(tmp_path, looks):
    looks.diverging |= {0.05, 0.1}
    asked = asking("search", methods=["label-smoothing", "vat"], seeds=[0])
    for _ in range(2):  # what diverged once is not tried again
        with pytest.raises(UserError) as refused:
            run_study(tmp_path / "study", asked)
        assert str(refused.value) == (
            "No point of the grid of label-smoothing on smoke can be chosen, since all of them failed: "
            "0.05 diverged."
        )
    assert len(looks.seen) == 5
    assert list(read_chosen(tmp_path / "study")["smoke"]) == ["vat"]


def test_nothing_to_search(tmp_path):
    asked = asking("search", "main", methods=["bert", "manifold-smoothing"])
    sentence = (
        "--parts search: none of bert, manifold-smoothing has hyper-parameters to search; add one of "
        "label-smoothing, entropy-regularized, vat, mixup, manifold-mixup to --methods, or leave out that "
        "part."
    )
    for refuse in (run_study, outlook):
        with pytest.raises(UserError) as refused:
            refuse(tmp_path / "study", [asked] if refuse is outlook else asked)
        assert str(refused.value) == sentence
    assert not (tmp_path / "study").exists()


def test_the_outlook_refuses_what_the_study_would(tmp_path):
    (tmp_path / "study.json").write_text('{"preset": "smoke", "threads": 1}')
    (tmp_path / "cells" / "smoke" / "label-smoothing").mkdir(parents=True)
    (tmp_path / "cells" / "smoke" / "label-smoothing" / "seed-0.json").write_text("{}")
    with pytest.raises(UserError, match="cells/smoke/label-smoothing holds test results"):
        outlook(tmp_path, [asking("search")])


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UserError) as refused:
        run_study(tmp_path / "study", asking("search"))
    assert str(refused.value) == (
        "The part `search` needs Optuna, which is not installed: pip install 'calibrant[study]'."
    )
    assert not (tmp_path / "study" / "runs").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"smoke": {"mixup": {}}}', '{"smoke": 1}'])
def test_a_damaged_choice_is_named(text, tmp_path):
    (tmp_path / "chosen.json").write_text(text)
    with pytest.raises(
        UserError, match=r"chosen\.json is damaged \(.*\); restore it, or remove it and search"
    ):
        read_chosen(tmp_path)
