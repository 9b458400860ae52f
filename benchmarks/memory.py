"""The peak memory, in MiB, of one step of a kind on a workload's widest batch, in a process of its own."""

import sys
from pathlib import Path

from transformers import AutoTokenizer

from calibrant.models.pretrained import default_encoder
from steps import OURS, make_step
from workloads import WORKLOADS, prepare

name, workload = sys.argv[1], next(w for w in WORKLOADS if w.name == sys.argv[2])
material = prepare(workload, AutoTokenizer.from_pretrained(default_encoder()))
step = make_step(name, material.classes)
batch = max(material.grouped if name in OURS else material.padded, key=lambda batch: batch.input_ids.shape[1])
for _ in range(2):
    step(batch)
# Not getrusage: what it reports is inherited from the process that started this one.
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
