"""Run the notebooks of this folder and keep what they print:  python examples/notebooks.py

Cells are plain Python that prints, so this needs no Jupyter.
"""

import contextlib
import io
import json
import os
from pathlib import Path

FOLDER = Path(__file__).parent
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def kept(cell: dict) -> str:
    """What a cell printed when the notebook was last run."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def run(path: Path) -> list[str]:
    """What each code cell prints, run in order in the notebook's folder, as Jupyter does."""
    names, printed, before = {"__name__": "__main__"}, [], Path.cwd()
    os.chdir(path.parent)
    try:
        for i, cell in enumerate(code_cells(read(path))):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("".join(cell["source"]), f"{path.name}, code cell {i + 1}", "exec"), names)
            printed.append(out.getvalue())
    finally:
        os.chdir(before)
    return printed


def main() -> None:
    for path in NOTEBOOKS:
        notebook = read(path)
        for i, (cell, text) in enumerate(zip(code_cells(notebook), run(path), strict=True)):
            lines = text.splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
            cell["execution_count"] = i + 1
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
