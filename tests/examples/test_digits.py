"""The example as a user runs it."""

import json
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COLUMNS = ("accuracy", "ece", "mean_confidence_test", "mean_confidence_ood")


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs ``python examples/digits.py …`` in this process; gives what it prints."""

    def script(*arguments):
        monkeypatch.setattr(sys, "argv", ["examples/digits.py", *arguments])
        runpy.run_path(str(ROOT / "examples" / "digits.py"), run_name="__main__")
        return capsys.readouterr().out

    return script


def numbers(result):
    for name in ("plain", "smoothed"):
        values = [result[name][column] for column in COLUMNS]
        yield from [*values, *(result[name][kind]["nbaucc_0.5"] for kind in ("misclassification", "ood"))]


@pytest.mark.slow
def test_smoothing_lowers_the_confidence_on_unseen_digits(run):
    (result,) = json.loads(run("--seeds", "3", "--epochs", "40", "--json"))["results"]
    assert all(0 <= value <= 1 for value in numbers(result))
    plain, smoothed = result["plain"], result["smoothed"]
    assert (plain["n_test"], plain["n_ood"]) == (723, 354)  # half of the images of 0 to 7, all of 8 and 9
    assert min(plain["accuracy"], smoothed["accuracy"]) > 0.9  # a guess: 0.13
    assert smoothed["mean_confidence_ood"] < plain["mean_confidence_ood"] - 0.05
    assert smoothed["ood"]["nbaucc_0.5"] > plain["ood"]["nbaucc_0.5"]
    assert result["dev_nll"][str(result["delta_y"])] == min(result["dev_nll"].values())


@pytest.mark.slow
def test_the_table_has_a_line_for_each_network(run):
    heading, *lines = run("--seeds", "0", "1", "--epochs", "1").splitlines()
    assert heading.split()[2:4] == ["accuracy", "ECE"]
    assert [line.split()[:3] for line in lines] == [
        ["seed", f"{seed},", name] for seed in (0, 1) for name in ("plain", "smoothed")
    ]


def test_help_shows_an_example(run, capsys):
    with pytest.raises(SystemExit, match="0"):
        run("--help")
    assert "Example:  python examples/digits.py --seeds 0 1 2" in capsys.readouterr().out


def test_the_committed_figures_are_those_the_readme_shows():
    folder = ROOT / "results" / "handwritten-digits"
    record = json.loads((folder / "figures.json").read_text())
    assert [result["seed"] for result in record["results"]] == [0, 1, 2]
    shown = (folder / "README.md").read_text(encoding="utf-8")
    for result in record["results"]:
        for name in ("plain", "smoothed"):
            row = next(
                line for line in shown.splitlines() if line.startswith(f"| {name}, seed {result['seed']} |")
            )
            r = result[name]
            expected = [r["accuracy"], r["ece"], r["misclassification"]["nbaucc_0.5"], r["ood"]["nbaucc_0.5"]]
            expected += [r["mean_confidence_test"], r["mean_confidence_ood"]]
            assert [cell.strip() for cell in row.split("|")[2:8]] == [
                f"{100 * value:.1f}" for value in expected
            ]
