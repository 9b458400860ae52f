import subprocess
import sys

import pytest

LOOP = """
import resource, sys
import torch
from calibrant.allocator import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()
torch.set_num_threads(1)
layers = [layer for _ in range(4) for layer in (torch.nn.Linear(512, 512), torch.nn.GELU())]
net = torch.nn.Sequential(*layers)
for step in range(12):
    if step == 4:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    net(torch.randn(4096, 512)).square().mean().backward()
    net.zero_grad()
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_minflt - before, usage.ru_maxrss)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator is meant")
def test_training_steps_fault_fewer_pages_for_no_more_memory():
    def run(mode):
        done = subprocess.run([sys.executable, "-c", LOOP, mode], capture_output=True, text=True, check=True)
        return map(int, done.stdout.split())

    faults, memory = run("default")
    kept_faults, kept_memory = run("keep")
    assert kept_faults < faults / 4
    assert kept_memory < 1.3 * memory
