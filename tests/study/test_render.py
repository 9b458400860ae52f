import re
from dataclasses import replace

import pytest

from calibrant.study.render import FORMATS, html_page, latex, markdown
from calibrant.study.tables import Column, Entry, Row, Table, ece
from support.handmade_cells import series

AWKWARD = r"a|b & <c> 5 % $x_1$ #2 {d} \e ~ ^ *f* δ"
PERCENT, PLAIN, COUNT = Column("ECE, % ↓", True, 2), Column("NLL ↓", False, 3), Column("n", False, 0)


@pytest.fixture
def table():
    rows = (
        Row(
            "smoothed",
            (Entry(0.091, 0.0031, 3, 0.0924, best=True), Entry(0.5, None, 1), Entry(7010, published=7010)),
        ),
        Row(AWKWARD, (Entry(None, None, 0, 0.0369), Entry(None, None, 0), Entry(None))),
    )
    return Table("ece", "ECE ±", (PERCENT, PLAIN, COUNT), rows, (AWKWARD, "said once"))


def test_markdown(table):
    assert markdown([table]).splitlines() == [
        "## ECE ±",
        "",
        "|  | ECE, % ↓ | NLL ↓ | n |",
        "| --- | ---: | ---: | ---: |",
        "| smoothed | **9.10 ± 0.31 (3)** [9.24] | 0.500 (1) | 7,010 [7,010] |",
        r"| a\|b & \<c> 5 % \$x_1\$ #2 {d} \\e \~ ^ \*f\* δ | – [3.69] | – | – |",
        "",
        r"- a\|b & \<c> 5 % \$x_1\$ #2 {d} \\e \~ ^ \*f\* δ",
        "- said once",
    ]


def test_latex(table):
    text = latex([table])
    escaped = (
        r"a$|$b \& $<$c$>$ 5 \% \$x\_1\$ \#2 \{d\} \textbackslash{}e \textasciitilde{} \textasciicircum{} "
        r"*f* $\delta$"
    )
    assert r" & ECE, \% $\downarrow$ & NLL $\downarrow$ & n \\" in text
    assert r"smoothed & \textbf{9.10 $\pm$ 0.31 (3)} [9.24] & 0.500 (1) & 7,010 [7,010] \\" in text
    assert rf"{escaped} & -- [3.69] & -- & -- \\" in text
    assert r"\caption{ECE $\pm$}" in text
    assert rf"{{\footnotesize {escaped}\par}}" in text
    assert text.isascii()
    assert text.count("{") == text.count("}")
    two_lines = replace(table, columns=(Column("misclassified: AUROC, %", True, 2), PLAIN, COUNT))
    assert r" & \shortstack[r]{misclassified:\\AUROC, \%} & NLL" in latex([two_lines])
    for name in ("table*", "tabular"):
        assert text.count(rf"\begin{{{name}}}") == text.count(rf"\end{{{name}}}") == 1


def test_html(table):
    text = html_page([table])
    escaped = r"a|b &amp; &lt;c&gt; 5 % $x_1$ #2 {d} \e ~ ^ *f* δ"
    assert (
        '<tr><th scope="row">smoothed</th><td><b>9.10 ± 0.31 (3)</b> <small>[9.24]</small></td>'
        "<td>0.500 (1)</td><td>7,010 <small>[7,010]</small></td></tr>"
    ) in text
    assert f'<th scope="row">{escaped}</th><td>– <small>[3.69]</small></td><td>–</td>' in text
    assert f"<li>{escaped}</li>" in text
    assert "<c>" not in text
    opened, closed = re.findall(r"<(\w+)[ >]", text), re.findall(r"</(\w+)>", text)
    assert sorted(opened) == sorted([*closed, "meta"])


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_common_notes_are_said_once(form, table):
    assert form([table, table]).count("said once") == 1


@pytest.mark.parametrize(
    ("name", "mark"),
    [("markdown", "**10.33 ± 0.58 (3)**"), ("latex", r"\textbf{10.33 "), ("html", "<b>10.33 ±")],
)
def test_real_tables(name, mark):
    text = FORMATS[name](ece(series("bert", [0.1, 0.1, 0.11]) + series("vat", [0.3, 0.3, 0.31])))
    assert mark in text
    assert "[9.24]" in text
