"""The encoder stage: the rows that media have in the thinker's prompt, from transformers' encoders.

Letters: D the thinker's width.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.models.qwen2_5_omni.configuration_qwen2_5_omni import (
    Qwen2_5OmniAudioEncoderConfig,
    Qwen2_5OmniVisionEncoderConfig,
)
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5OmniAudioEncoder,
    Qwen2_5OmniVisionEncoder,
)

from cantata_layers.json_fields import read_json
from cantata_layers.omni.encoder import ConversationEncoder, load_network
from cantata_layers.omni.inputs import SoundFeatures, VisionFeatures
from cantata_models.qwen25_omni.config import THINKER

AUDIO, VISION = f"{THINKER}audio_tower.", f"{THINKER}visual."


class Qwen25OmniMediaEncoder(ConversationEncoder):
    """Both encoders of a checkpoint."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        fields = read_json(checkpoint / "config.json").section("thinker_config")
        audio: Any = Qwen2_5OmniAudioEncoderConfig
        vision: Any = Qwen2_5OmniVisionEncoderConfig
        audio_config = audio(**fields.items("audio_config"))
        vision_config = vision(**fields.items("vision_config"))
        self._audio = load_network(Qwen2_5OmniAudioEncoder, audio_config, checkpoint, AUDIO, device)
        self._vision = load_network(
            Qwen2_5OmniVisionEncoder, vision_config, checkpoint, VISION, device
        )
        self._device = device

    def _encode_sounds(self, sounds: Sequence[SoundFeatures]) -> Sequence[torch.Tensor]:
        """[rows, D] float32 of each."""
        return [self._listen(torch.from_numpy(sound.mels).to(self._device)) for sound in sounds]

    def _listen(self, mels: torch.Tensor) -> torch.Tensor:
        """[mel bins, frames] -> [rows, D]."""
        frames = torch.tensor([mels.shape[1]], device=self._device)
        rows: torch.Tensor = self._audio(mels, feature_lens=frames).last_hidden_state
        return rows

    def _encode_images(self, media: VisionFeatures) -> torch.Tensor:
        """[rows, D] float32."""
        grid = media.grid
        sizes = torch.tensor([[grid.time, grid.height, grid.width]], device=self._device)
        patches = torch.from_numpy(media.patches).to(self._device)
        rows: torch.Tensor = self._vision(patches, grid_thw=sizes).pooler_output
        return rows


def load_encoder(checkpoint: Path, device: torch.device) -> Qwen25OmniMediaEncoder:
    """Return the checkpoint's encoders in fp32. Raises ConfigError: weights are missing, or of
    another shape."""
    return Qwen25OmniMediaEncoder(checkpoint, device)
