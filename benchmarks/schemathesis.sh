#!/usr/bin/env bash
# 2,000 and more requests from the OpenAPI description; no answer may be a 500.
#   python -m venv /tmp/st && /tmp/st/bin/pip install schemathesis     (apart: it wants its own versions)
#   calibrant serve RUN --port 8123 &  benchmarks/schemathesis.sh /tmp/st/bin/schemathesis http://127.0.0.1:8123
set -euo pipefail
"$1" run "$2/openapi.json" --url "$2" --max-examples 2000 --checks not_a_server_error --phases examples,coverage,fuzzing --seed 1
