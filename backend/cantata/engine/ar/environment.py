"""The process environment that vLLM reads, set in this one place before vLLM is imported."""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SETTINGS = {
    # One process: the step loop is ours, so there is no engine process to talk to.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # Records go to the handlers of our entry point instead of vLLM's own.
    "VLLM_CONFIGURE_LOGGING": "0",
    # A checkpoint is a folder on this machine; nothing may be asked of a network.
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "",
}


def prepare_environment() -> None:
    """Set what vLLM reads from the environment. Call before the first import of vLLM."""
    os.environ.update(_SETTINGS)
    # WHY: this variable counts whole GiB and overrides the exact size that we compute.
    os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)
    # WHY: OpenMP threads spin while they wait; beside a busy neighbour two of them have cost
    # 98% of the frames, on idle cores they gain 17%. Whoever has idle cores sets the variable.
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    # WHY: oneDNN keeps a kernel for every number of rows it has met, a thousand by default. With
    # prompts of every length that is 200 MB after 1,500 requests; recent kernels are enough.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    torch.set_num_threads(int(threads))
    # What vLLM warns of (no Triton, no compilation, V1 runner) is how we run it on purpose.
    logging.getLogger("vllm").setLevel(logging.ERROR)
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"vllm\.")


@contextmanager
def imports_exempt_from_collection() -> Iterator[None]:
    """Keep what is imported inside out of the garbage collector's sight, for good.

    WHY: vLLM brings 6,000 modules, and its start collects garbage five times; looking at these
    objects again each time takes a third of the whole start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
