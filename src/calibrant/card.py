"""Model cards: what was trained, on what, and how far its confidence can be trusted."""

from collections.abc import Sequence
from typing import Any


def model_card(method: str, record: dict[str, Any], measured: dict[str, Any] | None) -> str:
    """Markdown for ``RUN/README.md``."""
    lines = [*_front(record["labels"], "trained"), *origin(method, record), "", "## Calibration", ""]
    if record["calibrator"] is not None:
        lines += [
            f"{_calibrator(record['calibrator'])} "
            "It is part of what `calibrant.load` answers, and not of `model/` alone.",
            "",
        ]
    return "\n".join([*lines, *_figures(record["labels"], measured), *_end(record["labels"])])


def export_card(
    about: Sequence[str],
    labels: Sequence[str],
    calibrator: dict[str, Any] | None,
    measured: dict[str, Any] | None,
    max_length: int,
    onnx: bool,
) -> str:
    """Markdown for the README.md of a plain model.

    Args:
        about: lines on where it comes from.
        labels: the classes, in the order of their ids.
        calibrator: the state of the one that is folded in, with ``fitted_on``.
        measured: what ``evaluate`` gave with that calibrator, and on what.
        max_length: tokens at which a text is cut.
        onnx: whether there is a ``model.onnx``.
    """
    lines = [
        *_front(labels, "exported"),
        *about,
        "",
        "## Use",
        "",
        "```python",
        "from transformers import pipeline",
        "",
        'classifier = pipeline("text-classification", "THIS FOLDER", truncation=True, top_k=None)',
        'classifier("a text")  # [{"label": …, "score": …}, …], most probable first',
        "```",
        "",
        f"`score` is the calibrated probability. `truncation=True` cuts texts at {max_length} tokens, as "
        "when it was measured; without it a longer text is read on, or fails.",
    ]
    if onnx:
        lines += [
            "",
            "`model.onnx` takes `input_ids` and `attention_mask` of any batch size and length, and gives "
            "`logits`; their softmax is the calibrated probabilities.",
        ]
    lines += ["", "## Calibration", ""]
    if calibrator is not None:
        lines += [f"{_calibrator(calibrator)} It is folded into the last linear layer.", ""]
    return "\n".join([*lines, *_figures(labels, measured), *_end(labels)])


def origin(method: str, record: dict[str, Any]) -> list[str]:
    """Lines on the method and the data of a run."""
    config = record["config"]
    return [
        f"Method: `{method}` (objective `{record['objective']['name']}`, inference "
        f"`{record['method']['inference']}`), encoder `{config['model']}`, seed {config['seed']}.",
        "",
        "## Data",
        "",
        *(
            f"- {part}: {about['n']} texts, {about['source']} (fingerprint `{about['fingerprint']}`)"
            for part, about in record["data"].items()
        ),
    ]


def _front(labels: Sequence[str], done: str) -> list[str]:
    return [
        "---",
        "library_name: transformers",
        "pipeline_tag: text-classification",
        "tags: [calibrant, calibration]",
        "---",
        "",
        f"# A text classifier of {len(labels)} classes, {done} with calibrant",
        "",
    ]


def _calibrator(state: dict[str, Any]) -> str:
    about = state["fitted_on"]
    return f"Calibrator: `{state['name']}`, fitted on {about['n']} texts ({about['source']})."


def _figures(labels: Sequence[str], measured: dict[str, Any] | None) -> list[str]:
    if measured is None:
        return ["Not measured yet: `calibrant evaluate RUN --test test.csv --ood other.csv`."]
    m, on = measured["metrics"], measured["measured_on"]
    lines = [
        f"Measured on {m['n_test']} texts ({on['test']['source']}): accuracy {m['accuracy']:.1%}, mean "
        f"confidence {m['mean_confidence_test']:.1%}, expected calibration error {m['ece']:.1%}. "
        f"Misclassification NBAUCC₀.₅ {m['misclassification']['nbaucc_0.5']:.3f}.",
    ]
    if m["ood"] is not None:
        lines += [
            "",
            f"On {m['n_ood']} texts of another world ({on['ood']['source']}) its mean confidence is "
            f"{m['mean_confidence_ood']:.1%} (a random guess: {1 / len(labels):.1%}); "
            f"OOD NBAUCC₀.₅ {m['ood']['nbaucc_0.5']:.3f}.",
        ]
    return lines


def _end(labels: Sequence[str]) -> list[str]:
    return [
        "",
        "Confidence close to accuracy means that, of the texts answered with 80 %, about 80 in 100 are "
        "right. The figures hold for text like that they were measured on.",
        "",
        "## Classes",
        "",
        ", ".join(f"`{name}`" for name in labels),
        "",
    ]
