"""One HTML page that needs nothing else: models side by side, their numbers, their answers, a verdict."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from calibrant._system.atomic import check_folder, write_text
from calibrant.errors import UserError, visible
from calibrant.metrics.bootstrap import DRAWS, noise
from calibrant.metrics.per_class import per_class
from calibrant.pages.cards import cards
from calibrant.pages.comparison import Comparison, shown
from calibrant.pages.entry import Entry
from calibrant.pages.figures import sections
from calibrant.pages.plots import figure_svg
from calibrant.types import Progress


def write_report(
    path: str | Path,
    title: str,
    entries: Sequence[Entry],
    *,
    examples: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
    provenance: Mapping[str, str] | None = None,
    draws: int = DRAWS,
    progress: Progress | None = None,
) -> Path:
    """Write the page and return its path. The file is complete or not there at all.

    Args:
        path: an ``.html`` file; missing directories are made.
        title: the heading.
        entries: the models, asked about the same texts, in this order; names must differ.
        examples: texts with each model's answer: ``{"kind": "unfamiliar", "text": …, "truth": … or None,
            "answers": {entry name: {"label": …, "confidence": …, "familiarity": … or nothing}}}``.
        notes: sentences on what data, from where, by which command.
        provenance: name → value for the foot of the page: versions, seeds, fingerprints.
        draws: of the bootstrap that gives the intervals.
        progress: told of each draw.
    """
    names = [entry.name for entry in entries]
    if not names or len(set(names)) < len(names):
        raise UserError(f"A report needs one or more models with different names, got {names}.")
    unknown = {name for example in examples for name in example["answers"]} - set(names)
    if unknown:
        raise UserError(f"Examples may only hold answers of {names}, got {sorted(unknown)} as well.")
    check_place(Path(path))
    drawn = _sections(entries)
    chance = noise([e.test for e in entries], [e.ood for e in entries], draws=draws, progress=progress)
    comparison = Comparison(entries, chance)
    script = _read("page.js")
    html = (
        _environment()
        .from_string(_read("page.html.j2"))
        .render(
            title=title,
            entries=entries,
            cards=cards(comparison),
            sections=drawn,
            groups=comparison.groups(),
            tables=[_classes(entry) for entry in entries if entry.label_names],
            examples=_by_kind(examples),
            notes=notes,
            settings=_settings(entries),
            verdicts=[entry for entry in entries if entry.verdict],
            provenance=provenance or {},
            style=Markup(_read("page.css")),  # safe: files of this package
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )
    return _write(Path(path), html)


def _shown_data(value: Any) -> Any:
    """What the template puts in, before it is escaped; a line break is a space to HTML."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "\n".join(map(visible, value.splitlines()))


def check_place(path: Path) -> None:
    """Refuse a place that no page can be written to; for those who do long work first."""
    if path.is_dir():
        raise UserError(f"The report is one file, but {path} is a directory; give a name ending in .html.")
    check_folder(path.parent, "the report")


def _sections(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The figures as SVG; safe: matplotlib escapes its text, and figure_svg the words."""
    return [
        {
            "name": section.name,
            "title": section.title,
            "lead": section.lead,
            "drawn": [
                {
                    "caption": drawn.caption,
                    "svg": Markup(figure_svg(drawn.figure, f"{section.name}{i}-", drawn.words)),
                }
                for i, drawn in enumerate(section.drawn)
            ],
        }
        for section in sections(entries)
    ]


def _classes(entry: Entry) -> dict[str, Any]:
    rows = list(zip(entry.label_names, per_class(entry.test), strict=True))
    return {"name": entry.name, "label_names": entry.label_names, "rows": rows}


def _by_kind(examples: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    kinds = dict.fromkeys(example["kind"] for example in examples)
    return [(kind, [example for example in examples if example["kind"] == kind]) for kind in kinds]


def _settings(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """A row for each setting that any of them has."""
    rows = []
    for name in dict.fromkeys(name for entry in entries for name in entry.settings):
        values = [entry.settings.get(name, "–") for entry in entries]
        rows.append({"name": name, "cells": values, "differs": len(set(values)) > 1})
    return rows


def _environment() -> Environment:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown_data
    )
    environment.filters |= {
        "code": _code,
        "percent": lambda value: "–" if value is None else shown(value),
        "capitalize_first": lambda text: text[:1].upper() + text[1:],
    }
    return environment


def _code(text: str) -> Markup:
    """Escaped, with what stands in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(visible(text)))))


def _read(name: str) -> str:
    return files("calibrant.pages").joinpath(name).read_text(encoding="utf-8")


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path
