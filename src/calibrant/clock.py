"""The time that work takes, whatever else the machine is doing."""

import time

import torch


def work_seconds() -> float:
    """Seconds since some moment, with the time left out in which others have the CPU.

    On a CPU what this process did, over its number of threads; with a GPU, the wall's clock.
    """
    return time.perf_counter() if torch.cuda.is_available() else time.process_time() / torch.get_num_threads()
