"""Files here or at an address that fsspec knows (``s3://…``, ``gs://…``), for reading and for writing."""

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, ConfigDict

from calibrant._system.atomic import check_folder, holds_anything, write_bytes
from calibrant._system.lock import alone
from calibrant.data.tables import opened
from calibrant.errors import NotWritten, UserError

KINDS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl"}
"""How files end that can be read from the middle, and in what format their answers are written."""


class File(BaseModel):
    """A file of the corpus, as it was when it was first looked at."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str  # absolute, for workers elsewhere
    size: int
    version: str  # when it was changed, or what its store calls that

    @property
    def ending(self) -> str:
        """.csv, say; without .gz."""
        return Path(self.address.lower().removesuffix(".gz")).suffix

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """For reading, unpacked."""
        with asking(self.address):
            if is_address(self.address):
                import fsspec

                zipped = "gzip" if self.address.lower().endswith(".gz") else None
                source = fsspec.open(self.address, "rb", compression=zipped)
            else:
                source = opened(Path(self.address))
            with source as file:
                yield file


def is_address(name: str) -> bool:
    """Whether it names something elsewhere."""
    return "://" in name


def find(patterns: Sequence[str]) -> list[File]:
    """The files that names and patterns (``corpus/*.parquet``) mean, in the order of their names."""
    found: dict[str, File] = {}
    for pattern in patterns:
        some = _elsewhere(pattern) if is_address(pattern) else _here(pattern)
        if not some:
            raise UserError(f"{pattern}: no such file; check the path, and put a pattern in quotes.")
        found |= {file.address: file for file in some}
    files = [found[address] for address in sorted(found)]
    kinds = {KINDS.get(file.ending) for file in files}
    if None in kinds:
        odd = next(file.address for file in files if file.ending not in KINDS)
        raise UserError(
            f"{odd}: cannot be read part by part; use files of {', '.join(KINDS)}, or .gz of what has lines."
        )
    if len(kinds) > 1:
        raise UserError(f"{', '.join(patterns)}: files of several formats; answer one format at a time.")
    return files


def _here(pattern: str) -> list[File]:
    paths = [pattern] if Path(pattern).exists() else glob.glob(pattern, recursive=True)
    states = [(Path(path).absolute(), os.stat(path)) for path in paths if not Path(path).is_dir()]
    return [
        File(address=str(path), size=state.st_size, version=str(state.st_mtime_ns)) for path, state in states
    ]


def _elsewhere(pattern: str) -> list[File]:
    with asking(pattern):
        import fsspec

        system, path = fsspec.core.url_to_fs(pattern)
        about = system.glob(path, detail=True)
        return [
            File(
                address=system.unstrip_protocol(name),
                size=info["size"],
                version=str(next((info[key] for key in _VERSIONS if key in info), "")),
            )
            for name, info in about.items()
            if info["type"] == "file"
        ]


_VERSIONS = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")


@contextmanager
def asking(address: str) -> Iterator[None]:
    """A file that cannot be read, a store that does not answer, or that nothing here can speak to."""
    try:
        yield
    except (OSError, ImportError, ValueError, EOFError) as error:
        if isinstance(error, UserError):
            raise
        why = str(getattr(error, "strerror", None) or error).rstrip(".")
        raise UserError(f"{address} cannot be read ({why}).") from error


class Folder:
    """Where answers go. What is written is there whole or not at all, as far as the store has it so."""

    def __init__(self, place: str) -> None:
        self._local = not is_address(place)
        self.place = str(Path(place).absolute()) if self._local else place.rstrip("/")
        if not self._local:
            with asking(place):
                import fsspec

                self._system, self._root = fsspec.core.url_to_fs(self.place)

    def __reduce__(self) -> Any:  # for workers elsewhere, who make their own connection
        return Folder, (self.place,)

    def begin(self, known: Sequence[str]) -> None:
        """Refuse a folder that cannot be written to, or holds something else than what is known."""
        if self._local:
            path = Path(self.place)
            check_folder(path, "the answers")
            path.mkdir(parents=True, exist_ok=True)
            if holds_anything(path, known):
                raise UserError(f"--out {path} holds other files; name a new folder.")

    def alone(self) -> Any:
        """Nobody else on this machine writes there meanwhile. Of an address that is not known."""
        return alone(Path(self.place), "written") if self._local else nullcontext()

    def write(self, name: str, content: bytes) -> None:
        """A file in it."""
        if self._local:
            path = Path(self.place, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content)
            return
        try:
            self._system.pipe_file(f"{self._root}/{name}", content)
        except OSError as error:
            raise NotWritten(f"{self.place}/{name} could not be written ({error}).") from error

    def read(self, name: str) -> bytes | None:
        """A file in it; None where it is not there."""
        with asking(self.place), suppress(FileNotFoundError):
            if self._local:
                return Path(self.place, name).read_bytes()
            return bytes(self._system.cat_file(f"{self._root}/{name}"))
        return None

    def names(self, folder: str) -> set[str]:
        """Of the files in a folder of it."""
        with asking(self.place), suppress(FileNotFoundError):
            if self._local:
                return set(os.listdir(Path(self.place, folder)))
            self._system.invalidate_cache()
            paths = self._system.ls(f"{self._root}/{folder}", detail=False)
            return {path.rsplit("/", 1)[-1] for path in paths}
        return set()
