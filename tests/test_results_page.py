"""``make results``: the tables of docs/results.md, from whatever has been measured."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "make_results.py"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Runs the script on a study; gives the page and the tables."""
    spec = spec_from_file_location("make_results", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    page = tmp_path / "results.md"
    page.write_text(f"# Results\n\n{module.BEGIN}\nold\n{module.END}\n\nThe end.\n")
    monkeypatch.setattr(module, "PEERS", tmp_path / "peers")

    def run(study):
        monkeypatch.setattr("sys.argv", ["make_results.py", str(study), "--draws", "20", "--page", str(page)])
        module.main()
        tables = study / "tables.md"
        return page.read_text(), tables.read_text() if tables.exists() else ""

    return run


def test_before_anything_is_run(written, tmp_path):
    page, tables = written(tmp_path / "nothing")
    assert page.startswith("# Results\n")
    assert page.endswith("\n\nThe end.\n")
    assert "old" not in page
    assert "Not run yet: 20ng-15 (all); 20ng (all); yahoo-8 (all); yahoo (all); banking77 (all)." in page
    assert tables == ""


def test_what_is_there_is_shown_with_its_interval(written, make):
    for method in ("bert", "vat", "manifold-smoothing", "calibrant", "constant"):
        make(method=method)
    make(seed=1)
    make(method="manifold-smoothing", delta_off=0.1)
    page, tables = written(make.path)
    again, _ = written(make.path)
    assert again == page
    lines = page.splitlines()
    (paper,) = [line for line in lines if line.startswith("| 20NG₁₅, ECE |")]
    assert paper.split(" | ")[1] == "3.69"
    assert "| 20NG, ECE | 4.43 | not run | not run |" in lines
    (plain,) = [line for line in lines if line.startswith("| bert (2) |")]
    assert plain.count("±") == 4  # those with a calibrator were not asked
    assert plain.count("–") == 6
    assert any(line.startswith("| delta_off=0.1 |") for line in lines)
    assert any(line.startswith("| manifold-smoothing, 20ng-15, ECE |") for line in lines)
    assert "20ng (all)" in page
    assert "20ng-15 (temperature-scaling, mc-dropout, " in page
    assert "| manifold-smoothing,delta_off=0.1 (1) |" in tables
