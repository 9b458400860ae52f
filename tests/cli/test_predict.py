"""``calibrant predict``, and the mistakes that get one sentence."""

import json

import pytest

from calibrant.classifier import Classifier
from support.sentences import cases, one_sentence
from support.tiny import corpus


def test_an_interrupted_prediction_keeps_what_was_answered(command, trained, csv_file, monkeypatch):
    texts = csv_file("new.csv", [(text,) for text, _ in corpus(5)], ("text",))
    whole = [json.loads(line)["confidence"] for line in command("predict", trained, texts)[1].splitlines()]
    predict, asked = Classifier.predict, []

    def interrupted(self, some, *args, **kwargs):
        asked.append(len(some))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return predict(self, some, *args, **kwargs)

    monkeypatch.setattr(Classifier, "predict", interrupted)
    monkeypatch.setattr("calibrant.tasks.predict.AT_ONCE", 2)
    code, out, err = command("predict", trained, texts)
    assert (code, asked) == (130, [2, 2, 1])
    assert [json.loads(line)["confidence"] for line in out.splitlines()] == pytest.approx(whole[:4], abs=1e-5)
    assert err.splitlines()[-1] == "calibrant: interrupted."


# A command and the sentence that it gets; an ellipsis stands for the rest of it.
MISTAKES = cases(
    """
# what is predicted
$ predict nowhere good.csv
nowhere is not a run: it has no calibrant.json. Train one with `calibrant train --out nowhere …`.
$ predict run
Give either a FILE (or - for standard input) or --text.
$ predict run good.csv --text hello
Give either a FILE (or - for standard input) or --text.
$ predict run no.csv
No file 'no.csv'; check the path.
$ predict run empty.csv
empty.csv: the file is empty; it needs rows with a text each.
$ predict run header.csv
header.csv: the file has no rows; it needs at least one text.
$ predict run own.csv
own.csv: no column 'text'; its columns are body, queue. Name the one that holds the text with …
"""
)


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gets_one_sentence(line, mistakes, command):
    one_sentence(command(*line.split()), MISTAKES[line])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "Text 1 of 1 is empty; there is nothing to classify."),
        ("caf\udce9", "Text 1 of 1 holds half a character (surrogates not allowed); is it UTF-8?"),
    ],
)
def test_mistakes_in_a_text(text, sentence, command, trained):
    one_sentence(command("predict", trained, "--text", text), sentence)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "standard input: empty; it needs at least one text."),
        (b"a card\n\na box\n", "standard input, line 2: empty text; drop the line."),
        (
            b"a card\ncaf\xe9\n",
            "standard input, line 2: not UTF-8; save it as UTF-8 (for instance with `iconv -f ",
        ),
    ],
)
def test_mistakes_on_standard_input(content, sentence, command, trained, pipe):
    pipe(content)
    one_sentence(command("predict", trained, "-"), f"{sentence}…")
