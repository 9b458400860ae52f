"""What batching across connections gains, what a service holds out, and what it keeps in memory.

    python benchmarks/serve.py RUN [--texts FILE] [--seconds 60] [--out results/service/load.json]

The same run is served twice, on a port of its own each: by `calibrant serve`, and by a plain FastAPI handler
that calls ``classifier.predict([text])`` for each request, in FastAPI's own threads. Connections are kept
alive, each sends the next text when it has the last answer, and a 503 is waited for and counted.

Then memory: the resident size of the service after 1,000 and after 10,000 requests.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np

PLAIN = """
import sys
import fastapi, uvicorn
from calibrant.classifier import load

classifier, app = load(sys.argv[1]), fastapi.FastAPI()

@app.post("/predict")
def predict(question: dict) -> dict:
    (decision,) = classifier.predict([question["texts"]])
    return {"label": decision.label, "confidence": decision.confidence, "abstain": decision.abstain}

uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", http="h11", access_log=False)
"""
OURS = "from calibrant.cli import main; main()"
WORDS = [
    "my",
    "card",
    "payment",
    "top",
    "up",
    "refund",
    "pin",
    "account",
    "fee",
    "rate",
    "lost",
    "how",
    "why",
]


class Server:
    """A process that answers on a port."""

    def __init__(self, *command: str, port: int) -> None:
        self.port, self._log = port, tempfile.TemporaryFile("w+")  # noqa: SIM115  it lives as long as this
        self.process = subprocess.Popen([sys.executable, *command], stderr=self._log, stdout=self._log)
        end = time.monotonic() + 300
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > end:
                self._log.seek(0)
                raise SystemExit(f"the server did not start:\n{self._log.read()}")
            time.sleep(0.2)

    def _listens(self) -> bool:
        async def try_once() -> None:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.close()

        try:
            asyncio.run(try_once())
        except OSError:
            return False
        return True

    def resident(self) -> int:
        """Bytes of memory in use."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)


async def _post(reader, writer, body: bytes) -> tuple[int, bytes]:
    head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    told = await reader.readuntil(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", told.lower())[1])
    return int(told[9:12]), await reader.readexactly(length)


async def load(
    port: int, texts: list[str], connections: int, seconds: float, most: int | None = None
) -> dict:
    """Ask over so many connections for so long, or until so many requests have been answered."""
    times, statuses, errors = [], Counter(), Counter()
    bodies = [json.dumps({"texts": text}).encode() for text in texts]
    began = time.perf_counter()
    asked = 0

    async def one(number: int) -> None:
        nonlocal asked
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() - began < seconds and (most is None or asked < most):
            body = bodies[(asked * 7919 + number) % len(bodies)]
            asked += 1
            start = time.perf_counter()
            try:
                status, _ = await _post(reader, writer, body)
            except (OSError, asyncio.IncompleteReadError) as error:
                errors[type(error).__name__] += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            statuses[status] += 1
            if status == 200:
                times.append(time.perf_counter() - start)
            elif status == 503:
                await asyncio.sleep(1)
        writer.close()

    await asyncio.gather(*(one(number) for number in range(connections)))
    took = time.perf_counter() - began
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return {
        "connections": connections,
        "seconds": round(took, 1),
        "texts_per_second": round(len(times) / took, 1),
        "p50_ms": round(1e3 * p50, 1),
        "p99_ms": round(1e3 * p99, 1),
        "statuses": {str(status): n for status, n in sorted(statuses.items())},
        "broken_connections": dict(errors),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run")
    parser.add_argument("--texts", help="a file as for training; made-up short texts where none is named")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--requests", type=int, default=10_000, help="of the measurement of memory; 0: none")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.texts:
        from calibrant.data.files import read_file

        texts = list(read_file(options.texts, "text").texts)
    else:
        rng = np.random.default_rng(0)
        texts = [" ".join(rng.choice(WORDS, size=rng.integers(4, 20))) for _ in range(1000)]
    serve = ("-c", OURS, "serve", options.run, "--port")
    found: dict = {
        "command": "python " + " ".join(sys.argv),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS"),
        "versions": {name: version(name) for name in ("torch", "fastapi", "uvicorn", "transformers")},
        "load_average_before": os.getloadavg(),
    }
    with Server("-c", PLAIN, options.run, str(options.port), port=options.port) as plain:
        asyncio.run(load(plain.port, texts, 32, 2))  # the first requests are slow
        found["plain_32"] = asyncio.run(load(plain.port, texts, 32, options.seconds))
    with Server(*serve, str(options.port + 1), port=options.port + 1) as ours:
        asyncio.run(load(ours.port, texts, 32, 2))
        found["calibrant_32"] = asyncio.run(load(ours.port, texts, 32, options.seconds))
        many = options.connections
        found[f"calibrant_{many}"] = asyncio.run(load(ours.port, texts, many, options.seconds))
    found["times_faster_at_32"] = round(
        found["calibrant_32"]["texts_per_second"] / found["plain_32"]["texts_per_second"], 2
    )
    if options.requests:
        with Server(*serve, str(options.port + 2), port=options.port + 2) as fresh:
            asyncio.run(load(fresh.port, texts, 16, 1e9, options.requests // 10))
            early = fresh.resident()
            asyncio.run(load(fresh.port, texts, 16, 1e9, options.requests - options.requests // 10))
            late = fresh.resident()
        found["memory"] = {
            f"after_{options.requests // 10}": early,
            f"after_{options.requests}": late,
            "growth": round(late / early - 1, 4),
        }
    print(json.dumps(found, indent=2))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
