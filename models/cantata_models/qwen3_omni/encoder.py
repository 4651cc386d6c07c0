"""The encoder stage: the rows that media have in the thinker's prompt, from transformers' encoders.

Letters: D the thinker's width, W: D, and D for each level of DeepStack.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers.models.qwen3_omni_moe.configuration_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoderConfig,
    Qwen3OmniMoeVisionEncoderConfig,
)
from transformers.models.qwen3_omni_moe.modeling_qwen3_omni_moe import (
    Qwen3OmniMoeAudioEncoder,
    Qwen3OmniMoeVisionEncoder,
)

from cantata_layers.json_fields import read_json
from cantata_layers.omni.encoder import ConversationEncoder, load_network
from cantata_layers.omni.inputs import SoundFeatures, VisionFeatures
from cantata_models.qwen3_omni.config import THINKER, load_config

AUDIO, VISION = f"{THINKER}audio_tower.", f"{THINKER}visual."


class Qwen3OmniMediaEncoder(ConversationEncoder):
    """Both encoders of a checkpoint.

    Args:
        checkpoint: its folder.
        device: of the encoders.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        thinker = load_config(checkpoint).thinker
        fields = read_json(checkpoint / "config.json").section("thinker_config")
        audio: Any = Qwen3OmniMoeAudioEncoderConfig
        vision: Any = Qwen3OmniMoeVisionEncoderConfig
        audio_config = audio(**fields.items("audio_config"))
        vision_config = vision(**fields.items("vision_config"))
        self._audio = load_network(
            Qwen3OmniMoeAudioEncoder, audio_config, checkpoint, AUDIO, device
        )
        self._vision = load_network(
            Qwen3OmniMoeVisionEncoder, vision_config, checkpoint, VISION, device
        )
        self._device = device
        self._width = thinker.backbone.layers.hidden_size * (1 + thinker.deepstack_levels)

    def _encode_sounds(self, sounds: Sequence[SoundFeatures]) -> Sequence[torch.Tensor]:
        """[rows, W] float32 of each; they have nothing for later layers.

        WHY together: the reference fills a sound up to the longest window of its conversation, and
        its last rows hear that.
        """
        mels = torch.cat([torch.from_numpy(sound.mels) for sound in sounds], dim=1)
        lengths = torch.tensor([sound.mels.shape[1] for sound in sounds], device=self._device)
        received = self._audio(mels.to(self._device), feature_lens=lengths).last_hidden_state
        wide = nn.functional.pad(received, (0, self._width - received.shape[1]))
        parts: Sequence[torch.Tensor] = torch.split(wide, [sound.rows for sound in sounds])
        return parts

    def _encode_images(self, media: VisionFeatures) -> torch.Tensor:
        """[rows, W] float32."""
        grid = media.grid
        sizes = torch.tensor([[grid.time, grid.height, grid.width]], device=self._device)
        patches = torch.from_numpy(media.patches).to(self._device)
        output = self._vision(patches, grid_thw=sizes)
        return torch.cat([output.pooler_output, *output.deepstack_features], dim=1)


def load_encoder(checkpoint: Path, device: torch.device) -> Qwen3OmniMediaEncoder:
    """Return the checkpoint's encoders in fp32.

    Raises:
        ConfigError: weights are missing, or of another shape.
    """
    return Qwen3OmniMediaEncoder(checkpoint, device)
