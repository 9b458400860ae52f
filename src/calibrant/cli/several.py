"""A command that a launcher (torchrun, accelerate launch) has started as one of several processes."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from calibrant.cli.printing import say
from calibrant.errors import Elsewhere, UserError

NUMBER = int(os.environ.get("RANK") or 0)
PROCESSES = int(os.environ.get("WORLD_SIZE") or 1)


def check() -> None:
    """Refuse all but training, which several processes share; the others would write over one another."""
    if PROCESSES == 1:
        return
    signal.signal(signal.SIGTERM, _ended)
    given = sys.argv[1:]
    if given[:1] != ["train"] and not {"--help", "--version"} & set(given):
        if NUMBER:
            raise Elsewhere("only train is for several processes")
        raise UserError(
            f"The launcher has started {PROCESSES} processes, and only `calibrant train` is for several; "
            "start this without torchrun or `accelerate launch`."
        )


def speaks() -> bool:
    """Whether this one tells what all know. There are two, since one of them may be the one that is gone."""
    return NUMBER < 2


def end(error: UserError) -> NoReturn:
    """Because another process failed. If it could, it says why."""
    _ignore_launcher()
    if isinstance(error, Elsewhere):
        time.sleep(1)  # as soon as one ends, the launcher ends the others, also the one that says why
    elif speaks():
        say(f"calibrant: {error}", err=True)
    sys.exit(2)


def tell_launcher(sentence: str) -> None:
    """Have torchrun say it at the end of what it says of processes that failed."""
    _ignore_launcher()
    if path := os.environ.get("TORCHELASTIC_ERROR_FILE"):
        extra = {"timestamp": str(int(time.time()))}
        Path(path).write_text(json.dumps({"message": {"message": sentence, "extraInfo": extra}}))


def _ignore_launcher() -> None:
    """This process ends by itself, and has said why."""
    if PROCESSES > 1:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _ended(*_: Any) -> None:
    if speaks():
        say(
            "calibrant: stopped by the launcher (another process has ended, or the job was cancelled); the "
            "same command again goes on from the last checkpoint.",
            err=True,
        )
    sys.stderr.flush()
    os._exit(128 + signal.SIGTERM)
