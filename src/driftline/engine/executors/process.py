"""Set up a process for numerical work: threads and memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Let glibc keep freed blocks: mapping them again in each training step costs up to half of the time."""
    try:
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(M_TRIM_THRESHOLD, 1 << 30)
    except (OSError, AttributeError, TypeError):
        return  # another C library, which manages memory in its own way


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error means a lack of memory; torch has no error class for it on a CPU."""
    on_device = type(error).__name__ == "OutOfMemoryError"
    return on_device or isinstance(error, MemoryError) or "allocate memory" in str(error)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for numerics: workers do not compete, and sums do not depend on the number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        try:
            import torch
        except ModuleNotFoundError:
            yield
            return
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
