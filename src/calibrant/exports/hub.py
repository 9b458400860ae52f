"""An export on the Hugging Face hub, and the run itself beside it for ``calibrant.load``."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from calibrant.errors import UserError
from calibrant.runs.hub import FILES, is_hub_name
from calibrant.runs.public import MINILM, write_public
from calibrant.runs.store import Run

MEASURED = {  # of metrics.json: the hub's name for it, and ours
    "accuracy": ("accuracy", "Accuracy"),
    "ece": ("ece", "Expected calibration error"),
    "nll": ("nll", "Negative log-likelihood"),
    "brier": ("brier_score", "Brier score"),
}


def check_push(name: str) -> None:
    """Refuse early a name that cannot be one, and a hub that will not take anything."""
    from huggingface_hub import HfApi

    if not is_hub_name(name):
        raise UserError(f"--push {name}: expected the name of a model on the hub, as in user/model.")
    with _told(name):
        HfApi().whoami()


def licence_of(base: str | None) -> str | None:
    """The encoder's, as its page on the hub says; None where nobody can be asked."""
    from huggingface_hub import HfApi

    if base is None or base == MINILM:
        return "apache-2.0" if base else None
    try:
        tags = HfApi().model_info(base, timeout=5).tags or []
    except Exception:  # not there, or no network
        return None
    return next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), None)


def front(name: str, base: str | None, licence: str | None, measured: dict[str, Any] | None) -> str:
    """What the hub reads of a card: base model, licence, and what was measured, in its own words."""
    from huggingface_hub import EvalResult, ModelCardData

    results = None
    if measured is not None:
        source = measured["measured_on"]["test"]["source"]
        of_text = {"task_type": "text-classification", "dataset_type": "text", "dataset_name": source}
        results = [
            EvalResult(
                **of_text,
                metric_type=kind,
                metric_value=round(measured["metrics"][key], 6),
                metric_name=words,
            )
            for key, (kind, words) in MEASURED.items()
            if key in measured["metrics"]
        ]
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-classification",
        tags=["calibrant", "calibration"],
        base_model=base,
        license=licence,
        model_name=name,
        eval_results=results,
    )
    return f"---\n{data.to_yaml()}\n---\n"


def push(name: str, folder: Path, run: Run) -> str:
    """Put both there, in one commit, and give the address of the page; a new repository is private."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = HfApi()
    with tempfile.TemporaryDirectory() as temporary, _told(name):
        staged = Path(temporary) / "run"
        write_public(run, staged)
        address = api.create_repo(name, private=True, exist_ok=True)
        # The export's card, not the run's, is the one to show.
        files = {
            file.relative_to(root).as_posix(): file
            for root in (staged, folder)
            for file in root.rglob("*")
            if file.is_file()
        }
        stale = [
            path
            for path in api.list_repo_files(name)
            if path not in files and any(fnmatch(path, pattern) for pattern in FILES)
        ]
        api.create_commit(
            name,
            [
                *(CommitOperationDelete(path) for path in stale),
                *(CommitOperationAdd(path, str(file)) for path, file in sorted(files.items())),
            ],
            commit_message="A text classifier, by calibrant export",
        )
    return str(address)


@contextmanager
def _told(name: str) -> Iterator[None]:
    """The hub's client raises dozens of types, with paragraphs in them."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
        raise UserError(
            f"--push {name}: the hub did not take it ({reason}); log in with `hf auth login`, see that you "
            "may write there, and try again."
        ) from error
