import inspect
import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import calibrant
from calibrant.cli import app

COMMANDS = [command.name for command in app.registered_commands]


def test_the_commands():
    assert {"demo", "train", "evaluate", "calibrate", "predict", "monitor", "list"} <= set(COMMANDS)


def test_help_names_every_command_and_where_to_start(command):
    code, out, err = command("--help")
    assert (code, err) == (0, "")
    for name in COMMANDS:
        assert re.search(rf"^ +{name} +\w", out, re.MULTILINE)
    assert "Start with:  calibrant demo" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_an_example(command, name):
    code, out, err = command(name, "--help")
    assert (code, err) == (0, "")
    assert f"Usage: calibrant {name} [OPTIONS]" in out
    assert f"Example:  calibrant {name}" in " ".join(line.strip(" ") for line in out.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name):
    import typer

    command = typer.main.get_command(app).commands[name]
    unexplained = [parameter.name for parameter in command.params if not getattr(parameter, "help", None)]
    assert unexplained == []


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"list"}))
def test_every_command_has_one_name_in_python_too(name):
    verb = getattr(calibrant, name)
    assert verb is getattr(import_module(f"calibrant.tasks.{name}"), name)
    _, *options = inspect.signature(verb).parameters.values()
    assert {option.kind for option in options} == {inspect.Parameter.KEYWORD_ONLY}


def test_version(command):
    assert command("--version") == (0, f"calibrant {calibrant.__version__}\n", "")


def test_without_a_command_the_help_is_shown(command):
    code, out, err = command()
    assert "Usage: calibrant [OPTIONS] COMMAND" in out + err
    assert code == 2


def test_the_page_of_commands_is_current():
    """It is made with the typer of constraints.txt; others lay the help out otherwise."""
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if f"typer=={version('typer')}" not in pins:
        pytest.skip("not the typer that the page is made with")
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("make_commands", Path(__file__).parents[2] / "docs" / "make_commands.py")
    make_commands = module_from_spec(spec)
    spec.loader.exec_module(make_commands)
    assert make_commands.PAGE.read_text(encoding="utf-8") == make_commands.page(), (
        "python docs/make_commands.py"
    )
