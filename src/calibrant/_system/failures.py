"""A machine that gives no more (disk, memory, files, permission), told in one sentence."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.errors import NoMemory, NotWritten, UserError

WAYS_OUT = {
    errno.ENOSPC: "the disk is full; make room",
    errno.EDQUOT: "your quota of the disk is used up; make room",
    errno.EFBIG: "it is larger than files may be here (`ulimit -f`)",
    errno.EROFS: "the file system is read-only; copy it to where you may write",
    errno.EACCES: "you may not write there; ask its owner, or copy it to where you may write",
    errno.EPERM: "you may not write there; ask its owner, or copy it to where you may write",
    errno.EMFILE: "too many files are open; allow more with `ulimit -n 4096`",
    errno.ENFILE: "too many files are open on this machine; end what opened them",
    errno.EIO: "the disk gives an error; look at its health",
}
TORCH_WRITES = ("inline_container.cc", "PytorchStreamWriter", "iostream error")
FULL_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")


def reason(error: BaseException | None) -> str | None:
    """Why the machine gave no more, and the way out; None where it is about something else.

    Rust libraries say the number at the end of a sentence. torch says only that fewer bytes were written
    than it gave; what else could be wrong there is as much the disk's.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        number = error.errno if isinstance(error, OSError) else None
        if number is None and (told := re.search(r"\(os error (\d+)\)", str(error))):
            number = int(told[1])
        if number in WAYS_OUT:
            return WAYS_OUT[number]
        if any(words in str(error) for words in TORCH_WRITES):
            return "the disk took less than was written to it, so it is probably full; make room"
        error = error.__cause__ or error.__context__
    return None


def no_memory(error: BaseException) -> bool:
    """Whether it tells of memory; CUDA has a type of its own, MPS and the CPU only say so."""
    said = isinstance(error, RuntimeError) and any(words in str(error) for words in FULL_MEMORY)
    return isinstance(error, MemoryError) or said


@contextmanager
def writing(path: Path, safe: str) -> Iterator[None]:
    """What is written here, and what is safe if it cannot be."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # of the libraries that write for us each raises its own
        if (why := reason(error)) is None:
            raise
        raise NotWritten(f"{path} could not be written: {why}. {safe}") from error


@contextmanager
def remembering(way_out: str) -> Iterator[None]:
    """Work that may need more memory than there is, and what to do then."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not no_memory(error):
            raise
        raise NoMemory(way_out) from error
