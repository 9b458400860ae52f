"""Studies of smoke size, really trained."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from calibrant.data.catalog.smoke import GeneratedSource
from calibrant.data.sources import Unavailable
from calibrant.errors import Diverged, UserError
from calibrant.methods import METHODS
from calibrant.study import run
from calibrant.study.cells import Key, read_cell, read_cells, read_confidences
from calibrant.study.executors.local import Local
from calibrant.study.executors.ray import Ray
from calibrant.study.plan import request
from calibrant.study.presets import PAPER_METHODS, PRESETS
from calibrant.study.run import run_study
from calibrant.tasks.evaluate import evaluate
from calibrant.tasks.train import train
from support.studies import lasting

SHORT = replace(PRESETS["smoke"], settings={**PRESETS["smoke"].settings, "epochs": 1})
PLAIN = ("bert", "temperature-scaling", "mc-dropout")


@pytest.fixture(autouse=True)
def generated(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    """The folder of a finished study, the paper's nine methods and seed 0; for reading only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CALIBRANT_DATA", raising=False)
        study = tmp_path_factory.mktemp("study") / "smoke"
        outcome = run_study(study, request("smoke", seeds=[0]))
    assert (outcome.cells, outcome.measured, outcome.jobs) == (9, 9, 7)
    return study


def must_not_train(*args):
    raise AssertionError("it was trained again")


def test_all_nine_methods_are_measured(smoke):
    cells = read_cells(smoke)
    assert {cell.key.method for cell in cells} == set(PAPER_METHODS)
    for cell in cells:
        assert (cell.metrics["n_test"], cell.metrics["n_ood"]) == (120, 60)
        assert cell.metrics["accuracy"] > 0.4  # of four classes
        assert {part: about["classes"] for part, about in cell.data.items()} == {
            **{"train": 4, "dev": 4, "test": 4, "ood": 2}
        }
        assert all(5 <= about["words"] <= 11 for about in cell.data.values())
        assert cell.config["dataset"] == "smoke"
        found = read_confidences(cell, smoke)
        assert found.correct.mean() == pytest.approx(cell.metrics["accuracy"])
        assert found.test.mean() == pytest.approx(cell.metrics["mean_confidence_test"], abs=1e-5)
        assert found.ood.mean() == pytest.approx(cell.metrics["mean_confidence_ood"], abs=1e-5)
    assert len({cell.metrics["nll"] for cell in cells}) == 9  # no two rows are one and the same


def test_each_is_asked_with_every_calibrator_and_one_that_is_a_row_itself_is_that_row(smoke):
    plain, scaled = (read_cell(Key("smoke", m, 0).path(smoke)) for m in ("bert", "temperature-scaling"))
    assert (plain.calibrator, set(plain.others)) == ("none", {"temperature", "temperature+familiarity"})
    assert (scaled.calibrator, set(scaled.others)) == ("temperature", {"none", "temperature+familiarity"})
    assert scaled.metrics == plain.others["temperature"]
    assert scaled.others["temperature+familiarity"] == plain.others["temperature+familiarity"]
    for cell in read_cells(smoke):
        for how in (cell.calibrator, *cell.others):
            asked = cell.answering(how)
            found = read_confidences(asked, smoke)
            assert asked.metrics["accuracy"] == cell.metrics["accuracy"]
            assert found.test.mean() == pytest.approx(asked.metrics["mean_confidence_test"], abs=1e-5)
            assert found.nll.mean() == pytest.approx(asked.metrics["nll"], rel=1e-3)


def test_rows_without_a_model_take_the_labels_of_plain_training(tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS, "smoke", SHORT)
    run_study(tmp_path, request("smoke", methods=["bert", "constant", "oracle"], seeds=[0]))
    plain, constant, oracle = (
        read_cell(Key("smoke", m, 0).path(tmp_path)) for m in ("bert", "constant", "oracle")
    )
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert plain.metrics["accuracy"] == constant.metrics["accuracy"] == oracle.metrics["accuracy"]
    assert (constant.others, oracle.others) == ({}, {})
    assert constant.metrics["mean_confidence_ood"] == pytest.approx(0.25)
    assert oracle.metrics["misclassification"]["auroc"] == 1


TOGETHER = """
import sys
from calibrant.study import run
from calibrant.study.plan import request
run.WAIT = 0.1
parts = [request("smoke", methods=["label-smoothing", "bert", "vat"], seeds=[0], parts=["search", "main"]),
         request("smoke", methods=["bert", "mixup"], seeds=[0, 1])]
outcome = run.run_programme(sys.argv[1], parts, run.Local(threads=1), drop_runs=True)
print(outcome.measured, outcome.cells)
"""


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path):
    """Each cell is measured by one of them, both end when all is there, and nothing is left behind."""
    command = [sys.executable, "-c", TOGETHER, str(tmp_path / "study")]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=280) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert {int(out.split()[1]) for out, _ in said} == {3 + 4}
    cells = read_cells(tmp_path / "study")
    assert len(cells) == 6  # bert of seed 0 is in both parts
    assert list((tmp_path / "study" / "runs").iterdir()) == []
    alone = tmp_path / "alone"
    run_study(alone, request("smoke", methods=["bert", "mixup"], seeds=[1]), Local(threads=1))
    assert lasting(tmp_path / "study").items() >= lasting(alone).items()


@pytest.mark.slow
def test_cells_are_what_training_each_method_alone_gives(smoke, tmp_path):
    """The shared training, asked in three ways, against three runs of `calibrant train` and `evaluate`."""
    for method in PLAIN:
        config = PRESETS["smoke"].config("smoke", method=method, seed=0)
        alone = train(config, out=tmp_path / method)
        expected = evaluate(alone.path).entry.metrics
        cell = read_cell(Key("smoke", method, 0).path(smoke))
        flat, expected_flat = ([*flatten(m)] for m in (cell.metrics, expected))
        assert [name for name, _ in flat] == [name for name, _ in expected_flat]
        np.testing.assert_allclose([v for _, v in flat], [v for _, v in expected_flat], atol=1e-9)
        for name in ("dev_accuracy", "dev_confidence", "dev_nll"):
            assert cell.training[name] == pytest.approx(getattr(alone.training, name), abs=1e-6)


def flatten(numbers, prefix=""):
    for name, value in numbers.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def test_what_is_finished_is_left_alone_and_more_methods_use_the_trainings_that_are_there(
    tmp_path, monkeypatch
):
    study = tmp_path / "study"
    run_study(study, request("smoke", methods=["bert"], seeds=[0]))
    cell = Key("smoke", "bert", 0).path(study)
    written = cell.stat().st_mtime_ns
    monkeypatch.setattr("calibrant.fitting.model.fit_model", must_not_train)
    outcome = run_study(study, request("smoke", methods=PLAIN, seeds=[0]))
    assert (outcome.cells, outcome.measured) == (3, 2)
    assert cell.stat().st_mtime_ns == written
    again = run_study(study, request("smoke", methods=PLAIN, seeds=[0]))
    assert (again.cells, again.measured, again.jobs) == (3, 0, 0)


def test_twice_is_the_same_and_other_settings_are_measured_anew(smoke, tmp_path, monkeypatch):
    methods = ["bert", "manifold-smoothing"]
    study = tmp_path / "study"
    seen = []
    asked = request("smoke", methods=methods, seeds=[0])
    run_study(study, asked, progress=lambda *told: seen.append(told))
    first, second = lasting(smoke), lasting(study)
    assert set(second) == {Key("smoke", method, 0) for method in methods}
    for key, record in second.items():
        assert record == first[key]
    steps = 3 * 5  # 160 texts, 32 a step, 3 epochs
    whole = round(steps * (1 + METHODS["manifold-smoothing"].cost))
    assert [told for told in seen if told[0] == "study"] == [("study", n, whole) for n in (0, steps, whole)]
    assert ("1 of 2 (smoke, seed 0) train bert", steps, steps) in seen
    assert ("2 of 2 (smoke, seed 0) train manifold-smoothing", 1, steps) in seen
    assert ("2 of 2 (smoke, seed 0) unfamiliar", 60, 60) in seen
    monkeypatch.setitem(PRESETS, "smoke", SHORT)
    assert run_study(study, request("smoke", methods=["bert"], seeds=[0])).measured == 1
    assert read_cell(Key("smoke", "bert", 0).path(study)).config["epochs"] == 1


@pytest.mark.slow
def test_an_ensemble_asks_the_plain_trainings_and_dropped_runs_are_gone(tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS, "smoke", replace(SHORT, max_test_samples=25))
    study = tmp_path / "study"
    outcome = run_study(study, request("smoke", methods=["bert", "deep-ensemble"], seeds=[0]), drop_runs=True)
    assert (outcome.cells, outcome.jobs) == (2, 6)
    assert list((study / "runs").iterdir()) == []
    ensemble, plain = (read_cell(Key("smoke", m, 0).path(study)) for m in ("deep-ensemble", "bert"))
    assert ensemble.training["steps"] == 5 * plain.training["steps"]
    assert ensemble.metrics["nll"] != plain.metrics["nll"]
    assert (ensemble.metrics["n_test"], ensemble.metrics["n_ood"]) == (25, 25)
    assert ensemble.data["test"]["source"].endswith("(25 of 120 drawn)")
    assert ensemble.data["test"] == plain.data["test"]


def test_a_training_that_fails_does_not_cost_the_others(tmp_path, monkeypatch):
    measure_job = run.measure_job
    monkeypatch.setitem(PRESETS, "smoke", SHORT)

    def two_fail(study, job, progress):
        if job.trainings[0].config.method in ("mixup", "vat"):
            raise UserError("Training diverged.")
        measure_job(study, job, progress)

    monkeypatch.setattr(run, "measure_job", two_fail)
    methods = ["bert", "mixup", "vat", "label-smoothing"]
    with pytest.raises(UserError) as told:
        run_study(tmp_path / "study", request("smoke", methods=methods, seeds=[0]))
    assert str(told.value) == (
        "2 of 4 trainings could not be done, the first (mixup on smoke, seed 0) because: Training diverged. "
        "The others are done, and the same command tries these again."
    )
    assert [cell.key.method for cell in read_cells(tmp_path / "study")] == ["bert", "label-smoothing"]
    with pytest.raises(UserError, match=r"^Training diverged\.$"):  # the first of all: no other is tried
        run_study(tmp_path / "other", request("smoke", methods=methods[1:], seeds=[0]))
    assert read_cells(tmp_path / "other") == []


@pytest.fixture
def instead(monkeypatch):
    """Takes what is to be done for a job, in place of training it; gives the list of those begun."""
    begun = []

    def set_to(do):
        def measure_job(study, job, progress):
            begun.append((job.trainings[0].config.method, job.trainings[0].config.seed))
            do(*begun[-1])

        monkeypatch.setattr(run, "measure_job", measure_job)
        return begun

    return set_to


def mixup_fails(method, seed):
    if method == "mixup":
        raise UserError("Training diverged.")


def test_a_method_that_always_fails_does_not_stop_a_resumed_study(tmp_path, instead):
    begun = instead(mixup_fails)
    with pytest.raises(
        UserError, match=r"^2 of 4 trainings could not be done, the first \(mixup on smoke, see"
    ):
        run_study(tmp_path / "study", request("smoke", methods=["mixup", "vat"], seeds=[0, 1]))
    assert begun == [("mixup", 0), ("vat", 0), ("mixup", 1), ("vat", 1)]


def test_methods_that_diverge_do_not_stop_the_seeds_after_them(tmp_path, instead):
    def both_diverge_with_seed_0(method, seed):
        if seed == 0:
            raise Diverged("Training diverged.")

    begun = instead(both_diverge_with_seed_0)
    with pytest.raises(UserError, match=r"^2 of 4 trainings could not be done"):
        run_study(tmp_path / "study", request("smoke", methods=["mixup", "vat"], seeds=[0, 1]))
    assert len(begun) == 4


def test_an_ensemble_is_measured_though_another_method_fails_and_not_without_a_member(tmp_path, instead):
    methods = ["bert", "mixup", "deep-ensemble"]
    begun = instead(mixup_fails)
    with pytest.raises(UserError, match=r"^1 of 7 trainings could not be done, the first \(mixup on smoke"):
        run_study(tmp_path / "study", request("smoke", methods=methods, seeds=[0]))
    assert len(begun) == 7  # five members, mixup, and the members together
    assert begun[-1] == ("bert", 0)

    def a_member_fails(method, seed):
        if seed == 3:
            raise Diverged("Training diverged.")

    begun.clear()
    instead(a_member_fails)
    with pytest.raises(UserError, match=r"^2 of 7 trainings could not be done, .* smoke, seed 3"):
        run_study(tmp_path / "other", request("smoke", methods=methods, seeds=[0]))
    assert len(begun) == 6


def test_one_job_alone_says_only_why(tmp_path, instead):
    instead(mixup_fails)
    with pytest.raises(UserError, match=r"^Training diverged\.$"):
        run_study(tmp_path / "study", request("smoke", methods=["mixup"], seeds=[0]))


def test_texts_that_are_not_there_are_told_before_any_training(tmp_path, monkeypatch, instead):
    begun, read = instead(mixup_fails), GeneratedSource.read

    def no_unfamiliar(self, split):
        if "nature" in self.topics:
            raise Unavailable("it is lost")
        return read(self, split)

    monkeypatch.setattr(GeneratedSource, "read", no_unfamiliar)
    with pytest.raises(UserError, match=r"The test split of smoke-unfamiliar could not be had .*it is lost"):
        run_study(tmp_path / "study", request("smoke", methods=["bert"], seeds=[0]))
    assert begun == []


def test_dropped_runs_are_also_those_that_lost_an_earlier_search(tmp_path, instead):
    begun = instead(mixup_fails)
    for name in ("lost", "kept"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "lost.json").write_text("{}")
    (tmp_path / "study.json").write_text('{"preset": "smoke", "threads": 1}')
    run_study(tmp_path, request("smoke", methods=["bert"], seeds=[0]), drop_runs=True)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["kept"]
    assert begun == [("bert", 0)]


def test_a_study_goes_on_with_the_threads_that_it_began_with(tmp_path):
    asked = request("smoke")
    (tmp_path / "study.json").write_text('{"preset": "smoke"}')  # of an earlier version
    assert run._begin(tmp_path, asked, Local(threads=3)).threads == 3
    assert run._begin(tmp_path, asked, Local()).threads == run._begin(tmp_path, asked, Ray()).threads == 3
    assert run._begin(tmp_path, asked, Ray(threads=2)) == Ray(threads=2)
    assert json.loads((tmp_path / "study.json").read_text())["threads"] == 3
    assert run._begin(tmp_path / "local", asked, Local()).threads == torch.get_num_threads()
    assert run._begin(tmp_path / "ray", asked, Ray()).threads == 1


# folders that are something else


def test_figures_that_need_no_study_may_be_there_before_it(tmp_path):
    (tmp_path / "figures").mkdir()
    run.check_study(tmp_path, request("smoke"))


def test_a_study_of_another_preset_is_refused(smoke):
    with pytest.raises(UserError) as refused:
        run_study(smoke, request("laptop"))
    assert str(refused.value) == (
        f"{smoke} holds a study with --preset smoke, and --preset laptop would mix two kinds of results; "
        "give another --out."
    )


def test_a_folder_that_is_no_study_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear")
    for path in (tmp_path, tmp_path / "letter.txt"):
        with pytest.raises(
            UserError, match=r"exists and is not a study of calibrant's; give another --out\.$"
        ):
            run_study(path, request("smoke"))


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "study.json").write_text('{"threads": 1}')
    with pytest.raises(UserError, match=r"study\.json is damaged \('preset'\); restore it or give"):
        run_study(tmp_path, request("smoke"))


# killed


@pytest.mark.slow
def test_killed_after_its_first_cell_it_goes_on_to_the_same_end(smoke, tmp_path):
    methods = ("bert", "mixup", "vat")
    study = tmp_path / "study"
    command = [
        *(sys.executable, "-c", "from calibrant.cli import main; main()", "study", "run"),
        *("--preset", "smoke", "--methods", ",".join(methods), "--seeds", "0", "--threads", "1"),
        *("--out", str(study)),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    first, deadline = Key("smoke", "bert", 0).path(study), time.monotonic() + 200
    while not first.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    before = lasting(study)
    assert first.exists()
    assert len(before) < len(methods)
    outcome = run_study(study, request("smoke", methods=methods, seeds=[0]))
    assert outcome.measured == len(methods) - len(before)
    whole = lasting(smoke)
    assert lasting(study) == {key: whole[key] for key in lasting(study)}
    assert {key.method for key in lasting(study)} == set(methods)
