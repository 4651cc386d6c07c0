"""The text encoder: transformers' Qwen2.5-VL without its head, and its vision network only for
checkpoints that change pictures.

Letters: P tokens, T of them kept, E columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLModel, Qwen2_5_VLTextModel
from transformers.initialization import no_init_weights

from cantata_layers.checkpoint import read_tensors
from cantata_layers.json_fields import read_json
from cantata_layers.qwen_image.config import TEXT_ENCODER
from cantata_layers.qwen_image.numerics import dtype_on
from cantata_layers.qwen_image.text.patches import Patches
from cantata_layers.weights import SAME_NAMES, WeightMap

LANGUAGE, VISION = "language_model.", "visual."
FLAT_NAMES = {"visual.{}": f"{VISION}{{}}", "model.{}": f"{LANGUAGE}{{}}"}
NAMES = WeightMap(
    {
        "model.language_model.{}": f"{LANGUAGE}{{}}",
        "model.visual.{}": f"{VISION}{{}}",
        **FLAT_NAMES,
    }
)
"""Names of tensors in both published layouts -> those of transformers' modules."""


class TextEncoder:
    """Embeds prompts, one at a time: their lengths differ.

    Args:
        device: where to compute; float32 on a CPU, bfloat16 elsewhere.

    Raises:
        ConfigError: weights are missing or of another shape.
    """

    def __init__(self, checkpoint: Path, device: torch.device, *, sees: bool) -> None:
        folder = checkpoint / TEXT_ENCODER
        values = dict(read_json(folder / "config.json").values)
        config: Any = Qwen2_5_VLConfig(**values)
        config._attn_implementation = "sdpa"
        self._picture_token = int(config.image_token_id)
        self._network: Any = empty_network(config, sees, dtype_on(device))
        prefix = "" if sees else LANGUAGE
        SAME_NAMES.fill(self._network, _iterate_tensors(folder, prefix, device), folder)
        self._network.to(device)
        self._device = device

    @torch.inference_mode()
    def embed(
        self, tokens: NDArray[np.int32], dropped: int, pictures: Sequence[Patches] = ()
    ) -> torch.Tensor:
        """The last hidden states of a prompt, after the last norm.

        Args:
            tokens: [P].
            dropped: of the first tokens; they are read, but not returned.
            pictures: in their order in the prompt.

        Returns:
            [T, E] float32 with T = P - dropped.
        """
        ids = torch.from_numpy(tokens.astype(np.int64))[None].to(self._device)
        seen = self._seen(ids, pictures) if pictures else {}
        output = self._network(input_ids=ids, use_cache=False, **seen).last_hidden_state
        return torch.as_tensor(output[0, dropped:].float())

    def _seen(self, ids: torch.Tensor, pictures: Sequence[Patches]) -> dict[str, torch.Tensor]:
        values = torch.from_numpy(np.concatenate([picture.values for picture in pictures]))
        return {
            "pixel_values": values.to(self._device, dtype_on(self._device)),
            "image_grid_thw": torch.tensor([p.grid for p in pictures], device=self._device),
            # WHY: without it, pictures get the positions of a line of text, and nothing says so.
            "mm_token_type_ids": (ids == self._picture_token).int(),
        }


def empty_network(config: Any, sees: bool, dtype: torch.dtype) -> nn.Module:
    """The network with memory that is not written. Its tables of frequencies have no weights in
    the checkpoint, so it cannot be made without memory."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with no_init_weights():
            kind: Any = Qwen2_5_VLModel if sees else Qwen2_5_VLTextModel
            output: nn.Module = kind(config if sees else config.text_config)
    finally:
        torch.set_default_dtype(before)
    return output


def _iterate_tensors(
    folder: Path, prefix: str, device: torch.device
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of the networks, or of the one with this prefix."""
    for name, tensor in read_tensors(folder):
        own = NAMES.own(name)
        if own is not None and own.startswith(prefix):
            yield own.removeprefix(prefix), tensor.to(device, dtype_on(device))
