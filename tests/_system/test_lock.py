"""One process at a time, whatever the others do."""

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from calibrant._system import lock
from calibrant._system.lock import alone
from calibrant.errors import Busy

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def holder(tmp_path):
    """Starts a process that holds the lock until it hears something, or that nobody is left to say it."""
    started = []

    def hold(doing):
        ours, its = FORK.Pipe()

        def work():
            ours.close()
            with alone(tmp_path, doing):
                its.send("ready")
                its.recv()

        process = FORK.Process(target=work)
        process.start()
        its.close()
        assert ours.poll(60)
        started.append((process, ours))
        return process, lambda: ours.send("go")

    yield hold
    for process, ours in started:
        ours.close()
        process.join(60)


def test_the_file_is_there_while_it_is_held_and_tells_who(tmp_path):
    with alone(tmp_path, "trained"):
        assert (tmp_path / ".lock").read_text() == f"trained by process {os.getpid()}"
        with alone(tmp_path):  # its own
            pass
        assert (tmp_path / ".lock").exists()
    assert not (tmp_path / ".lock").exists()


def test_a_training_is_refused(tmp_path, holder):
    process, _ = holder("trained")
    with pytest.raises(Busy) as told, alone(tmp_path):
        pass
    assert str(told.value) == (
        f"{tmp_path} is being trained by process {process.pid} now; wait until it is done, or take another "
        "folder."
    )


def test_a_change_is_waited_for(tmp_path, holder):
    _, go = holder("changed")
    threading.Timer(lock.GRACE + 0.2, go).start()
    begun = time.monotonic()
    with alone(tmp_path):
        assert time.monotonic() - begun > lock.GRACE


def test_a_change_without_end_is_not_waited_for(tmp_path, holder, monkeypatch):
    process, _ = holder("changed")
    monkeypatch.setattr(lock, "PATIENCE", 0.1)
    with pytest.raises(Busy, match=f"is being changed by process {process.pid}, for more than 0 seconds"):
        alone(tmp_path).__enter__()


def test_it_goes_with_its_process(tmp_path, holder):
    process, _ = holder("trained")
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert (tmp_path / ".lock").exists()
    with alone(tmp_path, "trained"):
        pass


def test_what_a_killed_training_left_in_the_file_refuses_nobody(tmp_path, holder, monkeypatch):
    """Whoever has the lock writes its own into the file, but may not have come to that yet."""
    monkeypatch.setattr("os.pwrite", lambda *_: 0)
    monkeypatch.setattr("os.ftruncate", lambda *_: 0)
    (tmp_path / ".lock").write_text("trained by process 1")
    _, go = holder("changed")
    threading.Timer(lock.GRACE / 2, go).start()
    with alone(tmp_path):
        pass


def test_threads_exclude_each_other_too(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(20):
            with alone(tmp_path):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.001)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (80, 1)


def count(folder: Path, times: int) -> None:
    for _ in range(times):
        with alone(folder):
            number = int((folder / "number").read_text())
            (folder / "number").write_text(str(number + 1))


def test_processes_lose_nothing(tmp_path):
    (tmp_path / "number").write_text("0")
    processes = [FORK.Process(target=count, args=(tmp_path, 50)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert (tmp_path / "number").read_text() == "200"
    assert not (tmp_path / ".lock").exists()
