"""How far a piece of work is: in words, and as a bar where a notebook can show one."""

import importlib
import sys
import time
from html import escape
from typing import Any

BETWEEN = 0.2  # seconds, at least, from one look of a notebook's bar to the next


def in_words(done: int, total: int, gone: float, left: float | None) -> str:
    """How far a piece of work is, with the seconds that it has taken and is likely to take.

    >>> in_words(90, 240, 300, 480)
    '90 of 240, 5 min gone, 8 min left'
    """
    return f"{done} of {total}, {_time(gone)} gone" + ("" if left is None else f", {_time(left)} left")


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Pace:
    """Of one piece of work, from when it is first heard of; of a resumed one, a part was done before."""

    def __init__(self, done: int) -> None:
        self.began, self.first = time.monotonic(), done

    def words(self, done: int, total: int) -> str:
        """How far it is now."""
        gone = time.monotonic() - self.began
        left = gone * (total - done) / (done - self.first) if self.first < done < total else None
        return in_words(done, total, gone, left)


class _Bar:
    """HTML that is drawn again in its place; IPython is enough for it, without widgets."""

    def __init__(self, what: str, done: int) -> None:
        self.what, self.pace = what, Pace(done)
        self.drawn, self.display = -BETWEEN, importlib.import_module("IPython.display")
        self.place: Any = None

    def draw(self, done: int, total: int) -> None:
        if done < total and time.monotonic() - self.drawn < BETWEEN:
            return
        self.drawn = time.monotonic()
        bar = f"<progress value='{done}' max='{total}' style='width: 20em'></progress>"
        html = self.display.HTML(f"<div>{escape(self.what)} {bar} {self.pace.words(done, total)}</div>")
        if self.place is None:
            self.place = self.display.display(html, display_id=True)
        else:
            self.place.update(html)


_BARS: dict[tuple[int, str], _Bar] = {}


def in_notebook(what: str, done: int, total: int) -> None:
    """A ``Progress`` that is a bar below the cell, in a Jupyter notebook, and nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:  # a terminal's has none
        return
    key = shell.execution_count, what  # another cell has bars of its own
    _BARS.setdefault(key, _Bar(what, done)).draw(done, total)
    if done >= total:
        del _BARS[key]
