import os
import subprocess
import sys
import textwrap

import pytest

from calibrant.errors import UserError
from calibrant.metrics import metrics
from calibrant.registry import discover, pick
from calibrant.scores import scores

BASE = """
    from abc import ABC, abstractmethod

    class Shape(ABC):
        name: str

        @abstractmethod
        def area(self): ...
"""
SQUARE = """
    from {package}.base import Shape

    class Square(Shape):
        name = "square"

        def area(self):
            return 1
"""


@pytest.fixture
def package(tmp_path, monkeypatch, request):
    """Writes a package of the given modules and returns its name and base class."""
    monkeypatch.syspath_prepend(tmp_path)
    name = f"shapes_{request.node.name}"

    def write(**modules):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").touch()
        for module, code in {"base": BASE, **modules}.items():
            (folder / f"{module}.py").write_text(textwrap.dedent(code).replace("{package}", name))
        base = __import__(f"{name}.base", fromlist=["Shape"]).Shape
        return name, base

    yield write
    for module in [module for module in sys.modules if module.split(".")[0] == name]:
        del sys.modules[module]


def test_one_new_file_is_found(package):
    name, base = package(square=SQUARE)
    (entry,) = discover(name, base).values()
    assert (entry.name, entry().area()) == ("square", 1)


def test_classes_and_instances_in_the_order_of_the_files(package):
    circle = """
        from {package}.base import Shape
        from {package}.square import Square

        class Circle(Shape):
            def __init__(self, name):
                self.name = name

            def area(self):
                return 3

        SMALL, LARGE = Circle("small"), Circle("large")
    """
    name, base = package(square=SQUARE, circle=circle)
    assert list(discover(name, base)) == ["small", "large", "square"]


def test_what_is_abstract_or_only_imported_is_no_entry(package):
    abstract = """
        from {package}.base import Shape
        from {package}.square import Square

        class Polygon(Shape):
            name = "polygon"
    """
    name, base = package(square=SQUARE, a_polygon=abstract)
    assert list(discover(name, base)) == ["square"]


def test_an_instance_imported_elsewhere_is_one_entry(package):
    unit = SQUARE + "\n    UNIT = Square()\n    UNIT.name = 'unit'\n"
    name, base = package(square=unit, zebra="from {package}.square import UNIT\n")
    assert list(discover(name, base)) == ["square", "unit"]


def test_a_duplicate_name_raises(package):
    name, base = package(square=SQUARE, tile=SQUARE.replace("Square", "Tile"))
    with pytest.raises(
        TypeError, match=rf"Two entries of {name} are called 'square': .*Square.* and .*Tile.*"
    ):
        discover(name, base)


def test_pick():
    assert pick("method", "bert", {"bert": 1}) == 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("brt", "Unknown method 'brt'; did you mean 'bert'? Known: bert, mixup."),
        ("zzz", "Unknown method 'zzz'. Known: bert, mixup."),
        ("", "Unknown method ''. Known: bert, mixup."),
    ],
)
def test_pick_suggests_the_nearest(name, sentence):
    with pytest.raises(UserError) as refused:
        pick("method", name, {"bert": 1, "mixup": 2})
    assert str(refused.value) == sentence


def test_pick_from_nothing():
    with pytest.raises(UserError, match=r"^Unknown score 'x'. Known: none\.$"):
        pick("score", "x", {})


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package whose one module is announced by entry points, as pip would."""
    monkeypatch.syspath_prepend(tmp_path)
    installed = []

    def put(name, code, **points):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[calibrant.{group}]\nany = {name}:{entry}" for group, entry in points.items()]
        (about / "entry_points.txt").write_text("\n".join(lines))
        installed.append(name)

    discover.cache_clear()
    yield put
    discover.cache_clear()
    for name in installed:
        sys.modules.pop(name, None)


LENGTH = """
    import numpy as np
    from calibrant.scores import Score

    class Loudest(Score):
        name = "loudest"
        citation = "Nobody (2026)"

        def __call__(self, outputs):
            return -np.abs(outputs.logits).max(axis=1)
"""


def test_an_installed_package_adds_an_entry_after_our_own(install):
    install("outsider", LENGTH, scores="Loudest")
    *ours, last = scores()
    assert last == "loudest"
    assert "energy" in ours
    assert pick("score", "loudest", scores())().name == "loudest"


def test_an_instance_is_an_entry_where_it_is_complete(install):
    code = """
        from calibrant.metrics import Metric
        HITS = Metric("hits", "Hits", "classification", True, lambda p, y: float((p.argmax(1) == y).sum()))
    """
    install("outsider", code, metrics="HITS")
    assert metrics()["hits"].title == "Hits"


def test_a_plug_in_with_a_name_that_is_taken(install):
    install("outsider", LENGTH.replace('"loudest"', '"energy"'), scores="Loudest")
    with pytest.raises(
        UserError,
        match=r"^The plug-in 'energy' of the package outsider has a name that another entry of "
        r"calibrant\.scores has, <class 'calibrant\.scores\.energy\.Energy'>; rename it, or uninstall",
    ):
        scores()


@pytest.mark.parametrize(
    ("code", "entry", "why"),
    [
        ("import no_such_package", "Loudest", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("x = 1", "Loudest", "AttributeError: module 'outsider' has no attribute 'Loudest'"),
        ("raise RuntimeError('two\\nlines')", "Loudest", "RuntimeError: two\\nlines"),
        ("Loudest = 3", "Loudest", "it is no class of Score with all that this asks for"),
        (LENGTH + "\n    made = Loudest()", "made", "it is no class of Score with all that this asks for"),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_is_told_and_left_out(install, caplog, code, entry, why):
    install("outsider", code, scores=entry)
    assert "energy" in scores()
    assert "loudest" not in scores()  # and nothing is told twice
    assert [record.getMessage() for record in caplog.records] == [
        f"The plug-in outsider:{entry} of the package outsider (calibrant.scores) is left out: {why}"
    ]


def test_the_command_line_with_a_broken_plug_in(install, tmp_path):
    """One sentence where a registry is asked, and nothing where none is."""
    install("outsider", "import no_such_package", scores="Loudest")
    path = os.pathsep.join([str(tmp_path), *sys.path])

    def calibrant(*words):
        command = [sys.executable, "-m", "calibrant", *words]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": path}
        )

    helped, listed = calibrant("--help"), calibrant("list", "scores")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert listed.returncode == 0
    assert "energy" in listed.stdout
    assert listed.stderr == (
        "The plug-in outsider:Loudest of the package outsider (calibrant.scores) is left out: "
        "ModuleNotFoundError: No module named 'no_such_package'\n"
    )
