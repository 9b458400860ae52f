"""Two workers of a local Ray cluster, in processes of their own: Ray talks over the network."""

import os
import subprocess
import sys

import pytest

from calibrant.errors import UserError
from calibrant.study.executors.ray import Ray
from calibrant.study.plan import request
from calibrant.study.run import run_study
from calibrant.types import silent
from support.studies import lasting

METHODS = ("bert", "temperature-scaling", "mixup", "manifold-smoothing")


@pytest.fixture(autouse=True)
def generated(monkeypatch):
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)


KILLED_ONCE = """
import os, signal, sys
from pathlib import Path
import calibrant.study.run as run
from calibrant.study.executors.ray import Ray
from calibrant.study.measuring import measure_job
from calibrant.study.plan import request

def killed_once(study, job, progress):
    name = job.trainings[0].config.method
    with open(study / f"{name}.begun", "a") as file:
        file.write(f"{os.getpid()}\\n")
    def watched(what, done, total):
        if name == "mixup" and done == 7 and len((study / "mixup.begun").read_text().split()) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    measure_job(study, job, watched)

run.measure_job = killed_once
run.run_study(sys.argv[1], request("smoke", methods=sys.argv[2].split(","), seeds=[0]), Ray())
"""


@pytest.mark.slow
def test_the_same_cells_and_a_worker_that_is_killed_costs_only_its_own(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    run_study(here, request("smoke", methods=METHODS, seeds=[0]))
    script = [sys.executable, "-c", KILLED_ONCE, str(there), ",".join(METHODS)]
    done = subprocess.run(script, capture_output=True, text=True, env=os.environ, timeout=280)
    assert done.returncode == 0, done.stderr
    begun = {path.stem: path.read_text().split() for path in there.glob("*.begun")}
    assert {name: len(of) for name, of in begun.items()} == {"bert": 1, "mixup": 2, "manifold-smoothing": 1}
    assert (
        len({first for first, *_ in begun.values()}) >= 2
    )  # workers, not counting the one that came instead
    assert lasting(there) == lasting(here)


def refused(*args, **kwargs):
    raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize("address", ["10.0.0.1:6379", "ray://10.0.0.1:10001"])
def test_no_cluster_there(address, monkeypatch):
    monkeypatch.setattr("socket.create_connection", refused)
    with pytest.raises(UserError) as told:
        list(Ray(address=address).run(must_not_work, [], silent))
    assert str(told.value) == (
        f"--address {address}: no Ray cluster answers there; start one with `ray start --head`, or leave the "
        "address out."
    )


def must_not_work(job, progress):
    raise AssertionError("there is no worker")


def told(tmp_path, *options):
    """What `calibrant study run --executor ray …` says, and how it ends."""
    study = ("study", "run", "--preset", "smoke", "--methods", "bert", "--out", str(tmp_path / "s"))
    start = (sys.executable, "-c", "from calibrant.cli import main; main()")
    command = [*start, *study, "--executor", "ray", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=280)
    return done.returncode, " ".join(done.stderr.split())


@pytest.mark.slow
def test_no_cluster_on_this_machine(tmp_path):
    code, said = told(tmp_path, "--address", "auto")
    assert code == 2, said
    assert "calibrant: --address auto: no Ray cluster answers there; start one" in said


@pytest.mark.slow
def test_more_threads_than_any_machine_has(tmp_path):
    code, said = told(tmp_path, "--threads", "4096")
    assert code == 2, said
    assert "calibrant: --threads 4096: a model runs on one machine, and the largest of the Ray" in said
    assert f"cluster has {os.cpu_count()} cores; ask for fewer." in said
