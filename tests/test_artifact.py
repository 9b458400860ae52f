import hashlib
import json
from pathlib import Path

import pytest

from calibrant import artifact
from calibrant.config import RunConfig
from calibrant.data.splits import make_splits
from calibrant.errors import UserError
from calibrant.types import Texts

CONFIG = RunConfig(train="a.csv")
METHOD = {"name": "bert", "objective": "cross-entropy", "inference": "single", "calibrator": None}
OBJECTIVE = {"name": "cross-entropy"}
INFERENCE = {"name": "single"}


def splits(*words):
    texts = [f"{word} {i}" for i in range(4) for word in words or ("one", "two", "three")]
    return make_splits("own", Texts(texts, ["a", "b"] * (len(texts) // 2), "file a.csv", ""), None)


def begin(path, config=CONFIG, data=None, objective=None):
    return artifact.begin(Path(path), config, data or splits(), METHOD, objective or OBJECTIVE, INFERENCE)


def finish(run, training=None):
    return run.keep(MODEL, TOKENIZER, training or {}).updated(status="complete")


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


def change_record(path, **changes):
    record = json.loads((path / "calibrant.json").read_text()) | changes
    (path / "calibrant.json").write_text(json.dumps(record))


# a run's life


def test_begin_records_what_determines_the_run(tmp_path):
    run = begin(tmp_path / "deep" / "run")
    written = json.loads((tmp_path / "deep" / "run" / "calibrant.json").read_text())
    assert written == run.record
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
    done = finish(run, {"steps": 3})
    assert done.complete
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["README.md", "calibrant.json", "model"]
    assert done.record["files"] == {
        "model.safetensors": hashlib.sha256(b"weights").hexdigest(),
        "tokenizer.json": hashlib.sha256(b"{}").hexdigest(),
    }
    assert artifact.load(tmp_path) == done
    assert done.record["training"] == {"steps": 3}


def test_finish_replaces_what_an_interruption_left(tmp_path):
    run = begin(tmp_path)
    for leftover in (".model", "model"):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "old.bin").touch()
    assert set(finish(run).record["files"]) == {"model.safetensors", "tokenizer.json"}
    assert not (tmp_path / ".model").exists()


def test_last_checkpoint_is_the_newest_whole_one(tmp_path):
    run = begin(tmp_path)
    assert run.last_checkpoint() is None
    for step, state in ((9, "{}"), (10, "{}"), (11, '{"half'), (12, None)):
        folder = run.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        if state is not None:
            (folder / "trainer_state.json").write_text(state)
    assert run.last_checkpoint() == run.checkpoints / "checkpoint-10"
    assert sorted(folder.name for folder in run.checkpoints.iterdir()) == ["checkpoint-10", "checkpoint-9"]


def test_metrics_are_kept_beside_the_run(run_copy):
    run = artifact.load(run_copy)
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
    assert artifact.load(run_copy).metrics() == {"metrics": metrics, "measured_on": measured_on}
    card = (run_copy / "README.md").read_text()
    assert "Measured on 10 texts (file test.csv): accuracy 80.0%, mean confidence 75.0%" in card
    assert "On 5 texts of another world (file ood.csv) its mean confidence is 40.0%" in card


METRICS = {"n_test": 1, "accuracy": 1.0, "ece": 0.0, "mean_confidence_test": 1.0, "ood": None}
METRICS["misclassification"] = {"nbaucc_0.5": 0.0}
MEASURED_ON = {"test": {"n": 1, "source": "file test.csv", "fingerprint": "f"}}
TEMPERATURE = {"name": "temperature", "parameters": {"temperature": 2.0}}
ABOUT = {"n": 9, "source": "file dev.csv", "fingerprint": "d"}
RULE = {
    "rule": {"threshold": 0.5, "score": None, "cut": None},
    "promise": {"risk": 0.1, "ood_rate": None, "confidence": 0.95},
    "learnt_on": {"dev": ABOUT, "ood": None},
    "dev": {"coverage": 0.5, "risk": 0.05, "turned_away": 0.0},
}


def test_an_old_object_does_not_undo_what_others_wrote(run_copy):
    old = artifact.load(run_copy)
    artifact.load(run_copy).calibrated(TEMPERATURE, ABOUT)
    artifact.load(run_copy).ruled(RULE)
    assert old.updated(note="new").record["calibrator"] is None  # what it answers with has not changed
    now = artifact.load(run_copy).record
    assert (now["note"], now["threshold"]) == ("new", RULE)
    assert now["calibrator"] == TEMPERATURE | {"fitted_on": ABOUT}
    assert "fitted on 9 texts (file dev.csv)" in (run_copy / "README.md").read_text()


@pytest.mark.parametrize(
    "change", [lambda run: run.calibrated(TEMPERATURE, ABOUT), lambda run: run.ruled(RULE)]
)
def test_metrics_of_a_run_that_has_changed_are_not_kept(run_copy, change):
    old = artifact.load(run_copy)
    new = change(artifact.load(run_copy))
    with pytest.warns(UserWarning, match="has got another") as told:
        old.record_metrics(METRICS, MEASURED_ON)
    assert str(told[0].message) == (
        f"{run_copy} has got another model, calibrator or rule of abstention while it was measured, so what "
        "was found is not kept with it; measure it again."
    )
    assert artifact.load(run_copy).metrics() is None
    new.record_metrics(METRICS, MEASURED_ON)
    assert artifact.load(run_copy).metrics()["metrics"] == METRICS


def test_a_rule_learnt_with_another_calibrator_is_refused(run_copy):
    old = artifact.load(run_copy)
    artifact.load(run_copy).calibrated(TEMPERATURE, ABOUT)
    assert refusal(old.ruled, RULE) == (
        f"{run_copy} has got another calibrator while the rule was learnt, which does not hold for it; learn "
        "it again."
    )
    old.ruled(None)  # to take one away is never wrong
    assert artifact.load(run_copy).record["calibrator"]["name"] == "temperature"


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
    assert artifact.load(tmp_path).config == CONFIG


def test_a_run_that_never_began_gives_way(tmp_path):
    begin(tmp_path, RunConfig(train="a.csv", model="mistyped")).checkpoints.mkdir()
    assert begin(tmp_path).config == CONFIG
    assert json.loads((tmp_path / "calibrant.json").read_text())["config"]["model"] == "minilm"


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
        assert refusal(artifact.load, path) == (
            f"{path} is not a run: it has no calibrant.json. Train one with `calibrant train --out {path} …`."
        )


def test_unfinished_run(tmp_path):
    begin(tmp_path)
    assert refusal(artifact.load, tmp_path) == (
        f"{tmp_path} has not finished training; run the same `calibrant train` again to resume it."
    )


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes() + b" ")])
def test_tampered_model_file(run_copy, name, damage):
    damage(run_copy / "model" / name)
    assert refusal(artifact.load, run_copy) == (
        f"{run_copy}/model/{name} is missing or not the file that was saved with the run; restore it or "
        "train again."
    )


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "5", '"x"', "null", "{}", '{"format": 1}', '{"format": 1, "config": {}}']
)
def test_damaged_record(run_copy, content):
    (run_copy / "calibrant.json").write_text(content)
    message = refusal(artifact.load, run_copy)
    assert message.startswith(f"{run_copy}/calibrant.json is damaged (")
    assert message.endswith("); restore it or train again.")
    assert "\n" not in message


@pytest.mark.parametrize("key", [*artifact.KEYS, "files"])
def test_record_that_lacks_something(run_copy, key):
    record = json.loads((run_copy / "calibrant.json").read_text())
    del record[key]
    (run_copy / "calibrant.json").write_text(json.dumps(record))
    assert refusal(artifact.load, run_copy) == (
        f"{run_copy}/calibrant.json is damaged ('{key}'); restore it or train again."
    )


def test_record_with_impossible_settings(run_copy):
    change_record(run_copy, config={"train": "a.csv", "epochs": -1})
    assert refusal(artifact.load, run_copy) == (
        f"{run_copy}/calibrant.json is damaged (1 validation error for RunConfig); restore it or train again."
    )


def test_record_of_another_format(run_copy):
    change_record(run_copy, format=2)
    assert refusal(artifact.load, run_copy) == (
        f"{run_copy}/calibrant.json has format 2, this version reads 1."
    )


def test_record_that_is_not_utf8(run_copy):
    (run_copy / "calibrant.json").write_bytes(b'{"format": "\xe9"}')
    assert "calibrant.json is damaged (" in refusal(artifact.load, run_copy)


def test_damaged_metrics_are_named(run_copy):
    (run_copy / "metrics.json").write_text("{")
    with pytest.raises(UserError, match=r"metrics\.json is damaged \(.*\); remove it and evaluate"):
        artifact.load(run_copy).metrics()


def test_the_folder_of_a_model_is_not_its_run(run_copy):
    with pytest.raises(UserError, match=r"model is not a run: .*\. Did you mean .*/run\?"):
        artifact.load(run_copy / "model")
