"""Whose texts the page may show."""

from calibrant.classifier import load
from calibrant.runs.record import DataRecord
from calibrant.runs.store import Run
from calibrant.runs.texts import load_splits
from calibrant.service.examples import FAMILIAR, UNFAMILIAR, from_file, public


def test_a_users_own_texts_are_not_shown(familiar_run):
    assert public(load(familiar_run).run) == list(UNFAMILIAR)


def test_a_file_that_is_named_is(familiar_run, csv_file):
    file = csv_file("shown.csv", [("refund my card",), ("lost parcel",)], ("text",))
    assert from_file(load(familiar_run).run, str(file)) == ["refund my card", "lost parcel"]


def test_texts_of_a_public_dataset_are(familiar_run):
    run = load(familiar_run).run
    config = run.record.config.model_copy(update={"train": None, "dataset": "smoke"})
    splits = load_splits(config)
    data = DataRecord(**splits.provenance())
    known = Run(run.path, run.record.model_copy(update={"config": config, "data": data}))
    *shown, first, second = public(known)
    assert (first, second) == UNFAMILIAR
    assert len(shown) == FAMILIAR
    assert set(shown) <= set(splits.dev.texts)
    # Where they are not those that it was trained on, it has none to show.
    another = Run(run.path, run.record.model_copy(update={"config": config}))
    assert public(another) == list(UNFAMILIAR)
