"""The model card of a run: what was trained, on what, and how far its confidence can be trusted."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from calibrant.errors import visible
from calibrant.runs.record import Record, ThresholdRecord
from calibrant.types import Provenance

FRONT = """---
library_name: transformers
pipeline_tag: text-classification
tags: [calibrant, calibration]
---
"""
"""What the hub reads."""
FOLDED = "It is folded into the last linear layer."
GRAPH = (
    "takes `input_ids` and `attention_mask` of any batch size and length, and gives the whole decision: "
    "`probabilities` (calibrated), `logits` (their logarithms), `familiarity` (where it is told), `abstain`."
)


def code(data: str) -> str:
    """Data inside Markdown: a code span, which shows what is in it and obeys nothing.

    >>> code("a`b")
    '``a`b``'
    """
    text = visible(data)
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    # One space at each end is taken off again; it keeps backticks at the ends apart from the fence.
    room = " " if text[:1] in ("`", " ", "") or text[-1:] in ("`", " ") else ""
    return f"{fence}{room}{text}{room}{fence}"


def figures_in_words(measured: dict[str, Any], classes: int) -> list[str]:
    """What ``evaluate`` found, and on what."""
    m, on = measured["metrics"], measured["measured_on"]
    lines = [
        f"Measured on {m['n_test']} texts ({code(on['test']['source'])}): accuracy {m['accuracy']:.1%}, mean "
        f"confidence {m['mean_confidence_test']:.1%}, expected calibration error {m['ece']:.1%}. "
        f"Misclassification NBAUCC₀.₅ {m['misclassification']['nbaucc_0.5']:.3f}.",
    ]
    if m["ood"] is not None:
        lines += [
            "",
            f"On {m['n_ood']} unfamiliar texts ({code(on['ood']['source'])}) its mean confidence is "
            f"{m['mean_confidence_ood']:.1%} (a random guess: {1 / classes:.1%}); "
            f"OOD NBAUCC₀.₅ {m['ood']['nbaucc_0.5']:.3f}.",
        ]
    return lines


@dataclass(frozen=True)
class Form:
    """What a run was exported as."""

    name: str  # what a pipeline is given: a folder, or an id of the hub
    max_length: int
    needs_code: bool = False  # whether the folder brings code of its own
    onnx: bool = False
    int8: str | None = None  # what that cost, in words
    front: str = FRONT
    pairs: bool = False  # whether it reads two texts at a time


def use_in_words(form: Form) -> list[str]:
    """How an export is asked."""
    trust, says = (", trust_remote_code=True", "") if form.needs_code else ("", "")
    answer = '[{"label": …, "score": …}, …], the most probable first'
    asked = '{"text": "a text", "text_pair": "its second"}' if form.pairs else '"a text"'
    if form.needs_code:
        says = (
            " `familiarity` is the share of familiar texts that are at least as strange as this one, where "
            "the model tells it, and `abstain` is true where it would rather not answer. The code that runs "
            "is `modeling_calibrant.py`, beside the weights."
        )
        answer = '[{"label": …, "score": …, "familiarity": …, "abstain": …}, …]'
    lines = [
        "## Use",
        "",
        "```python",
        "from transformers import pipeline",
        "",
        f'classifier = pipeline("text-classification", "{form.name}"{trust}, truncation=True, top_k=None)',
        f"classifier({asked})  # {answer}",
        "```",
        "",
        f"`score` is the calibrated probability.{says} `truncation=True` cuts texts at {form.max_length} "
        "tokens, as when it was measured; without it a longer text is read on, or fails.",
        "",
    ]
    if form.onnx:
        lines += [f"`model.onnx` {GRAPH}", ""]
    if form.int8 is not None:
        also = "is the same" if form.onnx else GRAPH.rstrip(".")
        lines += [f"`model_quantized.onnx` {also}, in integers of 8 bits: {form.int8}", ""]
    if form.pairs and (form.onnx or form.int8 is not None):
        lines += ["It takes `token_type_ids`, too, where the model tells a pair's texts apart by them.", ""]
    return lines


def model_card(method: str, record: Record, measured: dict[str, Any] | None, form: Form | None = None) -> str:
    """Markdown for ``RUN/README.md``, or for an export of the run in this form."""
    config, labels = record.config, record.labels
    lines = [
        FRONT if form is None else form.front,
        f"# A text classifier of {len(labels)} classes, trained with calibrant",
        "",
        f"Method: {code(method)} (objective {code(record.objective['name'])}, inference "
        f"{code(record.method.inference)}), encoder {code(config.model)}, seed {config.seed}.",
        "",
        *([] if form is None else use_in_words(form)),
        "## Data",
        "",
        *(
            f"- {part}: {about.n} texts, {code(about.source)} (fingerprint {code(about.fingerprint)})"
            for part, about in (("train", record.data.train), ("dev", record.data.dev))
        ),
        "",
        "## Calibration",
        "",
    ]
    if record.calibrator is not None:
        name, about = record.calibrator.name, record.calibrator.fitted_on
        where = "It is part of what `calibrant.load` answers, and not of `model/` alone."
        if form is not None:
            where = "It is part of this model." if form.needs_code else FOLDED
        lines += [
            f"Calibrator: {code(name)}, fitted on {about.n} texts ({code(about.source)}). {where}",
            "",
        ]
    if measured is None:
        lines += ["Not measured yet: `calibrant evaluate RUN --test test.csv --ood other.csv`."]
    else:
        lines += figures_in_words(measured, len(labels))
    lines += [
        "",
        "Confidence close to accuracy means that, of the texts answered with 80 %, about 80 in 100 are "
        "right. The figures hold for text like that they were measured on.",
        "",
    ]
    if record.threshold is not None:
        rule, is_plain = record.threshold, form is not None and not form.needs_code
        words = rule_of_the_run_in_words(rule) if is_plain else rule_in_words(rule, code)
        lines += ["## Abstention", "", words, ""]
        if form is not None and form.onnx and is_plain:
            lines += ["`model.onnx` abstains as the run does.", ""]
        if form is not None and form.int8 is not None:
            lines += ["`model_quantized.onnx` abstains by the same rule, without the promise.", ""]
        if measured is not None and "abstention" in measured["metrics"] and not is_plain:
            lines += [abstention_in_words(measured["metrics"]["abstention"]), ""]
    lines += [
        "## Classes",
        "",
        ", ".join(map(code, labels)),
        "",
    ]
    return "\n".join(lines)


def settings_in_words(method: str, record: Record) -> dict[str, str]:
    """How a run was trained: name → value, as a table shows it."""
    config, asked, training = record.config, record.method, record.training
    told = {
        "method": method,
        "encoder": config.model,
        "start of the head": "linear probe" if asked.start == "probe" else asked.start,
        "pooling": asked.pooling,
        "objective": _named_in_words(record.objective),
        "inference": _named_in_words(record.inference),
        "training texts": _texts_in_words(record.data.train),
        "dev texts": _texts_in_words(record.data.dev),
        "tokens at most": str(config.max_length),
    }
    if config.lora is not None:
        told["adapters"] = f"LoRA of rank {config.lora} at {config.lora_targets or 'all linear layers'}"
    if asked.frozen:
        told["encoder's weights"] = "frozen"
    else:
        batch = config.batch_size * config.gradient_accumulation_steps
        told |= {
            "epochs": f"{config.epochs} at most" if asked.patience else str(config.epochs),
            "batch size": str(batch),
            "learning rate": "the method's" if config.learning_rate is None else f"{config.learning_rate:g}",
        }
    if (weights := config.class_weights) is not None:
        told["class weights"] = weights if isinstance(weights, str) else _pairs(weights)
    if training is not None:
        if not asked.frozen:
            told["kept"] = f"{training.kept}, by {asked.keep} on dev"
        told["training time"] = f"{training.seconds:,.0f} s"
    calibrator = record.calibrator
    told["calibrator"] = (
        "none" if calibrator is None else f"{calibrator.name}, fitted on {calibrator.fitted_on.n:,} texts"
    )
    told |= {"seed": str(config.seed), "machine": record.machine, "trained": record.created}
    told["versions"] = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return {name: value for name, value in told.items() if value}


def _named_in_words(settings: dict[str, Any]) -> str:
    values = _pairs({name: value for name, value in settings.items() if name != "name"})
    return f"{settings['name']} ({values})" if values else str(settings["name"])


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _texts_in_words(about: Provenance) -> str:
    return f"{about.n:,}, {about.source}"


def rule_in_words(stored: ThresholdRecord, data: Callable[[str], str] = visible) -> str:
    """When the run answers, and what that promises; ``data`` writes names as the place takes them."""
    rule = stored.rule
    least = threshold_in_words(rule.threshold)
    when = f"It answers where its confidence is at least {least}"
    if rule.thresholds is not None:
        most = threshold_in_words(max(rule.thresholds.values()))
        when = (
            f"It answers {len(rule.thresholds)} classes, each where its confidence is at least a threshold "
            f"of its own ({least} to {most})"
        )
    if rule.score is not None:
        when += f" and its score {data(rule.score)} below {rule.cut:.4g}"
    return f"{when}, and abstains elsewhere. Promised: {_promise_in_words(stored, data)}."


def rule_of_the_run_in_words(stored: ThresholdRecord) -> str:
    """What an export, which has no rule, says of the one that the run has."""
    rule = stored.rule
    if rule.thresholds is not None:
        abstains = "has a threshold for each class: a rule that is not part of this model"
    elif rule.score is None:
        when = f"below {threshold_in_words(rule.threshold)}"
        abstains = f"abstains where its confidence is {when}; do so yourself, by `score`, to have its promise"
    else:
        abstains = (
            f"abstains by its score {code(rule.score)} too: a rule that needs calibrant and is not part of "
            "this model, and neither is its promise"
        )
    return (
        f"This plain model answers every text. The run that it was made of {abstains}: "
        f"{_promise_in_words(stored, code)}."
    )


def _promise_in_words(stored: ThresholdRecord, data: Callable[[str], str]) -> str:
    promise, learnt_on = stored.promise, stored.learnt_on
    sure = f"with confidence {promise.confidence:.4g}"
    of_what = "the texts it answers" if stored.rule.thresholds is None else "its answers with each such class"
    promised = (
        f"of {of_what} at most {promise.risk:.2%} are wrong, {sure}, on text like the "
        f"{learnt_on.dev.n} it was learnt on ({data(learnt_on.dev.source)})"
    )
    if promise.ood_rate is not None and learnt_on.ood is not None:
        promised += (
            f"; of unfamiliar texts at most {promise.ood_rate:.2%} are answered, {sure}, if they are like "
            f"the {learnt_on.ood.n} it was learnt on ({data(learnt_on.ood.source)})"
        )
    return promised


def threshold_in_words(threshold: float) -> str:
    """Four decimals, more where these would hide how far it is from 1.

    Rounded up, so that whoever compares with what is printed answers nothing that the rule would not.

    >>> threshold_in_words(0.81234567), threshold_in_words(0.99994), threshold_in_words(0.9999938558)
    ('0.8124', '0.99994', '0.9999939')
    """
    t = Decimal(str(threshold))
    decimals = max(4, 1 - (1 - t).adjusted())  # two digits of 1 − t
    return f"{t.quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING).normalize():f}"


def abstention_in_words(measured: dict[str, Any]) -> str:
    """What that rule did on other texts."""
    risk = "" if measured["risk"] is None else f", of which {measured['risk']:.1%} are wrong"
    ood = measured["ood_answered"]
    unfamiliar = "" if ood is None else f"; of the unfamiliar texts it answers {ood:.1%}"
    return f"On the test texts it answers {measured['coverage']:.1%}{risk}{unfamiliar}."
