"""``calibrant.json``: what it says is checked when it is read, and older versions of it are still read."""

import copy
import hashlib
import json
import math
import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from calibrant.calibrators import Temperature, calibrators
from calibrant.calibrators.base import Calibrator
from calibrant.classifier import load
from calibrant.errors import UserError
from calibrant.runs import record, store
from calibrant.runs.record import RuleRecord, TrainingRecord
from calibrant.types import Outputs, Provenance
from support.tiny import corpus

TEXTS = [text for text, _ in corpus(40, seed=5)]
DEV = {"n": 120, "source": "file train.csv (20 % of train, stratified)", "fingerprint": "955ea6f3f1ffc0c5"}
TRAINED = {"steps": 30, "seconds": 69.5, "best_epoch": 2.0, "dev_accuracy": 0.95, "dev_nll": 0.15}
OLD = {  # as the version that wrote format 1 left it, of a run with a calibrator, a rule and scores
    "format": 1,
    "status": "complete",
    "fingerprint": "00235e91f631f970",
    "method": {
        "name": "manifold-smoothing + temperature",
        "objective": "manifold-smoothing",
        "inference": "single",
        "calibrator": "temperature",
    },
    "objective": {"name": "manifold-smoothing", "delta_off": 0.001, "solver": "shared", "steps": 1},
    "inference": {"name": "single"},
    "calibrator": {"name": "temperature", "parameters": {"temperature": 0.1024}, "fitted_on": DEV},
    "threshold": {
        "rule": {"threshold": 0.0, "score": "mahalanobis", "cut": 1295.69},
        "promise": {"risk": 0.2, "ood_rate": 0.4, "confidence": 0.95},
        "learnt_on": {
            "dev": {"n": 523, "source": "file dev.csv", "fingerprint": "8edd9a29c07a0da0"},
            "ood": {"n": 400, "source": "file ood.csv", "fingerprint": "ff69d28d163b981b"},
        },
        "dev": {"coverage": 0.969, "risk": 0.063, "turned_away": 0.031},
    },
    "labels": ["age_limit", "card_arrival", "señal"],
    "data": {
        "train": {"n": 480, "source": "file train.csv", "fingerprint": "dee93eda57971418"},
        "dev": dict(DEV),
    },
    "config": {
        "train": "train.csv",
        "dev": None,
        "text_column": "text",
        "label_column": "label",
        "dataset": None,
        "source": None,
        "max_train_samples": None,
        "model": "minilm",
        "layers": None,
        "max_length": 128,
        "method": "manifold-smoothing",
        "objective": {},
        "inference": {},
        "calibrator": "temperature",
        "epochs": 2,
        "batch_size": 32,
        "gradient_accumulation_steps": 1,
        "learning_rate": 0.0001,
        "weight_decay": 0.0,
        "bf16": False,
        "gradient_checkpointing": False,
        "seed": 0,
    },
    "versions": {"calibrant": "0.1.0", "torch": "2.13.0+cpu"},
    "machine": "x86_64, 1 of 2 cores, Python 3.11.7",
    "created": "2026-11-17T20:54:30+00:00",
    "training": TRAINED
    | {
        "work_seconds": 69.7,
        "dev_confidence": 0.94,
        "history": [{"loss": 1.45, "epoch": 1.0, "step": 15}, {"eval_selection": 0.89, "epoch": 1.0}],
    },
    "files": {"config.json": "3e5c", "model.safetensors": "ad01"},
    "scores": {"knn": "b608", "mahalanobis": "54fb"},
}

OF_THE_RECIPE = {  # what a record of before the recipe lacks, as it is then read
    "method": {"start": "random", "frozen": False, "pooling": "native", "keep": "accuracy", "patience": 0},
    "config": dict.fromkeys(
        ("start", "pooling", "keep", "patience", "lora", "lora_targets", "pair_column", "class_weights")
    ),
}


def with_the_recipe(old):
    return copy.deepcopy(old) | {part: old[part] | more for part, more in OF_THE_RECIPE.items()}


def write(folder, content):
    (folder / record.FILE).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return folder


def written(folder):
    return json.loads((folder / record.FILE).read_text("utf-8"))


def refusal(function, *arguments):
    with pytest.raises(UserError) as refused:
        function(*arguments)
    return str(refused.value)


# older versions


def test_a_record_of_format_1_is_read_and_written_back_as_format_2(tmp_path):
    found = record.read(write(tmp_path, OLD))
    assert found.calibrator.parameters == {"temperature": 0.1024}
    assert found.calibrator.fitted_on == found.data.dev == Provenance(**DEV)
    assert found.threshold.rule == RuleRecord(threshold=0.0, score="mahalanobis", cut=1295.69)
    assert found.training.history[0] == {"loss": 1.45, "epoch": 1.0, "step": 15}
    assert found.members == []
    found.write(tmp_path)
    expected = with_the_recipe(OLD) | {"format": 2, "members": [], "scores_for": None}
    expected["calibrator"]["arrays"] = expected["threshold"]["learnt_for"] = None
    expected["threshold"]["rule"]["thresholds"] = expected["training"]["share"] = None
    assert written(tmp_path) == expected
    assert '"step": 15\n' in (tmp_path / record.FILE).read_text()  # and not 15.0
    assert "señal" in (tmp_path / record.FILE).read_text("utf-8")
    assert record.read(tmp_path) == found


def test_one_that_is_still_training(tmp_path):
    old = copy.deepcopy(OLD) | {"status": "training", "calibrator": None, "threshold": None}
    for later in ("training", "files", "scores"):
        del old[later]
    found = record.read(write(tmp_path, old))
    assert (found.training, found.files, found.scores) == (None, None, {})


def test_the_first_of_format_1(tmp_path):
    """Before inference was a choice, work was timed and the confidence on dev was kept."""
    old = copy.deepcopy(OLD)
    del old["inference"], old["config"]["inference"], old["config"]["calibrator"], old["scores"]
    old["training"] = TRAINED | {"history": [{"loss": 1.45, "epoch": 1.0}]}
    found = record.read(write(tmp_path, old))
    assert found.inference == {"name": "single"}
    assert (found.config.inference, found.config.calibrator) == ({}, None)
    assert (found.training.work_seconds, found.training.dev_confidence) == (None, None)
    found.write(tmp_path)
    assert record.read(tmp_path) == found


def as_format_1(folder):
    """The run as the old version would have left it."""
    old = written(folder) | {"format": 1}
    if old["calibrator"] is not None:
        del old["calibrator"]["arrays"]
    for later in ("members", "scores"):
        del old[later]
    return write(folder, old)


def test_a_run_of_format_1_answers_as_it_did_and_keeps_up_from_its_next_change_on(run_copy):
    store.load(run_copy).calibrated(Temperature(1.7), Provenance(**DEV))
    expected = load(run_copy).predict_proba(TEXTS)
    as_format_1(run_copy)
    np.testing.assert_array_equal(load(run_copy).predict_proba(TEXTS), expected)
    assert written(run_copy)["format"] == 1  # to read it changes nothing
    store.load(run_copy).updated()
    assert written(run_copy)["format"] == 2
    np.testing.assert_array_equal(load(run_copy).predict_proba(TEXTS), expected)


@pytest.mark.parametrize("number", [0, 3, "2", None])
def test_another_format(tmp_path, number):
    write(tmp_path, OLD | {"format": number})
    assert refusal(record.read, tmp_path) == (
        f"{tmp_path}/calibrant.json has format {number}, this version reads 2."
    )


# damage

WHOLE = with_the_recipe(OLD) | {"format": 2, "members": [{"model.safetensors": "ad02"}]}
WHOLE["calibrator"]["arrays"] = "9f86d081884c7d65"
WHOLE["scores_for"] = WHOLE["threshold"]["learnt_for"] = None
WHOLE["scores_for"] = record.Record(**WHOLE).model_digest
WHOLE["threshold"]["learnt_for"] = record.Record(**WHOLE).answering
FREE = [  # what is in there belongs to an objective, an inference, a calibrator
    ("objective",),
    ("inference",),
    ("calibrator", "parameters"),
    ("config", "objective"),
    ("config", "inference"),
]
OPTIONAL = [  # what may be missing
    *(("threshold",), ("versions",), ("machine",), ("created",), ("members",), ("scores",)),
    *(("scores_for",), ("threshold", "learnt_for")),
    *(("calibrator", "arrays"), ("training", "work_seconds"), ("training", "dev_confidence")),
    *(("threshold", "promise", "ood_rate"), ("threshold", "learnt_on", "ood")),
    *((part, name) for part, more in OF_THE_RECIPE.items() for name in more),
]
MENDS = {
    "threshold": "write null for `threshold` there, and learn the rule again with `calibrant threshold`",
    "calibrator": "write null for `calibrator` there, and fit it again with `calibrant calibrate`",
}


def paths(value, before=()):
    """Of every field, lists included."""
    if before in FREE:
        return
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in entries:
        yield (*before, key)
        if isinstance(part, dict | list):
            yield from paths(part, (*before, key))


def at(whole, path):
    """The part that holds the last of the path."""
    for key in path[:-1]:
        whole = whole[key]
    return whole


def told(folder, whole, path):
    """What is said of a record that is damaged there, without the name of the file; checked to be one
    sentence that says how to mend it."""
    message = refusal(record.read, write(folder, whole))
    begin = f"{folder}/calibrant.json is damaged ("
    end = f"); {MENDS.get(path[0], 'restore it or train again')}."
    assert message.startswith(begin)
    assert message.endswith(end)
    assert "\n" not in message
    return message.removeprefix(begin).removesuffix(end)


def test_the_whole_one_is_read(tmp_path):
    record.read(write(tmp_path, WHOLE)).write(tmp_path)
    expected = copy.deepcopy(WHOLE)
    expected["threshold"]["rule"]["thresholds"] = None  # rules had no classes of their own
    expected["training"]["share"] = None  # an epoch was kept
    assert written(tmp_path) == expected


@pytest.mark.parametrize("path", [p for p in paths(WHOLE) if p != ("format",)], ids=str)
def test_a_field_that_is_something_else(tmp_path, path):
    damaged = copy.deepcopy(WHOLE)
    at(damaged, path)[path[-1]] = [{"something": ["else"]}] if path[-1] != "labels" else 5
    where = ".".join(map(str, path))
    assert told(tmp_path, damaged, path).startswith(where)


REQUIRED = {
    path
    for path in paths(WHOLE)
    if path not in OPTIONAL
    and path[0] not in ("versions", "members", "scores", "files", "labels", "config")
    and path[:2] != ("training", "history")
} | {("training", "history"), ("files",), ("labels",), ("config",)}


@pytest.mark.parametrize("path", sorted(REQUIRED), ids=str)
def test_a_field_that_is_missing(tmp_path, path):
    damaged = copy.deepcopy(WHOLE)
    del at(damaged, path)[path[-1]]
    where = ".".join(path)
    if path == ("format",):
        expected = "'format'"
    elif path[:2] == ("threshold", "rule") and path[-1] in ("score", "cut"):
        expected = "threshold.rule: Value error, a score goes with its cut"
    else:
        expected = f"{where}: Field required"
    reported = "" if path == ("format",) else path[0]
    assert told(tmp_path, damaged, (reported,)) == expected


@pytest.mark.parametrize("path", OPTIONAL, ids=str)
def test_what_may_be_missing(tmp_path, path):
    less = copy.deepcopy(WHOLE)
    less["threshold"]["learnt_for"] = None  # what it was learnt for may be what is missing
    del at(less, path)[path[-1]]
    record.read(write(tmp_path, less))


@pytest.mark.parametrize(
    ("path", "changed", "left"),
    [
        (("files", "model.safetensors"), "beef", (False, False)),
        (("members", 0, "model.safetensors"), "beef", (False, False)),
        (("inference", "passes"), 3, (False, False)),
        (("calibrator", "parameters", "temperature"), 9.0, (True, False)),
        (("calibrator", "arrays"), "0123", (True, False)),
        (("machine",), "another", (True, True)),
    ],
    ids=str,
)
def test_what_belongs_to_another_model_or_calibrator_is_not_used(tmp_path, path, changed, left):
    """As in a run that was put together from two, or that an older version changed while this one did."""
    mixed = copy.deepcopy(WHOLE)
    at(mixed, path)[path[-1]] = changed
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = record.read(write(tmp_path, mixed))
    assert (bool(found.scores), found.threshold is not None) == left
    assert [str(each.message) for each in told] == [
        f"{tmp_path}/calibrant.json: the rule of abstention was learnt for another model or calibrator and "
        f"is not used; learn it again with `calibrant threshold {tmp_path} --risk 0.2`."
    ] * (not left[1])
    found.write(tmp_path)
    assert record.read(tmp_path) == found  # said once: the rule has gone with the next change


@pytest.mark.parametrize("path", [(), ("method",), ("calibrator",), ("threshold", "rule"), ("training",)])
def test_a_field_that_nobody_knows(tmp_path, path):
    damaged = copy.deepcopy(WHOLE)
    at(damaged, (*path, "mistyped"))["mistyped"] = 1
    where = ".".join((*path, "mistyped"))
    reported = path or ("mistyped",)
    assert told(tmp_path, damaged, reported) == f"{where}: Extra inputs are not permitted"


NUMBERS = [
    path
    for path in paths(WHOLE)
    if isinstance(at(WHOLE, path)[path[-1]], int | float) and path not in (("format",), ("config", "bf16"))
]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused(tmp_path, number):
    assert len(NUMBERS) > 20
    for path in [*NUMBERS, ("calibrator", "parameters", "temperature")]:
        damaged = copy.deepcopy(WHOLE)
        at(damaged, path)[path[-1]] = number
        assert told(tmp_path, damaged, path).startswith(".".join(map(str, path)))


def test_nan_is_not_written_either(tmp_path):
    with pytest.raises(ValidationError, match="finite number"):
        TrainingRecord(**WHOLE["training"] | {"dev_nll": math.nan})
    found = record.read(write(tmp_path, WHOLE))
    diverged = found.training.model_copy(update={"dev_nll": math.nan})  # which checks nothing
    with pytest.raises(ValueError, match="JSON"):
        found.model_copy(update={"training": diverged}).write(tmp_path)
    assert record.read(tmp_path) == found


@pytest.mark.parametrize("key", ["objective", "inference"])
@pytest.mark.parametrize("settings", [{}, {"steps": 1}, {"name": None}])
def test_settings_of_nothing(tmp_path, key, settings):
    assert told(tmp_path, WHOLE | {key: settings}, (key,)) == f"{key}: Value error, it has no name"


@pytest.mark.parametrize("score", [None, "knn"])
def test_a_score_goes_with_its_cut(tmp_path, score):
    """Without it the rule would answer unfamiliar text, which it was learnt to turn away."""
    damaged = copy.deepcopy(WHOLE)
    damaged["threshold"]["rule"] = {"threshold": 0.5, "score": score, "cut": None if score else 1.0}
    assert told(tmp_path, damaged, ("threshold",)) == "threshold.rule: Value error, a score goes with its cut"


def test_impossible_settings(tmp_path):
    config = {"train": "a.csv", "epochs": -1}
    assert told(tmp_path, WHOLE | {"config": config}, ("config",)) == (
        "config.epochs: Input should be greater than or equal to 1"
    )
    assert told(tmp_path, WHOLE | {"config": {}}, ("config",)) == (
        "config: Value error, give either a training file (--train) or the name of a dataset (--dataset)"
    )


@pytest.mark.parametrize("key", ["training", "files"])
def test_a_finished_run_without_its_model(run_copy, key):
    """Without the digests of its files nobody could say whether they are the run's."""
    whole = written(run_copy)
    for less in (whole | {key: None}, {name: part for name, part in whole.items() if name != key}):
        write(run_copy, less)
        assert refusal(store.load, run_copy) == (
            f"{run_copy}/calibrant.json is damaged ({key}: Field required); restore it or train again."
        )
        record.read(write(run_copy, less | {"status": "training"}))


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "5", '"x"', "null", "{}"),
        *('{"format": 1}', '{"format": 1, "config": {}}', '{"format": 1, "method": "bert"}', '{"format": 2}'),
    ],
)
def test_what_is_no_record_at_all(run_copy, content):
    (run_copy / "calibrant.json").write_text(content)
    message = refusal(store.load, run_copy)
    assert message.startswith(f"{run_copy}/calibrant.json is damaged (")
    assert message.endswith("); restore it or train again.")
    assert "\n" not in message


def test_one_that_is_not_utf8(tmp_path):
    (tmp_path / "calibrant.json").write_bytes(b'{"format": "\xe9"}')
    assert "calibrant.json is damaged (" in refusal(record.read, tmp_path)


def test_a_damaged_rule_or_calibrator_is_mended_as_the_sentence_says(run_copy):
    for key in MENDS:
        whole = written(run_copy)
        write(run_copy, whole | {key: {"nonsense": 1}})
        assert "write null for" in refusal(store.load, run_copy)
        write(run_copy, whole | {key: None})
        store.load(run_copy)


# a calibrator that keeps arrays


@dataclass(frozen=True, eq=False)
class ClassMeans(Calibrator):
    """Answers by the nearest mean of the dev texts' logits, class by class; the mean is an array."""

    name: ClassVar[str] = "class-means"
    citation: ClassVar[str] = "nobody"

    sharpness: float = 2.0
    means: np.ndarray | None = None  # (K, K)

    def _fit(self, outputs, y, train):
        classes = range(outputs.logits.shape[1])
        columns = np.stack([outputs.logits[y == k].mean(axis=0) for k in classes], axis=1)
        return replace(self, means=columns.T)  # on purpose not in C order

    def _probabilities(self, outputs):
        distances = ((outputs.logits[:, None] - self.means) ** 2).sum(axis=-1)
        p = np.exp(-self.sharpness * (distances - distances.min(axis=1, keepdims=True)))
        return p / p.sum(axis=1, keepdims=True)


@pytest.fixture
def fitted(monkeypatch):
    known = {**calibrators(), ClassMeans.name: ClassMeans}
    monkeypatch.setattr("calibrant.calibrators.calibrators", lambda: known)
    z = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat(np.eye(3), 20, axis=0)
    found = ClassMeans().fit(Outputs(z), np.repeat(np.arange(3), 20))
    assert not found.means.flags.c_contiguous
    return found


def test_arrays_of_a_calibrator_come_back(run_copy, fitted):
    before = load(run_copy).outputs(TEXTS)
    run = store.load(run_copy).calibrated(fitted, Provenance(**DEV))
    for again in (run.calibrator(), store.load(run_copy).calibrator()):
        assert isinstance(again, ClassMeans)
        assert again.sharpness == 2.0
        assert again.means.dtype == np.float64
        np.testing.assert_array_equal(again.means, fitted.means)
    np.testing.assert_array_equal(load(run_copy).predict_proba(TEXTS), fitted.probabilities(before))
    kept = store.load(run_copy).record.calibrator
    assert (kept.name, kept.parameters, kept.fitted_on) == (
        "class-means",
        {"sharpness": 2.0},
        Provenance(**DEV),
    )
    (file,) = run_copy.glob("*.safetensors")
    assert file.name == f"calibrator-{kept.arrays[:16]}.safetensors"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == kept.arrays
    assert "Calibrator: `class-means`, fitted on 120 texts" in (run_copy / "README.md").read_text()
    assert kept.by_heart(Provenance(**DEV)) is not None


def test_arrays_of_an_earlier_calibrator_go(run_copy, fitted):
    store.load(run_copy).calibrated(fitted, Provenance(**DEV))
    (first,) = run_copy.glob("calibrator-*")
    store.load(run_copy).calibrated(replace(fitted, means=fitted.means + 1), Provenance(**DEV))
    (second,) = run_copy.glob("calibrator-*")
    assert first != second
    run = store.load(run_copy).calibrated(Temperature(2.0), Provenance(**DEV))
    assert run.record.calibrator.arrays is None
    assert not list(run_copy.glob("calibrator-*"))
    store.load(run_copy).calibrated(fitted, Provenance(**DEV))
    store.load(run_copy).calibrated(None, None)
    assert not list(run_copy.glob("calibrator-*"))
    assert load(run_copy).calibrator is None


@pytest.mark.parametrize("damage", ["missing", "empty", "shorter", "another"])
def test_a_missing_or_damaged_array_file(run_copy, fitted, damage):
    run = store.load(run_copy).calibrated(fitted, Provenance(**DEV))
    (file,) = run_copy.glob("calibrator-*")
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes({"empty": b"", "shorter": content[:-8], "another": content[:-1] + b"!"}[damage])
    for ask in (run.calibrator, store.load(run_copy).calibrator, lambda: load(run_copy)):
        assert refusal(ask) == (
            f"{file} is missing or not the file that was saved with the run; restore it, or fit the "
            f"calibrator again with `calibrant calibrate {run_copy} --calibrator class-means`."
        )
    store.load(run_copy).calibrated(fitted, Provenance(**DEV))
    assert file.read_bytes() == content


def test_a_record_that_lost_the_digest_of_its_arrays(run_copy, fitted):
    store.load(run_copy).calibrated(fitted, Provenance(**DEV))
    whole = written(run_copy)
    whole["calibrator"]["arrays"] = None
    write(run_copy, whole)
    assert refusal(lambda: load(run_copy).predict_proba(TEXTS)) == (
        "The calibrator 'class-means' has not been fitted; call fit(outputs, labels) with those of the dev "
        "texts first."
    )
