"""``calibrant study table`` and ``significance``, as functions of a command line of their own."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from calibrant.cli.study_significance import significance
from calibrant.cli.study_table import Format, What, table
from calibrant.errors import UserError
from calibrant.study.cells import Confidences
from calibrant.study.render import FORMATS
from calibrant.study.tables import TABLES
from support.handmade_cells import series

app = typer.Typer()
app.command("table")(table)
app.command("significance")(significance)


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return run


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    cells = series("bert", [0.2, 0.21, 0.22]) + series("manifold-smoothing", [0.1, 0.12, 0.11])
    cells += series("vat", [0.3], dataset="20ng") + series("manifold-smoothing", [0.3], dataset="20ng")
    for cell in cells:
        said = Confidences(np.array([0.5]), np.array([True]), np.array([]), np.array([0.7]))
        cell.write(folder, {cell.calibrator: said})
    return folder


def test_choices_are_what_there_is():
    assert [what.value for what in What] == [*TABLES, "all"]
    assert [form.value for form in Format] == list(FORMATS)


def test_a_table_is_printed(run, study):
    code, out = run("table", study, "--what", "ece")
    assert code == 0
    assert "| manifold-smoothing | **11.00 ± 1.00 (3)** [3.69] | 30.00 (1) [4.43] |" in out
    assert out.count("## ") == 2


def test_all_tables(run, study):
    code, out = run("table", study)
    assert (code, out.count("## ")) == (0, 2 + 6 + 2 + 1 + 2)


@pytest.mark.parametrize(("form", "begins"), [("latex", r"\begin{table*}"), ("html", "<!doctype html>")])
def test_tables_are_written(run, study, tmp_path, form, begins):
    file = tmp_path / "new folder" / "out.txt"
    assert run("table", study, "--what", "more", "--format", form, "--out", file) == (
        0,
        f"2 tables of 8 cells: {file}\n",
    )
    assert file.read_text(encoding="utf-8").startswith(begins)


def test_numbers_as_json(run, study):
    code, out = run("table", study, "--what", "ece", "--json")
    errors, _ = json.loads(out)
    assert code == 0
    assert errors["name"] == "ece"
    assert errors["rows"][-1]["title"] == "manifold-smoothing"
    first = errors["rows"][-1]["entries"][0]
    assert first["mean"] == pytest.approx(0.11)
    assert (first["seeds"], first["published"], first["best"]) == (3, 0.0369, True)


def test_significance_is_printed(run, study):
    code, out = run("significance", study)
    assert code == 0
    assert "ece of manifold-smoothing on 20ng\n" in out
    (line,) = [line for line in out.splitlines() if line.startswith(" bert")]
    assert line.split() == ["bert", "3", "-0.1000", "+1.00", "0.25", "0.25", "out", "of", "reach"]
    assert "20ng-15: 3 seeds cannot show a difference at level 0.05 in 1 comparisons" in out


def test_a_star_where_the_level_is_reached(run, study):
    code, out = run("significance", study, "--level", "0.3", "--dataset", "20ng-15")
    assert code == 0
    assert "better *" in out
    assert "20ng\n" not in out


def test_significance_as_json(run, study):
    code, out = run("significance", study, "--dataset", "20ng-15", "--metric", "nll", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["metric"], found["method"], found["level"]) == ("nll", "manifold-smoothing", 0.05)
    (only,) = found["comparisons"]
    assert (only["other"], only["zeros"], only["p"], only["verdict"]) == ("bert", 3, 1.0, "out of reach")
    assert any("3 differences are exactly 0" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("table", "nowhere"), "No study in 'nowhere'; begin one with"),
        (("significance", "nowhere"), "No study in 'nowhere'; begin one with"),
    ],
)
def test_no_study(run, arguments, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=sentence):
        run(*arguments)


def test_a_folder_is_not_a_file(run, study, tmp_path):
    with pytest.raises(
        UserError, match=r"--out .* is a folder; all tables go into one file, so name one in it"
    ):
        run("table", study, "--out", tmp_path)


def test_a_dataset_that_was_not_measured(run, study):
    with pytest.raises(UserError, match=r"Unknown dataset of the study '20gn'; did you mean '20ng'\?"):
        run("significance", study, "--dataset", "20gn")


@pytest.mark.parametrize("name", ["table", "significance"])
def test_help_shows_an_example(run, name):
    code, out = run(name, "--help")
    assert code == 0
    assert f"Example:  calibrant study {name} runs/study-laptop" in " ".join(out.split("\n")).replace(
        "  │", ""
    )


def test_every_row_with_another_calibrator(run, study):
    """Cells that were not asked with it are left out; a wrong name lists what there is."""
    code, out = run("table", study, "--what", "ece", "--calibrator", "none", "--json")
    assert (code, out) == (0, run("table", study, "--what", "ece", "--json")[1])
    code, out = run("table", study, "--what", "ece", "--calibrator", "temperature", "--json")
    assert code == 0
    assert not any(entry["mean"] for row in json.loads(out)[0]["rows"] for entry in row["entries"])
    with pytest.raises(UserError, match="Unknown calibrator 'temprature'; did you mean 'temperature'"):
        run("table", study, "--calibrator", "temprature")
