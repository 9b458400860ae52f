"""Beyond text: the two pseudo-samples of manifold smoothing on scikit-learn's handwritten digits.

A small network learns the digits 0 to 7; it never sees 8 and 9. x is the image, 64 pixels in [0, 1], and all
that `on_manifold` and `off_manifold` ask for is a function from x to features and one from x to losses. Plain
and smoothed training share network, start, optimiser and epochs. δ_y is chosen for each seed by the NLL
of dev images, which are digits 0 to 7; nothing is chosen by the test images or the unseen digits.

Example:  python examples/digits.py --seeds 0 1 2
"""

import argparse
import json
import os
import platform
import sys
import time
from importlib.metadata import version

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.functional import cross_entropy

from calibrant import Prediction
from calibrant.metrics.measure import measure
from calibrant.objectives.functional import kl_divergence, negative_entropy
from calibrant.objectives.manifold import interpolate_labels, off_manifold, on_manifold

CLASSES = 8
DELTA_ON, DELTA_OFF = 0.01, 0.1  # one to ten, as in the paper
DELTAS_Y = (0.0, 0.02, 0.1)  # the last is the paper's


def split(seed):
    """Train (30 %), dev (20 %) and test (50 %) images of the known digits, and all images of the others."""
    pixels, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(digits)
    known = torch.nonzero(y < CLASSES).squeeze(1)
    train, rest = train_test_split(known, train_size=0.3, stratify=y[known], random_state=seed)
    dev, test = train_test_split(rest, train_size=2 / 7, stratify=y[rest], random_state=seed)
    return *((x[part], y[part]) for part in (train, dev, test)), x[y >= CLASSES]


def loss_of(f, g, x, y, delta_y):
    """CE, or CE + R_on + R_off where δ_y is given: all that the method is."""
    features = f(x)
    ce = cross_entropy(g(features), y)
    if delta_y is None:
        return ce
    partners = torch.randperm(len(x))
    on = on_manifold(f, x, features[partners], DELTA_ON)
    off = off_manifold(lambda z: cross_entropy(g(f(z)), y, reduction="none"), x, DELTA_OFF)
    target = interpolate_labels(y, y[partners], CLASSES, delta_y)
    return ce + kl_divergence(target, g(f(on))).mean() + negative_entropy(g(f(off))).mean()


def fit(x, y, epochs, seed, delta_y=None):
    """f, from pixels to features, and g, from features to logits, as one network."""
    torch.manual_seed(seed)
    f = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU())
    g = nn.Linear(128, CLASSES)
    optimiser = torch.optim.Adam([*f.parameters(), *g.parameters()], lr=1e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimiser.zero_grad()
            loss_of(f, g, x[batch], y[batch], delta_y).backward()
            optimiser.step()
    return nn.Sequential(f, g)


def predict(network, x, y=None):
    with torch.no_grad():
        return Prediction(network(x).double().softmax(dim=1).numpy(), None if y is None else y.numpy())


def compare(seed, epochs):
    """What both networks say of test images and of unseen digits."""
    train, dev, test, unseen = split(seed)
    smoothed = {delta_y: fit(*train, epochs, seed, delta_y) for delta_y in DELTAS_Y}
    dev_nll = {delta_y: measure(predict(network, *dev))["nll"] for delta_y, network in smoothed.items()}
    chosen = min(dev_nll, key=dev_nll.get)
    networks = {"plain": fit(*train, epochs, seed), "smoothed": smoothed[chosen]}
    measured = {name: measure(predict(n, *test), predict(n, unseen)) for name, n in networks.items()}
    return {"seed": seed, "delta_y": chosen, "dev_nll": dev_nll, **measured}


def table(results):
    yield "in percent          accuracy   ECE   NBAUCC₀.₅: mistakes  unseen   confidence: 0–7   8, 9   δ_y"
    for result in results:
        for name, delta_y in (("plain", "–"), ("smoothed", result["delta_y"])):
            r = result[name]
            shown = (r["accuracy"], r["ece"], r["misclassification"]["nbaucc_0.5"], r["ood"]["nbaucc_0.5"])
            shown += (r["mean_confidence_test"], r["mean_confidence_ood"])
            cells = [f"{100 * v:{w}.1f}" for v, w in zip(shown, (9, 6, 22, 8, 18, 7), strict=True)]
            yield f"seed {result['seed']}, {name:<11}{''.join(cells)}{delta_y:>6}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of split, weights, batches")
    parser.add_argument("--epochs", type=int, default=200, help="passes over the training images [200]")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    options = parser.parse_args()
    torch.set_num_threads(1)  # for a network this small, a second thread only waits
    results = [compare(seed, options.epochs) for seed in options.seeds]
    record = {
        "command": " ".join(["python", *sys.argv]),
        "results": results,
        "cpu_seconds": round(time.process_time(), 1),
        "versions": {name: version(name) for name in ("calibrant", "torch", "scikit-learn", "numpy")},
        "machine": f"{platform.machine()}, one core of {os.cpu_count()}, Python {platform.python_version()}",
    }
    print(json.dumps(record, indent=2) if options.json else "\n".join(table(results)))
