"""The commands that are disturbed, on a tiny model: where each begins, and what it must leave."""

import csv
import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant._system.lock import FILE as LOCK
from soak.fork import Process, warm_as
from support.tiny import UNFAMILIAR, corpus, noisy_corpus, tiny_bert, tiny_tokenizer

SETTINGS = ("--train", "../train.csv", "--model", "../model", "--max-length", "16", "--epochs", "2")
SETTINGS += ("--batch-size", "24", "--learning-rate", "0.003")
TRAIN = ("train", *SETTINGS, "--out", "run")
PLAIN = ("train", *SETTINGS, "--method", "temperature-scaling", "--out", "run")
LEARN = ("threshold", "run", "--dev", "../dev.csv", "--risk", "0.3")
VOLATILE = ("seconds", "created", "runtime", "per_second")


@dataclass(frozen=True)
class Command:
    """Begins in a copy of the folder ``begins_in``, or in an empty one, and runs there."""

    name: str
    arguments: tuple[str, ...]
    begins_in: str | None = None
    makes: str | None = None  # a folder that is whole as soon as it is there, and is not made again

    def begin(self, world: Path, here: Path) -> None:
        """The folder before the command."""
        here.mkdir(exist_ok=True)
        if self.begins_in is not None:
            shutil.copytree(world / self.begins_in, here, dirs_exist_ok=True)

    def again(self, here: Path) -> Process | None:
        """The same command once more; None where it would say that all is there."""
        return None if self.makes and (here / self.makes).exists() else Process(here, self.arguments)


COMMANDS = {
    command.name: command
    for command in (
        Command("train", TRAIN),
        Command("calibrate", ("calibrate", "run", "--calibrator", "familiarity"), "ruled"),
        Command(
            "threshold",
            (*LEARN, "--ood", "../other.csv", "--ood-rate", "0.5", "--score", "knn"),
            "ruled",
        ),
        Command("export", ("export", "run", "plain"), "exportable", makes="plain"),
        Command("predict", ("predict", "run", "../many.csv", "--coverage", "0.9", ">", "answers"), "ruled"),
        Command(
            "study",
            (
                *("study", "run", "--preset", "smoke", "--methods", "bert,temperature-scaling"),
                *("--seeds", "0", "--threads", "1", "--out", "study"),
            ),
        ),
    )
}


def make_world(folder: Path) -> None:
    """Data, a model, and runs to begin with. In forked processes, so that this one stays as it is."""
    folder.mkdir(parents=True)
    for name, rows in (
        ("train.csv", noisy_corpus(120)),
        ("dev.csv", noisy_corpus(200, seed=1)),
        ("many.csv", corpus(300, seed=2)),
        ("other.csv", [(f"{a} {b}", "none") for a in UNFAMILIAR for b in UNFAMILIAR if a != b]),
    ):
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    tiny_bert(layers=1).save_pretrained(folder / "model")
    tiny_tokenizer().save_pretrained(folder / "model")
    for name, commands in (
        ("exportable", (PLAIN,)),
        (
            "ruled",  # with a calibrator, a rule and figures that must give way
            (
                TRAIN,
                ("calibrate", "run", "--calibrator", "temperature"),
                LEARN,
                ("evaluate", "run", "--test", "../dev.csv"),
            ),
        ),
    ):
        (folder / name).mkdir()
        for arguments in commands:
            process = Process(folder / name, arguments, tell=True)
            must(process)
            warm_as(process)


def must(process: Process) -> None:
    """It ends well."""
    code = process.wait()
    if code:
        raise RuntimeError(f"exit code {code} in {process.here}: {process.told}")


def left(here: Path) -> dict[str, Any]:
    """All that is in a folder, but for times: what two of them must agree in.

    A lock's file says nothing once its process is gone. A training that is killed when all is done leaves it,
    and the next change of the run removes it.
    """
    found = {}
    for file in sorted(here.rglob("*")):
        if file.is_file() and file.name != LOCK:
            content = file.read_bytes()
            name = str(file.relative_to(here))
            if file.suffix == ".json":
                found[name] = json.dumps(_lasting(json.loads(content)), sort_keys=True)
            elif file.suffix == ".safetensors":
                found[name] = _tensors(content)
            else:
                found[name] = hashlib.sha256(content).hexdigest()
    return found


def differences(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """In words; empty where there are none."""
    names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    return ", ".join(names)


def _tensors(content: bytes) -> str:
    """Header and data; what the header says of the file, safetensors writes in any order."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True)
    return f"{header} {hashlib.sha256(content[end:]).hexdigest()}"


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(part) for key, part in value.items() if not key.endswith(VOLATILE)}
    return [_lasting(part) for part in value] if isinstance(value, list) else value
