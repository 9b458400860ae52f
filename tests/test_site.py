"""The hooks of the site. `make docs` builds it, and ends at a broken link."""

import logging
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

HOOKS = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "site_hooks.py"))
ROOT = HOOKS["ROOT"]


def page(markdown):
    return HOOKS["on_page_markdown"](markdown, page=SimpleNamespace(file=SimpleNamespace(src_uri="faq.md")))


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[the code](../examples/digits.py)", "the code (`examples/digits.py`)"),
        ("[`deploy/`](../deploy)", "`deploy/`"),
        ("[how](recipe.md#familiarity)", "[how](recipe.md#familiarity)"),
        ("[below](#long-texts)", "[below](#long-texts)"),
        ("[MAPIE](https://mapie.readthedocs.io/)", "[MAPIE](https://mapie.readthedocs.io/)"),
        ("```\n[x](../no-such-file)\n```", "```\n[x](../no-such-file)\n```"),
    ],
)
def test_links_out_of_docs_name_the_file_as_the_repository_has_no_address(link, shown, caplog):
    assert page(link) == shown
    assert not caplog.records


def test_with_an_address_they_lead_there(monkeypatch):
    monkeypatch.setitem(HOOKS["on_page_markdown"].__globals__, "REPOSITORY", "https://example.org/calibrant")
    expected = "[rules](https://example.org/calibrant/blob/main/CONTRIBUTING.md#habits)"
    assert page("[rules](../CONTRIBUTING.md#habits)") == expected


def test_a_file_that_is_not_there_is_a_warning(caplog):
    caplog.set_level(logging.WARNING)
    page("[gone](../results/gone)")
    assert caplog.messages == ["faq.md links to ../results/gone, which is not in the repository"]


def test_every_page_is_in_the_navigation_once(tmp_path):
    for name in [path.name for path in (ROOT / "docs").glob("*.md")] + ["unlisted.md"]:
        (tmp_path / name).touch()
    nav = [
        {"5-minute start": "index.md"},
        {"Reference": [{"Method": "method.md"}, "commands.md", "api.md"]},
    ]
    made = HOOKS["on_config"](SimpleNamespace(nav=nav, docs_dir=str(tmp_path))).nav
    sections = {title: pages for part in made for title, pages in part.items()}
    assert list(sections)[:3] == ["5-minute start", "Get started", 'Say "I don\'t know"']
    assert sections["More"] == ["unlisted.md"]
    found = [page if isinstance(page, str) else next(iter(page.values())) for title, pages in sections.items()
             for page in ([pages] if isinstance(pages, str) else pages)]  # fmt: skip
    assert sorted(found) == sorted(path.name for path in tmp_path.iterdir())
