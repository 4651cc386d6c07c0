"""Counts what a step would launch on a GPU, on tensors without values.

Operators that torch makes of others are counted by their parts, but for those that CUDA has one
kernel for; views and new memory are not counted. Some operators are several kernels there (a sort),
so the number is a lower bound, to be compared with others like it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ONE_KERNEL = {"rms_norm", "scaled_dot_product_attention", "linear"}
_ONLY_MEMORY = {"empty", "new_empty", "empty_like", "empty_strided", "detach"}
_ONLY_MEMORY |= {"_unsafe_view", "_reshape_alias", "split_with_sizes"}


class KernelCounter(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
    """Counts by operator what is called inside; in inference mode alone operators arrive whole."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = func._schema.name.partition("::")[2], kwargs or {}
        if name not in _ONE_KERNEL:
            with self:
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        is_view = any(x.alias_info and not x.alias_info.is_write for x in func._schema.returns)
        self.counts[name] += not is_view and name not in _ONLY_MEMORY
        return func(*args, **kwargs)


def count_kernels(function: Callable[..., object], *inputs: torch.Tensor) -> Counter[str]:
    """Call a function, and count its kernels by operator."""
    counter = KernelCounter()
    with torch.inference_mode(), counter:
        function(*inputs)
    return +counter.counts
