"""``calibrant serve``: the mistakes that get one sentence, and a service that is told to end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException

import pytest

from support.sentences import cases, one_sentence
from support.tiny import corpus

MISTAKES = cases(
    """
$ serve nowhere
nowhere is not a run: it has no calibrant.json. Train one with `calibrant train --out nowhere …`.
$ serve unfinished
unfinished has not finished training; run the same `calibrant train` again to resume it.
$ serve tampered
tampered/model/config.json is missing or not the file that was saved with the run; restore it or train again.
$ serve run --max-batch 0
--max-batch must be 1 or more, got 0.
$ serve run --max-waiting 0
--max-waiting must be 1 or more, got 0.
$ serve run --timeout 0
--timeout must be a number of seconds above 0, got 0.
$ serve run --timeout nan
--timeout must be a number of seconds above 0, got nan.
$ serve run --timeout inf
--timeout must be a number of seconds above 0, got inf.
$ serve run --port 0 --examples no.csv
No file 'no.csv'; check the path.
$ serve run --port 0 --examples own.csv
own.csv: no column 'text'; its columns are body, queue. …
$ serve run --port 70000
--port must lie in 0..65535, got 70000.
$ serve run --host no.such.host.invalid
Cannot listen on no.such.host.invalid, port 8000 …
$ serve run --host 192.0.2.1
Cannot listen on 192.0.2.1, port 8000 …
"""
)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, mistakes, command):
    one_sentence(command(*line.split()), MISTAKES[line])


def test_a_port_that_is_taken_gets_one_sentence(mistakes, command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = (
            f"Cannot listen on 127.0.0.1, port {port} (Address already in use); name others with --host and "
            "--port."
        )
        one_sentence(command("serve", "run", "--port", port), sentence)


@pytest.mark.parametrize("token", ["", " ", "ü", "a "])
def test_a_token_that_nobody_could_send_is_refused(token, mistakes, command, monkeypatch):
    monkeypatch.setenv("CALIBRANT_TOKEN", token)
    one_sentence(
        command("serve", "run"), "The token (CALIBRANT_TOKEN) is empty, not ASCII, or has spaces around it."
    )


def test_without_the_extra_the_sentence_says_what_to_install(mistakes, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "calibrant.service.server", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in [name for name in sys.modules if name.startswith("calibrant.service.")]:
        monkeypatch.delitem(sys.modules, name)
    one_sentence(
        command("serve", "run"),
        "`calibrant serve` needs uvicorn, which is not installed; pip install 'calibrant[serve]'.",
    )


@pytest.fixture
def service(trained, tmp_path):
    """A process of its own, its port, and the file of its log."""
    log = tmp_path / "log"
    with open(log, "w") as file:
        arguments = [sys.executable, "-c", "from calibrant.cli import main; main()"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [*arguments, "serve", str(trained), "--port", "0"], stderr=file, env=environment
        )
    try:
        end = time.monotonic() + 120
        while not (found := re.search(r"http://127.0.0.1:(\d+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end
            time.sleep(0.1)
        yield process, int(found[1]), log
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_sigterm_under_load_loses_no_accepted_request(service):
    process, port, log = service
    whole, cut_off, ended = [], [], threading.Event()
    texts = [text for text, _ in corpus(20)]

    def go_on_asking():
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        while not ended.is_set():
            begun = False
            try:
                connection.request(
                    "POST", "/predict", json.dumps({"texts": texts}), {"Content-Type": "application/json"}
                )
                response = connection.getresponse()
                begun = True
                whole.append((response.status, len(json.loads(response.read())["answers"])))
            except (OSError, HTTPException, ValueError) as error:
                if begun:
                    cut_off.append(error)
                break  # it no longer listens
        connection.close()

    threads = [threading.Thread(target=go_on_asking) for _ in range(16)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    process.send_signal(signal.SIGTERM)
    code = process.wait(timeout=60)
    ended.set()
    for thread in threads:
        thread.join()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    accepted = [line for line in lines if line["event"] == "request"]
    assert code == 0
    assert lines[-1]["event"] == "ended; every accepted request was answered"
    assert cut_off == []
    assert set(whole) == {(200, 20)}
    assert len(whole) == len(accepted) > 16  # every request that was begun has reached its client
    assert not any(text in log.read_text() for text in texts)
