"""Where models run, and the time that work takes there."""

import os
import platform
import time

import torch


def device() -> torch.device:
    """The accelerator that torch sees, which transformers.Trainer takes too; else the CPU."""
    here = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return here or torch.device("cpu")


def device_name() -> str:
    """Of the accelerator; nothing for the CPU."""
    here = device()
    if here.type == "cuda":
        return torch.cuda.get_device_name()
    return "" if here.type == "cpu" else here.type


def machine() -> str:
    """What results and times can depend on, beside the code."""
    cores = f"{torch.get_num_threads()} of {os.cpu_count()} cores"
    python = f"Python {platform.python_version()}"
    return ", ".join(filter(None, (platform.machine(), cores, python, device_name())))


def has_bf16() -> bool:
    """Whether the accelerator computes in bf16; older GPUs only imitate it."""
    from transformers.utils import is_torch_bf16_gpu_available

    if device().type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return bool(is_torch_bf16_gpu_available())


def work_seconds() -> float:
    """Seconds since some moment, with the time left out in which others have the CPU.

    On a CPU what this process did, over its number of threads; on an accelerator wall-clock time.
    """
    if device().type == "cpu":
        return time.process_time() / torch.get_num_threads()
    return time.perf_counter()
