"""What an export keeps of a run: ONNX against the run, int8 against plain onnxruntime int8.

    python benchmarks/exports.py quality RUN --test test.parquet --ood other.parquet --work DIR --out a.json
    python benchmarks/exports.py speed --work DIR --test test.parquet --out a.json    # on a quiet machine

``quality`` writes the graphs into DIR, asks each for the first 1,000 and 500 texts of the two files, and
measures. ``speed`` asks the same graphs in turn, so that what else the machine does falls on all of them.
"""

import argparse
import json
import platform
import shlex
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import torch
from onnxruntime.quantization import quantize_dynamic
from sklearn.metrics import roc_auc_score

import calibrant
from calibrant.data.encode import encode
from calibrant.data.files import read_file
from calibrant.exports.answers import Answers, difference, of_the_run, steps
from calibrant.exports.checked import checked
from calibrant.exports.decided import decided
from calibrant.exports.int8 import quantised
from calibrant.exports.onnx import Session, seeing
from calibrant.exports.refit import refitted, texts_to_fit
from calibrant.metrics.dev import dev_figures
from calibrant.tasks.export import whole_graph

TEXTS, OOD, ALONE, TIMED, ROUNDS = 1000, 500, 200, 320, 5
FLOAT, OURS = "float32", "int8 by token, fitted again"


def silent(*_):
    """No progress."""


def plain_int8(first, work, **how):
    """As onnxruntime does it."""
    before, after = work / "before.onnx", work / "after.onnx"
    copy = onnx.ModelProto()
    copy.CopyFrom(first)
    del copy.graph.value_info[:]  # or onnxruntime refuses what it has written
    onnx.save(copy, before)
    quantize_dynamic(before, after, **how)
    found = onnx.load(after)
    for file in (before, after):
        file.unlink()
    return found


def write_graphs(classifier, work):
    """Every contender, as DIR/NAME.onnx; the figures of dev where there are any."""
    own, (model,) = classifier.calibrator, classifier.models
    texts = checked(classifier)
    first = seeing(decided(model, own, classifier.rule), texts.rows, texts.padding)
    plain, by_token = plain_int8(first, work), quantised(first)
    own_texts = texts_to_fit(classifier.run)
    for_plain, plain_lost = refitted(plain, classifier, own_texts, 1.0, silent)
    for_ours, lost = refitted(by_token, classifier, own_texts, 1.0, silent)
    graphs = {
        FLOAT: (first, own),
        "plain int8": (plain, own),
        "plain int8, fitted again": (plain, for_plain),
        "plain int8 per channel": (plain_int8(first, work, per_channel=True), own),
        OURS: (by_token, for_ours),
    }
    for name, (half, calibrator) in graphs.items():
        onnx.save(whole_graph(half, classifier, calibrator), work / f"{name}.onnx")
    return list(graphs), {"plain int8, fitted again": plain_lost, OURS: lost}


def answers(found):
    return Answers(found["probabilities"], found.get("familiarity"), found["abstain"])


def quality(options):
    classifier = calibrant.load(options.run)
    test, ood = (
        read_file(file, labelled=labelled) for file, labelled in ((options.test, True), (options.ood, False))
    )
    texts, others = list(test.texts[:TEXTS]), list(ood.texts[:OOD])
    labels = classifier.class_ids(test)[:TEXTS]
    said = classifier.outputs(texts, classifier.rule.needs)
    run, left_out = of_the_run(said, classifier.rule), steps(classifier.calibrator, classifier.rule, said)
    of_ood = classifier.outputs(others).probabilities
    names, lost = write_graphs(classifier, options.work)
    rows, of_others = (encode(classifier.tokenizer, each, classifier.max_length) for each in (texts, others))
    padding = classifier.tokenizer.pad_token_id
    table = {"the run": figures(run.probabilities, labels, of_ood)}
    for name in names:
        session = Session(options.work / f"{name}.onnx", threads=1)
        found = session(rows, padding)
        alone = session(rows[:ALONE], padding, batch_size=1)["probabilities"]
        p = found["probabilities"]
        table[name] = figures(p, labels, session(of_others, padding)["probabilities"]) | {
            "MB": round((options.work / f"{name}.onnx").stat().st_size / 1e6, 1),
            "other labels than the run": float(np.mean(p.argmax(1) != run.probabilities.argmax(1))),
            "largest difference from the run": difference(run, answers(found), np.zeros(len(p), dtype=bool)),
            "the same asked alone: other labels": float(np.mean(p[:ALONE].argmax(1) != alone.argmax(1))),
            "the same asked alone: largest difference": float(np.abs(p[:ALONE] - alone).max()),
        }
        if name in lost:
            table[name]["dev"] = {"before": lost[name].before, "after": lost[name].after}
        print(name, json.dumps(table[name], indent=1), flush=True)
    about = {
        "texts": len(texts),
        "ood": {"file": Path(options.ood).parent.name, "texts": len(others)},
        "texts at a step of the run's answer, compared all the same": int(left_out.sum()),
        "largest difference of float32 without these": difference(
            run, answers(Session(options.work / f"{FLOAT}.onnx", threads=1)(rows, padding)), left_out
        ),
    }
    return {"quality": {"about": about, "table": table}}


def figures(p, labels, of_ood):
    kept = dev_figures(p, labels)
    unfamiliar = np.concatenate([np.zeros(len(p)), np.ones(len(of_ood))])
    confidence = np.concatenate([p.max(axis=1), of_ood.max(axis=1)])
    return {
        "accuracy": kept["accuracy"],
        "ece": kept["ece"],
        "ood_auroc": float(roc_auc_score(unfamiliar, -confidence)),
        "mean confidence on ood": float(of_ood.max(axis=1).mean()),
    }


def speed(options):
    """Texts per second of one thread, the median of rounds in which each graph has its turn."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.tokenizer)
    texts = list(read_file(options.test, labelled=True).texts[:TIMED])
    rows = encode(tokenizer, texts, 128)
    names = [FLOAT, "plain int8", OURS]
    sessions = {name: Session(options.work / f"{name}.onnx", threads=1) for name in names}
    found = {name: {size: [] for size in (1, 32)} for name in names}
    for _ in range(ROUNDS + 1):
        for size in (1, 32):
            for name in names:
                start = time.perf_counter()
                sessions[name](rows, tokenizer.pad_token_id, batch_size=size)
                found[name][size].append(len(rows) / (time.perf_counter() - start))
    table = {  # the first round warms up
        name: {
            f"batches of {size}": {"texts per second": float(np.median(all_[1:])), "rounds": all_[1:]}
            for size, all_ in of_size.items()
        }
        for name, of_size in found.items()
    }
    print(json.dumps(table, indent=1))
    return {"speed": {"texts": len(texts), "threads": 1, "table": table}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("run", nargs="?")
    parser.add_argument("--test", required=True)
    parser.add_argument("--ood")
    parser.add_argument("--tokenizer")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    found = {"quality": quality, "speed": speed}[options.what](options)
    before = json.loads(options.out.read_text()) if options.out.exists() else {}
    about = {
        "versions": {n: version(n) for n in ("torch", "transformers", "onnx", "onnxruntime", "numpy")},
        "machine": f"{platform.machine()}, {processor()}, Python {platform.python_version()}",
    }
    commands = before.get("commands", {}) | {options.what: shlex.join(["python", *sys.argv])}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(before | about | {"commands": commands} | found, indent=1) + "\n")


def processor():
    info = Path("/proc/cpuinfo").read_text()
    name = next((line.split(":")[1].strip() for line in info.splitlines() if "model name" in line), "")
    return f"{name}{' with VNNI' if 'avx512_vnni' in info else ''}"


if __name__ == "__main__":
    main()
