"""The encoder stage: the rows that a sound has in the thinker's prompt, from transformers' encoder.

Letters: N samples, M mel bins, F mel frames, T mel frames of whole windows, W width of the encoder,
D the thinker's width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional
from transformers.models.qwen3_asr.configuration_qwen3_asr import Qwen3ASREncoderConfig
from transformers.models.qwen3_asr.modeling_qwen3_asr import Qwen3ASREncoder

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError, InvalidAudio, RequestFailed
from cantata_layers.checkpoint import read_tensors
from cantata_layers.omni.encoder import fill_network
from cantata_layers.omni.inputs import WINDOW_FRAMES, SoundFeatures, sound_rows
from cantata_layers.omni.preprocess import HOP, make_mel_extractor
from cantata_layers.omni.preprocessor_config import RATE
from cantata_models.qwen3_asr.config import Qwen3AsrConfig, load_config

MIN_SAMPLES = RATE // 2
"""Samples; the references fill a shorter sound up with zeros."""


class FeatureExtractor:
    """Makes a checkpoint's features. Safe to call from several threads."""

    def __init__(self, config: Qwen3AsrConfig) -> None:
        self._extractor = make_mel_extractor(config.mel_bins)
        self._longest_s = config.longest_s

    def extract(self, samples: NDArray[np.float32]) -> SoundFeatures:
        """Return the features of a sound; it ends with its last whole mel frame.

        Args:
            samples: [N] mono at `RATE`, in -1..1.

        Raises:
            InvalidAudio: it is too long, has more than one channel, or is not finite.
        """
        if samples.ndim != 1 or len(samples) > self._longest_s * RATE:
            raise InvalidAudio(
                f"the window has {len(samples) / RATE:.2f} s of sound in {samples.ndim} "
                f"dimensions; valid: one dimension, up to {self._longest_s:g} s",
                "file",
            )
        if not np.isfinite(samples).all():
            raise InvalidAudio("the sound has samples that are no numbers", "file")
        padded = np.pad(samples.astype(np.float32), (0, max(0, MIN_SAMPLES - len(samples))))
        output = self._extractor(
            padded, sampling_rate=RATE, padding=True, truncation=False, return_tensors="np"
        )
        frames = len(padded) // HOP
        mels = np.ascontiguousarray(output["input_features"][0][:, :frames], np.float32)
        return SoundFeatures(mels, sound_rows(frames))


class Qwen3AsrEncoder:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        config = load_config(checkpoint)
        self._device = device
        sizes: Any = Qwen3ASREncoderConfig
        encoder_config = sizes(**config.encoder)
        encoder_config._attn_implementation = "sdpa"
        encoder, projector = _read_parts(checkpoint, config)
        self._encoder = fill_network(
            Qwen3ASREncoder(encoder_config),
            encoder,
            f"{checkpoint}: weights of {config.names.encoder}*",
            device,
        )
        self._projector = fill_network(
            _Projector(config), projector, f"{checkpoint}: weights behind the encoder", device
        )

    def key(self, inputs: SoundFeatures) -> bytes:
        """Hash of the features."""
        return inputs.identity

    def run(self, batch: Sequence[SoundFeatures]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode sounds one after the other.

        WHY: in one product the rows of a sound would differ, in the last bits, by its company.
        """
        return [self._encode(sound) for sound in batch]

    def _encode(self, sound: SoundFeatures) -> Mapping[str, Payload] | CantataError:
        mels = torch.from_numpy(sound.mels).to(self._device)
        frames = mels.shape[1]
        whole = functional.pad(mels, (0, -frames % WINDOW_FRAMES))[None]
        is_own = torch.arange(whole.shape[2], device=self._device)[None] < frames
        encoded = self._encoder(whole, is_own.long()).last_hidden_state
        rows = self._projector(encoded)
        if len(rows) != sound.rows:
            return RequestFailed(f"the encoder made {len(rows)} rows of a sound, not {sound.rows}")
        return {"rows": Rows(rows.cpu().numpy())}


class _Projector(nn.Module):
    """[rows, W] -> [rows, D]."""

    def __init__(self, config: Qwen3AsrConfig) -> None:
        super().__init__()
        width = config.encoder["d_model"]
        self.linear_1 = nn.Linear(width, width)
        self.linear_2 = nn.Linear(width, config.stack.hidden_size)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        projected: torch.Tensor = self.linear_2(functional.gelu(self.linear_1(rows)))
        return projected


def _read_parts(
    checkpoint: Path, config: Qwen3AsrConfig
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """The tensors of the encoder and of the projector, by their networks' own names."""
    names = config.names
    encoder = dict(read_tensors(checkpoint, names.encoder))
    projector: dict[str, torch.Tensor] = {}
    for begin, own in names.projector.items():
        for name, tensor in read_tensors(checkpoint, begin):
            projector[own + name] = tensor
            encoder.pop(f"{begin}{name}".removeprefix(names.encoder), None)
    return encoder, projector
