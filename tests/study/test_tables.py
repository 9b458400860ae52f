from dataclasses import replace

import pytest

from calibrant.methods import METHODS
from calibrant.metrics import metrics
from calibrant.study.measures import measures
from calibrant.study.presets import PAPER_METHODS
from calibrant.study.tables import Entry, ablation, dataset_sizes, ece, more, nbaucc
from support.handmade_cells import DATA, make_cell, series

PAPER = ["20ng-15", "20ng", "wos-100", "wos", "yahoo-8", "yahoo"]
NINE = [method for method in METHODS if method in PAPER_METHODS]


def entry(table, row, column):
    (line,) = [line for line in table.rows if line.title == row]
    return line.entries[[c.title for c in table.columns].index(column)]


def test_without_cells_the_papers_tables_are_left():
    table, _ = ece([])
    assert table.title == "ECE, % ↓"
    assert [column.title for column in table.columns] == PAPER
    assert [row.title for row in table.rows] == NINE
    assert entry(table, "bert", "yahoo") == Entry(None, None, 0, 0.1054)
    assert all(e.mean is None and e.published and not e.best for row in table.rows for e in row.entries)


def test_mean_and_deviation_stand_beside_the_papers_value():
    cells = series("bert", [0.1, 0.2, 0.3]) + series("vat", [0.4], dataset="banking77")
    errors, accuracy = ece(cells)
    found = entry(errors, "bert", "20ng-15")
    assert (found.mean, found.std, found.seeds) == (pytest.approx(0.2), pytest.approx(0.1), 3)
    assert found.published == 0.0924
    assert [column.title for column in errors.columns] == [*PAPER, "banking77"]
    assert entry(errors, "vat", "banking77") == Entry(0.4, None, 1, None)
    assert entry(errors, "vat", "20ng-15") == Entry(None, None, 0, 0.0907)
    assert accuracy.title == "Accuracy, % ↑"
    assert entry(accuracy, "bert", "20ng-15").published == 0.8742


def test_the_best_is_marked_by_the_metrics_direction():
    cells = series("bert", [0.10, 0.11, 0.10]) + series("vat", [0.19, 0.20, 0.19])
    cells = [replace(c, metrics=c.metrics | {"accuracy": c.metrics["ece"]}) for c in cells]
    for table, best in zip(ece(cells), ("bert", "vat"), strict=True):
        marked = [row.title for row in table.rows for e in row.entries if e.best]
        assert marked == [best]


def test_nothing_is_marked_within_noise_or_with_one_seed():
    for cells in (
        series("bert", [0.10, 0.20, 0.15]) + series("vat", [0.16, 0.12, 0.20]),
        series("bert", [0.10]) + series("vat", [0.90]),
    ):
        assert not any(e.best for table in ece(cells) for row in table.rows for e in row.entries)


def test_what_learnt_nothing_is_never_bold():
    cells = series("bert", [0.10, 0.11, 0.10], accuracy=0.8) + series("vat", [0.2, 0.21, 0.2], accuracy=0.4)
    lost = series("manifold-mixup", [0.01, 0.01, 0.011], accuracy=0.39)
    table, _ = ece(cells + lost)
    assert [row.title for row in table.rows for e in row.entries if e.best] == ["bert"]
    assert (
        table.notes[-1] == "20ng-15: less than half of the best accuracy, and so never bold: manifold-mixup."
    )


def test_who_doubts_too_much_is_never_bold_in_nbaucc_nor_who_is_no_model_anywhere():
    def found(name, value, **more):
        values = [value, value + 0.001, value]
        return [
            make_cell(name, seed, misclassification={"nbaucc_0.5": v}, **more)
            for seed, v in enumerate(values)
        ]

    cells = found("bert", 0.2, accuracy=0.8) + found("vat", 0.1, accuracy=0.8)
    doubter = found("mixup", 0.4, accuracy=0.8, mean_confidence_test=0.75)
    for another, expected in (
        (found("mixup", 0.4, accuracy=0.8, mean_confidence_test=0.77), "mixup"),
        (doubter, "bert"),
        (found("constant", 0.4, accuracy=0.8), "bert"),
    ):
        (table,) = [t for t in nbaucc(cells + another) if t.name == "misclassification.nbaucc_0.5"]
        assert {row.title for row in table.rows for e in row.entries if e.best} == {expected}
    assert nbaucc(cells + doubter)[0].notes[-1] == (
        "20ng-15: confidence more than 4 points below accuracy, which NBAUCC rewards, and so never bold "
        "there: mixup."
    )


def test_seeds_that_share_members_are_never_bold():
    cells = series("bert", [0.10, 0.11, 0.10]) + series("vat", [0.2, 0.21, 0.2])
    for ensemble, best in ((0.05, []), (0.15, ["bert"])):
        table, _ = ece(cells + series("deep-ensemble", [ensemble] * 3))
        assert [row.title for row in table.rows for e in row.entries if e.best] == best


def test_methods_that_the_paper_has_not_are_rows_once_measured():
    table, _ = ece(series("deep-ensemble", [0.1]))
    assert [row.title for row in table.rows] == [*NINE, "deep-ensemble"]
    assert entry(table, "deep-ensemble", "20ng-15") == Entry(0.1, None, 1, None)


def test_variants_are_not_in_the_main_tables():
    table, _ = ece(series("manifold-smoothing", [0.1], variant="lambda_on=0"))
    assert entry(table, "manifold-smoothing", "20ng-15").mean is None


def test_nbaucc_has_both_detections_at_three_bounds():
    cells = [make_cell("mixup", misclassification={"nbaucc_0.7": 0.12}, ood={"nbaucc_1.0": 0.34})]
    tables = {table.name: table for table in nbaucc(cells)}
    groups = ("misclassification", "ood")
    assert list(tables) == [f"{group}.nbaucc_{tau}" for group in groups for tau in (0.5, 0.7, 1.0)]
    found = tables["misclassification.nbaucc_0.7"]
    assert found.title == "misclassified: NBAUCC 0.7, % ↑"
    assert entry(found, "mixup", "20ng-15") == Entry(0.12, None, 1, 0.1333)
    assert entry(tables["ood.nbaucc_1.0"], "mixup", "20ng-15") == Entry(0.34, None, 1, 0.1670)


def test_what_is_not_defined_is_not_measured():
    cells = [make_cell("bert", 0, ood=None), make_cell("bert", 1, ood={"nbaucc_0.5": None})]
    (table,) = [table for table in nbaucc(cells) if table.name == "ood.nbaucc_0.5"]
    assert entry(table, "bert", "20ng-15") == Entry(None, None, 0, 0.0266)


def test_ablation():
    smoothing = "manifold-smoothing"
    cells = [
        *series(smoothing, [0.1, 0.3]),
        *series(smoothing, [0.2], variant="delta_on=0.001,lambda_off=0"),
        *series(smoothing, [0.4], variant="lambda_on=0", dataset="banking77"),
        *series(smoothing, [0.7], variant="delta_y=0.3", dataset="reuters-r8"),  # of the parameter study
    ]
    tables = {table.name: table for table in ablation(cells)}
    assert list(tables) == ["ablation-20ng-15", "ablation-20ng", "ablation-banking77"]
    table = tables["ablation-20ng-15"]
    assert [row.title for row in table.rows] == [
        "neither (bert)",
        "R_off alone",
        "R_on alone, δ_on = 0.01",
        "R_on alone, δ_on = 0.001",
        "R_on alone, δ_on = 0.0001",
        "R_on alone, δ_on = 1e-05",
        "both (manifold-smoothing)",
    ]
    assert len(table.columns) == 8
    assert entry(table, "R_on alone, δ_on = 0.001", "ECE, % ↓") == Entry(0.2, None, 1, 0.0352)
    assert entry(table, "both (manifold-smoothing)", "ECE, % ↓").mean == pytest.approx(0.2)
    assert entry(table, "neither (bert)", "unfamiliar: NBAUCC 0.5, % ↑") == Entry(None, None, 0, 0.0266)
    assert entry(tables["ablation-banking77"], "R_off alone", "ECE, % ↓") == Entry(0.4, None, 1, None)


def test_more_has_every_metric_that_the_others_have_not():
    cells = [make_cell("bert", nll=0.7, seconds=8.0), make_cell("vat", 0, ood={"auroc": 0.9}, seconds=20.0)]
    cells.append(make_cell("vat", 1, ood={"auroc": 0.7}, seconds=99.0))  # there is no bert with that seed
    (table,) = more(cells)
    others = {"accuracy", "ece", *(name for name in metrics() if name.startswith("nbaucc"))}
    shown = [m for m in measures().values() if m.name.split(".", 1)[-1] not in others]
    assert {"AUROC", "AUPR", "FPR95", "AURC", "NLL"} <= {m.title.split(": ")[-1] for m in shown}
    assert [c.title for c in table.columns] == [*(m.heading for m in shown), "training time, bert = 1"]
    assert [row.title for row in table.rows] == ["bert", "vat"]
    assert entry(table, "bert", "NLL ↓") == Entry(0.7, None, 1)
    assert entry(table, "vat", "unfamiliar: AUROC, % ↑").mean == pytest.approx(0.8)
    assert entry(table, "vat", "training time, bert = 1") == Entry(2.5, None, 1)
    assert entry(table, "bert", "training time, bert = 1").mean == 1


def test_being_cheap_is_not_marked_as_best():
    cells = [make_cell(m, s, seconds=t) for m, t in (("bert", 1.0), ("vat", 3.0)) for s in range(3)]
    (table,) = more(cells)
    assert [e.best for row in table.rows for e in row.entries] == [False] * 2 * len(table.columns)


def test_dataset_sizes():
    fewer = DATA | {"train": DATA["train"] | {"n": 99}}
    cells = [make_cell(), make_cell("vat", data=fewer), make_cell(seed=1), make_cell(dataset="banking77")]
    (table,) = dataset_sizes(cells)
    assert [column.title for column in table.columns] == ["train", "dev", "test", "unfamiliar", "classes"]
    assert [row.title.split(" ")[0] for row in table.rows] == ["20ng-15", *PAPER, "banking77"]
    first, second, third = table.rows[:3]
    assert first.title == "20ng-15 (unfamiliar: 20ng-5)"
    assert first.entries[0] == Entry(7010, published=7010)
    assert second.entries[0] == Entry(99, published=7010)
    assert third.entries[0] == Entry(None, published=9051)
    assert first.entries[-1] == Entry(15, published=15)
    assert table.rows[-1].entries[2] == Entry(5833)


@pytest.mark.parametrize("make", [ece, nbaucc, more], ids=["ece", "nbaucc", "more"])
def test_notes_are_of_the_cells_in_the_table(make):
    cells = [make_cell(), make_cell("manifold-smoothing", variant="delta_y=0.3", config={"model": "another"})]
    for table in make(cells):
        (about_data,) = [note for note in table.notes if note.startswith("20ng-15")]
        assert "model minilm" in about_data
        assert any("95 % t interval" in note for note in table.notes)


def test_dataset_sizes_are_those_of_the_main_cells():
    (table,) = dataset_sizes([make_cell(), make_cell(variant="model=textcnn", config={"model": "textcnn"})])
    assert len(table.rows) == len(PAPER)
    assert not any("NOT the same" in note or "textcnn" in note for note in table.notes)


def test_a_training_too_short_to_be_timed_has_no_relative_cost():
    (table,) = more([make_cell("bert", seconds=0.0), make_cell("vat", seconds=3.0)])
    assert entry(table, "vat", "training time, bert = 1").mean is None


def test_cost_is_of_the_work_where_all_cells_have_it():
    cells = [make_cell("bert", seconds=2.0), make_cell("vat", seconds=6.0)]
    busy = [replace(cell, training=cell.training | {"seconds": 100.0}) for cell in cells]
    (table,) = more(busy)
    assert entry(table, "vat", "training time, bert = 1").mean == 3.0
    assert not any("wall clock" in note for note in table.notes)
    (table,) = more([busy[0], make_cell("vat", seconds=6.0, timed=False)])
    assert entry(table, "vat", "training time, bert = 1").mean == 0.06
    assert table.notes[-1].startswith("20ng-15: training time by wall clock")
