"""Write docs/commands.md from the ``--help`` of every command:  python docs/make_commands.py"""

from collections.abc import Iterator
from pathlib import Path

import typer

from calibrant.cli import app

PAGE = Path(__file__).parent / "commands.md"
HEAD = """# Commands

This page is made from `--help` by `python docs/make_commands.py`. A test checks that it is current.

Every command that prints numbers takes `--json`. The exit code is 0, or 2 with one sentence for a mistake
in the input. `monitor` also has 3, for text that has moved, and 4, for too few texts to tell.
"""


def page() -> str:
    """The whole of it."""
    command = typer.main.get_command(app)
    return HEAD + "".join(_sections(command, "calibrant"))


def _sections(command: object, name: str) -> Iterator[str]:
    context = command.make_context(
        name, [], resilient_parsing=True, terminal_width=100, max_content_width=100
    )
    if subcommands := getattr(command, "commands", None):
        for sub, made in subcommands.items():
            yield from _sections(made, f"{name} {sub}")
        return
    yield f"\n## {name}\n\n```\n{command.get_help(context).rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
