"""``calibrant monitor``: then and now, and an exit code that can stop a pipeline."""

import json
import random
import shutil

import numpy as np
import pytest

import calibrant
from calibrant.metrics import expected_calibration_error
from support.sentences import one_sentence
from support.tiny import UNFAMILIAR, WORDS, corpus, make_text, noisy_corpus

RULE = {  # as `calibrant threshold` stores it
    "rule": {"threshold": 0.5, "score": None, "cut": None},
    "promise": {"risk": 0.2, "ood_rate": None, "confidence": 0.95},
    "learnt_on": {"dev": {"n": 200, "source": "file dev.csv", "fingerprint": ""}, "ood": None},
    "dev": {"coverage": 0.5, "risk": 0.04, "turned_away": 0.0},
}


@pytest.fixture
def here(tmp_path, monkeypatch, trained, csv_file):
    """The user's directory, with a run, and texts like and unlike those it knows."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "run")
    csv_file("dev.csv", noisy_corpus(200, seed=21))
    csv_file("new.csv", [(text,) for text, _ in corpus(150, seed=22)], ("text",))
    csv_file("labelled.csv", noisy_corpus(150, seed=23))
    rng = random.Random(0)
    odd = [make_text(UNFAMILIAR, rng) for _ in range(150)]
    csv_file("odd.csv", [(text,) for text in odd], ("text",))
    csv_file("odder.csv", [(text, "stars" if i else "billing") for i, text in enumerate(odd)])
    csv_file("none.csv", [(text, "stars") for text in odd])
    csv_file("shuffled.csv", [(text, rng.choice(list(WORDS))) for text, _ in corpus(150, seed=24)])
    return tmp_path


def monitored(command, *arguments):
    code, out, err = command("monitor", "run", *arguments, "--json")
    assert code in (0, 3, 4), err
    found = json.loads(out)
    assert found["moved"] == {0: False, 3: True, 4: None}[code]
    return found


def test_familiar_text_without_labels(command, here):
    found = monitored(command, "new.csv", "--dev", "dev.csv")
    assert not found["moved"]
    assert (found["run"], found["level"], found["tolerance"]) == ("run", 0.01, 0.1)
    assert found["then"]["texts"]["source"] == "file dev.csv"
    assert found["now"]["texts"] | {"fingerprint": ""} == {
        "n": 150,
        "source": "file new.csv",
        "fingerprint": "",
    }
    assert found["confidence_shift"]["p"] > 0.01
    assert found["gap_shift"] is found["unseen_labels"] is None
    assert {key for key, value in found["now"].items() if value is None} == {
        "accuracy",
        "ece",
        "abstained",
        "risk",
    }
    confidence = calibrant.load("run").predict_proba([text for text, _ in corpus(150, seed=22)]).max(axis=1)
    assert found["now"]["confidence"] == pytest.approx(confidence.mean())
    gap = found["then"]["accuracy"]["value"] - found["then"]["confidence"]
    assert found["expected_accuracy"]["value"] == pytest.approx(found["now"]["confidence"] + gap)


def test_unfamiliar_text_without_labels(command, here):
    found = monitored(command, "odd.csv", "--dev", "dev.csv")
    assert found["moved"]
    assert found["confidence_shift"]["distance"] > 0.2
    odd = (here / "odd.csv").read_text().splitlines()[1:]
    p = calibrant.load("run").predict_proba(odd)
    assert found["now"]["confidence"] == pytest.approx(p.max(axis=1).mean(), abs=1e-6)
    patient = monitored(command, "odd.csv", "--dev", "dev.csv", "--tolerance", 0.9)
    assert not patient["moved"]
    assert patient["confidence_shift"] == found["confidence_shift"]


def test_other_dev_texts_serve_once_and_are_not_kept(command, here):
    """Else sets, which are fitted on what is kept, would be another's from one day to the next."""
    own = monitored(command, "new.csv")["then"]["texts"]
    before = (here / "run" / "dev.safetensors").read_bytes()
    assert monitored(command, "new.csv", "--dev", "dev.csv")["then"]["texts"]["n"] == 200
    assert (here / "run" / "dev.safetensors").read_bytes() == before
    assert monitored(command, "new.csv")["then"]["texts"] == own


def test_the_runs_own_dev_texts_are_what_it_is_compared_with(command, here):
    found = monitored(command, "new.csv")
    record = json.loads((here / "run" / "calibrant.json").read_text())
    assert found["then"]["texts"] == record["data"]["dev"]


def test_labels_tell_more(command, here):
    found = monitored(command, "labelled.csv", "--dev", "dev.csv")
    assert not found["moved"]
    p = calibrant.load("run").predict_proba([text for text, _ in noisy_corpus(150, seed=23)])
    labels = np.array([sorted(WORDS).index(label) for _, label in noisy_corpus(150, seed=23)])
    accuracy, ece = found["now"]["accuracy"], found["now"]["ece"]
    assert accuracy["value"] == pytest.approx((p.argmax(axis=1) == labels).mean())
    assert ece["value"] == pytest.approx(expected_calibration_error(p, labels))
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]
    expected = found["expected_accuracy"]
    assert expected["low"] < accuracy["value"] < expected["high"]
    assert found["unseen_labels"] == 0


def test_confidence_as_ever_and_answers_wrong(command, here):
    found = monitored(command, "shuffled.csv", "--dev", "dev.csv")
    assert found["moved"]
    assert found["confidence_shift"]["p"] > 0.005
    assert found["gap_shift"]["distance"] < -0.3
    assert found["gap_shift"]["p"] < 0.005


def test_labels_that_training_never_saw_are_drift_and_no_mistake(command, here):
    found = monitored(command, "odder.csv", "--dev", "dev.csv")
    assert found["moved"]
    assert found["unseen_labels"] == 149
    assert found["now"]["accuracy"]["value"] <= 1 / 150
    out = command("monitor", "run", "odder.csv")[1]
    assert "labels that training never saw, counted as wrong: 149" in out


def test_other_columns(command, here, csv_file):
    csv_file("own.csv", noisy_corpus(150, seed=23), ("body", "queue"))
    columns = ("--text-column", "body", "--label-column", "queue")
    same = monitored(command, "labelled.csv")
    found = monitored(command, "own.csv", *columns)
    assert found["now"]["accuracy"] == same["now"]["accuracy"]
    assert monitored(command, "own.csv", "--text-column", "body")["now"]["accuracy"] is None


def test_the_runs_own_rule(command, here):
    record = json.loads((here / "run" / "calibrant.json").read_text())
    (here / "run" / "calibrant.json").write_text(json.dumps(record | {"threshold": RULE}))
    found = monitored(command, "labelled.csv", "--dev", "dev.csv")
    decisions = calibrant.load("run").predict([text for text, _ in noisy_corpus(150, seed=23)])
    answered = [
        decision.label == label
        for decision, (_, label) in zip(decisions, noisy_corpus(150, seed=23), strict=True)
        if not decision.abstain
    ]
    assert found["now"]["abstained"]["value"] == pytest.approx(1 - len(answered) / 150)
    assert found["now"]["risk"]["value"] == pytest.approx(1 - np.mean(answered))
    then = noisy_corpus(200, seed=21)  # and not the texts that the rule was learnt on, whatever it did there
    decided = calibrant.load("run").predict([text for text, _ in then])
    assert found["then"]["abstained"]["value"] == pytest.approx(np.mean([d.abstain for d in decided]))
    right = [d.label == label for d, (_, label) in zip(decided, then, strict=True) if not d.abstain]
    assert found["then"]["risk"]["value"] == pytest.approx(1 - np.mean(right))
    assert found["abstention_shift"] is None  # what a threshold turns away, the confidence tells
    assert monitored(command, "new.csv")["now"]["risk"] is None
    out = command("monitor", "run", "labelled.csv")[1]
    assert "abstained" in out
    assert "wrong among the answered" in out


def scored_rule(command, here, **changes):
    """A rule with a score of features, learnt on dev.csv, and then changed by hand."""
    options = ("--risk", 0.3, "--ood", "odd.csv", "--ood-rate", 0.4, "--score", "knn")
    code, _, err = command("threshold", "run", "--dev", "dev.csv", *options)
    assert code == 0, err
    record = json.loads((here / "run" / "calibrant.json").read_text())
    record["threshold"]["rule"] |= changes
    (here / "run" / "calibrant.json").write_text(json.dumps(record))
    return record["threshold"]["dev"]


def test_a_score_that_turns_all_away_is_an_alarm(command, here):
    learnt = scored_rule(command, here)
    found = monitored(command, "new.csv", "--dev", "dev.csv")
    assert found["then"]["abstained"]["value"] == pytest.approx(1 - learnt["coverage"])
    assert found["then"]["risk"]["value"] == pytest.approx(learnt["risk"])
    decided = calibrant.load("run").predict([text for text, _ in corpus(150, seed=22)])
    abstained = np.mean([decision.abstain for decision in decided])
    assert found["now"]["abstained"]["value"] == pytest.approx(abstained)
    assert found["abstention_shift"]["distance"] == pytest.approx(abstained - 1 + learnt["coverage"])

    scored_rule(command, here, cut=-1.0)
    found = monitored(command, "new.csv", "--dev", "dev.csv")
    assert found["moved"]
    assert found["confidence_shift"]["p"] > 0.01
    assert found["abstention_shift"]["distance"] == pytest.approx(learnt["coverage"])
    assert found["abstention_shift"]["p"] < 1e-6
    out = command("monitor", "run", "new.csv", "--dev", "dev.csv")[1]
    assert f"abstained, more than then: {100 * learnt['coverage']:.1f} % (tolerance 10 %), p = " in out


def test_what_a_score_did_on_other_texts_is_left_out(command, here):
    scored_rule(command, here)
    with pytest.warns(UserWarning, match="is not known") as told:
        found = calibrant.monitor("run", new="new.csv")
    assert [str(warning.message) for warning in told] == [
        "How many texts the rule of abstention turned away then is not known: it was learnt on file dev.csv; "
        "to compare with these, name them with --dev."
    ]
    assert found.then.abstained is found.then.risk is found.abstention_shift is None
    assert found.now.abstained is not None


def test_a_calibrator_that_knows_the_dev_texts_by_heart(command, here):
    assert command("calibrate", "run", "--dev", "dev.csv", "--calibrator", "isotonic")[0] == 0
    with pytest.warns(UserWarning, match="these very texts") as told:
        calibrant.monitor("run", new="new.csv", dev="dev.csv")
    assert [str(warning.message) for warning in told] == [
        "The calibrator 'isotonic' was fitted on these very texts (file dev.csv), so that new text may look "
        "moved that is not; name other labelled texts with --dev."
    ]
    calibrant.monitor("run", new="new.csv")  # against the run's own, without a word


def test_a_dataset_by_its_name(command, here, csv_file, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(here))
    (here / "banking77").mkdir()
    csv_file("banking77/test.csv", noisy_corpus(150, seed=23))
    options = ("--dev", "dev.csv")
    same, found = monitored(command, "labelled.csv", *options), monitored(command, "banking77", *options)
    assert found["now"]["texts"]["source"] == "files $CALIBRANT_DATA/banking77"
    assert found["now"]["accuracy"] == same["now"]["accuracy"]
    shutil.copy("none.csv", "banking77/test.csv")  # classes of another world, and no mistake
    found = monitored(command, "banking77", *options)
    assert found["moved"]
    assert found["now"]["accuracy"] is found["unseen_labels"] is None


def test_what_people_read(command, here):
    code, out, _ = command("monitor", "run", "new.csv", "--dev", "dev.csv")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "then: file dev.csv; now: file new.csv"
    assert lines[-1] == "not moved (level 0.01)"
    assert lines[-2].startswith("confidence, distance: ")
    assert "(tolerance 10 %), p = " in lines[-2]
    assert "ECE" in out  # of dev
    assert "abstained" not in out  # the run has no rule
    code, out, _ = command("monitor", "run", "shuffled.csv", "--dev", "dev.csv", "--level", 0.05)
    assert code == 3
    lines = out.splitlines()
    assert lines[-1] == "MOVED (level 0.05): do not rely on the accuracy that is expected."
    assert lines[-2].startswith("accuracy beyond what was expected: -")


def test_too_few_texts_to_tell(command, here, csv_file):
    csv_file("three.csv", [(text,) for text, _ in corpus(3, seed=22)], ("text",))
    code, out, _ = command("monitor", "run", "three.csv", "--dev", "dev.csv")
    assert code == 4
    assert out.splitlines()[-1] == "too few texts to tell (level 0.01)"
    assert monitored(command, "three.csv", "--dev", "dev.csv")["moved"] is None
    code, out, _ = command("monitor", "run", "three.csv", "--follow")
    assert code == 4
    assert out.splitlines()[-1] == "too few texts to tell (level 0.01, all looks together)"


def looks(here):
    return json.loads((here / "run" / "follow.json").read_text())["looks"]


def test_following(command, here, csv_file):
    """Familiar weeks raise no alarm; a strange one does, and it stays."""
    for week in range(3):
        csv_file(f"week{week}.csv", [(text,) for text, _ in corpus(60, seed=30 + week)], ("text",))
        found = monitored(command, f"week{week}.csv", "--follow", "--dev", "dev.csv")
        followed = found["followed"]
        assert (found["moved"], followed["alarm_at"]) == (False, None)
        assert (followed["looks"], followed["texts"]) == (week + 1, 60 * (week + 1))
    assert [sum(look["counts"]["confidence"]) for look in looks(here)] == [60, 60, 60]
    assert "week" in (here / "run" / "follow.json").read_text()
    code, out, _ = command("monitor", "run", "odd.csv", "--follow", "--dev", "dev.csv")
    assert code == 3
    assert "alarm since look 4; once the cause is dealt with, --restart" in out
    assert out.splitlines()[-1].startswith("MOVED (level 0.01, all looks together): ")
    csv_file("week4.csv", [(text,) for text, _ in corpus(60, seed=34)], ("text",))
    assert monitored(command, "week4.csv", "--follow", "--dev", "dev.csv")["followed"]["alarm_at"] == 4
    again = monitored(command, "week4.csv", "--follow", "--restart", "--dev", "dev.csv")
    assert (again["moved"], again["followed"]["looks"]) == (False, 1)


def test_the_same_texts_count_once(command, here):
    first = monitored(command, "new.csv", "--follow")
    with pytest.warns(UserWarning, match="These very texts .file new.csv. were counted before, as look 1"):
        again = calibrant.monitor("run", new="new.csv", follow=True)
    assert (len(looks(here)), again.followed.looks) == (1, 1)
    assert again.followed.p == first["followed"]["p"]


def test_following_by_familiarity_too(command, here):
    options = ("--dev", "dev.csv", "--calibrator", "familiarity")
    assert command("calibrate", "run", *options)[0] == 0
    found = monitored(command, "odd.csv", "--follow", "--dev", "dev.csv")
    assert found["moved"]
    assert set(looks(here)[0]["counts"]) == {"familiarity", "confidence"}
    assert found["followed"]["unfamiliar_now"] > 0.3


def test_what_was_followed_with_another_calibrator_or_dev_is_refused(command, here):
    monitored(command, "new.csv", "--follow")
    again = "begin again with `calibrant monitor run … --follow --restart`."
    one_sentence(
        command("monitor", "run", "odd.csv", "--follow", "--dev", "dev.csv"),
        f"run/follow.json compares with {looks_dev(here)}, and not with file dev.csv; take the same dev "
        f"texts, or {again}",
    )
    assert command("calibrate", "run", "--dev", "dev.csv")[0] == 0
    one_sentence(
        command("monitor", "run", "odd.csv", "--follow"),
        f"run/follow.json was begun with another model or calibrator than the run has now; {again}",
    )
    assert monitored(command, "odd.csv", "--follow", "--restart")["followed"]["looks"] == 1


def looks_dev(here):
    return json.loads((here / "run" / "follow.json").read_text())["dev"]["source"]


@pytest.mark.parametrize("damage", ["{", "[]", '{"looks": 3}'])
def test_a_damaged_state(command, here, damage):
    (here / "run" / "follow.json").write_text(damage)
    one_sentence(command("monitor", "run", "new.csv", "--follow"), "run/follow.json is damaged (…")
    assert (here / "run" / "follow.json").read_text() == damage


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = {
    "monitor nowhere new.csv": "nowhere is not a run: it has no calibrant.json. Train one with …",
    "monitor run no.csv": "No file 'no.csv'; check the path.",
    "monitor run new.csv --dev no.csv": "No file 'no.csv'; check the path.",
    "monitor run new.csv --level 0": "--level must lie between 0 and 1, both excluded, got 0.",
    "monitor run new.csv --level 5": "--level must lie between 0 and 1, both excluded, got 5.",
    "monitor run new.csv --tolerance 10": "--tolerance must be 0 or more and below 1, got 10.",
    "monitor run new.csv --tolerance -0.1": "--tolerance must be 0 or more and below 1, got -0.1.",
    "monitor run new.csv --restart": "--restart goes with --follow: it forgets what was followed so far.",
    "monitor run new.csv --follow --tolerance 0.2": (
        "--tolerance is for a single look; with --follow leave it out."
    ),
    "monitor run new.csv --label-column queue": (
        "new.csv: no column 'queue'; its columns are text. Name the one that holds the label with …"
    ),
    "monitor run new.csv --text-column body": (
        "new.csv: no column 'body'; its columns are text. Name the one that holds the text with …"
    ),
    "monitor run none.csv": (
        "file none.csv: label 'stars' is not among the 3 labels seen in training; add training texts for it, "
        "or drop it here."
    ),
    "monitor run labelled.csv --dev own.csv": (
        "--dev own.csv: no column 'text', and its columns are those of training; rename it."
    ),
    "monitor run othr": "Unknown file or dataset 'othr'. Known: …",
    "monitor run gap.csv": "gap.csv, line 2: empty label in column 'label'; fill it or drop the line.",
    "monitor run new.csv --dev odder.csv": "file odder.csv: label 'stars' is not among the 3 labels …",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, here, csv_file, command):
    csv_file("gap.csv", [("a card", "")])
    csv_file("own.csv", corpus(3), ("body", "queue"))
    one_sentence(command(*line.split()), MISTAKES[line])
