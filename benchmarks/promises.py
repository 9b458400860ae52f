"""Are the promises of `threshold` and `monitor --follow` kept, and what do they cost: results/promises.

    python benchmarks/promises.py rule own                          # made-up models whose truth is known
    python benchmarks/promises.py follow --run runs/bank50 --familiar f.csv --near n.csv --far y.csv
    python benchmarks/promises.py table

`rule`: a rule learnt on other texts than the run's own dev, which is the pilot; before, 61 thresholds shared
the error. `own`: a rule learnt on the very texts that chose the epoch and fitted temperature and familiarity.
`follow`: false alarms and looks until an alarm, with distances and confidences of a real run on real texts.

Every cell is written to the JSON file when it is done, and is not computed again. One thread, fixed seeds.
"""

import argparse
import json
import os
import platform
import sys
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax

from calibrant.calibrators.familiarity import RHO, Familiarity
from calibrant.decide.drift import confidence_shift, look
from calibrant.decide.follow import add_up, count, place
from calibrant.decide.risk import Plan, Sample, make_plan, naive_selection, select

OUT = Path("results/promises")
LEVEL = 0.95
RISKS, SIZES, PILOTS = (0.02, 0.05, 0.1, 0.2), (300, 1000, 3000), (100, 500)
MODELS = {"calibrated": (1.0, 0.0), "over-confident": (2.5, 0.0), "surest are risky": (1.0, 0.13)}
RULE_DRAWS, OWN_DRAWS, NULL_DRAWS, STRAY_DRAWS = 400, 200, 400, 100
OWN_SIZES, OWN_EPOCHS, OWN_CLASSES, POOL = (100, 300, 1000), (1, 10), 5, 30_000
DEV_SIZES, BATCHES, LOOKS, FOLLOW_LEVEL = (100, 200, 500), (20, 100), 100, 0.05


def equal_plan(classes):
    """What was done before: 61 thresholds, evenly in log-odds, with an equal share each."""
    thresholds = expit(np.linspace(12, -np.log(classes - 1), 61))
    thresholds[-1] = 0
    return Plan(thresholds, np.full(61, 1 / 61))


class Truth:
    """Confidences and P(wrong) of all texts there are, with their weights."""

    def __init__(self, confidence, wrong, weight):
        order = np.argsort(confidence)
        self.confidence = confidence[order]
        self.answered = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
        self.wrong = np.append(np.cumsum((weight * wrong)[order][::-1])[::-1], 0.0)

    def judge(self, selection, risk):
        """Coverage, and whether the promise is broken."""
        if selection is None:
            return 0.0, False
        at = np.searchsorted(self.confidence, selection.threshold)
        return float(self.answered[at]), bool(self.wrong[at] > risk * self.answered[at])


def summary(judged):
    coverage, broken = zip(*judged, strict=True)
    return {"coverage": float(np.mean(coverage)), "broken": float(np.mean(broken)), "draws": len(judged)}


def rule_cell(model, pilot_size, risk, n):
    sharpness, top = MODELS[model]
    right = np.linspace(0.35, 0.999, 2000)
    weight = right**6 / (right**6).sum()  # 87 % are right
    confidence = expit(sharpness * np.log(right / (1 - right)))
    p_wrong = 1 - right
    if top:
        p_wrong = np.where(confidence > np.quantile(confidence, 0.97), np.maximum(p_wrong, top), p_wrong)
    truth, before = Truth(confidence, p_wrong, weight), equal_plan(10)
    rng, judged = np.random.default_rng((n, pilot_size, round(1000 * risk))), {}
    for _ in range(RULE_DRAWS):
        i = rng.choice(len(weight), size=n + pilot_size, p=weight)
        drawn = Sample(confidence[i], rng.random(len(i)) < p_wrong[i])
        pilot, sample = drawn[:pilot_size], drawn[pilot_size:]
        plan = make_plan(pilot, n, risk, LEVEL)
        for how, found in (
            ("before", select(sample, before, risk, LEVEL)),
            ("now", select(sample, plan, risk, LEVEL)),
            ("naive", naive_selection(sample, plan, risk)),
        ):
            judged.setdefault(how, []).append(truth.judge(found, risk))
    return {how: summary(found) for how, found in judged.items()}


@cache
def epochs_of(alike):
    """Logits of 10 epochs of one training, equally good, ever more sure, and a strangeness; of all texts."""
    rng = np.random.default_rng(7)
    y, easy = rng.integers(OWN_CLASSES, size=POOL), rng.gamma(2, 1.3, size=POOL)
    shared, logits = rng.normal(size=(POOL, OWN_CLASSES)), []
    for epoch in range(max(OWN_EPOCHS)):
        z = np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.normal(size=shared.shape)
        z[np.arange(POOL), y] += easy
        logits.append((1.5 + 0.5 * epoch) * z)
    return y, logits, rng.normal(size=POOL) - 0.5 * easy


def best_temperature(z, y):
    def nll(log_t):
        scaled = z * np.exp(-log_t)
        return (logsumexp(scaled, axis=1) - scaled[np.arange(len(y)), y]).mean()

    found = minimize_scalar(nll, bounds=(-3, 3), method="bounded", options={"xatol": 1e-3})
    return np.exp(found.x), found.fun


def own_cell(alike, epochs, n):
    """Of each risk. The texts choose the epoch by refinement and fit temperature and familiarity."""
    y, logits, strange = epochs_of(alike)
    rng, judged = np.random.default_rng((n, epochs)), {}
    for _ in range(OWN_DRAWS):
        i = rng.integers(POOL, size=n)
        fits = [best_temperature(z[i], y[i]) for z in logits[:epochs]]
        kept = int(np.argmin([nll for _, nll in fits]))
        q = softmax(logits[kept] / fits[kept][0], axis=1)
        r = n - np.searchsorted(np.sort(strange[i]), strange)
        a = np.minimum(1, (r + RHO) / (Familiarity.alpha * (n + 1)))
        confidence, wrong = a * q.max(axis=1) + (1 - a) / OWN_CLASSES, q.argmax(axis=1) != y
        truth, drawn = Truth(confidence, wrong, np.full(POOL, 1 / POOL)), Sample(confidence[i], wrong[i])
        third = round(n / 3)
        for risk in RISKS:
            level = 1 - (1 - LEVEL) / epochs
            plan = make_plan(drawn[:third], n - third, risk, level)
            for how, found in (
                ("before", select(drawn, equal_plan(OWN_CLASSES), risk, LEVEL)),
                ("pilot = the same texts", select(drawn, make_plan(drawn, n, risk, LEVEL), risk, LEVEL)),
                ("now", select(drawn[third:], plan, risk, level)),
            ):
                judged.setdefault((risk, how), []).append(truth.judge(found, risk))
    return {
        str(risk): {how: summary(found) for (r, how), found in judged.items() if r == risk} for risk in RISKS
    }


def real_values(run, **files):
    """Distance and confidence of each text: what `monitor --follow` orders texts by."""
    from calibrant.classifier import load
    from calibrant.corpus.statistics import orders
    from calibrant.data import read_file

    classifier = load(run)
    needs = classifier.calibrator.needs
    return {
        f"{kind} {what}": values
        for kind, path in files.items()
        for what, values in orders(
            classifier.calibrator, classifier.outputs(read_file(path).texts, needs)
        ).items()
    }


def follow_cell(values, n, batch, kind, share):
    """In how many of the draws an alarm is raised within 100 looks, and after how many of them."""
    orders = ("familiarity", "confidence")
    rng, m, looks_until, single = np.random.default_rng((n, batch, round(100 * share))), LOOKS * batch, [], []
    for _ in range(STRAY_DRAWS if share else NULL_DRAWS):
        pool = len(values["familiar confidence"])
        dev, new = rng.integers(pool, size=n), rng.integers(pool, size=m)
        is_stray, stray = rng.random(m) < share, rng.integers(len(values[f"{kind} confidence"]), size=m)
        looks, confidences = [{} for _ in range(LOOKS)], None
        for order in orders:
            then = values[f"familiar {order}"][dev]
            now = np.where(is_stray, values[f"{kind} {order}"][stray], values[f"familiar {order}"][new])
            for number, part in enumerate(place(then, now, seed=1).reshape(LOOKS, batch)):
                looks[number][order] = count(part, n)
            confidences = then, now.reshape(LOOKS, batch)
        alarm = add_up(looks, n, FOLLOW_LEVEL).alarm_at
        looks_until.append(np.inf if alarm is None else alarm)
        if not share:
            then, now = confidences
            single.append(any(confidence_shift(then, look(then, part)).p < FOLLOW_LEVEL for part in now))
    found = np.array(looks_until)
    late = np.sort(found)[[len(found) // 2, int(0.9 * len(found))]]
    return {
        "alarms": float(np.isfinite(found).mean()),
        "median": None if np.isinf(late[0]) else int(late[0]),
        "ninth of ten": None if np.isinf(late[1]) else int(late[1]),
        "draws": len(found),
        **({} if share else {"one look, repeated": float(np.mean(single))}),
    }


def percent(x):
    return f"{100 * x:.1f}"


def tables(cells):
    """All that is done, as Markdown."""
    lines = []
    rule = {tuple(json.loads(key)[1:]): cell for key, cell in cells.items() if key.startswith('["rule"')}
    if rule:
        worst = max(cell["now"]["broken"] for cell in rule.values())
        lines += ["## A rule learnt on other texts, with the run's own dev as the pilot", ""]
        lines += [
            f"Coverage in %, and in brackets how often the promise was broken (5 % allowed), of {RULE_DRAWS}"
        ]
        lines += [f"draws each. The worst cell of *now*: {percent(worst)} %.", ""]
        lines += [
            "| model | risk | texts | before | now, pilot of 100 | now, pilot of 500 | naive |",
            "|---" * 7 + "|",
        ]
        for model, risk, n in product(MODELS, RISKS, SIZES):
            small, large = (rule.get((model, pilot, risk, n)) for pilot in PILOTS)
            if small and large:
                shown = (small["before"], small["now"], large["now"], large["naive"])
                figures = [f"{percent(c['coverage'])} ({percent(c['broken'])})" for c in shown]
                lines.append(f"| {model} | {risk} | {n} | " + " | ".join(figures) + " |")
        lines.append("")
    own = {tuple(json.loads(key)[1:]): cell for key, cell in cells.items() if key.startswith('["own"')}
    if own:
        worst = max(cell[str(r)]["now"]["broken"] for cell in own.values() for r in RISKS)
        lines += ["## A rule learnt on the run's own dev texts", ""]
        lines += [
            "These texts chose the epoch and fitted temperature and familiarity. *alike*: the correlation of"
        ]
        lines += [
            f"two epochs' noise. Coverage in % (broken in %), {OWN_DRAWS} draws each. The worst of *now*: "
        ]
        lines += [f"{percent(worst)} %.", ""]
        kinds = ("before", "pilot = the same texts", "now")
        lines += ["| alike | epochs | texts | risk | " + " | ".join(kinds) + " |", "|---" * 7 + "|"]
        for (alike, epochs, n), cell in own.items():
            for risk in RISKS:
                shown = [cell[str(risk)][kind] for kind in kinds]
                figures = [f"{percent(c['coverage'])} ({percent(c['broken'])})" for c in shown]
                lines.append(f"| {alike} | {epochs} | {n} | {risk} | " + " | ".join(figures) + " |")
        lines.append("")
    follow = {tuple(json.loads(key)[1:]): cell for key, cell in cells.items() if key.startswith('["follow"')}
    if follow:
        lines += [f"## `monitor --follow`, level {FOLLOW_LEVEL:g}, {LOOKS} looks", ""]
        lines += [
            "The run knows 50 classes of banking77. Near: its other 27 classes. Far: Yahoo! questions.",
            "",
        ]
        lines += [
            "Without strays: in how many of the draws an alarm was raised at any of the looks. *One look,"
        ]
        lines += [
            "repeated*: the two-sample test of the confidences at the same level, asked at each look.",
            "",
        ]
        lines += ["| dev texts | texts a look | `--follow` | one look, repeated | draws |", "|---" * 5 + "|"]
        for (n, batch, _, share), c in follow.items():
            if not share:
                alarms = f"{percent(c['alarms'])} % | {percent(c['one look, repeated'])} %"
                lines.append(f"| {n} | {batch} | {alarms} | {c['draws']} |")
        lines += [
            "",
            "With strays: looks until the alarm, median (nine of ten draws), and draws with an alarm.",
            "",
        ]
        lines += ["| dev texts | texts a look | strays | 10 % | 30 % | 100 % |", "|---" * 6 + "|"]
        for n, batch, kind in product(DEV_SIZES, BATCHES, ("near", "far")):
            row = [follow.get((n, batch, kind, share)) for share in (0.1, 0.3, 1.0)]
            if all(row):
                figures = [
                    f"{c['median'] or '> 100'} ({c['ninth of ten'] or '> 100'}), {100 * c['alarms']:.0f} %"
                    for c in row
                ]
                lines.append(f"| {n} | {batch} | {kind} | " + " | ".join(figures) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=("rule", "own", "follow", "table"))
    for name in ("run", "familiar", "near", "far"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    file = arguments.out / "measured.json"
    state = json.loads(file.read_text()) if file.exists() else {"commands": [], "cells": {}}
    todo = []
    if "rule" in arguments.parts:
        todo += [("rule", *setting) for setting in product(MODELS, PILOTS, RISKS, SIZES)]
    if "own" in arguments.parts:
        todo += [("own", *setting) for setting in product((0.0, 0.7), OWN_EPOCHS, OWN_SIZES)]
    values = {}
    if "follow" in arguments.parts:
        files = {kind: getattr(arguments, kind) for kind in ("familiar", "near", "far")}
        kept = arguments.out / "values.npz"  # not committed: what the run says of each text
        if not kept.exists():
            np.savez(kept, **real_values(arguments.run, **files))
        values = dict(np.load(kept))
        todo += [("follow", n, batch, "near", 0.0) for n, batch in product(DEV_SIZES, BATCHES)]
        todo += [
            ("follow", *setting) for setting in product(DEV_SIZES, BATCHES, ("near", "far"), (0.1, 0.3, 1.0))
        ]
    for part, *setting in todo:
        key = json.dumps([part, *setting])
        if key in state["cells"]:
            continue
        cell = {"rule": rule_cell, "own": own_cell}.get(part)
        state["cells"][key] = cell(*setting) if cell else follow_cell(values, *setting)
        state["versions"] = {name: version(name) for name in ("calibrant", "numpy", "scipy")}
        state["machine"] = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        file.write_text(json.dumps(state, indent=1) + "\n")
        print(key, state["cells"][key], flush=True)
    command = "python benchmarks/promises.py " + " ".join(sys.argv[1:])
    if todo and command not in state["commands"]:
        state["commands"].append(command)
        file.write_text(json.dumps(state, indent=1) + "\n")
    about = "\n".join(f"    {line}" for line in state["commands"])
    versions = ", ".join(f"{name} {number}" for name, number in state.get("versions", {}).items())
    text = f"# Promises, by simulation\n\n{about}\n\n{versions}; {state.get('machine')}.\n\n"
    text += tables(state["cells"])
    (arguments.out / "README.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
