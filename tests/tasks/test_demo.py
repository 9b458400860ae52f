"""The demo's story on a small stand-in for its data: 15 familiar groups, 5 near ones, and far newswire."""

import json

import pytest

from calibrant.data.catalog.newsgroups import _FIRST_15, _OTHER_5
from calibrant.tasks import demo as story
from calibrant.tasks.demo import demo
from support.tiny import FILLER, UNFAMILIAR, WORDS


@pytest.fixture
def small(tmp_path, monkeypatch, model_dir):
    """20 Newsgroups in files, a word or two telling each group; the demo's settings cut to seconds."""
    words = [word for words in WORDS.values() for word in words]
    folder = tmp_path / "data" / "20ng"
    folder.mkdir(parents=True)
    for split, copies in (("train", 8), ("test", 3)):
        rows = ["text,label"]
        for i, group in enumerate(_FIRST_15):
            rows += [f"{words[i]} {FILLER[j]} {words[i]} {split},{group}" for j in range(copies)]
        for i, group in enumerate(_OTHER_5):
            rows += [f"{UNFAMILIAR[i]} {FILLER[j]} {split},{group}" for j in range(copies)]
        (folder / f"{split}.csv").write_text("\n".join(rows))
    wire = tmp_path / "data" / "reuters-r8"
    wire.mkdir()
    for split in ("train", "test"):
        rows = [f"{UNFAMILIAR[i % 8]} {UNFAMILIAR[i % 7]} {split},earn" for i in range(20)]
        (wire / f"{split}.csv").write_text("\n".join(["text,label", *rows]))
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(story, "SETTINGS", {"dataset": "20ng-15", "source": "files", "model": str(model_dir)})
    monkeypatch.setattr(story, "PAPER", {"epochs": 5, "batch_size": 8, "learning_rate": 1e-2})
    return tmp_path / "demo"


COLUMNS = ["bert", "manifold-smoothing", "manifold-smoothing + temperature", "calibrant"]


def test_the_demo_trains_measures_and_reports(small, monkeypatch, command):
    summary = demo(small)
    assert json.loads((small / "summary.json").read_text()) == summary
    assert list(summary["metrics"]) == COLUMNS
    for metrics in summary["metrics"].values():
        assert metrics["n_test"] == 45
        assert metrics["n_ood"] == 15
        assert 0 <= metrics["ood"]["nbaucc_0.5"] <= 1
        assert 0 <= metrics["far"]["nbaucc_0.5"] <= 1
        assert 0 < metrics["far"]["mean_confidence"] <= 1
    plain, scaled = (summary["metrics"][name] for name in COLUMNS[1:3])
    assert plain["accuracy"] == scaled["accuracy"]
    assert plain["nll"] != scaled["nll"]
    kinds = [example["kind"] for example in summary["examples"]]
    assert (kinds.count("near"), kinds.count("far")) == (2, 2)
    assert {"right", "wrong"} >= set(kinds) - {"near", "far"}
    for example in summary["examples"]:
        assert list(example["answers"]) == COLUMNS
        if example["kind"] in ("right", "wrong"):
            right = example["answers"]["bert"]["label"] == example["truth"]
            assert right == (example["kind"] == "right")
        else:
            assert example["truth"] in (_OTHER_5 if example["kind"] == "near" else ["earn"])
    page = (small / "report.html").read_text()
    assert "manifold-smoothing" in page
    # Of each column its reliability and its confidence, of the default its familiarity; three for all.
    assert page.count("<svg") == 2 * len(COLUMNS) + 1 + 3

    def nothing_is_trained(*args):
        raise AssertionError("the second run trained again")

    monkeypatch.setattr("calibrant.fitting.model.fit_model", nothing_is_trained)
    assert demo(small) == summary
    code, out, _ = command("demo", "--out", str(small))
    assert code == 0
    for word in ("accuracy", "ECE", "NBAUCC", "near", "far", "report.html", "summary.json"):
        assert word in out
    accuracy = next(line for line in out.splitlines() if line.strip().startswith("accuracy"))
    for metrics in summary["metrics"].values():
        assert f"{100 * metrics['accuracy']:.1f} %" in accuracy
    code, out, _ = command("demo", "--out", str(small), "--json")
    assert json.loads(out) == summary


def test_another_seed_wants_another_folder(small, command):
    demo(small)
    code, _, err = command("demo", "--out", str(small), "--seed", "1")
    assert code == 2
    assert "holds another run" in err
    assert "give another --out" in err
