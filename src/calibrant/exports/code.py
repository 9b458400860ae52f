"""A folder that brings its own code, ``modeling_calibrant.py``, for what plain transformers has no layer for.

``pipeline("text-classification", DIR, trust_remote_code=True)`` runs that file. We ourselves never do: a
folder is checked with the classes that are in calibrant, of which the file is a copy.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.exports.answers import Answers
from calibrant.exports.plain import by_label, for_pipeline
from calibrant.models import modeling_calibrant
from calibrant.models.modeling_calibrant import CalibrantForSequenceClassification, CalibrantPipeline
from calibrant.models.saved import read_config, read_model, read_tokenizer

CODE = "modeling_calibrant.py"


def write_code(folder: Path, model: CalibrantForSequenceClassification, tokenizer: Any) -> None:
    """Weights, tokenizer, the module and where transformers finds it."""
    name = CODE.removesuffix(".py")
    model.config.auto_map = {
        "AutoConfig": f"{name}.CalibrantConfig",
        "AutoModelForSequenceClassification": f"{name}.CalibrantForSequenceClassification",
    }
    model.config.custom_pipelines = {
        "text-classification": {
            "impl": f"{name}.CalibrantPipeline",
            "pt": ["AutoModelForSequenceClassification"],
            "type": "text",
        }
    }
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    shutil.copyfile(modeling_calibrant.__file__, folder / CODE)


def code_answers(folder: Path, texts: Sequence[str], labels: Sequence[str]) -> Answers:
    """What the folder's pipeline says."""
    config = read_config(folder, local=True)
    model = read_model(CalibrantForSequenceClassification, folder, True, config)
    answers = CalibrantPipeline(
        model=model.eval(),
        tokenizer=read_tokenizer(folder, local=True),
        task="text-classification",
        device="cpu",
        truncation=True,
        top_k=None,
    )(for_pipeline(texts))
    told = [of_text[0].get("familiarity") for of_text in answers]
    return Answers(
        by_label(answers, labels),
        None if None in told else np.array(told),
        np.array([of_text[0]["abstain"] for of_text in answers]),
    )
