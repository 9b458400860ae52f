import hashlib
import json
from pathlib import Path

import pytest

from calibrant.calibrators import Temperature
from calibrant.config import RunConfig
from calibrant.data.splits import make_splits
from calibrant.errors import UserError
from calibrant.runs import store
from calibrant.runs.begin import begin as begin_run
from calibrant.runs.record import MethodRecord, ThresholdRecord, TrainingRecord
from calibrant.types import Provenance, Texts

CONFIG = RunConfig(train="a.csv")
METHOD = {
    "name": "bert",
    "objective": "cross-entropy",
    "inference": "single",
    "calibrator": None,
    "start": "random",
    "frozen": False,
    "pooling": "native",
    "keep": "accuracy",
    "patience": 0,
}
TRAINING = TrainingRecord(
    steps=3,
    seconds=1.5,
    best_epoch=1.0,
    dev_accuracy=0.5,
    dev_confidence=0.6,
    dev_nll=0.7,
    history=[{"loss": 0.9, "step": 3}],
)
OBJECTIVE = {"name": "cross-entropy"}
INFERENCE = {"name": "single"}


def splits(*words):
    texts = [f"{word} {i}" for i in range(4) for word in words or ("one", "two", "three")]
    return make_splits("own", Texts(texts, ["a", "b"] * (len(texts) // 2), "file a.csv", ""), None)


def begin(path, config=CONFIG, data=None, objective=None):
    method = MethodRecord(**METHOD)
    return begin_run(Path(path), config, data or splits(), method, objective or OBJECTIVE, INFERENCE)


def finish(run):
    return run.keep(MODEL, TOKENIZER, TRAINING).updated(status="complete")


class Saved:
    """Stands in for a model or a tokenizer that can be saved."""

    def __init__(self, name, content):
        self.name, self.content = name, content

    def save_pretrained(self, path):
        Path(path).mkdir(exist_ok=True)
        (Path(path) / self.name).write_text(self.content)


MODEL, TOKENIZER = Saved("model.safetensors", "weights"), Saved("tokenizer.json", "{}")


def refusal(function, *arguments, **options):
    with pytest.raises(UserError) as refused:
        function(*arguments, **options)
    return str(refused.value)


# a run's life


def test_begin_records_what_determines_the_run(tmp_path):
    run = begin(tmp_path / "deep" / "run")
    written = json.loads((tmp_path / "deep" / "run" / "calibrant.json").read_text())
    assert written == run.record.model_dump(mode="json")
    assert store.Run(run.path, run.record) == run.stored()
    assert not run.complete
    assert run.config == CONFIG
    assert run.label_names == ("a", "b")
    assert written["data"] == splits().provenance()
    assert written["method"] == METHOD
    assert set(written["versions"]) == {"calibrant", "torch", "transformers", "tokenizers", "numpy"}


def test_begin_again_gives_the_same_run(tmp_path):
    assert begin(tmp_path / "run") == begin(tmp_path / "run")


def test_finish(tmp_path):
    run = begin(tmp_path)
    (run.checkpoints / "checkpoint-1").mkdir(parents=True)
    assert not run.trained
    assert refusal(lambda: run.training) == f"{tmp_path} has not been trained yet."
    done = finish(run)
    assert done.trained
    assert done.complete
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["README.md", "calibrant.json", "model"]
    assert done.record.files == {
        "model.safetensors": hashlib.sha256(b"weights").hexdigest(),
        "tokenizer.json": hashlib.sha256(b"{}").hexdigest(),
    }
    assert store.load(tmp_path) == done
    assert done.training == TRAINING


def test_finish_replaces_what_an_interruption_left(tmp_path):
    run = begin(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "old.bin").touch()
    assert set(finish(run).record.files) == {"model.safetensors", "tokenizer.json"}
    assert not (tmp_path / "model" / "old.bin").exists()


def test_metrics_are_kept_beside_the_run(run_copy):
    run = store.load(run_copy)
    assert run.metrics() is None
    assert "Not measured yet" in (run_copy / "README.md").read_text()
    detection = {"nbaucc_0.5": 0.25}
    metrics = {
        **{"n_test": 10, "n_ood": 5, "accuracy": 0.8, "ece": 0.05},
        **{"mean_confidence_test": 0.75, "mean_confidence_ood": 0.4},
        **{"misclassification": detection, "ood": detection},
    }
    measured_on = {
        part: {"n": 1, "source": f"file {part}.csv", "fingerprint": "f"} for part in ("test", "ood")
    }
    run.record_metrics(metrics, measured_on)
    assert store.load(run_copy).metrics() == {"metrics": metrics, "measured_on": measured_on}
    card = (run_copy / "README.md").read_text()
    assert "Measured on 10 texts (`file test.csv`): accuracy 80.0%, mean confidence 75.0%" in card
    assert "On 5 unfamiliar texts (`file ood.csv`) its mean confidence is 40.0%" in card


METRICS = {"n_test": 1, "accuracy": 1.0, "ece": 0.0, "mean_confidence_test": 1.0, "ood": None}
METRICS["misclassification"] = {"nbaucc_0.5": 0.0}
MEASURED_ON = {"test": {"n": 1, "source": "file test.csv", "fingerprint": "f"}}
ABSTENTION = {"coverage": 0.4, "risk": 0.0, "ood_answered": None}
TEMPERATURE = Temperature(2.0)
ABOUT = Provenance(n=9, source="file dev.csv", fingerprint="d")
RULE = ThresholdRecord(
    rule={"threshold": 0.5},
    promise={"risk": 0.1, "confidence": 0.95},
    learnt_on={"dev": ABOUT},
    dev={"coverage": 0.5, "risk": 0.05, "turned_away": 0.0},
)


def test_an_old_object_does_not_undo_what_others_wrote(run_copy):
    old = store.load(run_copy)
    store.load(run_copy).calibrated(TEMPERATURE, ABOUT)
    store.load(run_copy).ruled(RULE)
    assert old.updated(machine="new").record.calibrator is None  # what it answers with has not changed
    now = store.load(run_copy)
    assert (now.record.machine, now.record.threshold.rule) == ("new", RULE.rule)
    assert now.record.threshold.learnt_for == now.record.answering
    assert now.calibrator() == TEMPERATURE
    assert now.record.calibrator.fitted_on == ABOUT
    assert "fitted on 9 texts (`file dev.csv`)" in (run_copy / "README.md").read_text()


@pytest.mark.parametrize(
    "change", [lambda run: run.calibrated(TEMPERATURE, ABOUT), lambda run: run.ruled(RULE)]
)
def test_metrics_of_a_run_that_has_changed_are_not_kept(run_copy, change):
    old = store.load(run_copy)
    new = change(store.load(run_copy))
    with pytest.warns(UserWarning, match="has got another") as told:
        old.record_metrics(METRICS, MEASURED_ON)
    assert str(told[0].message) == (
        f"{run_copy} has got another model, calibrator or rule of abstention while it was measured, so what "
        "was found is not kept with it; measure it again."
    )
    assert store.load(run_copy).metrics() is None
    new.record_metrics(METRICS, MEASURED_ON)
    assert store.load(run_copy).metrics()["metrics"] == METRICS


def test_a_rule_learnt_with_another_calibrator_is_refused(run_copy):
    old = store.load(run_copy)
    store.load(run_copy).calibrated(TEMPERATURE, ABOUT)
    assert refusal(old.ruled, RULE) == (
        f"{run_copy} has got another calibrator while the rule was learnt, which does not hold for it; learn "
        "it again."
    )
    old.ruled(None)  # to take one away is never wrong
    assert store.load(run_copy).record.calibrator.name == "temperature"


def test_a_calibrator_fitted_for_another_model_is_refused(run_copy):
    old = store.load(run_copy)
    old.updated(inference={"name": "mc-dropout", "passes": 2})
    assert refusal(old.calibrated, TEMPERATURE, ABOUT) == (
        f"{run_copy} has got another model while the calibrator was fitted, which does not fit it; fit it "
        "again."
    )
    assert store.load(run_copy).record.calibrator is None


def test_metrics_of_another_calibrator_are_not_used(run_copy):
    store.load(run_copy).record_metrics(METRICS, MEASURED_ON)
    before = (run_copy / "metrics.json").read_text()
    run = store.load(run_copy).calibrated(TEMPERATURE, ABOUT)
    assert run.metrics() is None
    (run_copy / "metrics.json").write_text(before)  # as from a backup
    with pytest.warns(UserWarning, match="is not used") as told:
        assert run.metrics() is None
    assert str(told[0].message) == (
        f"{run_copy}/metrics.json tells of another model or calibrator and is not used; measure again with "
        f"`calibrant evaluate {run_copy} --test test.csv`."
    )


def test_what_was_measured_of_another_rule_is_left_out(run_copy):
    run = store.load(run_copy).ruled(RULE)
    run.record_metrics(METRICS | {"abstention": ABSTENTION}, MEASURED_ON)
    assert store.load(run_copy).metrics()["metrics"]["abstention"] == ABSTENTION
    assert "On the test texts it answers 40.0%" in (run_copy / "README.md").read_text()
    other = RULE.model_copy(update={"rule": RULE.rule.model_copy(update={"threshold": 0.6})})
    assert run.ruled(other).metrics() == {"metrics": METRICS, "measured_on": MEASURED_ON}
    assert "On the test texts it answers" not in (run_copy / "README.md").read_text()


def test_metrics_of_the_first_version_tell_nothing_and_are_used(run_copy):
    old = {"metrics": METRICS, "measured_on": MEASURED_ON}
    (run_copy / "metrics.json").write_text(json.dumps(old))
    assert store.load(run_copy).metrics() == old


@pytest.mark.parametrize("when", ["before the record", "after the record"])
def test_a_kill_leaves_no_card_of_before_and_the_next_load_makes_it(run_copy, monkeypatch, when):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if when == "before the record":
            patch.setattr("calibrant.runs.record.Record.write", killed)
        else:
            patch.setattr("calibrant.runs.store.Run.write_card", killed)
        with pytest.raises(KeyboardInterrupt):
            store.load(run_copy).calibrated(TEMPERATURE, ABOUT)
    assert not (run_copy / "README.md").exists()
    fitted = store.load(run_copy).record.calibrator is not None
    assert fitted == (when == "after the record")
    assert ("Calibrator: `temperature`" in (run_copy / "README.md").read_text()) == fitted


def test_a_full_disk_costs_nothing_that_was_there(run_copy, monkeypatch):
    store.load(run_copy).record_metrics(METRICS, MEASURED_ON)
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        for change in (
            lambda: store.load(run_copy).calibrated(TEMPERATURE, ABOUT),
            lambda: store.load(run_copy).ruled(RULE),
        ):
            assert refusal(change) == (
                f"{run_copy}/calibrant.json could not be written: the disk is full; make room. What was "
                "there before is whole."
            )
    run = store.load(run_copy)
    assert (run.record.calibrator, run.record.threshold) == (None, None)
    assert run.metrics()["metrics"] == METRICS
    assert "Measured on 1 texts" in (run_copy / "README.md").read_text()


def full(*_):
    raise OSError(28, "No space left on device")


def test_a_finished_run_is_data_and_nothing_else(trained):
    files = {str(file.relative_to(trained)) for file in trained.rglob("*") if file.is_file()}
    assert {file for file in files if not file.endswith((".json", ".safetensors", ".md"))} == set()
    assert {"README.md", "calibrant.json", "model/config.json", "model/model.safetensors"} <= files
    labels = json.loads((trained / "model" / "config.json").read_text())["id2label"]
    assert labels == {"0": "account", "1": "billing", "2": "shipping"}


# what is refused


@pytest.mark.parametrize(
    "other",
    [
        {"config": RunConfig(train="a.csv", seed=1)},
        {"data": splits("four", "five")},
        {"objective": {"name": "cross-entropy", "new": 1}},
    ],
    ids=["settings", "data", "objective's defaults"],
)
def test_output_directory_that_holds_another_run(tmp_path, other):
    run = begin(tmp_path)
    (run.checkpoints / "checkpoint-1").mkdir(parents=True)
    message = refusal(begin, tmp_path, **other)
    assert message == (
        f"{tmp_path} holds another run (bert, training), with other settings or data; give another --out or "
        "remove it."
    )
    finish(run)
    assert "holds another run (bert, complete)" in refusal(begin, tmp_path, RunConfig(train="a.csv", seed=1))
    assert store.load(tmp_path).config == CONFIG


def test_a_run_that_never_began_gives_way(tmp_path):
    begin(tmp_path, RunConfig(train="a.csv", model="mistyped")).checkpoints.mkdir()
    assert begin(tmp_path).config == CONFIG
    assert json.loads((tmp_path / "calibrant.json").read_text())["config"]["model"] == "minilm"


@pytest.mark.parametrize("name", [".calibrant.json.0badcafe-7.0123456789abcdef.calibrant", ".lock"])
def test_what_was_killed_before_it_had_a_record_blocks_nothing(tmp_path, name):
    (tmp_path / name).write_text("half")
    assert begin(tmp_path).config == CONFIG


def test_output_directory_that_is_no_run(tmp_path):
    (tmp_path / "thesis.tex").touch()
    sentence = "exists and is not a run of calibrant's; give another --out."
    assert refusal(begin, tmp_path) == f"{tmp_path} {sentence}"
    assert refusal(begin, tmp_path / "thesis.tex") == f"{tmp_path / 'thesis.tex'} {sentence}"
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_output_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "run"
    assert refusal(begin, path) == f"{path} cannot be created (Not a directory); give another --out."


def test_not_a_run_directory(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        assert refusal(store.load, path) == (
            f"{path} is not a run: it has no calibrant.json. Train one with `calibrant train --out {path} …`."
        )


def test_unfinished_run(tmp_path):
    begin(tmp_path)
    assert refusal(store.load, tmp_path) == (
        f"{tmp_path} has not finished training; run the same `calibrant train` again to resume it."
    )


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes() + b" ")])
def test_tampered_model_file(run_copy, name, damage):
    damage(run_copy / "model" / name)
    assert refusal(store.load, run_copy) == (
        f"{run_copy}/model/{name} is missing or not the file that was saved with the run; restore it or "
        "train again."
    )


def test_damaged_metrics_are_named(run_copy):
    (run_copy / "metrics.json").write_text("{")
    with pytest.raises(UserError, match=r"metrics\.json is damaged \(.*\); remove it and evaluate"):
        store.load(run_copy).metrics()


def test_the_folder_of_a_model_is_not_its_run(run_copy):
    with pytest.raises(UserError, match=r"model is not a run: .*\. Did you mean .*/run\?"):
        store.load(run_copy / "model")
