"""What a peer does, in an environment of its own: no calibrant here. See peers.py.

    python peer_workers.py PEER asked.json said.npz

A peer takes labelled texts, and gives class probabilities of the test and of the unfamiliar texts.
"""

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np


def embedded(asked, texts):
    """Means over the tokens of the frozen encoder, which it was made for, (n, h)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(asked["encoder"])
    encoder = AutoModel.from_pretrained(asked["encoder"]).eval()
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    found = np.empty((len(texts), encoder.config.hidden_size), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), 32):
            chosen = order[start : start + 32]
            batch = tokenizer(
                [texts[i] for i in chosen],
                padding=True,
                truncation=True,
                max_length=asked["max_length"],
                return_tensors="pt",
            )
            hidden = encoder(**batch).last_hidden_state
            mask = batch["attention_mask"][..., None]
            found[chosen] = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    return found


def sklearn(asked):
    """Logistic regression on frozen features in CalibratedClassifierCV: sigmoids, five folds.

    Only ``max_iter`` is not the default, 100, which ends before the optimum.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression

    model = CalibratedClassifierCV(LogisticRegression(max_iter=1000))
    model.fit(embedded(asked, asked["texts"]), asked["labels"])
    return [model.predict_proba(embedded(asked, asked[part])) for part in ("test", "ood")]


def trainer(asked):
    """transformers.Trainer with its own TrainingArguments: 3 epochs, batches of 8, learning rate 5e-5."""
    from datasets import Dataset
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    set_seed(asked["seed"])
    tokenizer = AutoTokenizer.from_pretrained(asked["encoder"])
    model = AutoModelForSequenceClassification.from_pretrained(asked["encoder"], num_labels=asked["classes"])

    def encoded(texts, labels=None):
        rows = {"text": texts} | ({} if labels is None else {"label": labels})
        return Dataset.from_dict(rows).map(
            lambda batch: tokenizer(batch["text"], truncation=True, max_length=asked["max_length"]),
            batched=True,
            remove_columns="text",
        )

    with tempfile.TemporaryDirectory() as folder:
        own = Trainer(
            model,
            TrainingArguments(folder, report_to="none", disable_tqdm=True, seed=asked["seed"]),
            train_dataset=encoded(asked["texts"], asked["labels"]),
            processing_class=tokenizer,
        )
        own.train()
        logits = [own.predict(encoded(asked[part])).predictions for part in ("test", "ood")]
    return [softmax(z) for z in logits]


def setfit(asked):
    """SetFit: contrastive training of the encoder, then its logistic regression on all texts.

    It is made for few texts: of thousands it would make millions of pairs. So ``max_steps``, an option of its
    own, ends the contrastive part when each text was in four pairs: the study has four epochs. All else is as
    it comes.
    """
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(asked["encoder"])
    model.model_body.max_seq_length = asked["max_length"]
    with tempfile.TemporaryDirectory() as folder:
        own = Trainer(
            model=model,
            args=TrainingArguments(
                folder, max_steps=max(1, len(asked["texts"]) // 8), report_to="none", seed=asked["seed"]
            ),
            train_dataset=Dataset.from_dict({"text": asked["texts"], "label": asked["labels"]}),
        )
        own.train()
    return [np.asarray(model.predict_proba(asked[part], as_numpy=True)) for part in ("test", "ood")]


def autointent(asked):
    """AutoIntent's smallest preset, with this encoder as its embedder; its scorer's scores."""
    from autointent import Dataset, Pipeline
    from autointent.configs import SentenceTransformerEmbeddingConfig

    rows = [{"utterance": t, "label": y} for t, y in zip(asked["texts"], asked["labels"], strict=True)]
    pipeline = Pipeline.from_preset("classic-light")
    pipeline.set_config(SentenceTransformerEmbeddingConfig(model_name=asked["encoder"]))
    pipeline.fit(Dataset.from_dict({"train": rows}))
    return [_scores(pipeline, asked[part]) for part in ("test", "ood")]


def _scores(pipeline, texts):
    found = pipeline.predict_with_metadata(list(texts))
    p = np.maximum(np.array([one.score for one in found.utterances], dtype=np.float64), 1e-12)
    return p / p.sum(axis=1, keepdims=True)


def softmax(z):
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return z / z.sum(axis=1, keepdims=True)


LIBRARIES = {"sklearn": "scikit-learn", "trainer": "transformers"}


def main():
    peer, asked, said = sys.argv[1:]
    with open(asked) as file:
        work = json.load(file)
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(work["seed"])
    started = time.perf_counter()
    test, ood = globals()[peer](work)
    told = {"seconds": round(time.perf_counter() - started, 1)}
    told["versions"] = {
        LIBRARIES.get(peer, peer): version(LIBRARIES.get(peer, peer)),
        "torch": torch.__version__,
    }
    np.savez(said, test=test, ood=ood, told=json.dumps(told))


if __name__ == "__main__":
    main()
