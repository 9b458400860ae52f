"""The command line: parse, call, print. One file per command, found by its name; heavy imports inside."""

import importlib
import io
import os
import pkgutil
import sys
from typing import Any

import typer

from calibrant.cli import several
from calibrant.cli.printing import say
from calibrant.errors import Elsewhere, Lost, UserError, visible

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # click's; newer versions of typer have their own
app = typer.Typer(
    name="calibrant",
    help="Text classifiers whose confidence means something, on familiar and on unfamiliar text.",
    epilog="Start with:  calibrant demo",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _info in pkgutil.iter_modules(__path__):  # a module with a function, or an app, of its own name
    _module = importlib.import_module(f"{__name__}.{_info.name}")
    if hasattr(_module, "app"):
        app.add_typer(_module.app, name=_info.name)
    elif (_command := getattr(_module, _info.name, getattr(_module, f"{_info.name}_", None))) is not None:
        app.command(_info.name)(_command)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    if version:
        from calibrant import __version__

        say(f"calibrant {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help(), err=True)
        raise typer.Exit(2)


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2."""
    # Set before torch loads: some CPUs announce AMX that the machine does not grant, and bf16 then
    # dies with an illegal instruction.
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # torch's chatter of sockets and unused weights
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")  # where Windows would write files in an encoding of its own
    try:
        several.check()
        try:
            code = app(prog_name="calibrant", standalone_mode=False)
        finally:
            sys.stdout.flush()  # what was held back may find the disk full, and so late nobody would say so
        sys.exit(code)
    except UsageError as error:
        _fail(_usage(error))
    except (Elsewhere, Lost) as error:
        several.end(error)
    except UserError as error:
        _fail(str(error))
    except BrokenPipeError:  # `| head`, which has read enough
        _forget_output()
        sys.exit(1)
    except (OSError, MemoryError, RuntimeError) as error:
        _fail(_machine(error))
    except SystemExit as end:
        if end.code == 130:  # what typer makes of Ctrl-C
            goes_on = sys.argv[1:2] in (["train"], ["demo"], ["study"])
            more = "; the same command again goes on from its last checkpoint" if goes_on else ""
            if several.speaks():
                say(f"calibrant: interrupted{more}.", err=True)
        raise


def _usage(error: Any) -> str:
    """What the parser refused, and where a user reads what it takes."""
    told: str = error.format_message().replace("Value error, ", "")  # pydantic's, within typer
    told += "" if told.endswith((".", "?")) else "."
    return told if error.ctx is None else f"{told} See `{error.ctx.command_path} --help`."


def _machine(error: Exception) -> str:
    """A sentence of what the machine refused; an error of another kind is raised again."""
    from calibrant._system.failures import no_memory, reason

    nothing_lost = "What was kept before is whole."
    if no_memory(error):
        return (
            f"The memory of this machine is used up; give it fewer or shorter texts at a time. {nothing_lost}"
        )
    if not isinstance(error, OSError) or (error.filename is None and reason(error) is None):
        raise error
    path = "standard output" if error.filename is None else error.filename
    if error.filename is None:
        _forget_output()
    why = reason(error)
    return f"{path}: {error.strerror}." if why is None else f"{path}: {why}. {nothing_lost}"


def _forget_output() -> None:
    """What could not be written, and what the interpreter would try to once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(sentence: str) -> None:
    say(f"calibrant: {visible(sentence)}", err=True)
    several.tell_launcher(sentence)
    sys.exit(2)
