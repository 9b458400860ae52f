import hashlib
import subprocess
from pathlib import Path

import pytest

from calibrant.data.wheels import WheelFile, cache_dir
from calibrant.errors import UserError

CONTENT = b"a wheel, as far as pip is concerned"
WHEEL = WheelFile("some-text", "1.2", hashlib.sha256(CONTENT).hexdigest())
FILE = "some_text-1.2-py3-none-any.whl"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "wheels"


@pytest.fixture
def pip(monkeypatch):
    """Stands in for pip; the test says what it leaves and how it ends."""
    calls = []

    def set_up(content=None, code=0, stderr=""):
        def run(command, **options):
            calls.append(command)
            assert options["stdin"] == subprocess.DEVNULL  # where the user's texts may lie
            requirements = Path(command[command.index("-r") + 1]).read_text()
            assert requirements == f"some-text==1.2 --hash=sha256:{WHEEL.sha256}\n"
            if content is not None:
                (Path(command[command.index("--dest") + 1]) / FILE).write_bytes(content)
            return subprocess.CompletedProcess(command, code, "", stderr)

        monkeypatch.setattr(subprocess, "run", run)
        return calls

    return set_up


def test_downloaded_once(cache, pip):
    calls = pip(CONTENT)
    path = WHEEL.fetch()
    assert path == cache / FILE
    assert path.read_bytes() == CONTENT
    assert WHEEL.fetch() == path
    (command,) = calls
    assert command[1:4] == ["-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "--require-hashes", "--no-input"} <= set(command)
    assert [entry.name for entry in cache.iterdir()] == [FILE]  # no temporary folder is left


def test_a_file_put_there_is_used(cache, pip):
    calls = pip(code=1)
    cache.mkdir(parents=True)
    (cache / FILE).write_bytes(CONTENT)
    assert WHEEL.fetch() == cache / FILE
    assert not calls


def test_what_lies_in_the_cache_is_looked_at_each_time(cache, pip):
    calls = pip(CONTENT)
    path = WHEEL.fetch()
    path.write_bytes(CONTENT + b" and more")
    with pytest.raises(UserError) as refused:
        WHEEL.fetch()
    found = hashlib.sha256(CONTENT + b" and more").hexdigest()
    assert str(refused.value) == (
        f"{path} has SHA-256 {found}, expected {WHEEL.sha256}; it is not used. Remove it, and it is "
        "downloaded again."
    )
    path.unlink()
    assert WHEEL.fetch().read_bytes() == CONTENT
    assert len(calls) == 2


def test_another_version_is_not_taken_for_it(cache, pip):
    pip(CONTENT)
    cache.mkdir(parents=True)
    (cache / "some_text-1.20-py3-none-any.whl").write_bytes(b"another")
    assert WHEEL.fetch() == cache / FILE


def test_pip_fails(cache, pip):
    pip(code=1, stderr="WARNING: Retrying\nERROR: No matching distribution found for some-text==1.2\n")
    with pytest.raises(UserError) as refused:
        WHEEL.fetch()
    assert str(refused.value) == (
        "Could not download some-text==1.2 from the package index (ERROR: No matching distribution found for "
        f"some-text==1.2); check the network or pip's settings, or put the wheel into {cache}."
    )
    assert list(cache.iterdir()) == []


def test_pip_leaves_nothing(cache, pip):
    pip()
    with pytest.raises(UserError, match=r"package index \(no wheel came\); check the network"):
        WHEEL.fetch()


def test_other_content_is_refused_and_not_kept(cache, pip):
    pip(b"something else")
    with pytest.raises(UserError) as refused:
        WHEEL.fetch()
    found = hashlib.sha256(b"something else").hexdigest()
    assert str(refused.value) == (
        f"The downloaded {FILE} has SHA-256 {found}, expected {WHEEL.sha256}; it is not used. Check the "
        "package index."
    )
    assert list(cache.iterdir()) == []


def test_cache_dir(monkeypatch):
    monkeypatch.setenv("CALIBRANT_CACHE", "/a/b")
    assert cache_dir() == Path("/a/b")
    monkeypatch.delenv("CALIBRANT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_dir() == Path("/xdg/calibrant")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path.home() / ".cache" / "calibrant"


def test_name():
    assert str(WHEEL) == "wheel some-text 1.2"
