"""What a person sees and does, in headless Chromium."""

import csv
import hashlib
import io
import json
import random
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from calibrant.classifier import load
from service.conftest import listening, make_service
from support.tiny import UNFAMILIAR, corpus

PATIENCE = 30_000  # ms, for a busy machine
AXE = Path(__file__).parents[1] / "support" / "axe-core" / "axe.min.js"
FAMILIAR = corpus(1, seed=7)[0][0]
STRANGE = " ".join(UNFAMILIAR)
EVIL = "<script>document.title='evil'</script><img src=x onerror=\"document.title='evil'\">"
ROWS = [
    ("id", "body", "note"),
    ("1", FAMILIAR, 'said "yes", twice'),
    ("2", STRANGE, "two\nlines"),
    ("3", EVIL, ""),
    ("4", "  ", "nothing there"),
    *((str(i), text, f"n{i}") for i, (text, _) in enumerate(corpus(140, seed=3), start=5)),
]


@pytest.fixture(scope="module")
def address(familiar_run, tmp_path_factory):
    """Of a service whose run has a label that would like to be a script."""
    run = shutil.copytree(familiar_run, tmp_path_factory.mktemp("evil") / "run")
    record = json.loads((run / "calibrant.json").read_text())
    record["labels"][record["labels"].index("billing")] = f"billing {EVIL}"
    config = json.loads((run / "model" / "config.json").read_text())
    config["id2label"] = dict(enumerate(record["labels"]))
    config["label2id"] = {label: i for i, label in enumerate(record["labels"])}
    (run / "model" / "config.json").write_text(json.dumps(config))
    record["files"]["config.json"] = hashlib.sha256((run / "model" / "config.json").read_bytes()).hexdigest()
    (run / "calibrant.json").write_text(json.dumps(record))
    service = make_service(run)
    with listening(service) as (host, port):
        yield f"http://{host}:{port}"


@pytest.fixture(params=["wide light", "phone dark"])
def page(request, browser, address):
    """An open page; whatever it complains of fails the test."""
    size = {"width": 390, "height": 844} if "phone" in request.param else {"width": 1280, "height": 800}
    scheme = "dark" if "dark" in request.param else "light"
    context = browser.new_context(viewport=size, color_scheme=scheme, accept_downloads=True)
    opened, complaints, elsewhere = context.new_page(), [], []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("request", lambda asked: elsewhere.append(asked.url))
    opened.goto(address)
    opened.wait_for_selector("#examples button")
    yield opened
    assert complaints == []
    assert [url for url in elsewhere if not url.startswith((address, "data:", "blob:"))] == []
    assert opened.title() == "run · calibrant"  # no text and no label became a script
    context.close()


def typed(page, text, state):
    page.fill("#text", text)
    page.wait_for_selector(f"#decision[data-state={state}]:not([data-waiting])")
    return page.inner_text("#said"), page.inner_text("#why")


def no_grave_fault(page):
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    grave = [
        (each["id"], each["impact"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert grave == []


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tickets.csv"
    with open(path, "w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows(ROWS)
    return path


def classified(page, file):
    page.set_input_files("#file", file)
    expect(page.locator("#count")).to_contain_text("144 rows of 144", timeout=PATIENCE)
    expect(page.locator("#stop")).to_be_hidden(timeout=PATIENCE)


def column(page, number):
    return page.locator(f"#table tbody tr td:nth-child({number})").all_inner_texts()


def test_a_person_types_a_familiar_and_a_strange_text(page, familiar_run):
    (decision,) = load(familiar_run).predict([FAMILIAR])
    said, why = typed(page, FAMILIAR, "answered")
    assert said.startswith(decision.label)
    assert decision.confidence > 0.99
    assert why == "It is more than 99 % sure."
    assert page.get_attribute("#confidence", "aria-valuetext").endswith("It answers from 50 % on.")
    no_grave_fault(page)

    said, why = typed(page, STRANGE, "abstained")
    assert said == "I don’t know"
    assert why.startswith("The text is unfamiliar: unlike what the model was trained on. Its best guess: ")
    assert page.inner_text("#familiarity-value") == "stranger than 98.7 % of the texts it knows"
    assert len(page.locator("#next li").all()) == 2
    no_grave_fault(page)

    said, _ = typed(page, "", "empty")
    assert said == "Nothing yet"


def test_text_that_was_cut_is_said_to_be(page):
    page.fill("#text", "refund " * 40)
    expect(page.locator("#why")).to_contain_text("longer than the model reads", timeout=PATIENCE)


def test_all_by_keyboard(page):
    page.keyboard.type(FAMILIAR[:3])  # the text has the focus from the start
    assert page.input_value("#text") == FAMILIAR[:3]
    page.locator("#examples button").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#decision[data-state=abstained]:not([data-waiting])")
    assert page.evaluate("document.activeElement.id") == "text"
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
    assert "choose" in reached


def test_a_csv_goes_through_and_comes_back_with_its_columns(page, file, familiar_run):
    classified(page, file)
    assert page.input_value("#column") == "1"  # the longest; none has the name of training
    no_grave_fault(page)
    with page.expect_download() as waiting:
        page.click("#download")
    assert waiting.value.suggested_filename == "tickets-decided.csv"
    back = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_bytes().decode(), newline="")))
    header, *rows = back
    assert header[:3] == list(ROWS[0])
    names = ("label", "confidence", "familiarity", "abstain", "reason", "cut")
    assert header[3:] == [f"calibrant_{name}" for name in names]
    assert sorted(tuple(row[:3]) for row in rows) == sorted(ROWS[1:])
    of = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    assert (of["2"]["calibrant_abstain"], of["2"]["calibrant_reason"]) == ("true", "unfamiliar")
    assert of["4"]["calibrant_label"] == ""
    (decision,) = load(familiar_run).predict([FAMILIAR])
    assert float(of["1"]["calibrant_confidence"]) == pytest.approx(decision.confidence, abs=1e-5)


def test_a_csv_can_be_dropped_on_the_page(page, file):
    dropped = page.evaluate_handle(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "tickets.csv", {type: "text/csv"}));
            return carried;
        }""",
        file.read_text(encoding="utf-8"),
    )
    page.dispatch_event("body", "dragover", {"dataTransfer": dropped})
    expect(page.locator("#drop")).to_have_class(re.compile(r"\bover\b"))
    page.dispatch_event("body", "drop", {"dataTransfer": dropped})
    expect(page.locator("#drop")).not_to_have_class(re.compile(r"\bover\b"))
    expect(page.locator("#count")).to_contain_text("144 rows of 144", timeout=PATIENCE)


def test_the_table_is_sorted_by_doubt_and_by_any_column(page, file):
    classified(page, file)
    assert page.get_attribute("th[data-key=confidence]", "aria-sort") == "ascending"
    shares = [float(cell.strip("<> %")) for cell in column(page, 4)]
    assert len(shares) == 100  # the rest on demand
    assert shares == sorted(shares)
    page.click("th[data-key=confidence] button")
    assert page.get_attribute("th[data-key=confidence]", "aria-sort") == "descending"
    shares = [float(cell.strip("<> %")) for cell in column(page, 4)]
    assert shares == sorted(shares, reverse=True)
    page.click("#more")
    assert len(column(page, 2)) == 144
    page.click("th[data-key=text] button")
    page.click("#more")
    texts = [cell for cell in column(page, 2) if cell.strip()]
    assert texts == sorted(texts, key=str.lower)
    assert page.get_attribute("th[data-key=confidence]", "aria-sort") is None


def test_the_table_is_filtered_and_what_is_shown_is_downloaded(page, file):
    classified(page, file)
    page.select_option("#show", "unfamiliar")
    assert all("I don’t know" in cell for cell in column(page, 3))
    page.fill("#search", "GALAXY")
    assert page.inner_text("#count").startswith("1 row of 144")
    with page.expect_download() as waiting:
        page.click("#download")
    rows = list(csv.reader(io.StringIO(Path(waiting.value.path()).read_bytes().decode(), newline="")))
    assert [row[0] for row in rows] == ["id", "2"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'text,x\n"a,1\n', "bad.csv: The quote that opens on line 2 is never closed."),
        (b"text,x\n", "bad.csv: It has no rows below its header."),
        (b"", "bad.csv: It has no rows below its header."),
        (b"text\ncaf\xe9\n", "bad.csv: It is not UTF-8; save it as CSV UTF-8."),
    ],
)
def test_a_file_that_cannot_be_read_gets_a_sentence(page, content, problem):
    page.set_input_files("#file", {"name": "bad.csv", "mimeType": "text/csv", "buffer": content})
    expect(page.locator("#file-problem")).to_have_text(problem, timeout=PATIENCE)


def test_csv_is_read_as_python_reads_it_and_written_so_that_python_reads_it(page):
    rng = random.Random(0)
    alphabet = ['"', ",", ";", "\n", "\r\n", "\t", " ", "a", "é", "😀", "=", ""]
    for _ in range(150):
        width = rng.randint(1, 4)
        rows = [
            ["".join(rng.choices(alphabet, k=rng.randint(0, 4))) for _ in range(width)]
            for _ in range(rng.randint(1, 5))
        ]
        separator, end = rng.choice(",;\t"), rng.choice(["\n", "\r\n"])
        written = io.StringIO()
        csv.writer(written, delimiter=separator, lineterminator=end).writerows(rows)
        read, again = page.evaluate(
            """async ([text, separator]) => {
                const { parse, write } = await import("/page/csv.js");
                const rows = parse(text, separator);
                return [rows, write(rows, separator)];
            }""",
            [written.getvalue(), separator],
        )
        assert read == rows
        assert list(csv.reader(io.StringIO(again, newline=""), delimiter=separator)) == rows


def test_the_page_of_the_api(page, address):
    page.goto(f"{address}/docs")
    page.wait_for_selector("article:nth-of-type(5)")
    assert "POST /predict" in page.inner_text("#paths")
    no_grave_fault(page)
    page.goto(address)
    page.wait_for_selector("#examples button")


def test_a_service_with_a_token_asks_for_it(browser, familiar_run):
    with listening(make_service(familiar_run, token="s3cret")) as (host, port):
        page = browser.new_page()
        page.goto(f"http://{host}:{port}")
        page.wait_for_selector("#token:not([hidden])")
        page.fill("#secret", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#token-wrong")).to_have_text("This token is wrong.", timeout=PATIENCE)
        page.fill("#secret", "s3cret")
        page.keyboard.press("Enter")
        page.wait_for_selector("#examples button")
        assert typed(page, STRANGE, "abstained")[0] == "I don’t know"
        page.close()
