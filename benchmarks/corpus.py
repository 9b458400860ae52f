"""A corpus part by part: memory, kills, the rate beside transformers' pipeline, and two Ray nodes.

    PYTHONPATH=src:tests python benchmarks/corpus.py stream              # a million rows, a tiny model
    PYTHONPATH=src:tests python benchmarks/corpus.py rate  --run RUN --texts test.parquet
    PYTHONPATH=src:tests python benchmarks/corpus.py ray   [--run RUN --texts test.parquet]

Each writes results/scaling/corpus-….json. `ray` starts two nodes on this machine, and ends them.
"""

import argparse
import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from calibrant._system.atomic import write_json
from calibrant._system.device import machine

RESULTS = Path(__file__).parents[1] / "results" / "scaling"
PACKAGES = ("torch", "transformers", "pyarrow", "ray")
CALIBRANT = (sys.executable, "-c", "from calibrant.cli import main; main()")
HERE, PORT = "127.0.0.2", 26379  # not 127.0.0.1, which Ray takes for an address that others reach


def tiny_run(folder: Path) -> Path:
    """A run of the model that the tests have, with familiarity."""
    from calibrant.config import RunConfig
    from calibrant.tasks.train import train
    from support.tiny import corpus, tiny_bert, tiny_tokenizer

    tiny_bert().save_pretrained(folder / "encoder")
    tiny_tokenizer().save_pretrained(folder / "encoder")
    rows = corpus(1000)
    table = pa.table({"text": [text for text, _ in rows], "label": [label for _, label in rows]})
    pq.write_table(table, folder / "train.parquet")
    config = RunConfig(
        train=str(folder / "train.parquet"), model=str(folder / "encoder"), max_length=32, epochs=2
    )
    return train(config, out=folder / "run").path


def write_corpus(folder: Path, rows: int, files: int, texts: list[str] | None = None) -> str:
    """Files with short texts; the pattern that means them all."""
    from support.tiny import UNFAMILIAR, WORDS, make_text

    rng, words = random.Random(0), [*WORDS.values(), UNFAMILIAR]
    folder.mkdir()
    for number in range(files):
        n = rows // files
        ids = range(number * n, (number + 1) * n)
        some = [make_text(rng.choice(words), rng) if texts is None else texts[i % len(texts)] for i in ids]
        table = pa.table({"id": pa.array(ids, pa.int64()), "text": some, "source": [f"file {number}"] * n})
        pq.write_table(table, folder / f"{number:02d}.parquet")
    return str(folder / "*.parquet")


def digest(folder: Path) -> str:
    """Of all files in it, their names included."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def watched(command: list[str], enough: Callable[[], bool] | None = None) -> dict:
    """Run it, or kill it when it is enough; seconds and the highest memory."""
    begun, peak = time.perf_counter(), 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None:
        with suppress(OSError, IndexError):
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
        if enough is not None and enough():
            process.send_signal(signal.SIGKILL)
        time.sleep(0.01)
    _, told = process.communicate()
    if enough is None and process.returncode:
        raise RuntimeError(told)
    return {"seconds": round(time.perf_counter() - begun, 1), "mib": peak // 1024, "code": process.returncode}


def stream(work: Path, args: argparse.Namespace) -> dict:
    run, pattern = tiny_run(work), write_corpus(work / "corpus", args.rows, files=4)
    one = write_corpus(work / "one", 1000, files=1)
    predict = [*CALIBRANT, "predict", str(run)]
    # What the model and the libraries take: the same command on a thousand rows, which is one part.
    alone = watched([*predict, one, "--out", str(work / "alone")])
    whole = watched([*predict, pattern, "--out", str(work / "whole")])
    parts = len(list((work / "whole" / "parts").iterdir()))
    rng, kills = random.Random(args.seed), []

    def done() -> int:
        return len(list((work / "killed").glob("statistics/0*.json")))

    for until in sorted(rng.sample(range(parts), args.kills)):
        moment: list[float] = []  # somewhere in the part after these

        def enough(until: int = until, moment: list[float] = moment) -> bool:
            if done() >= until and not moment:
                moment.append(time.perf_counter() + rng.random() * whole["seconds"] / parts)
            return bool(moment) and time.perf_counter() > moment[0]

        kills.append(watched([*predict, pattern, "--out", str(work / "killed")], enough) | {"parts": done()})
    last = watched([*predict, pattern, "--out", str(work / "killed")])
    return {
        "rows": args.rows,
        "a thousand rows": alone,
        "undisturbed": whole,
        "rows a second": round(args.rows / whole["seconds"]),
        "MiB above the model": whole["mib"] - alone["mib"],
        "kills": kills,
        "after the kills": last,
        "equal to the byte": digest(work / "whole") == digest(work / "killed"),
        "parts": parts,
        "bytes": sum(path.stat().st_size for path in (work / "whole").rglob("*") if path.is_file()),
    }


def plain_model(run: Path, folder: Path) -> tuple[Path, int]:
    """The run's encoder with a head of transformers' own, as `pipeline` takes it; and the length kept."""
    from transformers import AutoModelForSequenceClassification

    import calibrant

    classifier = calibrant.load(run)
    encoder = classifier.models[0].base_model
    encoder.config.num_labels = len(classifier.label_names)
    plain = AutoModelForSequenceClassification.from_config(encoder.config)
    missing, unexpected = plain.base_model.load_state_dict(encoder.state_dict(), strict=False)
    assert not unexpected, unexpected
    assert all("pooler" in name for name in missing), missing  # which only transformers' head reads
    plain.save_pretrained(folder)
    classifier.tokenizer.save_pretrained(folder)
    return folder, classifier.max_length


def clocks() -> tuple[float, float]:
    """Seconds of the wall, and of work: others on the machine do not count in these."""
    return time.perf_counter(), time.process_time()


def since(begun: tuple[float, float]) -> tuple[float, float]:
    wall, work = clocks()
    return wall - begun[0], work - begun[1]


def answered(run: Path, pattern: str, out: Path, **options) -> tuple[float, float]:
    """Seconds from the first row on: the model is loaded by then, as it is for the pipeline."""
    from calibrant.tasks.predict import predict_corpus

    begun = []
    shutil.rmtree(out, ignore_errors=True)

    def progress(what: str, done: int, total: int) -> None:
        if what == "predict" and not begun:
            begun.append(clocks())

    predict_corpus(run, [pattern], str(out), progress=progress, **options)
    return since(begun[0])


def rate(work: Path, args: argparse.Namespace) -> dict:
    import torch
    from transformers import pipeline

    texts = pq.read_table(args.texts)["text"].to_pylist()
    rows = args.rows or len(texts)
    run = Path(shutil.copytree(args.run, work / "run"))
    folder, length = plain_model(run, work / "plain")
    pattern = write_corpus(work / "corpus", rows, files=1, texts=texts)
    pipe = pipeline("text-classification", model=str(folder), device="cpu")

    def piped(batch_size: int) -> tuple[float, float]:
        begun = clocks()
        column = pq.read_table(work / "corpus" / "00.parquet")["text"].to_pylist()
        found = pipe(column, batch_size=batch_size, truncation=True, max_length=length)
        assert len(found) == rows
        return since(begun)

    ways = {
        "calibrant": lambda: answered(run, pattern, work / "out"),
        "pipeline, batch_size=32": lambda: piped(32),
        "pipeline, as it is (batch_size=1)": lambda: piped(1),
    }
    answered(run, write_corpus(work / "warm", 64, 1, texts), work / "out")
    pipe(texts[:64], batch_size=32, truncation=True, max_length=length)
    seconds = {name: [] for name in ways}
    for _ in range(args.rounds):
        for name, way in ways.items():
            seconds[name].append(way())
    times = {}
    for name in list(ways)[1:]:
        for clock, what in enumerate(("wall", "work")):
            pairs = zip(seconds[name], seconds["calibrant"], strict=True)
            ratios = [theirs[clock] / ours[clock] for theirs, ours in pairs]
            median, low, high = (round(x, 2) for x in (statistics.median(ratios), min(ratios), max(ratios)))
            times[f"{name}, by {what}"] = {"median": median, "range": [low, high]}
    return {
        "rows": rows,
        "max_length": length,
        "threads": torch.get_num_threads(),
        "rows a second of the wall": {n: [round(rows / s, 1) for s, _ in of] for n, of in seconds.items()},
        "rows a second of work": {n: [round(rows / s, 1) for _, s in of] for n, of in seconds.items()},
        "calibrant is as fast, times": times,
    }


@contextmanager
def two_nodes() -> Iterator[None]:
    """A cluster of two `ray start` processes, which nobody else on this machine sees end.

    `ray stop` would end everybody's Ray: only what was started here is ended, by its number. The cluster
    listens on this machine alone, so it does without Ray's token, as Ray's own documents allow.
    """
    import psutil

    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
    ray = str(Path(sys.executable).with_name("ray"))
    common = ("--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats", "--block")
    head = ("--head", f"--port={PORT}", "--include-dashboard=false", f"--node-ip-address={HERE}")
    nodes = []
    try:
        for options in (head, (f"--address={HERE}:{PORT}", f"--node-ip-address={HERE}")):
            nodes.append(subprocess.Popen([ray, "start", *options, *common], stdout=subprocess.DEVNULL))
            time.sleep(20)
            if nodes[-1].poll() is not None:
                raise RuntimeError("ray start ended")
        yield
    finally:
        ours = [each for node in nodes for each in _family(psutil, node.pid)]
        for process in ours:
            with suppress(psutil.Error):
                process.terminate()
        for process in psutil.wait_procs(ours, timeout=20)[1]:
            process.kill()
        # `ray stop` would remove it: with `--address auto` others would wait for a cluster that is gone.
        left = Path(tempfile.gettempdir()) / "ray" / "ray_current_cluster"
        if left.exists() and left.read_text().strip() == f"{HERE}:{PORT}":
            left.unlink()


def _family(psutil, pid: int) -> list:
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        return [*process.children(recursive=True), process]
    return []


def kill_an_actor(out: Path) -> "subprocess.Popen[str]":
    """As soon as a part is done; prints how many there were, and after how many parts it was.

    The actors are those below this process, by whose nodes they were started.
    """
    code = """
import os, sys, time, psutil
from pathlib import Path
out = Path(sys.argv[1])
while not list(out.glob("statistics/0*.json")):
    time.sleep(0.01)
below = psutil.Process(os.getppid()).children(recursive=True)
actors = [p for p in below if "ray::MapWorker" in (p.cmdline() or [""])[0]]
actors[0].kill()
print(len(actors), len(list(out.glob("statistics/0*.json"))))
"""
    return subprocess.Popen([sys.executable, "-c", code, str(out)], stdout=subprocess.PIPE, text=True)


def on_ray(work: Path, args: argparse.Namespace) -> dict:
    from calibrant.corpus.engines.local import Local
    from calibrant.corpus.engines.ray import Ray

    texts = None if args.texts is None else pq.read_table(args.texts)["text"].to_pylist()
    run = tiny_run(work) if args.run is None else Path(shutil.copytree(args.run, work / "run"))
    rows = args.rows or 50_000
    pattern = write_corpus(work / "corpus", rows, files=args.files, texts=texts)
    seconds: dict[str, list[float]] = {
        "local, 1 thread": [],
        "local, 2 threads": [],
        "ray": [],
        "ray, killed": [],
    }
    with two_nodes():
        ray = Ray(address=f"{HERE}:{PORT}")
        for _ in range(args.rounds):
            seconds["local, 1 thread"].append(
                answered(run, pattern, work / "local", engine=Local(threads=1))[0]
            )
            seconds["local, 2 threads"].append(
                answered(run, pattern, work / "two", engine=Local(threads=2))[0]
            )
            seconds["ray"].append(answered(run, pattern, work / "ray", engine=ray)[0])
        killer = kill_an_actor(work / "killed")
        seconds["ray, killed"].append(answered(run, pattern, work / "killed", engine=ray)[0])
        actors, after = map(int, killer.communicate(timeout=60)[0].split())
    return {
        "rows": rows,
        "parts": len(list((work / "local" / "parts").iterdir())),
        "nodes": "two `ray start` processes of one core each, on one machine of two",
        "seconds": {name: [round(s, 2) for s in of] for name, of in seconds.items()},
        "rows a second": {name: [round(rows / s) for s in of] for name, of in seconds.items()},
        "killed": {"actors": actors, "after parts": after},
        "equal to the byte": {
            name: digest(work / name) == digest(work / "local") for name in ("ray", "killed", "two")
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["stream", "rate", "ray"])
    parser.add_argument("--run", type=Path)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default=None)
    args = parser.parse_args()
    if args.what == "stream":
        args.rows = args.rows or 1_000_000
    with tempfile.TemporaryDirectory() as work:
        begun = time.time()
        found = {"stream": stream, "rate": rate, "ray": on_ray}[args.what](Path(work), args)
    about = {
        "command": shlex.join(["python", "benchmarks/corpus.py", *sys.argv[1:]]),
        "versions": {name: version(name) for name in PACKAGES},
        "machine": machine(),
        "load": os.getloadavg(),
        "seconds": round(time.time() - begun),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_json(RESULTS / f"corpus-{args.name or args.what}.json", {**about, **found})
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
