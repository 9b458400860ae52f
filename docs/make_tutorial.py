"""Run every command of docs/tutorial.md in an empty folder, and write what it prints into the page.

    python docs/make_tutorial.py    # 4 to 6 minutes on two idle cores

The installation is left out. results/tutorial/transcript.txt gets the same, with versions, machine and
seconds. Sentences around the blocks name some of the figures: read them again afterwards.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from calibrant._system.device import machine

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
TRANSCRIPT = ROOT / "results" / "tutorial" / "transcript.txt"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (?:.*\\\n)*.*\n", re.MULTILINE)
INSTALLATION = ("python3 ", ".venv/bin/pip ", ". ")
DONE = "that was all"
BAR = re.compile(r"^.*: \d+ of \d+, .* gone.*\n", re.MULTILINE)  # where a terminal has a bar, which goes


class Shell:
    """One bash for all commands: ``kill %1`` has to know what ``&`` began."""

    def __init__(self, folder: Path) -> None:
        there = Path(sys.executable).parent
        own = {"PATH": f"{there}:{os.environ['PATH']}", "COLUMNS": "80", "HF_HUB_OFFLINE": "1"}
        environment = {name: value for name, value in os.environ.items() if name != "CALIBRANT_DATA"} | own
        self.bash = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, command: str) -> str:
        """What it prints. Raises if it fails."""
        if command.endswith("&"):
            serving = "until grep -q http:// serve.log; do sleep 0.2; done"
            command = f"{command[:-1]} > serve.log 2>&1 &\n{serving}"
        if command.startswith("curl"):
            command = f"{command} --silent --show-error; echo"
        assert self.bash.stdin is not None
        assert self.bash.stdout is not None
        self.bash.stdin.write(f"{command}\necho {DONE} $?\n")
        self.bash.stdin.flush()
        printed = []
        for line in self.bash.stdout:
            if line.startswith(DONE):
                if line.split()[-1] != "0":
                    raise SystemExit(f"{command}\n{''.join(printed)}")
                return BAR.sub("", "".join(printed)).lstrip("\n")
            printed.append(f"{line.rstrip()}\n")
        raise SystemExit(f"bash ended at {command}")


def main() -> None:
    """Write page and transcript."""
    page = PAGE.read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    packages = ", ".join(f"{name} {version(name)}" for name in ("calibrant", "torch", "transformers"))
    transcript = [f"{datetime.now(UTC):%Y-%m-%d %H:%M UTC}; {packages}; {machine()}\n"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "make_files.py").write_text(script, encoding="utf-8")
        shell = Shell(Path(folder))

        def run_again(block: re.Match[str]) -> str:
            commands = COMMAND.findall(block[0])
            if commands[0].removeprefix("$ ").startswith(INSTALLATION):
                return block[0]
            told = []
            for command in commands:
                begun = time.monotonic()
                printed = shell.run(command.removeprefix("$ ").rstrip("\n"))
                told.append(command + printed)
                transcript.append(f"{command}{printed}[{time.monotonic() - begun:.0f} s]\n")
                print(transcript[-1], flush=True)
            return "".join(told)

        page = BLOCK.sub(run_again, page)
    TRANSCRIPT.parent.mkdir(exist_ok=True)
    TRANSCRIPT.write_text("\n".join(transcript), encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
