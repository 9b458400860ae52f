"""A run that tells familiarity, and services of it: in this process, or listening."""

import csv
import os
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.testclient import TestClient

from calibrant.classifier import load
from calibrant.config import RunConfig
from calibrant.service.app import Service, make_app
from calibrant.service.limits import ImpatientProtocol
from calibrant.service.metrics import Metrics
from calibrant.service.reload import Current
from calibrant.service.server import listen
from calibrant.tasks.train import train
from support.tiny import corpus


@pytest.fixture(scope="session")
def familiar_run(tmp_path_factory, model_dir):
    """A finished run with temperature and familiarity, which keeps its answers on dev; for reading only."""
    folder = tmp_path_factory.mktemp("familiar")
    with open(folder / "train.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("text", "label"), *corpus(400)])
    settings = RunConfig(
        train=str(folder / "train.csv"),
        model=str(model_dir),
        max_length=32,
        epochs=3,
        batch_size=16,
        learning_rate=3e-3,
        keep="refinement",  # trained to the end, the tiny encoder tells strange text
    )
    path = train(settings, out=folder / "run").path
    load(path).answer_dev()
    return path


def make_service(run, threshold=None, **settings):
    metrics = Metrics()
    current = Current(run, threshold, metrics.loaded, metrics.reload_failed)
    return Service(current, metrics, **settings)


@pytest.fixture
def client(familiar_run):
    """Makes a client of a service in this process."""
    opened = []

    def start(run=familiar_run, **settings):
        made = TestClient(make_app(make_service(run, **settings)), raise_server_exceptions=False)
        opened.append(made)
        return made.__enter__()

    yield start
    for made in opened:
        made.__exit__(None, None, None)


@contextmanager
def listening(service):
    """The address of a service that listens."""
    at = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        make_app(service), http=ImpatientProtocol, ws="none", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [at]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield at.getsockname()[:2]
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        at.close()


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium. `.ci/run` sets CALIBRANT_BROWSER=required: there its absence is a failure.

    It is open for one file: its event loop is this thread's meanwhile, and nobody else can have one.
    """
    required = os.environ.get("CALIBRANT_BROWSER") == "required"
    path = next((p for p in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if os.path.exists(p)), None)
    if path is None:
        if required:
            pytest.fail("CALIBRANT_BROWSER=required, and there is no Chromium")
        pytest.skip("no Chromium here (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()
