import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator is meant")

START = """
import sys
from pathlib import Path

import torch
from calibrant.allocator import keep_freed_memory

def mib(field):
    return int(Path("/proc/self/status").read_text().split(field + ":")[1].split()[0]) / 1024

if sys.argv[1] == "keep":
    assert keep_freed_memory()
torch.set_num_threads(1)
"""

# Resident memory rather than page faults: how many faults a block costs differs from kernel to kernel.
FREE = """
torch.ones(1)
before = mib("VmRSS")
torch.ones(100 * 2**18)
print(mib("VmRSS") - before)
"""

TRAIN = """
layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.GELU())]
net = torch.nn.Sequential(*layers)
for step in range(12):
    net(torch.randn(4096, 512)).square().mean().backward()
    net.zero_grad()
print(mib("VmHWM"))
"""


def run(script, mode):
    done = subprocess.run(
        [sys.executable, "-c", START + script, mode], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


@pytest.mark.parametrize(("mode", "kept"), [("default", 0), ("keep", 100)])
def test_a_freed_block_stays_in_the_process(mode, kept):
    assert run(FREE, mode) == pytest.approx(kept, abs=10)


@pytest.mark.slow
def test_training_needs_little_more_memory():
    assert run(TRAIN, "keep") < 1.3 * run(TRAIN, "default")
