"""A run directory that is replaced."""

import csv
import shutil
import threading
import time

import pytest

from calibrant.calibrators import Temperature
from calibrant.classifier import load
from calibrant.service import reload
from calibrant.tasks.calibrate import calibrate
from support.tiny import WORDS, corpus


@pytest.fixture
def served(familiar_run, tmp_path, client, monkeypatch):
    """A copy of a run to tamper with, and a client of its service."""
    monkeypatch.setattr(reload, "EVERY", 0.05)
    run = shutil.copytree(familiar_run, tmp_path / "served")
    return run, client(run)


def answers_of(asked):
    return asked.post("/predict", json={"texts": "refund my card"})


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def shifted(rows):
    """The same texts, each with another class's label."""
    labels = list(WORDS)
    return [(text, labels[(labels.index(label) + 1) % len(labels)]) for text, label in rows]


def test_another_run_takes_over_and_no_request_is_dropped(served, trained):
    run, asked = served
    other = load(trained).run.digest
    seen, statuses, done = [], [], threading.Event()

    def go_on_asking():
        while not done.is_set():
            response = answers_of(asked)
            statuses.append(response.status_code)
            seen.append(response.json()["answers"][0]["run"])

    thread = threading.Thread(target=go_on_asking)
    thread.start()
    try:
        wait_for(lambda: seen)
        old = run.rename(run.with_name("old"))
        shutil.copytree(trained, run)
        wait_for(lambda: other in seen)
    finally:
        done.set()
        thread.join()
    assert set(statuses) == {200}
    assert list(dict.fromkeys(seen)) == [load(old).run.digest, other]
    assert 'calibrant_reloads_total{result="loaded"} 1.0' in asked.get("/metrics").text
    assert asked.get("/run").json()["run"] == other


def test_another_calibrator_is_another_digest(served):
    run, asked = served
    before = answers_of(asked).json()["answers"][0]
    calibrate(run, calibrator=Temperature())
    wait_for(lambda: answers_of(asked).json()["answers"][0]["run"] != before["run"])
    assert answers_of(asked).json()["answers"][0]["familiarity"] is None


def test_half_a_run_leaves_the_old_one_in_its_place(served, caplog):
    run, asked = served
    before = answers_of(asked).json()
    (run / "calibrant.json").write_text("{")
    wait_for(lambda: "reload failed" in caplog.text)
    assert answers_of(asked).json() == before
    assert 'calibrant_reloads_total{result="failed"} 1.0' in asked.get("/metrics").text
    shutil.rmtree(run)
    time.sleep(0.2)
    assert answers_of(asked).json() == before
    assert caplog.text.count("reload failed") == 1  # told once, tried again and again


def test_a_run_that_cannot_be_watched_is_not_taken_and_the_next_one_is(served, trained, caplog):
    run, asked = served
    before = answers_of(asked).json()
    shutil.copytree(trained, run.with_name("next"))
    (run.with_name("next") / "dev.safetensors").write_bytes(b"damaged")  # its alarm needs it
    run.rename(run.with_name("old"))
    shutil.copytree(run.with_name("next"), run)
    wait_for(lambda: "reload failed" in caplog.text)
    assert answers_of(asked).json() == before
    (run / "dev.safetensors").unlink()
    other = load(trained).run.digest
    wait_for(lambda: answers_of(asked).json()["answers"][0]["run"] == other)


def test_sets_follow_the_dev_texts_that_they_are_fitted_on(served, tmp_path):
    run, asked = served
    body = {"texts": "refund my card", "coverage": 0.9}
    before = asked.post("/predict", json=body).json()["answers"][0]
    assert len(before["set"]) < 3
    hard = tmp_path / "hard.csv"  # every label is wrong, so a set that holds the true one has them all
    with hard.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *shifted(corpus(120, 7))])
    load(run).answer_dev(hard)
    wait_for(lambda: len(asked.post("/predict", json=body).json()["answers"][0]["set"]) == 3)
    assert answers_of(asked).json()["answers"][0]["run"] == before["run"]
