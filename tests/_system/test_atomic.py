import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from calibrant._system.atomic import (
    holds_anything,
    new_folder,
    remove_folder,
    write_bytes,
    write_json,
    write_text,
)
from calibrant.errors import NotWritten


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


KILLED = """
import os, signal, sys
from pathlib import Path
from calibrant._system import atomic

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

Path.replace = killed
if sys.argv[1] == "file":
    atomic.write_text(Path(sys.argv[2]) / "page.html", "half")
else:
    with atomic.new_folder(Path(sys.argv[2]) / "export") as folder:
        (folder / "model.safetensors").write_text("half")
"""


@pytest.fixture(params=["file", "folder"])
def killed(request, tmp_path):
    """A folder in which a process was killed before it gave what it wrote its name; and that process."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, request.param, str(tmp_path)])
    process.wait(60)
    (left,) = names(tmp_path)
    assert f"-{process.pid}." in left
    return tmp_path, process.pid


def test_what_a_killed_process_left_goes_with_the_next_write(killed):
    folder, _ = killed
    assert not holds_anything(folder)
    write_text(folder / "another.txt", "whole")
    assert names(folder) == ["another.txt"]
    assert holds_anything(folder)


def test_an_old_process_of_the_same_number_blocks_nothing(killed, monkeypatch):
    """As in containers, where every command is process 7, say."""
    folder, pid = killed
    monkeypatch.setattr("os.getpid", lambda: pid)
    with new_folder(folder / "export") as export:
        write_text(export / "whole.txt", "whole")
        write_text(folder / "page.html", "whole")  # and does not sweep what it is writing itself
    assert names(folder) == ["export", "page.html"]


def test_what_others_are_writing_stays(tmp_path):
    with new_folder(tmp_path / "export") as export:
        (export / "file").touch()
        code = "import sys; from pathlib import Path; from calibrant._system.atomic import write_text\n"
        code += "write_text(Path(sys.argv[1]) / 'page.html', 'whole')"
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
        assert (export / "file").exists()
    assert names(tmp_path) == ["export", "page.html"]


def test_other_peoples_files_are_not_swept(tmp_path):
    for name in (
        ".notes.123.tmp",
        ".a.0badcafe-1.0123456789abcdef.calibrant",
    ):  # the second of another machine
        (tmp_path / name).touch()
    write_text(tmp_path / "page.html", "whole")
    assert len(names(tmp_path)) == 3


def test_a_failed_write_leaves_what_was_there_and_nothing_else(tmp_path):
    path = tmp_path / "record.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": float("nan")})
    with pytest.raises(FileNotFoundError), new_folder(tmp_path / "export") as folder:
        (folder / "not there" / "half").touch()
    assert names(tmp_path) == ["record.json"]
    assert path.read_text() == '{\n  "a": 1\n}\n'


def test_a_new_folder_is_readable_to_those_whom_the_umask_lets(tmp_path):
    """safetensors writes its files for the owner alone."""
    import numpy as np
    from safetensors.numpy import save_file

    before = os.umask(0o027)
    try:
        with new_folder(tmp_path / "model") as folder:
            (folder / "deep").mkdir()
            save_file({"a": np.zeros(3)}, folder / "deep" / "model.safetensors")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model" / "deep" / "model.safetensors").stat().st_mode) == 0o640


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    order = []
    fsync, replace = os.fsync, Path.replace
    monkeypatch.setattr("os.fsync", lambda file: order.append("fsync") or fsync(file))
    monkeypatch.setattr(Path, "replace", lambda *paths: order.append("rename") or replace(*paths))
    write_bytes(tmp_path / "a", b"content")
    assert order == ["fsync", "rename"]


@pytest.mark.parametrize("number", [28, 30, 24])
def test_a_machine_that_gives_no_more(tmp_path, monkeypatch, number):
    def refuse(file):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", refuse)
    write = {
        28: "the disk is full; make room",
        30: "the file system is read-only; copy it to where you may write",
        24: "too many files are open; allow more with `ulimit -n 4096`",
    }
    with pytest.raises(NotWritten) as told:
        write_text(tmp_path / "a", "content")
    assert str(told.value) == (
        f"{tmp_path}/a could not be written: {write[number]}. What was there before is whole."
    )
    assert names(tmp_path) == []


def test_a_folder_whose_removal_is_interrupted_is_no_longer_there(tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    (run / "calibrant.json").write_text("{}")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove_folder(run)
    assert not run.exists()


def test_a_folder_is_removed_once(tmp_path):
    (tmp_path / "run" / "model").mkdir(parents=True)
    remove_folder(tmp_path / "run")
    remove_folder(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
