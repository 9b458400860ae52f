"""Each notebook runs, and prints what it was committed with."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
notebooks = SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / "notebooks.py")))


def words(text):
    """Figures differ a little between machines."""
    return re.sub(r"\d+(\.\d+)?", "#", text)


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_it_prints_what_it_shows(path):
    shown = [notebooks.kept(cell) for cell in notebooks.code_cells(notebooks.read(path))]
    assert any(shown)
    assert [words(text) for text in notebooks.run(path)] == [words(text) for text in shown]


def test_there_are_three_of_them():
    assert [path.stem for path in notebooks.NOTEBOOKS] == ["audit_a_model", "own_objective", "own_tickets"]


def test_the_tickets_are_those_that_the_script_makes(tmp_path, monkeypatch):
    main = runpy.run_path(str(ROOT / "examples" / "make_tickets.py"))["main"]
    monkeypatch.setitem(main.__globals__, "FOLDER", tmp_path)
    main()
    assert len(list(tmp_path.iterdir())) == 4
    for made in tmp_path.iterdir():
        assert made.read_bytes() == (ROOT / "examples" / made.name).read_bytes()
