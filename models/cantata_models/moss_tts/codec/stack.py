"""One half of the tokenizer: transformers at several rates, with patches between them.

Letters: S slots, B rows of one call, L positions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from cantata_layers.weights import Weights
from cantata_models.moss_tts.codec.config import ModuleConfig, PatchConfig
from cantata_models.moss_tts.codec.rings import places
from cantata_models.moss_tts.codec.transformer import MossCodecTransformer, Rings


@dataclass(frozen=True, slots=True)
class StreamState:
    """The state of every slot's stream."""

    frames: torch.Tensor
    """[S] int64: number of frames so far."""
    rings: tuple[Rings, ...]
    """What each transformer looks back on."""


class MossCodecStack:
    """The modules of the encoder or the decoder, streaming.

    Args:
        weights: the half's tensors.
        configs: its modules.
        resize: `patches.join` in the encoder, `patches.split` in the decoder.
        frames: that arrive at a time; a call has a multiple of them.
        device: where it runs.
    """

    def __init__(
        self,
        weights: Weights,
        configs: tuple[ModuleConfig, ...],
        resize: Callable[[torch.Tensor, int], torch.Tensor],
        frames: int,
        device: torch.device,
    ) -> None:
        self._resize, self._device = resize, device
        self._modules = [
            config
            if isinstance(config, PatchConfig)
            else MossCodecTransformer(weights, str(index), config, frames, device)
            for index, config in enumerate(configs)
        ]

    def init_state(self, slots: int) -> StreamState:
        """Return the state of `slots` streams that have not begun."""
        frames = torch.zeros(slots, dtype=torch.int64, device=self._device)
        transformers = (
            module for module in self._modules if isinstance(module, MossCodecTransformer)
        )
        return StreamState(frames, tuple(module.new_rings(slots) for module in transformers))

    def advance(
        self, x: torch.Tensor, state: StreamState, slots: torch.Tensor, frames: int
    ) -> torch.Tensor:
        """Continue streams by `frames` each: [B, L, inputs] -> [B, L', outputs].

        Args:
            x: the next positions of these streams.
            state: from `init_state`; updated in place.
            slots: [B] int64, all different.
        """
        before, rings = state.frames[slots], iter(state.rings)
        for module in self._modules:
            if isinstance(module, PatchConfig):
                x = self._resize(x, module.size)
            else:
                x = module(x, next(rings), slots, before)
        state.frames[slots] = before + frames
        return x


def state_bytes(configs: tuple[ModuleConfig, ...], frames: int) -> int:
    """Bytes that one slot takes of a stack's state, if `frames` arrive at a time."""
    number = torch.int64.itemsize
    kept = (
        2 * config.layers * config.width * places(config.window, frames * config.frame_positions)
        for config in configs
        if not isinstance(config, PatchConfig)
    )
    return number + torch.float32.itemsize * sum(kept)
