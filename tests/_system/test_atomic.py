import pytest

from calibrant._system.atomic import remove_folder


def test_a_folder_whose_removal_is_interrupted_is_no_longer_there(tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    (run / "calibrant.json").write_text("{}")

    def interrupted(*_):
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
