"""Seconds until the accuracy that plain training by ``transformers.Trainer`` ends with.

    CALIBRANT_DATA=… python benchmarks/time_to_accuracy.py [--dataset banking77] [--threads 2]

Plain: the architecture's own head, random at the start, 8 epochs, the settings of `calibrant train`; by
``transformers.Trainer``, and as `calibrant train --method bert` does. Ours: as `calibrant train` does, the
linear probe and then fine-tuning. After the probe and after each epoch the accuracy on test is measured; the
clocks stand still meanwhile. Texts, batches and learning rate are the same.
"""

import argparse
import json
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from transformers import DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments, set_seed

from calibrant import CalibratedTrainer, RunConfig
from calibrant._system.device import machine
from calibrant.classifier import outputs_of
from calibrant.data.encode import Collate, EncodedTexts, encode
from calibrant.inference.single import SinglePass
from calibrant.models import fast
from calibrant.models.pretrained import load_classifier
from calibrant.models.probe import head_layer
from calibrant.recipe import read_recipe
from calibrant.training import start_head
from recipe import split

STOCK, PLAIN, OURS = "transformers.Trainer", "calibrant train --method bert", "calibrant train"
OUT = Path(__file__).parents[1] / "results" / "time-to-accuracy"


class Clock(TrainerCallback):
    """Seconds of training at the end of each epoch, and the accuracy on test then."""

    def __init__(self, model, accuracy):
        self.model, self.accuracy = model, accuracy
        self.seconds = self.cpu_seconds = 0.0
        self.seen = []
        self.start()

    def start(self):
        self.begun, self.worked = time.perf_counter(), time.process_time()

    def look(self):
        self.seconds += time.perf_counter() - self.begun
        self.cpu_seconds += time.process_time() - self.worked
        spent = {"seconds": round(self.seconds, 1), "cpu_seconds": round(self.cpu_seconds, 1)}
        self.seen.append(spent | {"accuracy": self.accuracy(self.model)})
        print(self.seen[-1], flush=True)
        self.start()

    def on_epoch_end(self, args, state, control, **kwargs):
        self.look()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dataset", default="banking77")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    splits, parts = split(asked.dataset, asked.seed)
    test = parts["test"]
    config = RunConfig(train="texts of the benchmark", seed=asked.seed)
    names, recipe = splits.label_names, read_recipe(config)
    rate = recipe.method.learning_rate  # of the default encoder; plain training does better with it, too
    truth = np.array([names.index(label) for label in test.labels])

    def prepare(pooling):
        set_seed(asked.seed)
        model, tokenizer = load_classifier(config.model, names, None, (), pooling)
        rows = encode(tokenizer, test.texts, config.max_length)

        def accuracy(model):
            said = outputs_of(SinglePass(), [model.eval()], rows, tokenizer.pad_token_id)
            model.train()
            return float((said.logits.argmax(axis=1) == truth).mean())

        labels = [names.index(label) for label in splits.train.labels]
        return (
            model,
            tokenizer,
            EncodedTexts(encode(tokenizer, splits.train.texts, config.max_length), labels),
            accuracy,
        )

    def arguments(folder):
        return TrainingArguments(
            output_dir=folder,
            num_train_epochs=config.epochs,
            per_device_train_batch_size=config.batch_size,
            learning_rate=rate,
            train_sampling_strategy="group_by_length",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
            seed=asked.seed,
        )

    seen = {}
    with tempfile.TemporaryDirectory() as folder:
        model, tokenizer, texts, accuracy = prepare("native")
        rows = [
            {"input_ids": row, "labels": label} for row, label in zip(texts.rows, texts.labels, strict=True)
        ]
        clock = Clock(model, accuracy)
        Trainer(
            model,
            arguments(folder),
            data_collator=DataCollatorWithPadding(tokenizer),
            train_dataset=rows,
            callbacks=[clock],
        ).train()
        seen[STOCK] = clock.seen

        for name, pooling in ((PLAIN, "native"), (OURS, recipe.method.pooling)):
            model, tokenizer, texts, accuracy = prepare(pooling)
            clock = Clock(model, accuracy)
            if name == OURS:
                fast.apply(model.eval())
                padded = texts.rows, tokenizer.pad_token_id
                said = outputs_of(SinglePass(), [model], *padded, frozenset({"head"}))
                start_head(head_layer(model, *padded), said, np.asarray(texts.labels))
                fast.remove(model)
                clock.look()
            CalibratedTrainer(
                model,
                arguments(folder),
                data_collator=Collate(tokenizer.pad_token_id),
                train_dataset=texts,
                processing_class=tokenizer,
                objective=recipe.objective,
                callbacks=[clock],
            ).train()
            seen[name] = clock.seen
    plain, ours = seen[STOCK], seen[OURS]
    goal = plain[-1]["accuracy"]
    first = next((one for one in ours if one["accuracy"] >= goal), None)
    found = {
        "dataset": asked.dataset,
        "goal": goal,
        "plain_seconds": plain[-1]["seconds"],
        "our_seconds": None if first is None else first["seconds"],
        "ratio": None if first is None else round(plain[-1]["seconds"] / first["seconds"], 1),
        "whole": {name: ours[-1]["cpu_seconds"] / seen[name][-1]["cpu_seconds"] for name in (STOCK, PLAIN)},
        "best_of_plain": max(one["accuracy"] for one in plain),
        "best_of_ours": max(one["accuracy"] for one in ours),
        "seen": seen,
        "settings": {
            "epochs": config.epochs,
            "batch_size": config.batch_size,
            "learning_rate": rate,
        },
        "threads": asked.threads,
        "command": f"python benchmarks/time_to_accuracy.py --dataset {asked.dataset} --seed {asked.seed}",
        "versions": {package: version(package) for package in ("calibrant", "torch", "transformers")},
        "machine": machine(),
    }
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / f"{asked.dataset}_seed={asked.seed}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(
        json.dumps({name: found[name] for name in ("goal", "plain_seconds", "our_seconds", "ratio", "whole")})
    )


if __name__ == "__main__":
    main()
