"""Whoever works in Python names files by ``pathlib.Path``, as the command line does by words."""

import pytest

import calibrant
from calibrant import RunConfig, UserError
from support.tiny import UNFAMILIAR, corpus


def test_files_may_be_paths(run_copy, csv_file, model_dir, tmp_path):
    test, dev, ood = (
        csv_file("test.csv", corpus(40, seed=5)),
        csv_file("dev.csv", corpus(100, seed=6)),
        csv_file("ood.csv", [(f"{a} {b}",) for a in UNFAMILIAR for b in UNFAMILIAR], header=("text",)),
    )
    assert len(calibrant.calibrate(run_copy, calibrator="temperature", dev=dev).dev) == 100
    assert calibrant.threshold(run_copy, risk=0.3, dev=dev, ood=ood, ood_rate=0.9)
    assert len(calibrant.evaluate(run_copy, test=test, ood=ood).test) == 40
    assert len(list(calibrant.predict(run_copy, file=test, coverage=0.9, dev=dev))) == 40
    assert calibrant.monitor(run_copy, new=test, dev=dev).now.texts.n == 40
    assert len(calibrant.report(run_copy, out=tmp_path / "page.html", test=test, ood=ood)) == 1
    audited = calibrant.audit(run_copy / "model", test=test, dev=dev, ood=ood, max_length=32)
    assert f"--dev {dev}" in audited.next_command


def test_a_config_takes_paths_and_keeps_words(tmp_path, model_dir):
    named = RunConfig(train=tmp_path / "a.csv", dev=tmp_path / "b.csv", model=model_dir)
    words = RunConfig(train=str(tmp_path / "a.csv"), dev=str(tmp_path / "b.csv"), model=str(model_dir))
    assert named == words
    assert (named.train, named.model) == (str(tmp_path / "a.csv"), str(model_dir))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"dev": "no.csv"}, "set_method, set_per_class and dev go with coverage; …"),
        ({"set_method": "aps"}, "set_method, set_per_class and dev go with coverage; …"),
        ({"set_per_class": True}, "set_method, set_per_class and dev go with coverage; …"),
        ({"text_column": "body"}, "text_column and pair_column go with a file that has columns; …"),
    ],
)
def test_what_would_do_nothing_is_refused(run_copy, asked, told):
    with pytest.raises(UserError) as refused:
        list(calibrant.predict(run_copy, texts=["refund my card"], **asked))
    assert str(refused.value).startswith(told.removesuffix("…"))


def test_a_report_needs_a_run(tmp_path):
    with pytest.raises(UserError, match="report takes one run or more; name them"):
        calibrant.report([], out=tmp_path / "page.html")


def test_one_string_is_not_a_list_of_texts(run_copy):
    with pytest.raises(UserError, match="a list of texts, not one string"):
        list(calibrant.predict(run_copy, texts="refund my card"))
