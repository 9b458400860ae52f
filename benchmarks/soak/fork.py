"""A command in a process of its own, forked from this one, which has loaded all libraries and done nothing.

That is sound while this process has one thread, which ``warm`` sees to: it only imports.
"""

import gc
import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ERR = "stderr"


def nothing() -> None:
    """Before a command."""


def warm() -> None:
    """Import what every command does."""
    import torch

    import calibrant.cli
    import calibrant.study.run
    import calibrant.tasks.export
    import calibrant.training  # noqa: F401

    torch.set_num_threads(1)


def warm_as(process: "Process") -> None:
    """Import what else a command imported that came from here, so that the next ones have it."""
    for name in process.beside("modules").read_text().split():
        with suppress(Exception):  # some are made up while they are imported
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a forked process need not look through all of it


class Process:
    """``calibrant ARGUMENTS``, begun in a folder; what it says of itself goes beside that folder."""

    def __init__(
        self, here: Path, arguments: tuple[str, ...], before: Callable[[], None] = nothing, tell: bool = False
    ) -> None:
        self.here, self.began = here, time.monotonic()
        self.pid = os.fork()
        if not self.pid:
            self._become(arguments, before, tell)

    def wait(self, seconds: float = 900.0, meanwhile: Callable[[], None] = nothing) -> int:
        """Its exit code, or minus the signal that ended it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            meanwhile()
            time.sleep(0.005)
        self.kill()
        raise TimeoutError(f"{self.here} took more than {seconds:.0f} seconds")

    def kill(self) -> int:
        """SIGKILL. Gives the exit code, which is another where it had ended before."""
        os.kill(self.pid, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    @property
    def told(self) -> str:
        """What it printed on standard error."""
        return self.beside(ERR).read_text(errors="replace").strip()

    def beside(self, name: str) -> Path:
        """A file of its own."""
        return self.here.parent / f"{self.here.name}.{self.pid or os.getpid()}.{name}"

    def _become(self, arguments: tuple[str, ...], before: Callable[[], None], tell: bool) -> None:
        """Never returns."""
        code, known = 70, set(sys.modules)
        try:
            os.chdir(self.here)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(self.beside(ERR), flags), 2)
            sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
            before()
            # As with `> FILE`.
            name = arguments[-1] if ">" in arguments else os.devnull
            os.dup2(os.open(name, flags), 1)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.argv = ["calibrant", *(arguments[:-2] if ">" in arguments else arguments)]
            from calibrant.cli import main

            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            if tell:
                self.beside("modules").write_text("\n".join(set(sys.modules) - known))
            os._exit(code)
