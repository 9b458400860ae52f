"""A run that may be read and not written to: what is measured is told, and what was not kept."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from calibrant.classifier import load
from calibrant.errors import NotWritten
from calibrant.runs import store
from calibrant.tasks.calibrate import remove_calibrator
from calibrant.tasks.evaluate import evaluate
from calibrant.tasks.predict import predict
from calibrant.tasks.train import train
from support.tiny import corpus

NOBODY = 65534


@pytest.fixture
def read_only(trained):
    """A copy of a run and of its texts in a folder that nobody may write to, and nobody is who we are now."""
    folder = Path(tempfile.mkdtemp())
    run = shutil.copytree(trained, folder / "run")
    rows = "".join(f"{text},{label}\n" for text, label in corpus(30, seed=9))
    (folder / "test.csv").write_text(f"text,label\n{rows}")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path == folder else 0o555 if path.is_dir() else 0o444)
    trained.parent.chmod(0o755)
    for parent in trained.parent.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    before = os.geteuid()
    if before == 0:  # whom no mode keeps out
        os.seteuid(NOBODY)
    yield run
    os.seteuid(before)
    for path in (run, *run.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def contents(run):
    return {file: file.read_bytes() for file in run.rglob("*") if file.is_file()}


WHY = "you may not write there; ask its owner, or copy it to where you may write. Nothing was changed."


def test_measuring_gives_its_figures_and_says_that_they_were_not_kept(read_only):
    before = contents(read_only)
    with pytest.warns(UserWarning, match="not kept") as told:
        found = evaluate(read_only, test=str(read_only.parent / "test.csv"), scores=True)
    assert found.entry.metrics["n_test"] == 30
    assert found.entry.metrics["scores"]["knn"]
    assert [str(each.message) for each in told] == [
        f"Fitted scores are not kept with the run. {read_only} could not be written: {WHY}",
        f"What was measured is not kept with the run. {read_only} could not be written: {WHY}",
    ]
    assert contents(read_only) == before


def test_it_answers_with_sets(read_only):
    before = contents(read_only)
    with pytest.warns(UserWarning, match="^The answers on dev are not kept with the run"):
        rows = list(predict(read_only, texts=["my card"], coverage=0.9))
    assert rows[0]["set"]
    assert contents(read_only) == before


def test_what_would_change_it_is_refused(read_only):
    with pytest.raises(NotWritten) as refused:
        remove_calibrator(read_only)
    assert str(refused.value) == f"{read_only} could not be written: {WHY}"


def test_a_finished_training_is_found(read_only):
    config = store.load(read_only).config
    assert train(config, out=read_only).complete
    assert load(read_only).predict(["my card"])
