"""``calibrant threshold``, ``evaluate --scores``, and what obeys the rule afterwards."""

import json
import random
import shutil

import numpy as np
import pytest
from scipy.stats import binomtest

import calibrant
from calibrant.calibrators import calibrators
from calibrant.runs import store
from calibrant.runs.card import threshold_in_words
from calibrant.runs.texts import own_splits
from calibrant.scores import scores
from support.sentences import one_sentence
from support.tiny import FILLER, UNFAMILIAR, WORDS, corpus

STRANGE = [
    (f"{a} {b} {c}",) for a in UNFAMILIAR for b in UNFAMILIAR for c in UNFAMILIAR[:2] if a != b and b != c
]
RISK = ("threshold", "run", "--dev", "dev.csv", "--risk")


def rows(n, seed):
    """Texts that can be told, and a third as many that cannot: two classes at once, labelled as one."""
    rng, hopeless = random.Random(seed), {}
    while len(hopeless) < n // 3:
        one, other = rng.sample(list(WORDS), 2)
        hopeless[f"{rng.choice(WORDS[one])} {rng.choice(WORDS[other])} {rng.choice(FILLER)}"] = one
    return corpus(n, seed) + list(hopeless.items())


DEV, TEST = rows(300, seed=21), rows(60, seed=22)
TEXTS = [text for text, _ in TEST]


@pytest.fixture
def here(tmp_path, monkeypatch, trained, csv_file):
    """The user's directory, with a run, a dev, a test and an unfamiliar file."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "run")
    csv_file("dev.csv", DEV)
    csv_file("test.csv", TEST)
    csv_file("other.csv", STRANGE, ("text",))
    return tmp_path


def record():
    with open("run/calibrant.json", encoding="utf-8") as file:
        return json.load(file)


def done(command, *arguments):
    code, out, err = command(*arguments)
    assert code == 0, err
    return out


def measured(command, *options):
    return json.loads(done(command, "evaluate", "run", "--test", "test.csv", "--json", *options))


def abstained(command, *options):
    lines = done(command, "predict", "run", "test.csv", *options).splitlines()
    return np.array([json.loads(line)["abstain"] for line in lines])


def test_a_rule_for_risk(command, here):
    p = calibrant.load("run").predict_proba(TEXTS)
    assert "abstention" not in measured(command)
    result = json.loads(done(command, *RISK, 0.1, "--json"))
    stored = record()["threshold"]
    assert result == {"run": "run", **stored, "naive": result["naive"], "never": [], "chosen_from": 0}
    assert stored["promise"] == {"risk": 0.1, "ood_rate": None, "confidence": 0.95}
    assert stored["learnt_on"]["dev"]["source"] == "file dev.csv"
    assert (stored["rule"]["score"], stored["rule"]["cut"], stored["dev"]["turned_away"]) == (None, None, 0)

    threshold = stored["rule"]["threshold"]
    dev = calibrant.load("run").predict_proba([text for text, _ in DEV])
    answered = dev.max(axis=1) >= threshold
    assert stored["dev"]["coverage"] == answered.mean()
    names = np.array(sorted({label for _, label in DEV}))
    wrong = names[dev.argmax(axis=1)] != [label for _, label in DEV]
    assert stored["dev"]["risk"] == wrong[answered].mean()
    assert binomtest(int(wrong[answered].sum()), int(answered.sum()), 0.1, "less").pvalue <= 0.05
    assert result["naive"]["coverage"] >= stored["dev"]["coverage"]
    assert result["naive"]["risk"] <= 0.1

    expected = p.max(axis=1) < threshold
    assert 0 < expected.sum() < len(TEXTS)
    np.testing.assert_array_equal(abstained(command), expected)
    assert [d.abstain for d in calibrant.load("run").predict(TEXTS)] == expected.tolist()
    assert not abstained(command, "--threshold", 0).any()
    np.testing.assert_array_equal(abstained(command, "--threshold", 0.5), p.max(axis=1) < 0.5)


def test_what_is_printed(command, here):
    out = done(command, *RISK, 0.1)
    stored = record()["threshold"]
    rule, promise, *rest = out.splitlines()[0].split(". ")
    assert rest == []
    shown = threshold_in_words(stored["rule"]["threshold"])
    assert rule.startswith(f"run: It answers where its confidence is at least {shown},")
    assert promise == (
        "Promised: of the texts it answers at most 10.00% are wrong, with confidence 0.95, on text like the "
        "400 it was learnt on (file dev.csv)."
    )
    assert (
        f"it answers {stored['dev']['coverage']:.1%}, of which {stored['dev']['risk']:.1%} are wrong." in out
    )
    assert "The naive threshold " in out
    assert "points of coverage are the price." in out
    assert out.splitlines()[-1] == "Next, on other texts: calibrant evaluate run --test test.csv"


def test_card_report_and_metrics_state_the_rule(command, here):
    measured(command)
    done(command, *RISK, 0.1)
    promise = "of the texts it answers at most 10.00% are wrong, with confidence 0.95"
    card = (here / "run" / "README.md").read_text(encoding="utf-8")
    assert "## Abstention" in card
    assert promise in card
    assert "On the test texts it answers" not in card  # nothing was measured under the rule yet

    numbers = measured(command, "--ood", "other.csv", "--report", "page.html")
    abstention = numbers["abstention"]
    abstain = abstained(command)
    assert abstention["coverage"] == pytest.approx(1 - abstain.mean())
    lines = done(command, "predict", "run", "test.csv").splitlines()
    right = [json.loads(line)["label"] == label for line, (_, label) in zip(lines, TEST, strict=True)]
    assert abstention["risk"] == pytest.approx(1 - np.array(right)[~abstain].mean())
    strange = calibrant.load("run").predict([text for (text,) in STRANGE])
    assert abstention["ood_answered"] == pytest.approx(np.mean([not d.abstain for d in strange]))
    sentence = (
        f"On the test texts it answers {abstention['coverage']:.1%}, of which {abstention['risk']:.1%} are "
        f"wrong; of the unfamiliar texts it answers {abstention['ood_answered']:.1%}."
    )
    assert sentence in (here / "run" / "README.md").read_text(encoding="utf-8")
    page = (here / "page.html").read_text(encoding="utf-8")
    assert promise in page
    assert sentence in page
    assert f"By its rule: {sentence}" in done(
        command, "evaluate", "run", "--test", "test.csv", "--ood", "other.csv"
    )

    accuracy = numbers["accuracy"]
    done(command, *RISK, 0.25)  # another rule: what was measured under the first holds no longer
    kept = store.load("run").metrics()["metrics"]
    assert kept["accuracy"] == accuracy
    assert "abstention" not in kept
    assert "On the test texts it answers" not in (here / "run" / "README.md").read_text(encoding="utf-8")


def test_a_rule_that_answers_nothing_of_the_test(command, here):
    done(command, *RISK, 0.1)
    changed = record()
    changed["threshold"]["rule"]["threshold"] = 1.1
    (here / "run" / "calibrant.json").write_text(json.dumps(changed))
    assert measured(command)["abstention"] == {"coverage": 0.0, "risk": None, "ood_answered": None}
    assert "On the test texts it answers 0.0%." in (here / "run" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["max-probability", "knn"])
def test_a_rule_for_unfamiliar_text(command, here, name):
    options = ("--ood", "other.csv", "--ood-rate", 0.4, "--score", name)
    result = json.loads(done(command, *RISK, 0.3, *options, "--json"))
    assert record()["threshold"] == {
        key: result[key] for key in ("rule", "promise", "learnt_on", "dev", "learnt_for")
    }
    rule = result["rule"]
    assert (rule["score"], result["promise"]["ood_rate"]) == (name, 0.4)
    assert result["learnt_on"]["ood"]["n"] == len(STRANGE)

    classifier = calibrant.load("run")
    score = classifier.rule.score
    outputs = classifier.outputs([text for (text,) in STRANGE], score.needs)
    answered = score(outputs) < rule["cut"]
    n, k = len(answered), int(answered.sum())
    assert binomtest(k, n, 0.4, "less").pvalue <= 0.05 < binomtest(k + 1, n, 0.4, "less").pvalue
    dev = classifier.outputs([text for text, _ in DEV], score.needs)
    assert result["dev"]["turned_away"] == pytest.approx((score(dev) >= rule["cut"]).mean(), abs=0.01)
    assert measured(command, "--ood", "other.csv")["abstention"]["ood_answered"] <= k / n

    test = classifier.outputs(TEXTS, score.needs)
    expected = (test.probabilities.max(axis=1) < rule["threshold"]) | (score(test) >= rule["cut"])
    np.testing.assert_array_equal(abstained(command), expected)
    assert not abstained(command, "--threshold", 0).any()
    assert calibrant.load("run").predict([]) == []
    out = done(command, *RISK, 0.3, *options)
    assert f" and its score {name} below {rule['cut']:.4g}, and abstains elsewhere." in out
    assert f"turns away {result['dev']['turned_away']:.1%} of them as unfamiliar" in out
    assert "of unfamiliar texts at most 40.00% are answered, with confidence 0.95" in out
    assert (here / "run" / "scores").exists() == (name == "knn")


def test_the_default_score(command, here):
    result = json.loads(done(command, *RISK, 0.3, "--ood", "other.csv", "--ood-rate", 0.4, "--json"))
    assert result["rule"]["score"] == "max-probability"


@pytest.mark.parametrize("name", [name for name, kind in calibrators().items() if kind.learns_by_heart])
def test_texts_that_the_calibrator_knows_by_heart_promise_nothing(command, here, csv_file, name):
    csv_file("fresh.csv", rows(300, seed=23))
    done(command, "calibrate", "run", "--dev", "dev.csv", "--calibrator", name)
    code, out, err = command(*RISK, 0.3)
    assert (code, out) == (2, "")
    assert err == (
        f"calibrant: The calibrator {name!r} was fitted on these very texts (file dev.csv), so they can "
        "promise nothing; name other labelled texts with --dev.\n"
    )
    assert record()["threshold"] is None
    done(command, "threshold", "run", "--dev", "fresh.csv", "--risk", 0.3)


def test_one_number_cannot_learn_texts_by_heart(command, here):
    done(command, "calibrate", "run", "--dev", "dev.csv", "--calibrator", "temperature")
    done(command, *RISK, 0.3)


def test_unfamiliar_text_may_be_a_dataset(command, here, csv_file, monkeypatch):
    monkeypatch.setenv("CALIBRANT_DATA", str(here))
    (here / "banking77").mkdir()
    csv_file("banking77/test.csv", [(text, "music") for (text,) in STRANGE])
    same = json.loads(done(command, *RISK, 0.3, "--ood", "other.csv", "--ood-rate", 0.4, "--json"))
    result = json.loads(done(command, *RISK, 0.3, "--ood", "banking77", "--ood-rate", 0.4, "--json"))
    assert result["rule"] == same["rule"]
    assert result["learnt_on"]["ood"]["source"] == "files $CALIBRANT_DATA/banking77"


def test_the_runs_own_dev_texts(command, here):
    result = json.loads(done(command, "threshold", "run", "--risk", 0.5, "--json"))
    assert result["learnt_on"]["dev"] == record()["data"]["dev"]
    epochs = sum("eval_accuracy" in entry for entry in record()["training"]["history"])
    assert result["chosen_from"] == epochs > 1
    out = done(command, "threshold", "run", "--risk", 0.5)
    assert f"was shared among the {epochs} models that they chose from." in out


def test_the_own_dev_texts_must_prove_more(command, here):
    """Two thirds of 40 texts without a mistake: enough for one model, and not for the best of several."""
    n = round(40 * 2 / 3)
    risk = 1 - 0.05 ** (1 / n)  # what n texts just prove
    code, _, err = command("threshold", "run", "--risk", risk)
    assert code == 2
    assert "cannot be promised with confidence 0.95 from 40 dev texts" in err


def test_the_own_dev_texts_in_disguise(command, here, csv_file):
    own = own_splits(store.load("run")).dev
    csv_file("half.csv", [*zip(own.texts, own.labels, strict=True), *DEV[:150]])
    one_sentence(
        command("threshold", "run", "--risk", 0.2, "--dev", "half.csv"),
        "40 of the 190 texts (file half.csv) are the run's own dev texts, which chose its weights …",
    )


def test_the_pilot_is_not_what_is_kept_of_dev(command, here):
    """Sets may have put these very texts there."""
    before = json.loads(done(command, *RISK, 0.1, "--json"))
    done(command, "predict", "run", "test.csv", "--coverage", 0.9, "--dev", "dev.csv")
    assert json.loads(done(command, *RISK, 0.1, "--json")) == before


def test_a_rule_without_a_pilot(command, here):
    """Where the run's own dev texts are gone, a third of those given serves."""
    changed = record()
    changed["config"]["train"] = "gone.csv"
    (here / "run" / "calibrant.json").write_text(json.dumps(changed))
    result = json.loads(done(command, *RISK, 0.2, "--json"))
    assert (result["chosen_from"], result["learnt_on"]["dev"]["n"]) == (0, 400)


def test_a_threshold_for_each_class(command, here):
    result = json.loads(done(command, *RISK, 0.2, "--per-class", "--json"))
    thresholds = result["rule"]["thresholds"]
    names = sorted(WORDS)
    assert set(thresholds) | set(result["never"]) == set(names)
    assert result["rule"]["threshold"] == min(thresholds.values())
    p = calibrant.load("run").predict_proba([text for text, _ in DEV])
    predicted = np.array(names)[p.argmax(axis=1)]
    wrong = predicted != [label for _, label in DEV]
    for name, threshold in thresholds.items():
        answered = (predicted == name) & (p.max(axis=1) >= threshold)
        assert binomtest(int(wrong[answered].sum()), int(answered.sum()), 0.2, "less").pvalue <= 0.05
    on_test = calibrant.load("run").predict_proba(TEXTS)
    of_each = np.array([thresholds.get(name, np.inf) for name in names])[on_test.argmax(axis=1)]
    np.testing.assert_array_equal(abstained(command), on_test.max(axis=1) < of_each)
    card = (here / "run" / "README.md").read_text(encoding="utf-8")
    assert f"It answers {len(thresholds)} classes, each where its confidence is at least a threshold" in card
    assert "of its answers with each such class at most 20.00% are wrong, with confidence 0.95" in card


def test_classes_that_are_never_answered(command, here, csv_file):
    """Of the third class there are too few texts to promise anything."""
    names = sorted(WORDS)
    rare = [row for row in DEV if row[1] == names[2]][:5]
    csv_file("rare.csv", [row for row in DEV if row[1] != names[2]] + rare)
    out = done(command, "threshold", "run", "--dev", "rare.csv", "--risk", 0.1, "--per-class")
    assert names[2] in out.split("Never answered, for want of texts or of certainty, ")[1].splitlines()[0]
    assert names[2] not in record()["threshold"]["rule"]["thresholds"]
    lines = [json.loads(line) for line in done(command, "predict", "run", "test.csv").splitlines()]
    assert all(line["abstain"] for line in lines if line["label"] == names[2])


def test_calibrating_takes_the_rule_away_and_says_so(command, here):
    told = (
        "The rule of abstention no longer holds and was removed; learn it again with `calibrant threshold "
        "run …`."
    )
    done(command, *RISK, 0.1)
    assert told in done(command, "calibrate", "run", "--dev", "dev.csv").splitlines()
    assert record()["threshold"] is None
    assert not abstained(command).any()
    assert "## Abstention" not in (here / "run" / "README.md").read_text(encoding="utf-8")
    assert told not in done(command, "calibrate", "run", "--dev", "dev.csv")  # there was none
    for options in (("--dev", "dev.csv"), ("--calibrator", "none")):
        stored = json.loads(done(command, *RISK, 0.1, "--json"))
        removed = json.loads(done(command, "calibrate", "run", *options, "--json"))["removed_rule"]
        assert removed["rule"] == stored["rule"]
    done(command, *RISK, 0.1)
    assert done(command, "calibrate", "run", "--calibrator", "none") == f"run: no calibrator.\n{told}\n"
    assert record()["threshold"] is None


def test_removing_the_rule(command, here):
    done(command, *RISK, 0.1)
    assert done(command, "threshold", "run", "--remove") == "run: no rule.\n"
    assert record()["threshold"] is None
    assert not abstained(command).any()
    assert json.loads(done(command, "threshold", "run", "--remove", "--json")) == {
        "run": "run",
        "threshold": None,
    }


def test_a_rule_whose_score_is_gone(command, here):
    done(command, *RISK, 0.3, "--ood", "other.csv", "--ood-rate", 0.4, "--score", "knn")
    before = abstained(command)
    (here / "run" / "scores" / "knn.safetensors").unlink()
    code, out, err = command("predict", "run", "test.csv")
    assert (code, out) == (2, "")
    assert (
        "run/scores/knn.safetensors is missing or not the file that was saved with the run; restore it" in err
    )
    assert not abstained(command, "--threshold", 0).any()  # which asks no score
    advice = err.split("fit it again with `calibrant ")[1].split("`")[0]
    done(command, *advice.split())
    np.testing.assert_array_equal(abstained(command), before)


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        ({}, "threshold.rule: Field required)"),
        ({"rule": {"threshold": 0.5}}, "threshold.promise: Field required)"),
        ({"rule": {"threshold": "high"}}, "threshold.rule.threshold: Input should be a valid number, "),
        ([1], "threshold: Input should be "),
        ("0.5", "threshold: Input should be "),
    ],
)
def test_a_damaged_rule(command, here, damage, where):
    (here / "run" / "calibrant.json").write_text(json.dumps(record() | {"threshold": damage}))
    code, out, err = command("predict", "run", "test.csv")
    assert (code, out) == (2, "")
    assert err.startswith(f"calibrant: run/calibrant.json is damaged ({where}")
    assert err.endswith(
        "); write null for `threshold` there, and learn the rule again with `calibrant threshold`.\n"
    )
    (here / "run" / "calibrant.json").write_text(json.dumps(record() | {"threshold": None}))
    assert not abstained(command).any()
    done(command, *RISK, 0.1)


def test_scores_of_an_evaluation(command, here):
    plain = measured(command, "--ood", "other.csv")
    numbers = measured(command, "--ood", "other.csv", "--scores")
    found = numbers.pop("scores")
    for key, value in plain.items():
        assert numbers[key] == pytest.approx(value, abs=1e-4)
    assert list(found) == list(scores())
    for of_score in found.values():
        assert set(of_score) == {"misclassification", "ood"}
        for part in of_score.values():
            assert set(part) == {"auroc", "aupr", "fpr95"}
            assert all(0 <= value <= 1 for value in part.values())
    for part in ("misclassification", "ood"):
        for metric, value in found["max-probability"][part].items():
            assert value == pytest.approx(numbers[part][metric], abs=1e-4)
    assert found["knn"]["ood"]["auroc"] > 0.5
    kept = json.loads((here / "run" / "metrics.json").read_text())["metrics"]
    assert kept["scores"] == found
    assert measured(command, "--scores")["scores"]["knn"]["ood"] is None


def test_the_table_of_scores(command, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    out = done(command, "evaluate", "run", "--test", "test.csv", "--ood", "other.csv", "--scores")
    table = out[out.index("score ") :]
    assert "misclassified: AUROC ↑" in table
    assert "unfamiliar: FPR95 ↓" in table
    assert set(scores()) <= {line.strip().split(" ")[0] for line in table.splitlines()}
    alone = done(command, "evaluate", "run", "--test", "test.csv", "--scores")
    assert "unfamiliar: " not in alone[alone.index("score ") :]


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
OOD = "--ood other.csv --ood-rate"
LEARNING = [
    *("knn", "layer-mahalanobis", "mean-mahalanobis", "mahalanobis", "relative-mahalanobis"),
    "two-layer-mahalanobis",
]
MISTAKES = {
    "threshold run": "Give either --risk, as in --risk 0.02, or --remove.",
    "threshold run --risk 0.1 --remove": "Give either --risk, as in --risk 0.02, or --remove.",
    "threshold run --remove --per-class": "--per-class goes with --risk; to take a rule away, leave it out.",
    "threshold run --remove --text-column x": "--text-column goes with --risk; to take a rule away, leave …",
    "threshold run --risk 0.1 --ood other.csv": "--ood and --ood-rate go together: the unfamiliar …",
    "threshold run --risk 0.1 --ood-rate 0.1": "--ood and --ood-rate go together: the unfamiliar …",
    "threshold run --risk 0.1 --score knn": "--score goes with --ood: it is learnt from unfamiliar text.",
    "threshold run --risk 0": "--risk must lie between 0 and 1, both excluded, got 0.",
    "threshold run --risk 2": "--risk must lie between 0 and 1, both excluded, got 2.",
    "threshold run --risk 0.1 --confidence 1": "--confidence must lie between 0 and 1, both excluded, got 1.",
    f"threshold run --risk 0.1 {OOD} 1.5": "--ood-rate must lie between 0 and 1, both excluded, got 1.5.",
    "threshold nowhere --risk 0.1": "nowhere is not a run: it has no calibrant.json. Train one with …",
    "threshold run --risk 0.001 --dev dev.csv --per-class": (
        "--risk 0.001 cannot be promised with confidence 0.95 from 400 dev texts for any class; give more …"
    ),
    "threshold nowhere --remove": "nowhere is not a run: it has no calibrant.json. Train one with …",
    "threshold run --risk 0.1 --dev no.csv": "No file 'no.csv'; check the path.",
    "threshold run --risk 0.1 --dev other.csv": "other.csv: no column 'label'; its columns are text. …",
    "threshold run --risk 0.1 --dev unseen.csv": "file unseen.csv: label 'returns' is not among …",
    "threshold run --risk 0.1 --dev dev.csv --ood no.csv --ood-rate 0.1": "No file 'no.csv'; check the path.",
    f"threshold run --risk 0.1 --dev dev.csv {OOD} 0.1 --score kn": "Unknown score 'kn'; did you mean …",
    f"threshold run --risk 0.1 --dev dev.csv {OOD} 0.01": (
        "--ood-rate 0.01 cannot be promised with confidence 0.95 from 98 texts (other.csv): it takes 299, "
        "and these allow 0.031."
    ),
    "threshold run --risk 0.1 --dev dev.csv --ood like.csv --ood-rate 0.05": (
        "To answer at most 0.05 of like.csv by the score 'max-probability' would turn away all 400 dev "
        "texts; allow a higher --ood-rate or take another --score."
    ),
    "threshold run --risk 0.001 --dev dev.csv": (
        "--risk 0.001 cannot be promised with confidence 0.95 from 400 dev texts; the smallest that can be …"
    ),
    "evaluate moved --test test.csv --scores": (
        f"{', '.join(LEARNING)}: fitted on the run's training texts, and these cannot be had again (No file "
        "'gone.csv'; check the path); restore them, or use what needs no fitting on them."
    ),
}


@pytest.fixture(scope="module")
def surest(trained):
    """The dev text that leaves no other, if it is taken for unfamiliar."""
    texts = [text for text, _ in DEV]
    return texts[calibrant.load(trained).predict_proba(texts).max(axis=1).argmax()]


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, here, csv_file, command, surest):
    csv_file("unseen.csv", [("a book", "returns")])
    csv_file("like.csv", [(surest,)] * 80, ("text",))
    shutil.copytree("run", "moved")
    changed = record() | {"config": record()["config"] | {"train": "gone.csv"}}
    (here / "moved" / "calibrant.json").write_text(json.dumps(changed))
    before = record()
    one_sentence(command(*line.split()), MISTAKES[line])
    assert record() == before


def test_what_the_message_says_can_be_had(command, here):
    code, _, err = command(*RISK, 0.001)
    assert code == 2
    assert err.endswith(
        "Give more dev texts or allow more risk; that smallest one was found by looking at these texts, so "
        "to promise it take new ones.\n"
    )
    said = err.split("the smallest that can be is ")[1]
    risk, share = float(said.split(",")[0]), float(said.split("answering ")[1].split("%")[0]) / 100
    result = json.loads(done(command, *RISK, risk, "--json"))
    assert result["dev"]["coverage"] >= share - 0.001
    assert command(*RISK, risk - 0.002)[0] == 2
