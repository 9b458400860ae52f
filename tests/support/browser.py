"""Headless Chromium, where there is one."""

import os
import shutil
from pathlib import Path

import pytest

AXE = Path(__file__).parent / "axe-core" / "axe.min.js"  # axe-core 4.14.0 of npm, MPL-2.0


def chromium():
    """Its path; the test is skipped without it, or fails where CALIBRANT_BROWSER=required."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        import playwright  # noqa: F401
    except ImportError:
        found = None
    if found is None:
        why = "no headless browser: install Chromium, and playwright from pip"
        if os.environ.get("CALIBRANT_BROWSER") == "required":
            pytest.fail(why)
        pytest.skip(why)
    return found


def serious(page):
    """What axe-core finds serious or worse: its rule and the elements."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document).then(found => found.violations)")
    return [
        (violation["id"], [node["html"][:120] for node in violation["nodes"]])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
