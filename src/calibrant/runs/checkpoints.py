"""Checkpoints of a training: RUN/checkpoints/checkpoint-<step>/, as the Trainer writes them, and a seal.

The seal is written last and holds a digest of each file. A checkpoint without one is half-written; one that
does not fit its seal is damaged. The newest two are kept, each with the best one that it remembers, so that
training goes on from the one before where the newest is damaged.
"""

import hashlib
import json
import logging
import shutil
from pathlib import Path

from calibrant._system.atomic import remove_folder, sync, write_json

logger = logging.getLogger(__name__)
SEAL = "seal.json"
KEPT = 2


def seal(folder: Path) -> None:
    """Have a checkpoint that was just written on the disk, whole; only then the older ones go."""
    sync(folder)
    (folder / SEAL).unlink(missing_ok=True)  # the end of an epoch may be saved twice; no seal holds another
    write_json(folder / SEAL, digests(folder))
    sync(folder.parent)
    newest = _by_step(folder.parent)[-KEPT:]
    needed = {step for each in newest for step in (_step(each), _best(each))}
    for other in _by_step(folder.parent):
        if _step(other) not in needed:
            remove_folder(other)


def last(folder: Path) -> Path | None:
    """The newest checkpoint that is whole, and whose best one is; those that are not are removed."""
    flaws = {each: _flaw(each) for each in _by_step(folder)}
    whole = {_step(each) for each, flaw in flaws.items() if flaw is None}
    usable = [each for each, flaw in flaws.items() if flaw is None and _best(each) in whole | {0}]
    found = usable[-1] if usable else None
    for each, flaw in flaws.items():
        if flaw is not None:
            if flaw:
                instead = "training begins again" if found is None else f"training goes on from {found.name}"
                logger.warning("%s is damaged (%s); %s.", each, flaw, instead)
            shutil.rmtree(each)
    return found


def digests(folder: Path) -> dict[str, str]:
    """Of each file in a folder, by its path there."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def _flaw(checkpoint: Path) -> str | None:
    """What is wrong with it: "" for one that was never finished, None for nothing."""
    if not (checkpoint / SEAL).exists():
        return ""
    try:
        sealed = dict(json.loads((checkpoint / SEAL).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return f"{SEAL} cannot be read"
    found = digests(checkpoint)
    differing = [name for name, digest in sealed.items() if found.get(name) != digest]
    return f"{differing[0]} is not as it was written" if differing else None


def _by_step(folder: Path) -> list[Path]:
    return sorted((each for each in folder.glob("checkpoint-*") if each.is_dir()), key=_step)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.split("-")[1])


def _best(checkpoint: Path) -> int:
    """The step of the best epoch up to there; 0 where that is the start, which needs no checkpoint."""
    state = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    return state["best_global_step"] or 0
