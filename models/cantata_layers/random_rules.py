"""Rules by which the weights of a network are drawn: a pattern of names -> how large they are.

The usual rules keep the signal's scale through every layer. A model's own ones make attention peaky
and keep its output where nothing is clipped: in a flat or clipping network faults would not show.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from cantata_layers.random_tensors import TensorSpec

Shape: TypeAlias = tuple[int, ...]
Rule: TypeAlias = Callable[[Shape, int], tuple[float, float]]
"""A shape, and the number in the pattern's group (0 without one) -> standard deviation and mean."""
Rules: TypeAlias = Mapping[str, Rule]
"""The first pattern that is found in a published name decides."""


def gain(factor: float) -> Rule:
    """A matrix or kernel [out, in, ...] whose outputs are `factor` times as large as its inputs."""
    return lambda shape, number: (factor / math.sqrt(math.prod(shape[1:])), 0.0)


def upsampling(taps: int) -> Rule:
    """A transposed convolution [in, out, kernel], of whose taps an output meets so many."""
    return lambda shape, number: (1.0 / math.sqrt(taps * shape[0]), 0.0)


def values(std: float, mean: float = 0.0, decay: float = 1.0) -> Rule:
    """Values around a mean; `decay` scales both once for each number before the pattern's."""
    return lambda shape, number: (std * decay**number, mean * decay**number)


def lengths(factor: float) -> Rule:
    """The lengths of a kernel's directions, of which torch's weight norm makes the kernel."""
    return values(0.1 * factor, factor)


def norm(mean: float) -> Rule:
    """The gain of a normalization, around `mean`."""
    return values(0.2 * mean, mean)


def _choose_range(shape: Shape, number: int) -> tuple[float, float]:
    return (norm(1.0) if len(shape) == 1 else gain(1.0))(shape, number)


USUAL: Rules = {r"\.bias$": values(0.2), r"\.weight$": _choose_range}
"""Biases large enough to matter; of weights, those with one axis are norms."""


def specify(shapes: Mapping[str, Shape], rules: Rules) -> Iterator[TensorSpec]:
    """Yield how each tensor is drawn.

    Args:
        shapes: of the tensors, by published name.
        rules: of the model, before the usual ones.

    Raises:
        ValueError: no rule fits a name.
    """
    compiled = [(re.compile(pattern), rule) for pattern, rule in {**rules, **USUAL}.items()]
    for name, shape in shapes.items():
        for pattern, rule in compiled:
            if match := pattern.search(name):
                number = int(match[1]) if pattern.groups else 0
                yield TensorSpec(name, shape, *rule(shape, number))
                break
        else:
            raise ValueError(f"no rule draws {name!r}")


def code_decoder_rules(stages: int) -> Rules:
    """Return the rules for a decoder of so many wave stages."""
    last = rf"decoder\.{stages + 2}\.conv"
    return {
        # Keeps the wave within -1..1, because clipping would hide faults.
        rf"{last}\.weight$": gain(0.05),
        rf"{last}\.bias$": values(0.01),
        r"self_attn\.[qk]_proj|mlp\.down_proj|pwconv2\.weight$": gain(2.0),
        r"self_attn\.o_proj": gain(3.0),
        r"layer_scale\.scale$|\.gamma$": values(0.1, 0.3),
        r"\.(?:alpha|beta)$": values(0.3),
        r"upsample\.\d+\.0\.conv\.weight$": upsampling(taps=1),
        r"block\.1\.conv\.weight$": upsampling(taps=2),
        r"conv2\.conv\.weight$": gain(0.4),
    }
