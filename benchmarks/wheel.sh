#!/usr/bin/env bash
# What somebody does who has the wheel and no checkout:  benchmarks/wheel.sh WORK > results/wheel/transcript.txt
# A new environment, an empty folder, an empty cache; each command with its time and exit code.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mkdir -p "$1" && cd "$1" && pwd)
python=${PYTHON:-python3}
unset PYTHONPATH
export XDG_CACHE_HOME=$work/cache PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1

say() { # the command, what it prints, how long it took
  printf '\n$ %s\n' "$*"
  local begun=$SECONDS code
  bash -c "$*" 2>&1 | sed -u "s|$work|…|g"
  code=${PIPESTATUS[0]}
  printf '[exit code %s, %s s]\n' "$code" $((SECONDS - begun))
}

date -u +'%Y-%m-%d %H:%M UTC'
cd "$work" || exit 1
rm -rf dist env here
say "$python -m pip wheel --no-deps -w dist $root 2> /dev/null; ls dist"
say "$python -m venv env"
say "env/bin/pip install -c $root/constraints.txt 'dist/calibrant-0.1.0-py3-none-any.whl[serve]' 2> pip.log"
mkdir here && cd here || exit 1
export PATH=$work/env/bin:$PATH
say "ls -A | wc -l; python -c 'import calibrant; print(calibrant.__version__, calibrant.__file__)'"
python - <<'MAKE'
import csv, random

rng = random.Random(0)
queues = {
    "billing": ["invoice", "refund", "charged twice", "payment", "receipt", "card", "price"],
    "shipping": ["parcel", "courier", "delivery is late", "tracking number", "address", "lost box"],
    "account": ["password", "login", "locked out", "reset email", "username", "sign in"],
}
frames = ["My {0} and the {1} are wrong", "Please help with the {0}", "Where is the {0}? I asked about {1}",
          "I have a question about {0}, {1}", "The {0} does not work since today", "{1}: nobody answers, {0} too"]
rows = set()
while len(rows) < 400:
    queue = rng.choice(sorted(queues))
    rows.add((rng.choice(frames).format(*rng.sample(queues[queue], 2)) + f" (case {rng.randrange(10**4)})", queue))
rows = sorted(rows)
rng.shuffle(rows)
for name, part in {"tickets.csv": rows[:300], "test.csv": rows[300:]}.items():
    with open(name, "w", newline="") as file:
        csv.writer(file).writerows([("body", "queue"), *part])
MAKE
say "wc -l tickets.csv test.csv; head -3 tickets.csv"
say "calibrant train --train tickets.csv --text-column body --label-column queue --quick --out runs/tickets"
say "calibrant evaluate runs/tickets --test test.csv --report page.html"
say "calibrant predict runs/tickets --text 'My card was charged twice' --text 'The volcano erupted at noon'"
say "calibrant serve runs/tickets --port 8765 > serve.log 2>&1 & echo \$! > pid
until curl -s localhost:8765/healthz > /dev/null; do sleep 0.5; kill -0 \$(cat pid) || exit 1; done
curl -s -H 'Content-Type: application/json' -d '{\"texts\": [\"Where is my parcel?\"]}' localhost:8765/predict; echo
kill -TERM \$(cat pid); wait \$(cat pid); echo server: \$?; cat serve.log"
say "calibrant demo"
