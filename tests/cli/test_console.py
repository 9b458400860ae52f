import io

import pytest
from rich.console import Console

from calibrant.cli import console
from calibrant.cli.console import in_words, working


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 1000.0

    monkeypatch.setattr(console.time, "monotonic", lambda: Clock.now)
    return Clock


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 240, 0, None), "0 of 240, 0 s gone"),
        ((90, 240, 300, 480), "90 of 240, 5 min gone, 8 min left"),
        ((1, 9, 89.4, 7500), "1 of 9, 89 s gone, 2 h 5 min left"),
    ],
)
def test_how_far_it_is(arguments, words):
    assert in_words(*arguments) == words


def test_without_a_terminal_a_line_every_half_minute(clock, capsys):
    with working() as progress:
        for step in range(101):
            progress("train calibrant", step, 400)
            clock.now += 1
    assert capsys.readouterr().err.splitlines() == [
        "train calibrant: 30 of 400, 30 s gone, 6 min left",
        "train calibrant: 60 of 400, 60 s gone, 6 min left",
        "train calibrant: 90 of 400, 2 min gone, 5 min left",
    ]


def test_a_resumed_work_is_timed_from_where_it_resumed(clock, capsys):
    with working() as progress:
        for step in range(300, 341):
            progress("train", step, 400)
            clock.now += 1
    assert capsys.readouterr().err.splitlines() == ["train: 330 of 400, 30 s gone, 70 s left"]


def test_work_of_seconds_says_nothing_without_a_terminal(clock, capsys):
    with working() as progress:
        progress("dev", 1, 2)
        progress("dev", 2, 2)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_bar_reads_unambiguously(monkeypatch):
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(console, "Console", lambda stderr: terminal)
    with working() as progress:
        progress("train", 90, 240)
    assert "90 of 240, 0 s gone" in screen.getvalue()
