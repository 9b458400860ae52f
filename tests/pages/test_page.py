import base64
import hashlib
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant.errors import UserError
from calibrant.pages import Entry, confidence_histogram, figure_svg, reliability_diagram
from calibrant.pages import write_report as write
from calibrant.pages.examples import telling_examples
from calibrant.pages.plots import FORMATS, figure_bytes
from calibrant.types import Prediction
from support.entries import entry, texts

write_report = partial(write, draws=5)  # what the intervals are is tested with the bootstrap

OWN_SCRIPT = files("calibrant.pages").joinpath("page.js").read_text(encoding="utf-8")
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Every start tag with its attributes; fails on tags that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def attributes(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def written(tmp_path, *args, **kwargs):
    return write_report(tmp_path / "page.html", *args, **{"draws": 20} | kwargs).read_text(encoding="utf-8")


def test_two_models_side_by_side(tmp_path):
    entries = [entry("plain", sharpness=4.0), entry("smoothed", sharpness=1.0, told=True)]
    html = written(
        tmp_path, "Side by side", entries, notes=["20ng-15, from a `wheel`"], provenance={"seed": "7"}
    )
    page = Page(html)
    # Reliability and confidence of each, familiarity of one, one risk–coverage, two F1.
    assert len(page.attributes("figure")) == len(page.attributes("svg")) == 8
    labels = [svg["aria-label"] for svg in page.attributes("svg")]
    assert all(svg["role"] == "img" for svg in page.attributes("svg"))
    assert labels[0].startswith("Reliability diagram of plain on 80 familiar texts")
    ece, accuracy = entries[1].metrics["ece"], entries[1].metrics["accuracy"]
    assert f"error {100 * ece:.1f} %, accuracy {accuracy:.1%}." in labels[1]
    assert labels[3].startswith("Confidence of smoothed, mean of each kind of text: right ")
    assert labels[4].startswith("Familiarity by smoothed, share of each kind of text at or below 0.05: right")
    assert labels[5].startswith("Risk–coverage curve: plain is wrong in ")
    assert labels[7].startswith("F1 curves of finding unfamiliar texts, mean up to 0.5: plain ")
    assert "<h1>Side by side</h1>" in html
    assert "<li>20ng-15, from a <code>wheel</code></li>" in html
    assert "<dt>seed</dt><dd>7</dd>" in html
    assert "Below a value stands its difference to plain" in html
    headings = re.findall(r'<h2 id="(.+?)"', html)
    assert headings[4:] == [
        "reliability", "confidence", "familiarity", "abstention", "f1", "numbers", "classes",
    ]  # fmt: skip


def test_one_run_with_all_that_is_known_of_it(tmp_path):
    one = entry(
        "runs/a",
        told=True,
        rule=0.5,
        settings={"method": "calibrant", "seed": "3"},
        verdict=("Fine on familiar text.", "Fine on unfamiliar text."),
        command="calibrant predict runs/a new.csv",
    )
    html = written(tmp_path, "t", [one], examples=telling_examples(one, [], *texts(one)))
    assert html.count('<section class="card"') == 4
    assert html.count("<svg") == 5
    assert '<th scope="row">method</th><td>calibrant</td>' in html
    assert "<summary>Surest mistakes</summary>" in html
    end = html[html.index('<h2 id="verdict">') :]
    assert end.index("Fine on familiar text.") < end.index("Fine on unfamiliar text.") < end.index("new.csv")
    assert "<h2" not in end[4:]  # it ends in the verdict
    assert html.count("<caption>") == 4  # the numbers, group by group
    assert "paired" not in html


def test_settings_that_differ_are_marked(tmp_path):
    one = entry("a", settings={"seed": "1", "encoder": "minilm"})
    two = entry("b", settings={"seed": "2", "encoder": "minilm", "epochs": "3"})
    html = written(tmp_path, "t", [one, two])
    assert '<tr class="differs"><th scope="row">seed</th><td>1</td><td>2</td></tr>' in html
    assert '<tr><th scope="row">encoder</th><td>minilm</td><td>minilm</td></tr>' in html
    assert '<tr class="differs"><th scope="row">epochs</th><td>–</td><td>3</td></tr>' in html


@pytest.mark.slow
def test_fifty_thousand_predictions_make_a_small_page(tmp_path):
    labels = tuple(f"class number {i}" for i in range(77))
    one = entry("a", told=True, rule=0.5, n=50_000, labels=labels)
    long = texts(one, "{} " + 300 * "word ")
    write_report(tmp_path / "page.html", "t", [one], examples=telling_examples(one, [], *long), draws=20)
    assert (tmp_path / "page.html").stat().st_size < 400_000


def test_ids_are_unique(tmp_path):
    ids = [
        attrs["id"]
        for _, attrs in Page(written(tmp_path, "t", [entry("a"), entry("b")])).tags
        if "id" in attrs
    ]
    assert len(ids) == len(set(ids)) > 20


def test_every_reference_inside_the_page_has_its_target(tmp_path):
    html = written(tmp_path, "t", [entry("a"), entry("b")])
    targets = set(re.findall(r'\bid="([^"]+)"', html))
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', html))
    assert used
    assert {a or b for a, b in used} <= targets


def test_nothing_is_fetched(tmp_path):
    page = Page(written(tmp_path, "t", [entry("a")]))
    assert {tag for tag, _ in page.tags}.isdisjoint({"link", "img", "iframe", "object", "base"})
    for _, attrs in page.tags:
        for name in ("src", "href", "xlink:href", "srcset", "action"):
            assert attrs.get(name, "#").startswith("#")
    assert not re.search(r"url\((?!#)|@import", (tmp_path / "page.html").read_text(encoding="utf-8"))
    policies = [meta["content"] for meta in page.attributes("meta") if "http-equiv" in meta]
    own = base64.b64encode(hashlib.sha256(OWN_SCRIPT.encode()).digest()).decode()
    assert policies == [f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{own}'"]


def test_all_text_is_escaped(tmp_path):
    evil = "<script>alert('x')</script> & \"$\\frac{1}{2}$\" `<b>`"
    model = entry(evil, labels=(evil, *"bcde"), settings={evil: evil}, verdict=(evil,), command=evil)
    example = {
        "kind": evil,
        "text": evil,
        "truth": evil,
        "answers": {evil: {"label": evil, "confidence": 0.5}},
    }
    html = written(tmp_path, evil, [model], examples=[example], notes=[evil], provenance={evil: evil})
    page = Page(html)
    assert len(page.attributes("script")) == html.count("<script") == 1
    assert f"<script>{OWN_SCRIPT}</script>" in html
    assert not page.attributes("b")
    assert any(evil in svg["aria-label"] for svg in page.attributes("svg"))


def test_unfamiliar_text_may_be_missing(tmp_path):
    html = written(tmp_path, "t", [entry("a", ood=False)])
    assert "Finding unfamiliar text" not in html
    assert "Unfamiliar text noticed" not in html
    html = written(tmp_path, "t", [entry("a", ood=False), entry("b")])
    assert "<dt>b</dt>" in html[html.index("Unfamiliar text noticed") :]
    assert "Finding unfamiliar text" in html


def test_examples_side_by_side(tmp_path):
    example = {
        "kind": "unfamiliar",
        "text": "My card was swallowed",
        "truth": None,
        "answers": {"a": {"label": "sci.space", "confidence": 0.97}},
    }
    html = written(tmp_path, "t", [entry("a"), entry("b")], examples=[example])
    assert "<blockquote>My card was swallowed</blockquote>" in html
    assert "sci.space, 97.0&nbsp;%&nbsp;sure" in html
    assert "<summary>Unfamiliar</summary>" in html
    assert "truly" not in html


def test_the_same_input_gives_the_same_page(tmp_path):
    first = write_report(tmp_path / "1.html", "t", [entry("a"), entry("b")], draws=20).read_bytes()
    assert write_report(tmp_path / "2.html", "t", [entry("a"), entry("b")], draws=20).read_bytes() == first


def test_makes_directories_and_leaves_nothing_else(tmp_path):
    path = write_report(str(tmp_path / "new" / "page.html"), "t", [entry("a")], draws=20)
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]


def test_a_failed_write_keeps_the_old_page(tmp_path, monkeypatch):
    path = write_report(tmp_path / "page.html", "old", [entry("a")], draws=20)

    def fail(source, target):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(path, "new", [entry("a")], draws=20)
    assert "<h1>old</h1>" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]


def test_refusals(tmp_path):
    with pytest.raises(
        UserError, match=r"A report needs one or more models with different names, got \[\]\."
    ):
        write_report(tmp_path / "page.html", "t", [])
    with pytest.raises(UserError, match=r"different names, got \['a', 'a'\]\."):
        write_report(tmp_path / "page.html", "t", [entry("a"), entry("a")])
    with pytest.raises(
        UserError, match=r"The report is one file, but .* is a directory; give a name ending in"
    ):
        write_report(tmp_path, "t", [entry("a")], draws=20)


def test_reliability_diagram_shows_the_bins_of_the_metric():
    p = np.array([[0.6, 0.4], [0.6, 0.4], [1.0, 0.0]])
    axes = Figure().add_subplot()
    reliability_diagram(axes, p.max(axis=1), [True, False, True])
    accuracy, over, under = axes.containers
    assert [bar.get_x() for bar in accuracy] == pytest.approx([8 / 15, 14 / 15])
    assert [bar.get_height() for bar in accuracy] == [0.5, 1.0]
    assert [bar.get_height() for bar in over] == pytest.approx([0.1, 0.0])
    assert [bar.get_height() for bar in under] == [0.0, 0.0]
    assert axes.get_title() == "ECE 6.7%, accuracy 66.7%"


def test_the_bands_of_the_bins():
    axes = Figure().add_subplot()
    reliability_diagram(axes, [0.6] * 40 + [1.0] * 4, [True] * 20 + [False] * 20 + [True] * 4, bands=True)
    (lines,) = axes.collections
    (low, high), (sure_low, sure_high) = (path.vertices[:, 1] for path in lines.get_paths())
    assert 0.3 < low < 0.5 < high < 0.7
    assert sure_low == sure_high == 1


def test_under_confidence_is_drawn_from_what_was_said_to_what_was_right():
    axes = Figure().add_subplot()
    reliability_diagram(axes, [0.6, 0.6], [True, True])
    _, over, under = axes.containers
    assert (over[0].get_height(), under[0].get_y()) == (0.0, 0.6)
    assert under[0].get_height() == pytest.approx(0.4)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["accuracy", "over-confident by", "under-confident by"]


def test_a_model_without_labels_has_no_place_on_the_page(tmp_path):
    unlabelled = Entry("a", Prediction(np.array([[1.0, 0.0]])), None, {})
    with pytest.raises(UserError, match=r"correct is not known without labels; add a label column\."):
        write_report(tmp_path / "page.html", "t", [unlabelled])


@pytest.mark.parametrize("format", FORMATS)
def test_figure_bytes_are_the_same_for_the_same_figure(format):
    def draw(confidence):
        figure = Figure()
        confidence_histogram(figure.add_subplot(), confidence)
        return figure_bytes(figure, format)

    assert draw([0.2, 0.9]) == draw([0.2, 0.9]) != draw([0.2, 0.8])


def test_confidence_histogram_sums_to_one():
    axes = Figure().add_subplot()
    confidence_histogram(axes, [0.0, 0.2, 0.2, 1.0], guess=0.1, top=0.6)
    shares = [bar.get_height() for bar in axes.containers[0]]
    assert sum(shares) == 1
    assert (shares[0], shares[2], shares[14]) == (0.25, 0.5, 0.25)
    assert axes.get_ylim() == (0, 0.6)
    assert axes.get_title() == "mean confidence 35.0%"


def test_figure_svg_is_deterministic_and_themed():
    def draw():
        figure = Figure()
        confidence_histogram(figure.add_subplot(), [0.2, 0.9])
        return figure_svg(figure, prefix="p-", label='a "b" <c>')

    svg = draw()
    assert svg == draw()
    assert svg.startswith('<svg role="img" aria-label="a &quot;b&quot; &lt;c&gt;"')
    assert "var(--accent, #2f6f9f)" in svg
    assert all(i.startswith("p-") for i in re.findall(r'\bid="([^"]+)"', svg))
    assert figure_svg(Figure()).startswith('<svg aria-hidden="true"')


def test_nothing_here_imports_torch_or_pyplot():
    code = (
        "import sys, calibrant.pages; print([x for x in ('torch', 'matplotlib.pyplot') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_the_page_is_made_of_is_shipped():
    import tomllib
    from fnmatch import fnmatch
    from pathlib import Path

    root = Path(__file__).parents[2]
    patterns = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    parts = [
        path for path in (root / "src/calibrant/pages").iterdir() if path.suffix in {".j2", ".css", ".js"}
    ]
    assert len(parts) == 3
    for part in parts:
        assert any(fnmatch(f"pages/{part.name}", pattern) for pattern in patterns["calibrant"])
