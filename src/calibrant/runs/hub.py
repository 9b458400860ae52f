"""Runs on the Hugging Face hub: what ``calibrant export --push`` put there, fetched as data."""

import re
from pathlib import Path

from calibrant.errors import UserError
from calibrant.runs.place import FILE

FILES = (FILE, "README.md", "calibrator-*.safetensors", "scores/*.safetensors", "model/*")
"""Of a run, on the hub. Beside them lies what transformers and onnxruntime take, which is not for us."""
_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")


def is_hub_name(name: str) -> bool:
    """Whether it is written as user/model, and is no folder here."""
    return _NAME.fullmatch(name) is not None and not Path(name).exists()


def fetch(name: str) -> Path:
    """The folder in the hub's cache that holds the run; what is there already is not fetched again."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(name, allow_patterns=list(FILES)))
    except Exception as error:  # the hub's client raises dozens of types when it cannot be reached
        raise UserError(
            f"No run {name!r}: it is neither a folder here nor a model that the hub shows you from here "
            f"({_first_line(error)}). If it is private, log in with `hf auth login`."
        ) from error
    if not (folder / FILE).exists():
        raise UserError(
            f"{name} on the hub is not a run: it has no {FILE}. Runs get there by `calibrant export RUN DIR "
            f"--push {name}`; ask others with transformers' own pipeline."
        )
    return folder


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
