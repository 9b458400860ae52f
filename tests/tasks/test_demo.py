"""The demo's story on a small stand-in for its data: 15 familiar groups, 5 unfamiliar."""

import json

import pytest

from calibrant.data.catalog.newsgroups import _FIRST_15, _OTHER_5
from calibrant.tasks import demo as story
from calibrant.tasks import train
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
    monkeypatch.setenv("CALIBRANT_DATA", str(tmp_path / "data"))
    settings = {
        "dataset": "20ng-15",
        "source": "files",
        "model": str(model_dir),
        "epochs": 2,
        "batch_size": 16,
    }
    monkeypatch.setattr(story, "SETTINGS", settings)
    return tmp_path / "demo"


def test_the_demo_trains_measures_and_reports(small, monkeypatch, command):
    summary = demo(small)
    assert json.loads((small / "summary.json").read_text()) == summary
    assert list(summary["metrics"]) == ["bert", "manifold-smoothing"]
    for metrics in summary["metrics"].values():
        assert metrics["n_test"] == 45
        assert metrics["n_ood"] == 15
        assert 0 <= metrics["ood"]["nbaucc_0.5"] <= 1
    kinds = [example["kind"] for example in summary["examples"]]
    assert kinds.count("unfamiliar") == 3
    assert {"right", "wrong"} >= set(kinds) - {"unfamiliar"}
    for example in summary["examples"]:
        assert set(example["answers"]) == {"bert", "manifold-smoothing"}
        if example["kind"] != "unfamiliar":
            right = example["answers"]["bert"]["label"] == example["truth"]
            assert right == (example["kind"] == "right")
        else:
            assert example["truth"] in _OTHER_5
    page = (small / "report.html").read_text()
    assert "manifold-smoothing" in page
    assert page.count("<svg") == 4  # a reliability diagram and a histogram for each

    def nothing_is_trained(*args):
        raise AssertionError("the second run trained again")

    monkeypatch.setattr(train, "_train", nothing_is_trained)
    assert demo(small) == summary
    code, out, _ = command("demo", "--out", str(small))
    assert code == 0
    for word in ("accuracy", "ECE", "NBAUCC", "unfamiliar", "report.html", "summary.json"):
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
