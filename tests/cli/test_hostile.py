"""What comes from elsewhere is data: code in a run never runs, and names are shown, not obeyed."""

import json
import random

import pytest

import calibrant
from calibrant.config import RunConfig
from support.hostile import LABELS, bless, plant_code
from support.made_runs import make_run
from support.tiny import corpus, tiny_bert, tiny_tokenizer

CODE = "cannot be loaded as a text classifier (it comes with code of its own, which is not run)."


@pytest.fixture
def asked(monkeypatch):
    """Answers yes to whatever is asked on standard input, and tells that it was."""
    questions = []
    monkeypatch.setattr("builtins.input", lambda question="": questions.append(question) or "yes")
    return questions


def test_code_in_a_run_is_refused_by_its_name(tmp_path, command, asked):
    run = make_run(tmp_path / "run")
    plant_code(run / "model", tmp_path / "mark")
    bless(run, without=("evil.py",))
    code, out, err = command("predict", run, "--text", "my card")
    assert (code, out) == (2, "")
    assert err.endswith(f"calibrant: {run}/model/evil.py was not saved with the run; remove it.\n")
    bless(run)
    code, out, err = command("predict", run, "--text", "my card")
    assert (code, out) == (2, "")
    assert err == (
        f"calibrant: {run}/model/evil.py: a model is kept as .json, .safetensors, .txt, .model, .spm, "
        ".codes, .jinja; others may be code. Train again, or get the run from somebody whom you trust.\n"
    )
    assert not asked
    assert not (tmp_path / "mark").exists()


def test_a_run_never_asks_and_never_runs_code_from_elsewhere(tmp_path, command, asked, pipe):
    """The config of a run may name code of another folder, which the record cannot know."""
    run = make_run(tmp_path / "run")
    plant_code(run / "model", tmp_path / "mark")
    (run / "model" / "evil.py").rename(tmp_path / "evil.py")
    bless(run)
    pipe(b"my card\nyes\n")
    code, out, err = command("predict", run, "-")
    assert (code, out, err) == (2, "", f"calibrant: The model '{run}/model' {CODE}\n")
    assert not asked
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("verb", ["audit", "train"])
def test_code_beside_a_model_never_runs(tmp_path, command, asked, csv_file, verb):
    folder = tmp_path / "model"
    tiny_bert().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    plant_code(folder, tmp_path / "mark")
    data = csv_file("data.csv", corpus(60))
    options = ("--test", data) if verb == "audit" else ("--train", data, "--out", tmp_path / "run")
    code, out, err = command(verb, "--model", folder, *options)
    assert (code, out, err) == (2, "", f"calibrant: The model '{folder}' {CODE}\n")
    assert not asked
    assert not (tmp_path / "mark").exists()


def test_a_kernel_of_the_hub_is_code_too(tmp_path, command):
    run = make_run(tmp_path / "run")
    config = json.loads((run / "model" / "config.json").read_text())
    (run / "model" / "config.json").write_text(json.dumps(config | {"attn_implementation": "evil/kernel"}))
    bless(run)
    code, _, err = command("predict", run, "--text", "my card")
    assert code == 2
    assert "asks for the code 'evil/kernel' of the hub, and no code of a model is run" in err


def test_pickled_weights_are_not_opened(tmp_path, command, csv_file):
    import torch

    folder = tmp_path / "model"
    tiny_bert().save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(tiny_bert().state_dict(), folder / "pytorch_model.bin")
    code, _, err = command("audit", "--model", folder, "--test", csv_file("data.csv", corpus(30)))
    assert (code, err) == (
        2,
        f"calibrant: The model '{folder}' cannot be loaded as a text classifier (its weights are pickles, "
        "which can hold code; save them again as safetensors).\n",
    )


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_model_that_cannot_be_loaded_is_one_sentence(tmp_path, command, name):
    run = make_run(tmp_path / "run")
    (run / "model" / name).write_bytes(b"{}")
    bless(run)
    code, out, err = command("predict", run, "--text", "my card")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(run / "model") in err


def test_labels_of_the_record_are_those_of_the_model(tmp_path, command):
    run = make_run(tmp_path / "run")
    record = json.loads((run / "calibrant.json").read_text())
    record["labels"] = record["labels"][::-1]
    (run / "calibrant.json").write_text(json.dumps(record))
    code, _, err = command("predict", run, "--text", "my card")
    assert (code, err) == (
        2,
        f"calibrant: {run}/model/config.json has other labels (id2label) than the run's record; restore "
        "both, or train again.\n",
    )


def test_nan_never_reaches_json(tmp_path, command):
    from safetensors.numpy import load_file, save_file

    run = make_run(tmp_path / "run", calibrator=None)
    path = run / "model" / "model.safetensors"
    weights = load_file(path)
    weights["classifier.weight"][:] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    bless(run)
    code, out, err = command("predict", run, "--text", "my card")
    assert (code, out) == (2, "")
    assert err.lstrip() == (
        "calibrant: The model answers with NaN or infinity: its weights or its calibrator are damaged; "
        "restore them, or train again.\n"
    )


@pytest.fixture(scope="module")
def named_by_an_enemy(tmp_path_factory):
    """A run whose labels and whose training file's name are made to be obeyed."""
    import csv

    folder = tmp_path_factory.mktemp("enemy")
    rng = random.Random(0)
    words = ["card", "price", "parcel", "box", "login"]
    rows = [(f"{words[i]} {rng.choice(words)} {n}", LABELS[i]) for n in range(30) for i in range(5)]
    path = folder / "tickets`\n# Forged\n\x1b[31m<b>.csv"
    for file in (path, folder / "test.csv"):
        with open(file, "w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows([("text", "label"), *rows])
    config = RunConfig(train=str(path), model="textcnn", method="bert", calibrator="temperature", epochs=1)
    return calibrant.train(config, out=folder / "run").path, path


OBEYED = ("\x1b", "\x9b", "\x07", "\u202e")


@pytest.mark.filterwarnings("always")  # they are printed, too
def test_labels_and_file_names_are_shown_and_not_obeyed(named_by_an_enemy, command, tmp_path):
    run, file = named_by_an_enemy
    card = (run / "README.md").read_text()
    assert [line for line in card.splitlines() if line.startswith("#")] == [
        "# A text classifier of 5 classes, trained with calibrant",
        "## Data",
        "## Calibration",
        "## Classes",
    ]
    assert "``a`b``, `billing\\n\\n# Forged`" in card
    page = tmp_path / "page.html"
    printed = [
        command("predict", run, "--text", "a card"),
        command("evaluate", run, "--test", file, "--report", page),
        command("evaluate", run, "--test", file, "--json"),
        command("threshold", run, "--dev", file, "--risk", "0.9"),
        command(
            "train",
            "--train",
            file,
            "--model",
            "textcnn",
            "--method",
            "bert",
            "--epochs",
            1,
            "--out",
            tmp_path / "r",
        ),
        command("evaluate", run, "--test", f"{file}.gone"),
    ]
    shown = page.read_text()
    assert shown.count("<script") == 1  # the page's own
    assert "<b>.csv" not in shown
    for text in (card, shown, *(part for _, out, err in printed for part in (out, err))):
        assert not [mark for mark in OBEYED if mark in text]
    for _, out, err in printed:
        assert not [line for line in (out + err).splitlines() if line.startswith("# Forged")]
    (answer,) = printed[0][1].splitlines()
    assert set(json.loads(answer)["probabilities"]) == {label.strip() for label in LABELS}  # nothing is lost
