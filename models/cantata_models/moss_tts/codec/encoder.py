"""Encodes whole recordings to frames. It loads nothing of the decoder.

Letters: N samples, T frames, Q codebooks in use, B frames of a block.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn import functional

from cantata.contract.data.errors import InvalidAudio
from cantata_layers.weights import Weights
from cantata_models.moss_tts.codec.config import CHANNELS, load_tokenizer_config
from cantata_models.moss_tts.codec.patches import join
from cantata_models.moss_tts.codec.quantiser import QUANTISER, Quantiser
from cantata_models.moss_tts.codec.stack import MossCodecStack

BLOCK = 8
"""Frames that the encoder takes at a time: bounds its memory, whatever the recording's length."""


class AudioEncoder:
    """Encodes recordings with a published tokenizer.

    Args:
        folder: the tokenizer's.
        codebooks: Q, how many of its codebooks the model uses.
        device: where it runs.

    Raises:
        ConfigError: (on construction) the folder holds no such tokenizer.
    """

    def __init__(self, folder: Path, codebooks: int, device: torch.device) -> None:
        config = load_tokenizer_config(folder, codebooks)
        self.sample_rate, self.channels = config.sample_rate, CHANNELS
        self.samples_per_frame, self.num_codebooks = config.samples_per_frame, codebooks
        self._device = device
        self._quantise = Quantiser(Weights(folder, QUANTISER, device), config.quantiser)
        weights = Weights(folder, "encoder.", device)
        self._stack = MossCodecStack(weights, config.encoder, join, BLOCK, device)

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Encode a recording.

        Args:
            samples: [N, 2] float32 at `sample_rate`; what is left after the last whole frame is
                not encoded.

        Returns:
            [T, Q] int64.

        Raises:
            InvalidAudio: the recording is shorter than a frame.
        """
        frames = len(samples) // self.samples_per_frame
        if frames == 0:
            raise InvalidAudio(
                f"the recording has {len(samples) / self.sample_rate:.2f} s of sound; "
                f"at least {self.samples_per_frame / self.sample_rate:.2f} s are needed"
            )
        latents = self._latents(samples[: frames * self.samples_per_frame].to(self._device))
        return self._quantise(latents[:frames])

    def _latents(self, samples: torch.Tensor) -> torch.Tensor:
        """[N, 2] -> [T, latent], T rounded up to whole blocks.

        No module looks ahead, so the silence after the recording changes nothing in it.
        """
        block = BLOCK * self.samples_per_frame
        padded = functional.pad(samples, (0, 0, 0, -len(samples) % block))
        state, slot = self._stack.init_state(1), torch.zeros(1, dtype=torch.int64)
        parts = [
            self._stack.advance(part.reshape(1, -1, 1), state, slot.to(self._device), BLOCK)
            for part in torch.split(padded, block)
        ]
        return torch.cat(parts, dim=1)[0]
