"""The model card of a run: what was trained, on what, and how far its confidence can be trusted."""

from typing import Any


def model_card(method: str, record: dict[str, Any], measured: dict[str, Any] | None) -> str:
    """Markdown for ``RUN/README.md``."""
    config, labels = record["config"], record["labels"]
    lines = [
        "---",
        "library_name: transformers",
        "pipeline_tag: text-classification",
        "tags: [calibrant, calibration]",
        "---",
        "",
        f"# A text classifier of {len(labels)} classes, trained with calibrant",
        "",
        f"Method: `{method}` (objective `{record['objective']['name']}`, inference "
        f"`{record['method']['inference']}`), encoder `{config['model']}`, seed {config['seed']}.",
        "",
        "## Data",
        "",
        *(
            f"- {part}: {about['n']} texts, {about['source']} (fingerprint `{about['fingerprint']}`)"
            for part, about in record["data"].items()
        ),
        "",
        "## Calibration",
        "",
    ]
    if record["calibrator"] is not None:
        name, about = record["calibrator"]["name"], record["calibrator"]["fitted_on"]
        lines += [
            f"Calibrator: `{name}`, fitted on {about['n']} texts ({about['source']}). "
            "It is part of what `calibrant.load` answers, and not of `model/` alone.",
            "",
        ]
    if measured is None:
        lines += ["Not measured yet: `calibrant evaluate RUN --test test.csv --ood other.csv`."]
    else:
        m, on = measured["metrics"], measured["measured_on"]
        lines += [
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
    lines += [
        "",
        "Confidence close to accuracy means that, of the texts answered with 80 %, about 80 in 100 are "
        "right. The figures hold for text like that they were measured on.",
        "",
        "## Classes",
        "",
        ", ".join(f"`{name}`" for name in labels),
        "",
    ]
    return "\n".join(lines)
