import json
import shutil

import pytest

from conftest import UNFAMILIAR, corpus


@pytest.fixture
def here(tmp_path, trained, csv_file, monkeypatch):
    """Two runs, a test file and unfamiliar text."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        shutil.copytree(trained, tmp_path / name)
    csv_file("dev.csv", corpus(120, seed=21))
    csv_file("test.csv", corpus(30, seed=1))
    csv_file("other.csv", [(word,) for word in UNFAMILIAR], header=("text",))
    return tmp_path


def test_two_runs_on_one_page(command, here):
    assert command("calibrate", "b", "--dev", "dev.csv", "--calibrator", "temperature")[0] == 0
    options = ("--test", "test.csv", "--ood", "other.csv")
    code, out, _ = command("report", "a", "b/", *options, "--out", "new/page.html", "--json")
    assert code == 0
    numbers = json.loads(out)
    assert list(numbers) == ["a", "b"]
    assert numbers["a"]["nll"] != numbers["b"]["nll"]
    for run in numbers:  # what evaluate says of each
        assert json.loads(command("evaluate", run, *options, "--json")[1]) == numbers[run]
    page = (here / "new" / "page.html").read_text(encoding="utf-8")
    assert "Reliability diagram of a on 30 familiar texts" in page
    assert "Histogram of the confidence of b on 8 unfamiliar texts" in page
    assert "test: 30 texts, file test.csv" in page

    code, out, _ = command("report", "a", "b", "--test", "test.csv", "--out", "page.html")
    assert code == 0
    assert f"{100 * numbers['a']['accuracy']:.1f} %" in out
    assert out.endswith("Report: page.html\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "./a", "--out", "page.html"), "a is named twice; name each run once."),
        (("a", "c", "--out", "page.html"), "c is not a run: it has no calibrant.json."),
        (("a", "b", "--out", "page.html"), "--test is missing: name a labelled file"),
        (("a", "--out", "b"), "The report is one file, but b is a directory; give a name ending in .html."),
    ],
)
def test_mistakes(command, here, arguments, message):
    code, out, err = command("report", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"calibrant: {message}")
    assert not (here / "page.html").exists()
    assert not (here / "a" / "metrics.json").exists()  # found before any work


def test_runs_with_test_texts_of_their_own_do_not_compare(command, here, csv_file, model_dir, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(here))
    for dataset in ("reuters-r8", "reuters-r52"):
        (here / dataset).mkdir()
        for split, n in (("train", 10), ("test", 2)):
            rows = [
                (f"{dataset} {split} {label} {i}", label) for i in range(n) for label in ("earn", "grain")
            ]
            csv_file(f"{dataset}/{split}.csv", rows)
        options = ("--model", model_dir, "--epochs", 1, "--method", "bert", "--out", f"on-{dataset}")
        assert command("train", "--dataset", dataset, *options)[0] == 0
    code, out, err = command("report", "on-reuters-r8", "on-reuters-r52", "--out", "page.html")
    assert (code, out) == (2, "")
    assert (
        "calibrant: on-reuters-r8 and on-reuters-r52 have test texts of their own, so their numbers do not "
        "compare; name the same texts for all with --test and --ood."
    ) in err
    assert (
        command("report", "on-reuters-r8", "on-reuters-r52", "--test", "reuters-r8", "--out", "p.html")[0]
        == 0
    )
