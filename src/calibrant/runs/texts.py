"""The texts behind a run: those that its settings ask for, and those that it was trained on."""

from pathlib import Path

from calibrant.config import RunConfig
from calibrant.data import datasets, make_splits, read_file
from calibrant.data.doubts import check_classes
from calibrant.data.splits import warn_of_overlap
from calibrant.errors import UserError
from calibrant.registry import pick
from calibrant.runs.store import Run
from calibrant.types import Splits, Texts


def load_splits(config: RunConfig) -> Splits:
    """The texts that the settings ask for."""
    if config.dataset is not None:
        dataset = pick("dataset", config.dataset, datasets())
        return dataset.splits(config.source, config.max_train_samples)
    columns = config.text_column, config.label_column, config.pair_column
    train = read_file(config.train or "", *columns, labelled=True)
    dev = None if config.dev is None else read_file(config.dev, *columns, labelled=True)
    check_classes(train, config.label_column)
    return make_splits(Path(config.train or "").stem, train, dev, config.max_train_samples)


def own_splits(run: Run) -> Splits:
    """The texts that a run was trained on, as its record describes them; refused where they have changed."""
    splits, recorded = load_splits(run.config), run.record.data
    pairs = (splits.train, recorded.train), (splits.dev, recorded.dev)
    if any(found.fingerprint != known.fingerprint for found, known in pairs):
        raise UserError(f"{splits.train.source} is no longer what the run was trained on.")
    return splits


def own_train(run: Run, who: str) -> Texts:
    """The training texts, which ``who`` is fitted on."""
    try:
        return own_splits(run).train
    except UserError as reason:
        why = str(reason).rstrip(".")
        raise UserError(
            f"{who}: fitted on the run's training texts, and these cannot be had again ({why}); restore "
            "them, or use what needs no fitting on them."
        ) from reason


def dev_texts(run: Run, dev: Path | str | None, columns: tuple[str, str, str | None]) -> Texts:
    """A labelled file, or the run's own dev texts; text that training saw too is warned of."""
    try:
        own = own_splits(run)
    except UserError as reason:
        if dev is None:
            why = str(reason).rstrip(".")
            raise UserError(
                f"--dev is missing, and the run's own dev texts cannot be had again ({why}); name a labelled "
                "file with text that training has not seen."
            ) from reason
        return read_file(dev, *columns, labelled=True)
    if dev is None:
        return own.dev
    texts = read_file(dev, *columns, labelled=True)
    warn_of_overlap(own.train, texts)
    return texts


def columns_of(
    run: Run, text_column: str | None = None, label_column: str | None = None, pair_column: str | None = None
) -> tuple[str, str, str | None]:
    """The columns that a user names, or those of training: of the text, the label and the second text."""
    config = run.config
    return (
        text_column or config.text_column,
        label_column or config.label_column,
        pair_column or config.pair_column,
    )
