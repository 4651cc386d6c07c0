"""Decodes frames to stereo as they arrive: a causal decoder with streaming state per slot.

No module looks ahead, so every frame yields its samples at once, and streaming gives the same
samples as decoding the whole. The tokenizers are MOSS-TTS's (arXiv:2603.18090).

Letters: B rows, T frames, Q codebooks in use, S samples per frame.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata.contract.model.codec import StreamingDecoder
from cantata_layers.weights import Weights
from cantata_models.moss_tts.codec_layers import MossCodecStack, StreamState, split, state_bytes
from cantata_models.moss_tts.config import MossConfig, load_local_config, load_nano_config
from cantata_models.moss_tts.quantizer import QUANTIZER, Dequantizer
from cantata_models.moss_tts.tokenizer_config import (
    CHANNELS,
    TokenizerConfig,
    checked_tokenizer,
    load_tokenizer_config,
)

AT_A_TIME = 1
"""Frames. A chunk's frames attend one after the other, and so alike in every chunk."""


class AudioDecoder(StreamingDecoder):
    """The published tokenizers as a decoder of codes.

    Args:
        codebooks: Q, how many of its codebooks the model uses.

    Raises:
        ConfigError: (on construction) the folder holds no such tokenizer.
    """

    recordable = True

    def __init__(self, folder: Path, codebooks: int, device: torch.device) -> None:
        config = load_tokenizer_config(folder, codebooks)
        self.sample_rate, self.channels = config.sample_rate, CHANNELS
        self.samples_per_frame = config.samples_per_frame
        self.num_codebooks, self.codebook_size = codebooks, config.quantizer.codebook_size
        self._slot_bytes = slot_bytes(config)
        self._device = device
        self._dequantize = Dequantizer(Weights(folder, QUANTIZER, device), config.quantizer)
        weights = Weights(folder, "decoder.", device)
        self._stack = MossCodecStack(weights, config.decoder, split, AT_A_TIME, device)

    @property
    def slot_bytes(self) -> int:
        return self._slot_bytes

    def init_state(self, slots: int) -> StreamState:
        return self._stack.init_state(slots)

    def reset(self, state: StreamState, slots: torch.Tensor) -> None:
        state.frames[slots.to(self._device, non_blocking=True)] = 0

    @torch.inference_mode()
    def decode(self, state: StreamState, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """Decode the next frames of these slots and advance their state in place.

        Args:
            state: from `init_state`.
            slots: [B] int64, all different.
            codes: [B, T, Q] int64, T >= 1.

        Returns:
            [B, T * S, 2] float32, about -1..1.
        """
        batch, frames, _ = codes.shape
        slots, codes = (x.to(self._device, non_blocking=True) for x in (slots, codes))
        signal = self._stack.advance(self._dequantize(codes), state, slots, frames)
        # The signal alternates between the channels.
        return signal.view(batch, frames * self.samples_per_frame, self.channels)


def slot_bytes(config: TokenizerConfig) -> int:
    """Bytes of state that the decoder holds for one stream."""
    return state_bytes(config.decoder, AT_A_TIME)


def load_local_decoder(checkpoint: Path, device: torch.device) -> AudioDecoder:
    """Return the streaming decoder of MOSS-TTS-Local's tokenizer in fp32. Raises ConfigError: the
    tokenizer is missing, lacks weights, or is not of this checkpoint."""
    return _load(checkpoint, load_local_config(checkpoint), device)


def load_nano_decoder(checkpoint: Path, device: torch.device) -> AudioDecoder:
    """Return that of MOSS-TTS-Nano's; as `load_local_decoder`."""
    return _load(checkpoint, load_nano_config(checkpoint), device)


def _load(checkpoint: Path, config: MossConfig, device: torch.device) -> AudioDecoder:
    return AudioDecoder(checked_tokenizer(checkpoint, config), config.num_codebooks, device)
