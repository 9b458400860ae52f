"""A mistake in a name is told before anything heavy is loaded."""

import subprocess
import sys

import pytest

LOADED = """
import sys
from calibrant.cli import main
sys.argv = ["calibrant", *sys.argv[1:]]
try:
    main()
finally:
    print([name for name in ("torch", "transformers", "scipy", "sklearn") if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("train --train no.csv --out new", "No file 'no.csv'; check the path."),
        ("train --train good.csv --dev no.csv --out new", "No file 'no.csv'; check the path."),
        ("train --train broken.docx --out new", "broken.docx: unknown kind of file '.docx'; use one of "),
        ("train --train s3://a/b.csv --out new", "s3://a/b.csv is a URL, and only files are read;"),
        (
            "train --train good.csv --epochs 0 --out new",
            "--epochs: Input should be greater than",
        ),
        ("predict run no.csv", "No file 'no.csv'; check the path."),
        ("predict nowhere good.csv", "nowhere is not a run: it has no calibrant.json."),
        ("predict nowhere --text hello", "nowhere is not a run: it has no calibrant.json."),
        ("evaluate run --test no.csv", "No file 'no.csv'; check the path."),
        ("evaluate run --test good.csv --ood no.csv", "No file 'no.csv'; check the path."),
        ("calibrate run --dev no.csv --calibrator temperature", "No file 'no.csv'; check the path."),
        ("threshold run --dev no.csv --risk 0.1", "No file 'no.csv'; check the path."),
        ("monitor run no.csv", "No file 'no.csv'; check the path."),
        ("report run nowhere --out page.html", "nowhere is not a run: it has no calibrant.json."),
        ("audit --model model --test no.csv", "No file 'no.csv'; check the path."),
        ("serve nowhere", "nowhere is not a run: it has no calibrant.json."),
        ("export nowhere there", "nowhere is not a run: it has no calibrant.json."),
    ],
)
def test_a_name_that_is_not_there(mistakes, wrong_files, line, sentence):
    (wrong_files / "broken.docx").touch()
    told = subprocess.run([sys.executable, "-c", LOADED, *line.split()], capture_output=True, text=True)
    assert told.returncode == 2
    assert told.stderr.startswith(f"calibrant: {sentence}")
    assert told.stdout == "[]\n"


def test_listing_methods_loads_nothing_heavy():
    told = subprocess.run([sys.executable, "-c", LOADED, "list", "methods"], capture_output=True, text=True)
    *table, loaded = told.stdout.splitlines()
    assert (told.returncode, loaded, told.stderr) == (0, "[]", "")
    assert "calibrant" in table[3]


WHO_ASKS = """
import builtins
found, before = [], builtins.__import__

def watched(name, globals=None, locals=None, fromlist=(), level=0):
    whose = (globals or {}).get("__name__", "")
    names = {name, *(f"{name}.{each}" for each in fromlist or ())}
    if whose.startswith("calibrant") and any(f"{each}.".startswith("scipy.stats.") for each in names):
        found.append(whose)
    return before(name, globals, locals, fromlist, level)

builtins.__import__ = watched
import calibrant.tasks.{module}
print(found)
"""


@pytest.mark.parametrize(("module", "who"), [("predict", "[]"), ("threshold", "['calibrant.decide.risk']")])
def test_answering_does_without_the_statistics_of_monitoring(module, who):
    """They take half a second to load. Older versions of scikit-learn load them, whatever we do."""
    code = WHO_ASKS.replace("{module}", module)
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout == f"{who}\n", told.stderr
