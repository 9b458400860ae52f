"""Keep freed memory in the process while training.

glibc gives every large block back to the kernel as soon as it is freed, and a training step frees
hundreds of them: the kernel then clears the same pages again and again, which is felt on a virtual machine.
"""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
GIB = 1 << 30


def keep_freed_memory() -> bool:
    """Tell glibc to keep blocks below 1 GiB for reuse; False where the C library is another."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(
        mallopt(M_MMAP_THRESHOLD, GIB) and mallopt(M_TRIM_THRESHOLD, GIB) and mallopt(M_TOP_PAD, GIB >> 4)
    )
