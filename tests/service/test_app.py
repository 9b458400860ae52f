"""What is asked and answered, and every mistake that gets a sentence."""

import json
import logging
import shutil
from dataclasses import asdict

import pytest

from calibrant import calibrate
from calibrant.classifier import load
from calibrant.service.schemas import Limits
from support.made_runs import make_run
from support.tiny import UNFAMILIAR, corpus

TEXTS = [text for text, _ in corpus(10, seed=7)]
STRANGE = " ".join(UNFAMILIAR)


def ask(client, **question):
    response = client.post("/predict", json=question)
    assert response.status_code == 200, response.text
    return response.json()["answers"]


def test_a_list_is_answered_as_predict_answers_it(client, familiar_run):
    classifier = load(familiar_run)
    expected = classifier.predict(TEXTS, threshold=0.5)
    answers = ask(client(), texts=TEXTS, next=2)
    for answer, decision in zip(answers, expected, strict=True):
        told = asdict(decision)
        ranked = sorted(told["probabilities"].items(), key=lambda pair: -pair[1])
        assert {name: answer[name] for name in ("label", "confidence", "familiarity", "abstain")} == {
            name: told[name] for name in ("label", "confidence", "familiarity", "abstain")
        }  # bit for bit: they were one batch there and here
        assert [(each["label"], each["probability"]) for each in answer["next"]] == ranked[1:]
        assert (answer["set"], answer["cut"], answer["run"]) == (None, False, classifier.run.digest)


def test_one_text_has_one_answer(client):
    (answer,) = ask(client(), texts=TEXTS[0], next=0)
    assert answer["next"] == []


def test_strange_text_is_not_answered_and_the_reason_is_told(client):
    familiar, strange = ask(client(), texts=[TEXTS[0], STRANGE])
    assert (familiar["abstain"], familiar["reason"]) == (False, None)
    assert (strange["abstain"], strange["reason"]) == (True, "unfamiliar")
    assert strange["familiarity"] < 0.05


def test_a_familiar_text_below_the_threshold_is_unsure(client):
    answers = ask(client(threshold=1.0), texts=TEXTS)
    assert {answer["reason"] for answer in answers if answer["familiarity"] >= 0.05} == {"unsure"}
    assert all(answer["abstain"] for answer in answers if answer["confidence"] < 1)


def test_the_threshold_0_answers_everything(client):
    assert not any(answer["abstain"] for answer in ask(client(threshold=0.0), texts=[*TEXTS, STRANGE]))


def test_sets_are_those_of_predict_set(client, familiar_run):
    expected = load(familiar_run).predict_set(TEXTS, coverage=0.9)
    assert [answer["set"] for answer in ask(client(), texts=TEXTS, coverage=0.9)] == expected


def test_a_text_that_was_cut_is_reported(client):
    long, short = ask(client(), texts=["refund " * 31, "refund " * 30])  # and two special tokens
    assert (long["cut"], short["cut"]) == (True, False)


def test_pairs_are_lists_of_two(client, tmp_path):
    run = make_run(tmp_path / "run", pair_column="reply")
    asked, pairs = client(run), [["my card", "a refund"], ["a box", "lost"]]
    expected = load(run).predict([tuple(pair) for pair in pairs])
    answers = ask(asked, texts=pairs)
    assert [answer["confidence"] for answer in answers] == [decision.confidence for decision in expected]
    response = asked.post("/predict", json={"texts": "my card"})
    assert response.status_code == 422
    assert response.json()["detail"].startswith("Text 1 of 1 is one text, and the run was trained on pairs;")
    for wrong in ([["my card"]], [["a", "b", "c"]], [["a", " "]]):
        assert asked.post("/predict", json={"texts": wrong}).json()["detail"] == NOT_TEXTS
    about = asked.get("/run").json()
    assert (about["pair_column"], about["examples"]) == ("reply", [])


def test_a_run_without_familiarity_and_answers_on_dev(client, trained):
    asked = client(trained)
    (answer,) = ask(asked, texts="refund my card")
    assert answer["familiarity"] is None
    response = asked.post("/predict", json={"texts": "refund", "coverage": 0.9})
    assert (response.status_code, response.json()["detail"]) == (
        422,
        "This run keeps no answers on dev, which sets are fitted on; where it was trained, run "
        "`calibrant predict RUN --text hello --coverage 0.9` once.",
    )
    assert "calibrant_drift_alarm NaN" in asked.get("/metrics").text


@pytest.mark.parametrize(("calibrator", "alarm"), [("temperature", "0.0"), ("isotonic", "NaN")])
def test_confidences_that_the_calibrator_knows_by_heart_raise_no_alarm(
    client, familiar_run, tmp_path, calibrator, alarm
):
    run = tmp_path / "run"
    shutil.copytree(familiar_run, run)
    calibrate(run, calibrator=calibrator)
    assert f"calibrant_drift_alarm {alarm}" in client(run).get("/metrics").text


NOT_TEXTS = "`texts` must be one text or a list of texts, and none of them empty."
MISTAKES = {
    b'{"texts": []}': (422, NOT_TEXTS),
    b'{"texts": ""}': (422, NOT_TEXTS),
    b'{"texts": ["a", " \\n"]}': (422, NOT_TEXTS),
    b'{"texts": ["a", "\\u001c"]}': (422, "Text 2 of 2 is empty; there is nothing to classify."),
    b'{"texts": 7}': (422, NOT_TEXTS),
    b'{"texts": NaN}': (422, NOT_TEXTS),
    b'{"texts": "\\ud800"}': (422, NOT_TEXTS),
    b"{}": (422, NOT_TEXTS),
    b"": (422, "Field required"),
    b"[]": (422, "Input should be a valid dictionary or object to extract fields from"),
    b"{": (422, "The body is not JSON."),
    b'{"texts": "a", "next": "3"}': (422, "next: Input should be a valid integer"),
    b'{"texts": "a", "next": -1}': (422, "next: Input should be greater than or equal to 0"),
    b'{"texts": "a", "coverage": 1}': (422, "coverage: Input should be less than 1"),
    b'{"texts": "a", "coverage": NaN}': (422, "coverage: Input should be a finite number"),
    b'{"texts": "a", "coverage": 0.999}': (
        422,
        "Sets with coverage 0.999 need 999 dev texts or more, got 80; give more of them, or ask for less "
        "coverage.",
    ),
    b'{"texts": "a", "more": 1}': (422, "more: Extra inputs are not permitted"),
    b'{"texts": "\xff"}': (400, "There was an error parsing the body"),
    b'{"texts": "a", "next": ' + b"9" * 5000 + b"}": (400, "There was an error parsing the body"),
    b"[" * 100_000: (400, "There was an error parsing the body"),
    json.dumps({"texts": ["a"] * 257}).encode(): (
        413,
        "257 texts are too many for one request; send 256 at most.",
    ),
    json.dumps({"texts": "a" * 1_000_000}).encode(): (
        413,
        "Text 1 has 1000000 characters; send 100000 at most.",
    ),
    b" " * (1 << 20) + b"{}": (413, "The body has more than 1048576 bytes; send fewer texts at a time."),
}


def test_mistakes_get_a_sentence(client):
    asked = client()
    for body, (status, sentence) in MISTAKES.items():
        response = asked.post("/predict", content=body, headers={"Content-Type": "application/json"})
        assert (response.status_code, response.json()) == (status, {"detail": sentence}), body[:60]
    ask(asked, texts=TEXTS)  # and it goes on


def test_a_full_queue_answers_503_and_when_to_come_again(client):
    response = client(limits=Limits(waiting=0)).post("/predict", json={"texts": "refund"})
    assert response.status_code == 413  # more than can ever wait
    asked = client(limits=Limits(waiting=1))
    ask(asked, texts="refund")
    asked.app.state.service.batcher.waiting = 1
    response = asked.post("/predict", json={"texts": "refund"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.json() == {"detail": "1 texts are waiting; try again in a second."}
    assert asked.get("/readyz").status_code == 503
    asked.app.state.service.batcher.waiting = 0
    assert asked.get("/readyz").json() == {"status": "ready"}


def test_an_answer_that_takes_too_long_is_a_504(client):
    asked = client(limits=Limits(seconds=1e-6))
    response = asked.post("/predict", json={"texts": "refund"})
    assert (response.status_code, response.json()["detail"]) == (
        504,
        "No answer within 1e-06 seconds; send fewer texts at a time.",
    )
    assert asked.app.state.service.batcher.waiting == 0


@pytest.mark.parametrize(
    "given", [None, "Bearer wrong", "Bearer", "Basic s3cret", "Bearer s3cret ", "Bearer ü"]
)
@pytest.mark.parametrize("path", ["/run", "/metrics", "/predict", "/nowhere"])
def test_without_the_token_nothing_is_told(client, given, path):
    asked = client(token="s3cret")
    headers = {} if given is None else {"Authorization": given.encode()}
    response = asked.get(path, headers=headers)
    assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
    assert response.json()["detail"].startswith("The token is missing or wrong")


def test_with_the_token_all_is_told_and_the_page_is_open(client):
    asked = client(token="s3cret")
    assert asked.get("/run", headers={"Authorization": "bearer s3cret"}).status_code == 200
    for path in ("/", "/page/main.js", "/docs", "/openapi.json", "/healthz", "/readyz"):
        assert asked.get(path).status_code == 200, path


def test_what_fails_inside_is_a_500_that_tells_no_text(client, monkeypatch, caplog):
    asked = client()

    def fail(texts):
        raise RuntimeError(f"cannot read {texts}")

    monkeypatch.setattr(asked.app.state.service.batcher, "_answer", fail)
    assert asked.post("/predict", json={"texts": "a secret text"}).status_code == 500
    monkeypatch.undo()
    ask(asked, texts=TEXTS)
    from calibrant.service.logs import JsonLines

    lines = [JsonLines().format(record) for record in caplog.records]
    (failed,) = (line for line in map(json.loads, lines) if line["event"] == "request failed")
    assert failed["exception"] == "RuntimeError"
    assert failed["where"]
    assert "a secret text" not in "".join(lines)


def test_a_request_is_logged_without_its_texts(client, caplog):
    caplog.set_level(logging.INFO, "calibrant")
    ask(client(), texts=["refund secretword", STRANGE, "refund " * 40])
    lines = [json.loads(json.dumps(record.fields)) for record in caplog.records if hasattr(record, "fields")]
    (line,) = (line for line in lines if line["route"] == "/predict")
    assert line["ms"] >= 0
    assert {name: line[name] for name in ("method", "status", "texts", "cut")} == {
        "method": "POST",
        "status": 200,
        "texts": 3,
        "cut": 1,
    }
    assert "secretword" not in caplog.text


def test_metrics_count_what_happened(client):
    asked = client()
    ask(asked, texts=[*TEXTS, STRANGE, "refund " * 40])
    asked.post("/predict", json={"texts": []})
    asked.get("/some/scanner/path")
    told = asked.get("/metrics").text
    for line in (
        'calibrant_requests_total{route="/predict",status="200"} 1.0',
        'calibrant_requests_total{route="/predict",status="422"} 1.0',
        'calibrant_requests_total{route="other",status="404"} 1.0',
        'calibrant_batch_texts_bucket{le="16.0"} 1.0',
        "calibrant_confidence_count 12.0",
        "calibrant_familiarity_count 12.0",
        "calibrant_texts_cut_total 1.0",
        "calibrant_queue_texts 0.0",
        "calibrant_queue_limit_texts 1024.0",
        "calibrant_drift_alarm 0.0",
    ):
        assert line in told.splitlines(), line
    assert float(told.split('calibrant_texts_total{outcome="unfamiliar"} ')[1].splitlines()[0]) >= 1


def test_the_alarm_rings_when_the_text_has_moved(client):
    asked = client()

    def alarm():
        return asked.get("/metrics").text.split("\ncalibrant_drift_alarm ")[1].splitlines()[0]

    ask(asked, texts=[text for text, _ in corpus(200, seed=11)])
    assert alarm() == "0.0"
    for _ in range(5):
        ask(asked, texts=[f"{a} {b} {STRANGE}" for a in UNFAMILIAR for b in UNFAMILIAR])
    assert alarm() == "1.0"


def test_what_the_page_is_told(client, familiar_run):
    told = client(threshold=0.7).get("/run").json()
    assert (told["labels"], told["threshold"], told["threshold_from"]) == (
        ["account", "billing", "shipping"],
        0.7,
        "option",
    )
    assert 0.03 < told["unfamiliar_below"] < 0.1  # 0.03 for many dev texts, and more for few
    assert (told["text_column"], told["name"]) == ("text", familiar_run.name)


def test_the_description_is_complete(client):
    described = client().get("/openapi.json").json()
    assert set(described["paths"]) == {"/predict", "/run", "/healthz", "/readyz", "/metrics"}
    codes = set(described["paths"]["/predict"]["post"]["responses"])
    assert codes == {"200", "400", "401", "408", "413", "422", "503", "504"}
