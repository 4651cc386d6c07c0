"""Loads a published code predictor into a talker's `code_predictor`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.parameters import copy_tensor, load_tensor, missing_parameters

PREDICTOR = "code_predictor."
"""In front of its tensors' names."""
STACKED = {f"{PREDICTOR}codec_embedding", f"{PREDICTOR}lm_head"}
"""Parameters with a part for each codebook after the first; a checkpoint has the parts apart."""
WRAPPERS = ("model.", "self_attn.", "mlp.")
"""Parts of published names that only wrap the stack."""


def load_predictor_tensor(
    targets: Mapping[str, nn.Parameter], name: str, tensor: torch.Tensor
) -> str:
    """Copy a published tensor whose name starts with `PREDICTOR` to its parameter.

    Returns:
        The parameter's name; for stacked parameters the codebook follows the name.

    Raises:
        ConfigError: there is no such parameter, or its shape differs.
    """
    ours = name
    for wrapper in WRAPPERS:
        ours = ours.replace(f".{wrapper}", ".")
    stacked, _, book = ours.removesuffix(".weight").rpartition(".")
    if stacked not in STACKED:
        return load_tensor(targets, ours, tensor)
    try:
        copy_tensor(targets[stacked].data[int(book)], tensor)
    except (IndexError, ValueError) as error:
        raise ConfigError(
            f"{name} of {list(tensor.shape)} does not fit the talker: {error}"
        ) from error
    return f"{stacked}.{book}"


def predictor_parts(num_codebooks: int) -> set[str]:
    """What is loaded into the stacked parameters from a whole checkpoint."""
    return {f"{name}.{book}" for name in STACKED for book in range(num_codebooks - 1)}


def missing_with_predictor(
    targets: Mapping[str, torch.Tensor], loaded: set[str], num_codebooks: int
) -> set[str]:
    """What a talker's checkpoint should have had, its code predictor's tensors included."""
    wanted = predictor_parts(num_codebooks)
    return missing_parameters(targets, loaded) - STACKED | wanted - loaded
