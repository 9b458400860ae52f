"""``calibrant study figure``; what it draws is tested in tests/study/figures."""

import re

import pytest
import typer
from typer.testing import CliRunner

from calibrant.cli.study_figure import Format, figure
from calibrant.errors import UserError
from calibrant.pages.plots import FORMATS


@pytest.fixture
def run():
    app = typer.Typer(rich_markup_mode=None)
    app.command("figure")(figure)
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))


def test_files_on_standard_output_and_what_is_missing_on_the_other(make, run):
    make()
    make("banking77", model="textcnn")
    done = run(make.path, "--what", "curves")
    assert done.exit_code == 0
    assert done.stdout == f"{make.path}/figures/curves-20ng-15.svg\n"
    assert (
        f"calibrant: curves is not drawn: {make.path} has no cells of any method on banking77" in done.stderr
    )
    assert (make.path / "figures" / "curves-20ng-15.txt").read_text().startswith("Calibration curves")


def test_options(make, run, tmp_path):
    for dataset in ("20ng", "banking77", "yahoo"):
        make(dataset)
    options = ("--dataset", "yahoo", "--dataset", "20ng", "--out", tmp_path / "here", "--format", "png")
    done = run(make.path, "--what", "curves", *options)
    assert [line.rpartition("/")[2] for line in done.stdout.splitlines()] == [
        "curves-yahoo.png",
        "curves-20ng.png",
    ]
    assert {path.name for path in (tmp_path / "here").iterdir()} == {
        *("curves-yahoo.png", "curves-yahoo.txt", "curves-20ng.png", "curves-20ng.txt")
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere",), r"No study in 'nowhere'; begin one with `calibrant study run --out nowhere`\."),
        (("nowhere", "--what", "curve"), r"Unknown figure 'curve'; did you mean 'curves'"),
    ],
)
def test_mistakes(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert isinstance(done.exception, UserError)
    assert re.match(message, str(done.exception))


def test_the_formats_are_those_that_can_be_written():
    assert [format.value for format in Format] == list(FORMATS)


def test_help_shows_an_example_and_names_figures_that_exist(run):
    from calibrant.study.figures import figures

    text = " ".join(run("--help").stdout.split())
    assert "Example: calibrant study figure runs/study-laptop --what curves --dataset 20ng-15" in text
    named = re.search(r"One of (.*?) or all;", text)[1].split(", ")
    assert set(named) <= set(figures())
