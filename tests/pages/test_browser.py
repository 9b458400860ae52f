"""The report as a person meets it: opened in a browser, on a wide screen and on a phone's, dark and light."""

import pytest

from calibrant.pages import write_report
from calibrant.pages.examples import telling_examples
from support.browser import chromium, serious
from support.entries import entry, texts

EVIL = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One run, and two of them side by side; a label and all texts are hostile."""
    folder = tmp_path_factory.mktemp("pages")
    labels = (f"a {EVIL}", "b", "c", "d", "e")
    more = {"settings": {"seed": "1"}, "verdict": (EVIL, "Fine."), "command": "calibrant predict run new.csv"}
    one = entry("one", told=True, rule=0.5, labels=labels, **more)
    two = entry("two", seed=1, labels=labels, **more)
    for name, entries in (("one", [one]), ("both", [one, two])):
        examples = telling_examples(one, entries[1:], *texts(one, f"{EVIL} {{}}"))
        write_report(folder / f"{name}.html", name, entries, examples=examples, notes=[EVIL], draws=5)
    return folder


@pytest.fixture
def opened(browser, pages):
    """Opens a page; what its console said and what it asked the network for must be nothing."""
    contexts, said = [], []

    def open(name, viewport=WIDE, scheme="light"):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=False)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if request.url[:5] != "file:" else None)
        page.goto((pages / f"{name}.html").as_uri())
        return page

    yield open
    assert said == []
    for context in contexts:
        context.close()


@pytest.mark.parametrize("name", ["one", "both"])
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_is_wrong_for_those_who_cannot_see(opened, name, viewport, scheme):
    page = opened(name, viewport, scheme)
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]  # no sideways scroll


def test_scripts_in_labels_and_texts_stay_text(opened):
    page = opened("one")
    assert page.title() == "one"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert EVIL in page.locator("table.classes").inner_text()
    assert EVIL in page.locator("blockquote").first.inner_text()
    assert EVIL in page.locator(".verdict").inner_text()


def column(page, number):
    cells = page.locator(f"table.classes tbody tr > :nth-child({number})").all()
    return [cell.get_attribute("data-value") or cell.inner_text() for cell in cells]


def test_the_table_sorts_by_mouse_and_by_keyboard(opened):
    page = opened("one")
    accuracy = page.get_by_role("button", name="Accuracy")
    before = column(page, 1)
    accuracy.click()
    down = [float(value) for value in column(page, 5)]
    assert down == sorted(down, reverse=True)
    assert page.get_by_role("columnheader", name="Accuracy").get_attribute("aria-sort") == "descending"
    accuracy.press("Enter")
    up = [float(value) for value in column(page, 5)]
    assert up == sorted(up) == down[::-1]
    page.get_by_role("button", name="Class").press("Space")
    assert column(page, 1) == before
    assert page.locator("th[aria-sort]").count() == 1


def test_values_that_are_missing_stay_last(opened):
    page = opened("one")
    page.evaluate("document.querySelector('table.classes tbody tr').cells[4].dataset.value = ''")
    for _ in range(2):
        page.get_by_role("button", name="Accuracy").click()
        assert (
            page.locator("table.classes tbody tr:last-child > :nth-child(5)").get_attribute("data-value")
            == ""
        )


def test_what_is_folded_is_printed(opened):
    page = opened("both")
    assert page.locator("details:not([open])").count() > 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
