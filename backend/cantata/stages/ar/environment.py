"""The process environment that vLLM reads, set in this one place before vLLM is imported."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

_PR_SET_TIMERSLACK = 29
"""Linux's prctl option."""
_SLACK_NS = 500_000_000
_USUAL_SLACK_NS = 50_000
_SETTINGS = {
    # One process: we run the step loop, so there is no separate engine process.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # Records go to our entry point's handlers instead of vLLM's own.
    "VLLM_CONFIGURE_LOGGING": "0",
    # A checkpoint is a local folder; nothing may be fetched from a network.
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "",
}


def prepare_environment() -> None:
    """Set what vLLM reads from the environment. Call before the first import of vLLM."""
    os.environ.update(_SETTINGS)
    # WHY: this variable counts whole GiB and overrides the exact size that we compute.
    os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)
    # WHY: waiting OpenMP threads spin; next to a busy process, two of them have cost
    # 98% of the frames; on idle cores they gain 17%. With idle cores, set the variable.
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(int(threads))
    # vLLM warns of things that are intended here (no Triton, no compilation, V1 runner).
    logging.getLogger("vllm").setLevel(logging.ERROR)
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")


def limit_kernel_cache() -> None:
    """Bound what oneDNN keeps in this process; call before its first product.

    WHY: it caches a kernel for every number of rows it has met, a thousand by default. With prompts
    of every length that is 200 MB after 1,500 requests; recent kernels are enough.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")


@contextmanager
def threads_that_wake_seldom(*, on_gpu: bool) -> Iterator[None]:
    """Let the timers of threads started inside fire up to half a second late; not those of CUDA's
    and NCCL's threads, which serve requests.

    WHY: vLLM makes a dozen process groups even for a world of one. Each has a gloo thread that
    polls every 10 ms, together 1 to 4% of a core, though nothing is ever sent in this world. New
    threads inherit the kernel's timer slack; there is no other way to reach these.
    """
    wanted = sys.platform == "linux" and not on_gpu
    libc = ctypes.CDLL(None, use_errno=True) if wanted else None
    if libc is not None:
        libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(_SLACK_NS), 0, 0, 0)
    try:
        yield
    finally:
        if libc is not None:
            libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(0), 0, 0, 0)  # 0: the default again


def let_threads_wake_in_time() -> None:
    """Undo `threads_that_wake_seldom` for every thread of this process.

    WHY: ending the engine joins those threads one after the other; that took five seconds.
    """
    if sys.platform != "linux":
        return
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):  # it has just ended
            Path(f"/proc/{thread}/timerslack_ns").write_text(str(_USUAL_SLACK_NS), "ascii")


def give_memory_back() -> None:
    """Return to the machine what this process has freed.

    WHY: after a few large tensors glibc keeps the next ones in its heap, with holes where weights
    were that others have replaced.
    """
    with suppress(AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def as_if_not_installed(*modules: str) -> Iterator[None]:
    """Hide optional modules from what is imported inside, unless they have been imported before.

    WHY: vLLM and transformers import optional packages wherever they are installed, for features
    that no stage uses. Every start would wait for them.
    """
    hidden = [module for module in modules if module not in sys.modules]
    # None is how Python marks what must not be imported.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for module in hidden:
            del sys.modules[module]


@contextmanager
def imports_exempt_from_collection() -> Iterator[None]:
    """Exclude what is imported inside from garbage collection, permanently.

    WHY: vLLM brings 6,000 modules, and its start collects garbage five times; scanning these
    objects each time takes a third of the whole start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
