"""What every decoder is that keeps its past per slot and looks at no frame ahead.

Letters: B rows, T frames, Q codebooks, E numbers of a latent, C channels.
"""

from __future__ import annotations

import torch

from cantata.contract.model.codec import StreamingDecoder
from cantata_layers.causal_convolutions import CodecState, ConvCache, find_run


class CausalDecoder(StreamingDecoder):
    """A decoder around a network whose layers keep their histories in a `ConvCache`. `blank`: [1,
    1, Q] int64 or [1, 1, E] float32, any one frame, on the device."""

    def __init__(self, blank: torch.Tensor) -> None:
        self._blank = blank
        self._shapes: list[torch.Size] | None = None

    @property
    def slot_bytes(self) -> int:
        position = torch.int64.itemsize
        histories = sum(shape.numel() for shape in self._list_history_shapes())
        return position + torch.float32.itemsize * histories

    def init_state(self, slots: int) -> CodecState:
        device = self._blank.device
        positions = torch.zeros(slots, dtype=torch.int64, device=device)
        shapes = self._list_history_shapes()
        return CodecState(positions, tuple(torch.zeros(slots, *s, device=device) for s in shapes))

    def reset(self, state: CodecState, slots: torch.Tensor) -> None:
        state.reset(slots.to(self._blank.device, non_blocking=True))

    @torch.inference_mode()
    def decode(self, state: CodecState, slots: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
        """Decode the next frames of these slots and advance their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            frames: [B, T, Q] int64 codes or [B, T, E] float32 latents, T >= 1.

        Returns:
            [B, T * samples_per_frame, C] float32 in -1..1.
        """
        device = self._blank.device
        rows = find_run(slots.to(device, non_blocking=True))
        past = state.take(rows)
        samples = self._run(frames.to(device, non_blocking=True), past)
        state.put(rows, past, frames.shape[1])
        return samples

    def _run(self, frames: torch.Tensor, past: ConvCache) -> torch.Tensor:
        """Decode frames behind `past`, and extend it."""
        raise NotImplementedError

    def _list_history_shapes(self) -> list[torch.Size]:
        """What the layers keep of a stream: decoding one frame without history shows it."""
        if self._shapes is None:
            positions = torch.zeros(1, dtype=torch.int64, device=self._blank.device)
            trial = ConvCache(positions, None)
            with torch.inference_mode():
                self._run(self._blank, trial)
            self._shapes = [history.shape[1:] for history in trial.extended]
        return self._shapes
