"""Other libraries on the study's splits and encoder, each by its own defaults, and how long they take.

    CALIBRANT_DATA=… python benchmarks/peers.py --datasets 20ng-15 banking77 --peers sklearn trainer
    CALIBRANT_DATA=… python benchmarks/peers.py --peers setfit --python ~/setfit/bin/python

The environments are made so:

    pip install torch==2.13.0 setfit "transformers<5"
    pip install torch==2.13.0 "autointent[sentence-transformers,catboost]" "transformers<5"

One JSON file for each dataset and peer lies in results/peers; one that is there is not made again. A peer
gets all labelled texts, train and dev of the study together, and may cut them as it likes. It runs in a
process of its own, by the Python that is named (some libraries want other versions than calibrant does), with
one thread. The time is that of training and of answering test and unfamiliar texts, its imports included.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from calibrant._system.device import machine
from calibrant.data.splits import draw
from calibrant.metrics.measure import measure
from calibrant.models.pretrained import default_encoder
from calibrant.runs.texts import load_splits
from calibrant.study.measuring import held_out
from calibrant.study.presets import PRESETS
from calibrant.types import Prediction

OUT = Path(__file__).parents[1] / "results" / "peers"
WORKER = Path(__file__).with_name("peer_workers.py")
PEERS = ("sklearn", "trainer", "setfit", "autointent")


def run(dataset: str, peer: str, python: str, most: int | None) -> dict:
    config = PRESETS["laptop"].config(dataset)
    splits = load_splits(config)
    test, ood = held_out(dataset, PRESETS["laptop"].max_test_samples if most is None else most)
    classes = {label: i for i, label in enumerate(splits.label_names)}
    texts = [*splits.train.texts, *splits.dev.texts]
    labels = [classes[label] for label in (*splits.train.labels, *splits.dev.labels)]
    if most is not None:
        few = draw(splits.train, most, "--most")
        texts, labels = list(few.texts), [classes[label] for label in few.labels]
    with tempfile.TemporaryDirectory() as folder:
        asked, said = Path(folder) / "asked.json", Path(folder) / "said.npz"
        asked.write_text(
            json.dumps(
                {
                    "texts": texts,
                    "labels": labels,
                    "classes": len(classes),
                    "test": list(test.texts),
                    "ood": list(ood.texts),
                    "encoder": str(default_encoder()),
                    "max_length": config.max_length,
                    "seed": 0,
                }
            )
        )
        subprocess.run([python, str(WORKER), peer, str(asked), str(said)], check=True)
        with np.load(said) as found:
            p_test, p_ood, told = found["test"], found["ood"], json.loads(str(found["told"]))
    familiar = Prediction(p_test.astype(np.float64), np.array([classes[label] for label in test.labels]))
    return {
        "dataset": dataset,
        "peer": peer,
        "texts": {"train": len(texts), "test": len(test), "ood": len(ood)},
        "metrics": measure(familiar, Prediction(p_ood.astype(np.float64))),
        **told,
        "machine": machine(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="*", default=["20ng-15", "banking77", "yahoo-8", "20ng", "yahoo"])
    parser.add_argument("--peers", nargs="*", default=["sklearn", "trainer"], choices=PEERS)
    parser.add_argument("--python", default=sys.executable, help="of the peers' environment")
    parser.add_argument("--most", type=int, help="texts of each kind, to try it out")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for dataset in arguments.datasets:
        for peer in arguments.peers:
            path = arguments.out / f"{dataset}_{peer}.json"
            if not path.exists():
                found = run(dataset, peer, arguments.python, arguments.most)
                path.write_text(json.dumps(found, indent=1) + "\n")
                m = found["metrics"]
                print(path.stem, f"accuracy {m['accuracy']:.3f}, ECE {m['ece']:.3f}", found["seconds"], "s")


if __name__ == "__main__":
    main()
