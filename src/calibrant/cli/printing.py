"""What the commands print. Nothing in it is obeyed by a terminal, whatever a label or a file is called."""

from typing import Any

import typer

from calibrant.errors import visible


def say(text: object, err: bool = False, nl: bool = True) -> None:
    """Lines of a command's own; data with a line break inside is made ``visible`` before it is put in."""
    typer.echo("\n".join(map(visible, str(text).split("\n"))), err=err, nl=nl)


def say_json(value: Any) -> None:
    """One line."""
    from calibrant._system.strict_json import dumps

    typer.echo(dumps(value))
