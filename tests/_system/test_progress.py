"""Progress in a notebook: a real kernel, asked as Jupyter asks it."""

import re

import pytest
from jupyter_client.manager import start_new_kernel

from calibrant._system.progress import Pace, in_notebook, time
from support.tiny import corpus

CELL = """
import csv
with open("train.csv", "w", newline="") as file:
    csv.writer(file).writerows([("text", "label"), *{rows}])
import calibrant
from calibrant import RunConfig
config = RunConfig(train="train.csv", model={model!r}, max_length=32, epochs=2, batch_size=16)
run = calibrant.train(config, out="run")
"""


@pytest.fixture
def kernel(tmp_path):
    manager, client = start_new_kernel(cwd=str(tmp_path), kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def shown(client, code):
    """What a notebook shows below the cell, message by message."""
    messages = []
    reply = client.execute_interactive(code, output_hook=messages.append, timeout=240)
    assert reply["content"]["status"] == "ok", reply["content"]
    return [message for message in messages if message["msg_type"] not in ("status", "execute_input")]


@pytest.mark.slow
def test_training_in_a_notebook_has_a_bar_and_prints_nothing(kernel, model_dir):
    messages = shown(kernel, CELL.format(rows=corpus(120), model=str(model_dir)))
    assert {message["msg_type"] for message in messages} == {"display_data", "update_display_data"}
    bars = [message["content"]["data"]["text/html"] for message in messages]
    training = [bar for bar in bars if "train calibrant" in bar]
    steps = [int(re.search(r"value='(\d+)' max='12'", bar)[1]) for bar in training]
    assert steps[0] == 1
    assert steps[-1] == 12
    assert steps == sorted(steps)
    assert "12 of 12, " in training[-1]
    assert " gone" in training[-1]


def test_elsewhere_it_says_nothing(capfd):
    in_notebook("train", 1, 2)
    assert capfd.readouterr() == ("", "")


def test_the_time_left_is_that_of_what_was_done_meanwhile(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pace = Pace(200)  # resumed there
    assert pace.words(200, 240) == "200 of 240, 0 s gone"
    now += 30
    assert pace.words(210, 240) == "210 of 240, 30 s gone, 2 min left"
    assert pace.words(240, 240) == "240 of 240, 30 s gone"
