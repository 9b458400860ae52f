"""Which checkpoint training goes on from, and which are kept."""

import json
import shutil

import pytest

from calibrant.runs import checkpoints


@pytest.fixture
def save(tmp_path):
    """Writes a checkpoint as the Trainer does, and seals it."""

    def write(step, best, sealed=True):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "optimizer.pt").write_bytes(bytes(1000))
        (folder / "trainer_state.json").write_text(json.dumps({"best_global_step": best}))
        if sealed:
            checkpoints.seal(folder)
        return folder

    return write


def kept(folder):
    return sorted(int(each.name.split("-")[1]) for each in folder.iterdir())


def test_the_newest_two_are_kept_and_what_they_remember_as_best(tmp_path, save):
    assert checkpoints.last(tmp_path) is None
    for step, best, expected in (
        *((5, 5, [5]), (10, 5, [5, 10]), (15, 5, [5, 10, 15]), (20, 5, [5, 15, 20])),
        *((25, 25, [5, 20, 25]), (30, 25, [25, 30]), (35, 35, [25, 30, 35]), (100, 35, [35, 100])),
    ):
        save(step, best)
        assert kept(tmp_path) == expected
        assert checkpoints.last(tmp_path) == tmp_path / f"checkpoint-{step}"


def test_one_that_is_saved_twice_is_whole(tmp_path, save):
    """As at the end of an epoch that was due for a checkpoint of its own."""
    checkpoint = save(5, 5)
    checkpoints.seal(checkpoint)
    assert checkpoints.last(tmp_path) == checkpoint


def test_the_start_needs_no_checkpoint(tmp_path, save):
    save(5, None)
    newest = save(10, 0)
    assert checkpoints.last(tmp_path) == newest


def test_a_half_written_one_is_passed_over_in_silence(tmp_path, save, caplog):
    save(5, 5)
    save(10, 10, sealed=False)
    assert checkpoints.last(tmp_path) == tmp_path / "checkpoint-5"
    assert kept(tmp_path) == [5]
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("damage", "flaw"),
    [
        (lambda f: (f / "optimizer.pt").write_bytes(bytes(500)), "optimizer.pt is not as it was written"),
        (lambda f: (f / "optimizer.pt").unlink(), "optimizer.pt is not as it was written"),
        (lambda f: (f / "trainer_state.json").write_text("{"), "trainer_state.json is not as it was written"),
        (lambda f: (f / "seal.json").write_text("{"), "seal.json cannot be read"),
    ],
    ids=["half", "gone", "state", "seal"],
)
def test_a_damaged_one_gives_way_to_the_one_before_and_this_is_said(tmp_path, save, caplog, damage, flaw):
    save(5, 5)
    newest = save(10, 10)
    damage(newest)
    assert checkpoints.last(tmp_path) == tmp_path / "checkpoint-5"
    (told,) = caplog.messages
    assert told == f"{newest} is damaged ({flaw}); training goes on from checkpoint-5."
    assert not newest.exists()


def test_one_whose_best_is_damaged_cannot_be_gone_on_from(tmp_path, save, caplog):
    """At its end training would have nothing to take the best weights from."""
    save(5, 5)
    save(10, 5)
    (tmp_path / "checkpoint-5" / "optimizer.pt").write_bytes(b"")
    assert checkpoints.last(tmp_path) is None
    assert caplog.messages[0].endswith("training begins again.")


def test_all_is_on_the_disk_before_an_older_one_goes(tmp_path, save, monkeypatch):
    order = []
    monkeypatch.setattr(checkpoints, "sync", lambda folder: order.append(folder.name))
    monkeypatch.setattr(
        checkpoints, "remove_folder", lambda folder: order.append(f"-{folder.name}") or shutil.rmtree(folder)
    )
    save(5, None), save(10, None)
    order.clear()
    save(15, None)
    assert order == ["checkpoint-15", tmp_path.name, "-checkpoint-5"]
