from dataclasses import replace
from types import SimpleNamespace

import pytest

from calibrant.inference.single import SinglePass
from calibrant.study import estimate
from calibrant.study.estimate import Times, cell_seconds
from calibrant.study.outlook import outlook
from calibrant.study.plan import request
from calibrant.study.presets import PRESETS


def test_each_model_has_step_times_of_its_own(tmp_path, monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    settings = {**PRESETS["smoke"].settings, "model": "minilm"}
    monkeypatch.setitem(PRESETS, "smoke", replace(PRESETS["smoke"], settings=settings))
    steps = {"minilm": 10.0, "textcnn": 1.0}
    monkeypatch.setattr(estimate, "_measure", lambda config, progress: Times(steps[config.model], 0.0, 40))
    jobs = outlook(tmp_path, request("smoke", methods=["bert"], seeds=[0], parts=["main", "textcnn"]))["jobs"]
    assert {job["training"]: job["seconds"] for job in jobs} == {
        "cross-entropy": pytest.approx(150.0),
        "cross-entropy textcnn": pytest.approx(15.0),
    }


@pytest.mark.parametrize(
    ("dataset", "capped", "held_out"),
    [("yahoo", None, 60_000 + 38_000), ("yahoo", 200, 400), ("banking77", None, 20)],
)
def test_texts_to_predict_are_the_papers_where_they_are_not_capped(dataset, capped, held_out):
    cell = SimpleNamespace(
        key=SimpleNamespace(dataset=dataset), max_test_samples=capped, inference=SinglePass()
    )
    assert cell_seconds(cell, Times(step=1.0, text=0.5, dev=10)) == 0.5 * (10 + held_out)
