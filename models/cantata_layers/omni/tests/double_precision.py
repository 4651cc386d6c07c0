"""Runs networks in float64 that ask for float32 in between, for goldens without rounding."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class DoublePrecision(TorchFunctionMode):
    """Makes float64 of every float32 that is asked for, as the networks do for some steps."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.Tensor.float:
            return args[0].double()
        positional = (torch.float64 if value is torch.float32 else value for value in args)
        named = {
            name: torch.float64 if value is torch.float32 else value
            for name, value in (kwargs or {}).items()
        }
        return function(*positional, **named)
