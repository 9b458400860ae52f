"""``calibrant calibrate``, and what obeys it afterwards."""

import json
import shutil

import numpy as np
import pytest

import calibrant
from calibrant.calibrators import calibrators
from support.sentences import one_sentence
from support.tiny import corpus

FAST = ("--max-length", 32, "--epochs", 2, "--batch-size", 16, "--learning-rate", 0.01)


@pytest.fixture
def here(tmp_path, monkeypatch, trained, csv_file):
    """The user's directory, with a run, a dev and a test file."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "run")
    csv_file("dev.csv", corpus(120, seed=21))
    csv_file("test.csv", corpus(80, seed=22))
    return tmp_path


def evaluated(command):
    code, out, err = command("evaluate", "run", "--test", "test.csv", "--json")
    assert code == 0, err
    return json.loads(out)


def record():
    with open("run/calibrant.json", encoding="utf-8") as file:
        return json.load(file)


def test_calibrate_then_evaluate_predict_and_take_it_back(command, here):
    before = evaluated(command)
    plain = command("predict", "run", "test.csv")[1]
    code, out, _ = command("calibrate", "run", "--dev", "dev.csv", "--calibrator", "temperature", "--json")
    result = json.loads(out)
    assert code == 0
    assert set(result) == {"run", "calibrator", "dev", "before", "after", "removed_rule"}
    assert (result["run"], result["calibrator"]) == ("run", "temperature")
    assert (result["dev"]["n"], result["dev"]["source"]) == (120, "file dev.csv")
    assert result["after"]["nll"] < result["before"]["nll"]
    assert result["after"]["accuracy"] == result["before"]["accuracy"]
    assert not (here / "run" / "metrics.json").exists()  # it told of the run without a calibrator
    card = (here / "run" / "README.md").read_text()
    assert "Calibrator: `temperature`, fitted on 120 texts (`file dev.csv`)." in card
    assert "Not measured yet" in card

    after = evaluated(command)
    assert after["ece"] != before["ece"]
    assert after["mean_confidence_test"] != before["mean_confidence_test"]
    assert after["accuracy"] == before["accuracy"]

    temperature = record()["calibrator"]["parameters"]["temperature"]
    assert temperature != pytest.approx(1, rel=0.01)
    scaled = command("predict", "run", "test.csv")[1]
    for line, calibrated_line in zip(plain.splitlines(), scaled.splitlines(), strict=True):
        p, q = (list(json.loads(row)["probabilities"].values()) for row in (line, calibrated_line))
        expected = np.array(p) ** (1 / temperature)
        np.testing.assert_allclose(q, expected / expected.sum(), atol=1e-6)
    texts = [text for text, _ in corpus(80, seed=22)]
    np.testing.assert_allclose(
        calibrant.load("run").predict_proba(texts),
        [list(json.loads(row)["probabilities"].values()) for row in scaled.splitlines()],
    )

    code, out, _ = command("calibrate", "run", "--calibrator", "none")
    assert (code, out) == (0, "run: no calibrator.\n")
    assert record()["calibrator"] is None
    assert evaluated(command) == before
    assert command("predict", "run", "test.csv")[1] == plain
    code, out, _ = command("calibrate", "run", "--calibrator", "none", "--json")
    assert (code, json.loads(out)) == (0, {"run": "run", "calibrator": None, "removed_rule": None})


@pytest.mark.parametrize("name", calibrators())
def test_every_calibrator_from_the_command_line(command, here, name):
    code, out, err = command("calibrate", "run", "--dev", "dev.csv", "--calibrator", name)
    assert code == 0, err
    first, second, third = out.splitlines()
    assert first.startswith(f"run: {name}")
    assert first.endswith("fitted on 120 texts, file dev.csv")
    assert second.startswith("there: NLL ")
    assert third == "Next, on other texts: calibrant evaluate run --test test.csv"
    assert record()["calibrator"]["name"] == name
    numbers = evaluated(command)
    assert 0 <= numbers["ece"] <= 1


def test_the_runs_own_dev_texts(command, here):
    code, out, _ = command("calibrate", "run", "--calibrator", "isotonic", "--json")
    assert code == 0
    assert json.loads(out)["dev"] == record()["data"]["dev"]
    assert record()["calibrator"]["fitted_on"] == record()["data"]["dev"]


def test_a_second_calibrator_replaces_the_first(command, here):
    once = json.loads(command("calibrate", "run", "--dev", "dev.csv", "--json")[1])
    state = record()["calibrator"]
    command("calibrate", "run", "--dev", "dev.csv", "--calibrator", "isotonic")
    assert json.loads(command("calibrate", "run", "--dev", "dev.csv", "--json")[1]) == once
    assert record()["calibrator"] == state


def test_other_columns(command, here, csv_file):
    csv_file("own.csv", corpus(120, seed=21), ("body", "queue"))
    columns = ("--text-column", "body", "--label-column", "queue")
    code, out, _ = command("calibrate", "run", "--dev", "own.csv", *columns, "--json")
    assert code == 0
    same = json.loads(command("calibrate", "run", "--dev", "dev.csv", "--json")[1])
    assert json.loads(out)["after"] == same["after"]


def test_the_report_names_what_the_run_is_now(command, here):
    command("calibrate", "run", "--dev", "dev.csv")
    assert command("evaluate", "run", "--test", "test.csv", "--report", "page.html")[0] == 0
    assert "manifold-smoothing + temperature" in (here / "page.html").read_text(encoding="utf-8")


def test_the_same_training_command_keeps_a_calibrated_run(command, here, csv_file, model_dir):
    csv_file("train.csv", corpus(100))
    options = ("train", "--train", "train.csv", "--model", model_dir, "--method", "bert", *FAST)
    assert command(*options, "--out", "own")[0] == 0
    assert command("calibrate", "own", "--dev", "dev.csv")[0] == 0
    assert command(*options, "--out", "own")[0] == 0
    with open("own/calibrant.json", encoding="utf-8") as file:
        assert json.load(file)["calibrator"]["name"] == "temperature"


@pytest.mark.filterwarnings("default")
def test_warnings_are_told_in_one_line(command, here, csv_file, trained):
    csv_file(
        "wrong.csv", [("invoice refund payment card", "shipping"), ("parcel courier delivery", "billing")]
    )
    code, out, err = command("calibrate", "run", "--dev", "wrong.csv")
    assert code == 0
    assert "temperature (temperature 100)" in out
    assert "calibrant: warning: The temperature is kept at its bound 100" in " ".join(err.split())
    code, _, err = command("calibrate", "run", "--dev", trained.parent / "train.csv")
    assert code == 0
    assert "calibrant: warning: 160 texts are both in file" in " ".join(err.split())


def test_training_with_choices(command, here, csv_file, model_dir):
    csv_file("train.csv", corpus(100))
    base = ("train", "--train", "train.csv", "--model", model_dir, "--method", "bert", *FAST)
    options = ("--objective", "cross-entropy", "--inference", "mc-dropout", "--passes", 3)
    code, out, err = command(*base, *options, "--calibrator", "vector-scaling", "--out", "own", "--json")
    assert code == 0, err
    assert json.loads(out)["method"] == "cross-entropy + mc-dropout + vector-scaling"
    with open("own/calibrant.json", encoding="utf-8") as file:
        kept = json.load(file)
    assert kept["inference"] == {"name": "mc-dropout", "passes": 3, "seed": 0}
    assert kept["calibrator"]["name"] == "vector-scaling"
    assert kept["calibrator"]["fitted_on"] == kept["data"]["dev"]

    options = ("--method", "temperature-scaling", "--calibrator", "histogram-binning")
    code, out, err = command(*base, *options, "--out", "binned")
    assert code == 0, err
    assert "calibrator: histogram-binning (bins 15), fitted on 20 texts\n" in out

    code, out, err = command(*base, "--method", "deep-ensemble", "--members", 2, "--out", "two")
    assert code == 0, err
    assert (here / "two" / "members" / "2" / "model").is_dir()
    assert "two: best epoch" in out
    assert command("evaluate", "two", "--test", "test.csv", "--json")[0] == 0


def test_options_win_over_the_file(command, here, csv_file, model_dir):
    csv_file("train.csv", corpus(40))
    (here / "mine.yaml").write_text(
        "method: mixup\nobjective: {name: mixup, alpha: 0.3}\ncalibrator: isotonic\n"
    )
    base = ("train", "--train", "train.csv", "--model", model_dir, *FAST, "--config", "mine.yaml", "--json")
    for options, objective, calibrator in (
        ((), {"name": "mixup", "alpha": 0.3}, "isotonic"),
        (("--method", "label-smoothing"), {"name": "label-smoothing", "smoothing": 0.1}, None),
        (("--objective", "label-smoothing"), {"name": "label-smoothing", "smoothing": 0.1}, "isotonic"),
    ):
        out = "-".join(options) or "file"
        code, _, err = command(*base, *options, "--out", out)
        assert code == 0, err
        record = json.loads((here / out / "calibrant.json").read_text())
        assert record["objective"] == objective
        assert record["method"]["calibrator"] == calibrator


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = {
    "calibrate nowhere": "nowhere is not a run: it has no calibrant.json. Train one with …",
    "calibrate nowhere --calibrator none": "nowhere is not a run: it has no calibrant.json. Train …",
    "calibrate run --calibrator temprature": (
        "Unknown calibrator 'temprature'; did you mean 'temperature'? Known: familiarity, …"
    ),
    "calibrate run --calibrator none --dev dev.csv": (
        "--dev goes with a calibrator; to remove one, leave it out."
    ),
    "calibrate run --calibrator none --text-column x": "--text-column goes with a calibrator; to remove …",
    "calibrate run --calibrator temperature+temperature": (
        "The calibrator 'temperature+temperature' names temperature 2 times; name it once."
    ),
    "calibrate run --dev no.csv": "No file 'no.csv'; check the path.",
    "calibrate run --dev own.csv": "own.csv: no column 'text'; its columns are body, queue. Name the …",
    "calibrate run --dev nolabel.csv": "nolabel.csv, line 2: empty label in column 'label'; fill it …",
    "calibrate run --dev unseen.csv": "file unseen.csv: label 'returns' is not among the 3 labels …",
    "calibrate run --dev one.csv --calibrator matrix-scaling": (
        "Matrix scaling needs 3 dev texts or more to choose its penalty, got 1."
    ),
    "calibrate moved": (
        "--dev is missing, and the run's own dev texts cannot be had again (No file 'gone.csv'; check the "
        "path); name a labelled file with text that training has not seen."
    ),
    "calibrate broken --dev dev.csv": (
        "broken/calibrant.json is damaged (calibrator.parameters: Field required); write null for "
        "`calibrator` there, and fit it again with `calibrant calibrate`."
    ),
    "calibrate strange --dev dev.csv": "The calibrator's state is damaged (…",
    "train --train dev.csv --calibrator temprature --out new": (
        "Unknown calibrator 'temprature'; did you mean 'temperature'? Known: …"
    ),
    "train --train dev.csv --objective cross-entropi --out new": (
        "Unknown objective 'cross-entropi'; did you mean 'cross-entropy'? Known: …"
    ),
    "train --train dev.csv --inference mcdropout --out new": (
        "Unknown inference 'mcdropout'; did you mean 'mc-dropout'? Known: …"
    ),
    "train --train dev.csv --set name=vat --out new": (
        "--set name=vat: the objective is chosen by --objective vat."
    ),
    "train --train dev.csv --members 3 --out new": "The inference 'single' has no 'members'; it has none.",
    "train --train dev.csv --method deep-ensemble --members 1 --out new": (
        "`members` must be at least 2, got 1."
    ),
    "train --train dev.csv --method mc-dropout --passes 0 --out new": "`passes` must be at least 1, got 0.",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, here, csv_file, command):
    csv_file("own.csv", corpus(5), ("body", "queue"))
    csv_file("nolabel.csv", [("a card", "")])
    csv_file("unseen.csv", [("a book", "returns")])
    csv_file("one.csv", [("a card", "billing")])
    fitted_on = record()["data"]["dev"]
    strange = {"name": "temperature", "parameters": {"heat": 2}, "fitted_on": fitted_on}
    for name, changes in (
        ("moved", {"config": record()["config"] | {"train": "gone.csv"}}),
        ("broken", {"calibrator": {"name": "temperature"}}),
        ("strange", {"calibrator": strange}),
    ):
        shutil.copytree("run", name)
        (here / name / "calibrant.json").write_text(json.dumps(record() | changes))
    before = record()
    one_sentence(command(*line.split()), MISTAKES[line])
    assert record() == before


def test_a_chain_as_train_takes_it(command, here):
    code, out, err = command(
        "calibrate", "run", "--dev", "dev.csv", "--calibrator", "temperature+familiarity"
    )
    assert code == 0, err
    assert "temperature+familiarity" in out
    assert record()["calibrator"]["name"] == "temperature+familiarity"
    assert calibrant.load("run").predict(["my card"])[0].familiarity is not None
