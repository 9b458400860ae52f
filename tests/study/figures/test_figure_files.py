import pytest

from calibrant.errors import UserError
from calibrant.study.figures.files import write_figures


@pytest.fixture
def study(make):
    make.three()
    make("banking77")
    return make.path


def test_a_figure_and_its_caption(study, tmp_path):
    written = write_figures(study, tmp_path / "new" / "out", "reliability", ["20ng-15"])
    assert written.paths == [tmp_path / "new" / "out" / "reliability-20ng-15.svg"]
    assert written.missing == []
    assert sorted(path.name for path in written.paths[0].parent.iterdir()) == [
        "reliability-20ng-15.svg",
        "reliability-20ng-15.txt",
    ]
    svg = written.paths[0].read_text(encoding="utf-8")
    assert svg.startswith("<?xml")
    assert "var(--" not in svg  # colours that any viewer of SVG files knows
    assert ">TextCNN<" in svg
    caption = written.paths[0].with_suffix(".txt").read_text(encoding="utf-8")
    assert caption.startswith("Reliability diagrams: ")
    assert caption.endswith("Seed 0.\n")


@pytest.mark.parametrize(("format", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_cells_give_the_same_bytes(study, tmp_path, format, start):
    first, again = (
        write_figures(study, tmp_path / name, "ood-histogram", ["20ng-15"], format).paths[0].read_bytes()
        for name in "ab"
    )
    assert first == again
    assert first.startswith(start)


def test_what_is_measured_is_drawn_and_what_is_missing_is_said(study, tmp_path):
    seen = []
    written = write_figures(study, tmp_path / "out", "reliability", progress=lambda *told: seen.append(told))
    assert [path.name for path in written.paths] == ["reliability-20ng-15.svg"]
    (sentence,) = written.missing
    assert "no cells of TextCNN (bert,model=textcnn), nor of manifold-smoothing on banking77; get" in sentence
    assert seen == [("figures", 1, 2), ("figures", 2, 2)]


def test_all_figures(study, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.study.figures.illustration.STEPS", 1)
    written = write_figures(study, tmp_path / "out")
    assert [path.stem for path in written.paths] == [
        "curves-20ng-15",
        "curves-banking77",
        "illustration",
        "ood-histogram-20ng-15",
        "reliability-20ng-15",
    ]
    assert len(written.missing) == 4  # parameters of both, and a comparison on banking77 twice


def test_the_illustration_needs_no_study(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.study.figures.illustration.STEPS", 1)
    written = write_figures(tmp_path / "nowhere", tmp_path / "out", "illustration")
    assert [path.name for path in written.paths] == ["illustration.svg"]


def test_nothing_can_be_drawn(study, tmp_path):
    with pytest.raises(
        UserError, match=r"^reliability is not drawn: .* manifold-smoothing on banking77; get them with `"
    ):
        write_figures(study, tmp_path / "out", "reliability", ["banking77"])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "curve"}, r"Unknown figure 'curve'; did you mean 'curves'\? Known: .*illustration.* all\."),
        ({"format": "gif"}, r"Unknown format 'gif'\. Known: svg, png, pdf\."),
        ({"datasets": ["20ng"]}, r"has no cells of '20ng', only of 20ng-15, banking77; get them with `"),
    ],
)
def test_refusals(study, tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        write_figures(study, tmp_path / "out", **options)


def test_damaged_confidences_are_not_called_missing(study, tmp_path):
    (study / "cells" / "20ng-15" / "bert" / "seed-0.npz").write_bytes(b"")
    with pytest.raises(UserError, match=r"seed-0\.npz is missing or damaged"):
        write_figures(study, tmp_path / "out", "curves")
