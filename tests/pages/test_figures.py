import numpy as np
import pytest
from matplotlib.figure import Figure

from calibrant.errors import UserError
from calibrant.pages.curves import (
    MOST_POINTS,
    bin_counts,
    f1_lines,
    overlaid_shares,
    risk_coverage_lines,
    thinned,
)
from calibrant.pages.figures import check_figures_place, sections, write_figures
from support.entries import entry


def axes():
    return Figure().add_subplot()


def legend(drawn):
    return [text.get_text() for text in drawn.get_legend().get_texts()]


def test_each_figure_as_svg_and_png(tmp_path):
    written = write_figures(tmp_path / "new" / "figures", [entry("a", told=True)])
    names = ["reliability", "confidence", "familiarity", "risk-coverage", "f1"]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    assert sorted(written) == sorted((tmp_path / "new" / "figures").iterdir())
    for path in written:
        start = path.read_bytes()[:5]
        assert start == (b"<?xml" if path.suffix == ".svg" else b"\x89PNG\r")


def test_files_of_several_runs_have_their_names(tmp_path):
    names = [path.name for path in write_figures(tmp_path, [entry("runs/a"), entry("my run")])]
    assert "reliability-1-runs-a.svg" in names
    assert "confidence-2-my-run.png" in names
    assert {"risk-coverage.svg", "f1-mistakes.svg", "f1-unfamiliar.svg"} <= set(names)


def test_a_place_that_is_a_file(tmp_path):
    (tmp_path / "taken").touch()
    with pytest.raises(UserError, match=r"taken is not a folder; name another place for the figures\."):
        check_figures_place(tmp_path / "taken")


def test_counts_below_the_bins():
    drawn = axes()
    bin_counts(drawn, [0.1] * 1500 + [0.9] * 2, [True] * 1502, bins=2)
    assert [bar.get_height() for bar in drawn.containers[0]] == [1500, 2]
    assert [text.get_text() for text in drawn.texts] == ["1.5k", "2"]


def test_shares_of_each_kind_add_up_to_one():
    drawn = axes()
    kinds = {
        "right": np.array([0.0, 0.05, 0.9, 1.0]),
        "mistaken": np.array([]),
        "unfamiliar": np.array([0.06]),
    }
    overlaid_shares(drawn, kinds, "confidence", guess=0.2)
    outlines = [patch.get_data() for patch in drawn.patches if not patch.get_fill()]
    assert [outline.values.sum() for outline in outlines] == [1, 1]
    assert outlines[0].values[0] == 0.5  # (0, 0.05], and 0 itself
    assert outlines[1].values[1] == 1
    assert legend(drawn) == ["right (4)", "unfamiliar (1)", "a guess (20.0%)"]


def test_the_rule_is_marked_on_the_curve():
    drawn = axes()
    curve = np.array([0.5, 1.0]), np.array([0.0, 0.1])
    risk_coverage_lines(drawn, {"a": curve, "b": curve}, {"b": (0.8, 0.05, 0.06)})
    dots = [line for line in drawn.lines if line.get_marker() == "o"]
    assert [(dot.get_xdata()[0], dot.get_ydata()[0]) for dot in dots] == [(0.8, 0.05)]
    assert any(list(line.get_ydata()) == [0.06, 0.06] for line in drawn.lines)
    assert legend(drawn) == ["a", "b", "rule, promised 6.0%"]


def test_a_rule_that_answered_nothing_has_no_dot():
    drawn = axes()
    risk_coverage_lines(drawn, {"a": (np.array([1.0]), np.array([0.1]))}, {"a": (0.0, None, 0.05)})
    assert legend(drawn) == ["a"]


def test_the_f1_curve():
    drawn = axes()
    f1_lines(drawn, {"a": (np.array([0.2, 0.9]), np.array([True, False]))})
    (line,) = drawn.lines
    f1 = dict(zip(np.round(line.get_xdata(), 2), line.get_ydata(), strict=True))
    assert (f1[0.2], f1[0.21], f1[0.9], f1[1.0]) == (0, 1, 1, pytest.approx(2 / 3))


@pytest.mark.parametrize("name", ["_hidden", "$\\frac{1}{2}$", "x" * 60])
def test_a_name_is_shown_as_it_is(name, tmp_path):
    """matplotlib hides what begins with an underscore, and reads dollars as mathematics."""
    drawn = axes()
    f1_lines(drawn, {name: (np.array([0.2, 0.9]), np.array([True, False]))})
    (shown,) = legend(drawn)
    assert shown.replace("\\$", "$").strip().removeprefix("…") in name
    assert write_figures(tmp_path, [entry(name), entry("other")])


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    kept = thinned(50_000)
    assert (len(kept), kept[0], kept[-1]) == (MOST_POINTS, 0, 49_999)
    assert thinned(3).tolist() == [0, 1, 2]


def test_every_figure_has_words():
    for found in sections([entry("a", told=True), entry("b", ood=False)]):
        assert found.title.endswith("?")
        assert all(drawn.words.endswith(".") for drawn in found.drawn)


def test_figures_side_by_side_have_one_scale():
    entries = [entry("a", told=True, sharpness=9.0), entry("b", told=True, sharpness=0.2)]
    for found in sections(entries)[1:3]:
        one, two = (drawn.figure.axes[0].get_ylim() for drawn in found.drawn)
        assert one == two
