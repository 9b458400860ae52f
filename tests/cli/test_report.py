import json
import shutil

import pytest

from support.tiny import UNFAMILIAR, corpus


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
    assert "Confidence of b, mean of each kind of text: right" in page
    assert "test: 30 texts, file test.csv" in page
    assert "<summary>Least sure right answers of a</summary>" in page
    assert "ood: 8 texts, file other.csv" in page
    assert '<tr class="differs"><th scope="row">calibrator</th><td>none</td><td>temperature' in page

    code, out, _ = command("report", "a", "b", "--test", "test.csv", "--out", "page.html")
    assert code == 0
    assert f"{100 * numbers['a']['accuracy']:.1f} %" in out
    assert out.endswith("Report: page.html\n")
    verdicts = (here / "page.html").read_text(encoding="utf-8").split('<h2 id="verdict">')[1]
    for run in ("a", "b"):  # the same on the terminal and on the page
        said, next_command = out.split(f"\n{run}\n")[1].split("Next: ", maxsplit=1)
        next_command = next_command.splitlines()[0]
        assert next_command.startswith("calibrant ")
        assert next_command.split()[2] == run
        assert next_command in verdicts
        assert all(sentence in verdicts for sentence in said.splitlines())


def test_figures_as_files(command, here):
    code, _, err = command(
        "report", "a", "--test", "test.csv", "--out", "page.html", "--figures", "new/figures"
    )
    assert code == 0, err
    assert sorted(path.name for path in (here / "new" / "figures").iterdir()) == [
        f"{name}.{kind}"
        for name in ("confidence", "f1", "reliability", "risk-coverage")
        for kind in ("png", "svg")
    ]
    assert "<h1>calibrant: a</h1>" in (here / "page.html").read_text(encoding="utf-8")


def test_each_rule_is_named_and_its_numbers_are_in_the_table(command, here):
    options = ("--test", "test.csv", "--out", "page.html", "--json")
    command("report", "a", "b", *options)
    assert "By its rule of abstention" not in (here / "page.html").read_text(encoding="utf-8")
    for run, risk in (("a", 0.3), ("b", 0.2)):
        code, _, err = command("threshold", run, "--dev", "dev.csv", "--risk", risk)
        assert code == 0, err
    numbers = json.loads(command("report", "a", "b", *options)[1])
    page = (here / "page.html").read_text(encoding="utf-8")
    for run, risk in (("a", "30.00%"), ("b", "20.00%")):
        assert f"<li>{run}: It answers where its confidence is at least " in page
        assert f"Promised: of the texts it answers at most {risk} are wrong" in page
        assert f"<li>{run}: On the test texts it answers {numbers[run]['abstention']['coverage']:.1%}" in page
    rows = {row.split("<")[0].strip(): row for row in page.split('<th scope="row">')[1:]}
    for title, key in (("answered", "coverage"), ("wrong among the answered", "risk")):
        shown = [f"{100 * numbers[run]['abstention'][key]:.1f}" for run in ("a", "b")]
        assert all(value in rows[title] for value in shown)
    assert "By its rule of abstention" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "./a", "--out", "page.html"), "a is named twice; name each run once."),
        (("a", "c", "--out", "page.html"), "c is not a run: it has no calibrant.json."),
        (("a", "b", "--out", "page.html"), "--test is missing: name a labelled file"),
        (("a", "--out", "b"), "The report is one file, but b is a directory; give a name ending in .html."),
        (
            ("a", "--out", "page.html", "--figures", "test.csv"),
            "test.csv is not a folder; name another place for the figures.",
        ),
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
