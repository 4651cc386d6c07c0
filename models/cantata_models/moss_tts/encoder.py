"""The encoder stage: from a recording to its frames of codes. It loads nothing of the decoder.

A recording is resampled here, not where requests are built, so one that is known already costs
nothing.

Letters: N samples, C channels, T frames, Q codebooks in use, B frames of a block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import soxr
import torch
from numpy.typing import NDArray
from torch.nn import functional

from cantata.contract.data.chunks import Codes, Payload
from cantata.contract.data.errors import CantataError, InvalidAudio
from cantata_layers.weights import Weights
from cantata_models.moss_tts.codec_layers import MossCodecStack, join
from cantata_models.moss_tts.config import MossConfig, load_local_config, load_nano_config
from cantata_models.moss_tts.prompt import MossEncoderInput
from cantata_models.moss_tts.quantizer import QUANTIZER, Quantizer
from cantata_models.moss_tts.tokenizer_config import (
    CHANNELS,
    checked_tokenizer,
    load_tokenizer_config,
)

LEVEL_DB = -20.0
"""Level that Local expects, relative to full scale."""
MAX_GAIN_DB = 3.0
POWER_FLOOR = 1e-9


def to_stereo(
    samples: NDArray[np.float32], sample_rate: int, wanted_rate: int
) -> NDArray[np.float32]:
    """Resample a recording and give it two channels: one is doubled, of more two are kept.

    Args:
        samples: [N, C].
        sample_rate: Hz, of the recording.
        wanted_rate: Hz.

    Returns:
        [N * wanted_rate / sample_rate, 2].
    """
    stereo = np.repeat(samples, 2, axis=1) if samples.shape[1] == 1 else samples[:, :2]
    if sample_rate != wanted_rate:
        stereo = soxr.resample(stereo, sample_rate, wanted_rate)
    return np.ascontiguousarray(stereo, np.float32)


def levelled(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Bring a recording [N, C] closer to `LEVEL_DB`, by at most `MAX_GAIN_DB`. Local needs it."""
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    wanted = LEVEL_DB - 10.0 * np.log10(power + POWER_FLOOR)
    gain = np.clip(wanted, -MAX_GAIN_DB, MAX_GAIN_DB)
    return np.asarray(samples * np.float32(10.0 ** (gain / 20.0)), np.float32)


BLOCK = 8
"""Frames that the encoder takes at a time: bounds its memory, whatever the recording's length."""


class AudioEncoder:
    """Encodes recordings with a published tokenizer.

    Args:
        codebooks: Q, how many of its codebooks the model uses.

    Raises:
        ConfigError: (on construction) the folder holds no such tokenizer.
    """

    def __init__(self, folder: Path, codebooks: int, device: torch.device) -> None:
        config = load_tokenizer_config(folder, codebooks)
        self.sample_rate, self.channels = config.sample_rate, CHANNELS
        self.samples_per_frame, self.num_codebooks = config.samples_per_frame, codebooks
        self._device = device
        self._quantize = Quantizer(Weights(folder, QUANTIZER, device), config.quantizer)
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
        latents = self._encode_latents(samples[: frames * self.samples_per_frame].to(self._device))
        return self._quantize(latents[:frames])

    def _encode_latents(self, samples: torch.Tensor) -> torch.Tensor:
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


Prepare = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""[N, 2] at the encoder's rate -> [N, 2]."""


class MossRecordingEncoder:
    """Implements `contract.model.feed_forward.FeedForward` with a tokenizer's encoder. `prepare`:
    what the model does to recordings before they are encoded."""

    def __init__(self, encoder: AudioEncoder, prepare: Prepare) -> None:
        self._encoder = encoder
        self._prepare = prepare

    def key(self, inputs: MossEncoderInput) -> bytes:
        """Hash of the samples, their layout and their rate."""
        layout = f"{inputs.samples.shape[1]} at {inputs.sample_rate}".encode()
        return hashlib.sha256(layout + inputs.samples.tobytes()).digest()

    def run(
        self, batch: Sequence[MossEncoderInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: their lengths differ."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: MossEncoderInput) -> Mapping[str, Payload] | CantataError:
        stereo = to_stereo(inputs.samples, inputs.sample_rate, self._encoder.sample_rate)
        try:
            frames = self._encoder.encode(torch.from_numpy(self._prepare(stereo)))
        except CantataError as error:
            return error
        return {"frames": Codes(frames.cpu().numpy().astype(np.int32))}


def load_local_encoder(checkpoint: Path, device: torch.device) -> MossRecordingEncoder:
    """Return the encoder of MOSS-TTS-Local's tokenizer in fp32. Raises ConfigError: the tokenizer
    is missing, lacks weights, or is not of this checkpoint."""
    return MossRecordingEncoder(_load(checkpoint, load_local_config(checkpoint), device), levelled)


def load_nano_encoder(checkpoint: Path, device: torch.device) -> MossRecordingEncoder:
    """Return that of MOSS-TTS-Nano's; as `load_local_encoder`."""
    encoder = _load(checkpoint, load_nano_config(checkpoint), device)
    return MossRecordingEncoder(encoder, lambda samples: samples)


def _load(checkpoint: Path, config: MossConfig, device: torch.device) -> AudioEncoder:
    return AudioEncoder(checked_tokenizer(checkpoint, config), config.num_codebooks, device)
