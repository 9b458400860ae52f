import numpy as np

from calibrant.pages.examples import EACH, LONGEST, cut, telling_examples
from support.entries import entry, texts


def test_the_surest_mistakes_and_the_least_sure_right_answers():
    one = entry("a", told=True)
    found = telling_examples(one, [], *texts(one))
    kinds = dict.fromkeys(example["kind"] for example in found)
    assert list(kinds) == ["Surest mistakes", "Least sure right answers", "Surest on unfamiliar text"]
    mistakes, right, strange = ([e for e in found if e["kind"] == kind] for kind in kinds)
    assert len(mistakes) == len(right) == len(strange) == EACH
    confidence, correct = one.test.confidence, one.test.correct
    surest = int(np.argmax(np.where(correct, 0, confidence)))
    assert mistakes[0]["text"] == f"text number {surest}"
    assert mistakes[0]["answers"]["a"]["confidence"] == confidence[surest]
    assert mistakes[0]["answers"]["a"]["familiarity"] == one.test.familiarity[surest]
    assert mistakes[0]["truth"] != mistakes[0]["answers"]["a"]["label"]
    assert right[0]["answers"]["a"]["confidence"] == confidence[correct].min()
    assert right[0]["truth"] == right[0]["answers"]["a"]["label"]
    assert strange[0]["answers"]["a"]["confidence"] == one.ood.confidence.max()
    assert strange[0]["truth"] is None


def test_what_the_others_say_stands_beside_it():
    one, other = entry("a", ood=False), entry("b", seed=1, ood=False)
    found = telling_examples(one, [other], texts(one)[0], None)
    assert {example["kind"] for example in found} == {"Surest mistakes of a", "Least sure right answers of a"}
    assert list(found[0]["answers"]) == ["a", "b"]


def test_a_long_text_is_cut():
    assert cut("x" * LONGEST) == "x" * LONGEST
    assert cut("x" * (LONGEST + 1)) == "x" * LONGEST + " …"
