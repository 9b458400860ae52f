from dataclasses import replace
from types import SimpleNamespace

import pytest

from calibrant.inference import MCDropout, SinglePass
from calibrant.study import estimate
from calibrant.study.estimate import CACHE, Times, asking_seconds
from calibrant.study.outlook import outlook
from calibrant.study.plan import request
from calibrant.study.presets import PRESETS


def test_each_model_has_step_times_of_its_own(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    settings = {**PRESETS["smoke"].settings, "model": "minilm"}
    monkeypatch.setitem(PRESETS, "smoke", replace(PRESETS["smoke"], settings=settings))
    steps = {"minilm": 10.0, "textcnn": 1.0}
    monkeypatch.setattr(
        estimate, "_measure", lambda config, *_: Times(steps[config.model], 0.0, 160, 40, 180)
    )
    asked = request("smoke", methods=["bert"], seeds=[0], parts=["main", "textcnn"])
    jobs = outlook(tmp_path, [asked])["jobs"]
    assert {job["training"]: job["seconds"] for job in jobs} == {
        "cross-entropy": pytest.approx(150.0),
        "cross-entropy textcnn": pytest.approx(15.0),
    }


def test_times_that_cannot_be_read_are_taken_again(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    measured = []
    monkeypatch.setattr(estimate, "_measure", lambda *_: measured.append(1) or Times(1.0, 0.0, 160, 40, 180))
    asked = request("smoke", methods=["bert"], seeds=[0])
    for damaged in ("{", "[]", '{"key": {"step": 1}}'):
        (tmp_path / CACHE).write_text(damaged)
        found = [outlook(tmp_path, [asked])["jobs"] for _ in range(2)]
        assert found[0] == found[1]
    assert len(measured) == 3  # what was taken anew is kept


def test_models_asked_alike_are_asked_once():
    """Three cells of one trained model: single passes twice, ten with dropout."""
    cells = [SimpleNamespace(inference=each) for each in (SinglePass(), SinglePass(), MCDropout())]
    job = SimpleNamespace(cells=cells, trainings=[None])
    times = Times(step=1.0, text=0.5, train=1000, dev=10, held_out=90)
    assert asking_seconds(job, times) == 0.5 * ((1 + 10) * (10 + 90) + 1000)
    assert asking_seconds(SimpleNamespace(cells=[], trainings=[None]), times) == 0
