"""``calibrant export``: a run as something that answers without calibrant.

Plain transformers where that can give the run's probabilities, else a folder with its own code; ONNX with the
whole decision in the graph; the hub. The folder is there only if each of these, asked for texts, answered as
the run does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant._system.atomic import new_folder, write_bytes, write_text
from calibrant._system.progress import in_notebook
from calibrant._system.quiet import quiet
from calibrant.calibrators import Calibrator
from calibrant.classifier import Classifier, load
from calibrant.errors import UserError
from calibrant.exports import hub
from calibrant.exports.checked import Checked, checked
from calibrant.exports.code import code_answers, write_code
from calibrant.exports.decided import check_decided, decided, decision, decision_of
from calibrant.exports.int8 import quantised
from calibrant.exports.onnx import (
    answers_of,
    check_onnx_installed,
    deciding,
    joined,
    seeing,
    told_in_one_sentence,
)
from calibrant.exports.plain import check_target, is_plain, plain_answers, write_plain
from calibrant.exports.refit import Lost, refitted, texts_to_fit
from calibrant.inference.single import SinglePass
from calibrant.runs.card import Form, model_card
from calibrant.runs.public import base_model, public_metrics, public_record
from calibrant.scores import FittedScore
from calibrant.types import Progress

TOLERANCE = 1e-5
"""Rounding in float32 comes to 4e-7 with MiniLM; a calibrator folded into the wrong layer to far more."""
ONNX_TOLERANCE = 1e-4
ONNX, INT8 = "model.onnx", "model_quantized.onnx"  # as Optimum and transformers.js call them
MAX_LOSS = 0.01


@dataclass(frozen=True)
class Exported:
    """What was written, and the largest difference of an answer from the run's."""

    folder: Path
    needs_code: bool  # whether it is for pipeline(…, trust_remote_code=True)
    calibrator: str | None
    difference: float  # of transformers' pipeline
    onnx_difference: float | None = None  # of model.onnx, where it was asked for
    int8: Lost | None = None
    address: str | None = None  # of its page on the hub


def export(
    run: Path | str,
    *,
    folder: Path | str,
    onnx: bool = False,
    int8: bool = False,
    max_loss: float = MAX_LOSS,
    push: str | None = None,
    license: str | None = None,
    progress: Progress = in_notebook,
) -> Exported:
    """Write a run as a folder that needs no calibrant: weights, tokenizer, model card and what is asked for.

    Args:
        run: its folder.
        folder: a new one, or one that is empty.
        onnx: also ``model.onnx``.
        int8: also ``model_quantized.onnx``, with temperature and familiarity fitted again.
        max_loss: refuse that where it loses more than this of accuracy, or of ECE, on dev.
        push: also to the hub, under this name, as in user/model; a new repository there is private.
        license: for the card, as in apache-2.0; on the hub the encoder's where it is not given.
        progress: told of each step.
    """
    check_target(folder)
    for option in ["--onnx"] * onnx + ["--int8"] * int8:
        check_onnx_installed(option)
    if push is not None:
        hub.check_push(push)
    classifier = load(run)
    check_export(classifier, run, onnx, int8)
    (model,), calibrator, rule = classifier.models, classifier.calibrator, classifier.rule
    own = classifier.own_run("Exports")
    fit_on = texts_to_fit(own) if int8 else None
    progress("export", 0, 3)
    model.cpu()  # where what it is compared with runs, since a GPU may round more
    texts = checked(classifier)
    graphs, onnx_difference, lost = {}, None, None
    if onnx or int8:
        with told_in_one_sentence(model):
            first = seeing(decided(model, calibrator, rule), texts.rows, texts.padding)
            if onnx:
                graphs[ONNX] = whole_graph(first, classifier, calibrator)
                answers = answers_of(graphs[ONNX], texts.batches, texts.padding)
                onnx_difference = texts.difference(answers)
                who = f"The ONNX file of {type(model).__name__}"
                _check(onnx_difference, ONNX_TOLERANCE, who, "leave --onnx out")
            if fit_on is not None:
                small = quantised(first)
                fitted, lost = refitted(small, classifier, fit_on, max_loss, progress)
                graphs[INT8] = whole_graph(small, classifier, fitted)
    progress("export", 1, 3)
    measured, base = public_metrics(own.metrics()), base_model(own.config.model)
    if push is not None and license is None:
        license = hub.licence_of(base)
    form = Form(
        push or Path(folder).name,
        texts.max_length,
        needs_code := not is_plain(model, calibrator),
        onnx,
        None if lost is None else lost.in_words(),
        hub.front(push or own.name, base, license, measured),
        own.config.pair_column is not None,
    )
    card = model_card(own.name, public_record(own.record), measured, form)
    difference = write_folder(folder, classifier, texts, card, graphs)
    progress("export", 2, 3)
    address = None if push is None else hub.push(push, Path(folder), own)
    progress("export", 3, 3)
    name = None if calibrator is None else calibrator.name
    return Exported(Path(folder), needs_code, name, difference, onnx_difference, lost, address)


def check_export(classifier: Classifier, run: Path | str, onnx: bool, int8: bool) -> None:
    """Refuse early what no export can hold."""
    if not isinstance(classifier.inference, SinglePass):
        raise UserError(
            f"{run} answers with the mean of several passes ({classifier.inference.name}), which one plain "
            "model cannot give; export a run that was trained with --inference single."
        )
    (model,), rule = classifier.models, classifier.rule
    if onnx or int8 or not is_plain(model, classifier.calibrator):
        check_decided(model, classifier.calibrator, rule)
    if int8 and isinstance(rule.score, FittedScore):
        raise UserError(
            f"--int8: the rule of abstention reads the score {rule.score.name!r}, whose cut was learnt for "
            "the model as it is; leave --int8 out, or learn a rule with `--score max-probability`."
        )


@quiet()
def write_folder(
    folder: Path | str, classifier: Classifier, texts: Checked, card: str, graphs: Mapping[str, Any]
) -> float:
    """Write a classifier, check it, and give the largest difference; a plain one takes its calibrator in."""
    (model,), tokenizer = classifier.models, classifier.tokenizer
    tokenizer.model_max_length = texts.max_length
    tokenizer.padding_side = "right"  # as in training
    with new_folder(Path(folder)) as unfinished:
        if is_plain(model, classifier.calibrator):
            write_plain(unfinished, model, tokenizer, classifier.calibrator, texts.rows[:8])
            answers = plain_answers(unfinished, texts.texts, classifier.label_names)
        else:
            whole = decided(model, classifier.calibrator, classifier.rule)
            write_code(unfinished, whole, tokenizer)
            answers = code_answers(unfinished, texts.texts, classifier.label_names)
        difference = texts.difference(answers)
        instead = "use calibrant.load on the run itself"
        _check(difference, TOLERANCE, f"Plain transformers with this {type(model).__name__}", instead)
        write_text(unfinished / "README.md", card)
        for name, graph in graphs.items():
            write_bytes(unfinished / name, graph.SerializeToString())
    return difference


def whole_graph(first: Any, classifier: Classifier, calibrator: Calibrator | None) -> Any:
    """One graph, of a first half and the decision that goes with it."""
    arrays, settings = decision_of(len(classifier.label_names), calibrator, classifier.rule)
    widths = [value.type.tensor_type.shape.dim[1].dim_value for value in first.graph.output]
    return joined(first, deciding(decision(arrays, settings), widths))


def _check(difference: float, tolerance: float, who: str, instead: str) -> None:
    if not difference <= tolerance:  # so that NaN fails
        raise UserError(
            f"{who} gives answers that are off by {difference:.2g}, more than {tolerance:g}; nothing was "
            f"written. Instead, {instead}."
        )
