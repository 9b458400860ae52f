"""Figures as files, each with its caption beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant._system.atomic import write_bytes, write_text
from calibrant.errors import UserError
from calibrant.pages.plots import FORMATS, figure_bytes
from calibrant.registry import pick
from calibrant.study.figures import figures
from calibrant.study.figures.base import NotMeasured, Study
from calibrant.types import Progress

ALL = "all"


@dataclass(frozen=True)
class Written:
    """What ``write_figures`` left on disk, and why not more."""

    paths: list[Path]  # of the figures; a caption's differs in the ending, .txt
    missing: list[str]  # a sentence for each figure whose cells are not there yet


def write_figures(
    study: Path | str,
    out: Path | str,
    what: str = ALL,
    datasets: Sequence[str] = (),
    format: str = "svg",
    progress: Progress | None = None,
) -> Written:
    """Draw what has been measured so far: ``out/<figure>-<dataset>.<format>``, and its caption as ``.txt``.

    Args:
        study: the folder that ``calibrant study run`` writes into.
        out: made where it is missing.
        what: a figure's name, or all.
        datasets: those to draw; all that the study has where none is given.
        format: svg, png or pdf.
        progress: told after each figure.
    """
    pick("format", format, FORMATS)
    choices = {name: [figure] for name, figure in figures().items()} | {ALL: list(figures().values())}
    source = Study(Path(study), tuple(dict.fromkeys(datasets)))
    jobs = [(figure.name, job) for figure in pick("figure", what, choices) for job in figure.jobs(source)]
    paths, missing = [], []
    for done, (name, job) in enumerate(jobs, start=1):
        try:
            drawing = job()
        except NotMeasured as error:
            missing.append(f"{name} is not drawn: {error}")
        else:
            path = Path(out) / f"{drawing.name}.{format}"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path.with_suffix(".txt"), f"{drawing.caption}\n")
            write_bytes(path, figure_bytes(drawing.figure, format))
            paths.append(path)
        if progress is not None:
            progress("figures", done, len(jobs))
    if not paths:
        raise UserError(missing[0])
    return Written(paths, missing)
