import sys
import textwrap

import pytest

from calibrant.errors import UserError
from calibrant.registry import discover, pick

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
