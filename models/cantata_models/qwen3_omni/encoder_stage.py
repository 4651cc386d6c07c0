"""The encoder stage: the rows that media have in the thinker's prompt, from transformers' encoders.

Letters: M rows of all media, D the thinker's width, W: D, and D for each level of DeepStack.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
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

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError, ConfigError, RequestFailed
from cantata_layers.checkpoint import read_tensors
from cantata_layers.json_fields import read_json
from cantata_models.qwen3_omni.config.checkpoint import THINKER, load_config
from cantata_models.qwen3_omni.features import SoundFeatures, VisionFeatures
from cantata_models.qwen3_omni.inputs import EncoderInput

AUDIO, VISION = f"{THINKER}audio_tower.", f"{THINKER}visual."


class MediaEncoder:
    """Implements `contract.model.feed_forward.FeedForward` with both encoders of a checkpoint.

    Args:
        checkpoint: its folder.
        device: of the encoders.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        thinker = load_config(checkpoint).thinker
        fields = read_json(checkpoint / "config.json").section("thinker_config")
        audio: Any = Qwen3OmniMoeAudioEncoderConfig
        vision: Any = Qwen3OmniMoeVisionEncoderConfig
        self._audio: Any = _loaded(
            Qwen3OmniMoeAudioEncoder, audio(**fields.items("audio_config")), checkpoint, AUDIO
        ).to(device)
        self._vision: Any = _loaded(
            Qwen3OmniMoeVisionEncoder, vision(**fields.items("vision_config")), checkpoint, VISION
        ).to(device)
        self._device = device
        self._width = thinker.backbone.layers.hidden_size * (1 + thinker.deepstack_levels)

    def key(self, inputs: EncoderInput) -> bytes:
        """Hash of all features."""
        return hashlib.sha256(b"".join(media.identity for media in inputs.media)).digest()

    def run(self, batch: Sequence[EncoderInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode conversations one after the other: the sizes of their media differ."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: EncoderInput) -> Mapping[str, Payload] | CantataError:
        sounds = [media for media in inputs.media if isinstance(media, SoundFeatures)]
        heard = iter(self._heard(sounds) if sounds else ())
        parts = [
            self._seen(m) if isinstance(m, VisionFeatures) else next(heard) for m in inputs.media
        ]
        rows = torch.cat(parts)
        expected = sum(media.rows for media in inputs.media)
        if len(rows) != expected:
            return RequestFailed(f"the encoders made {len(rows)} rows of media, not {expected}")
        return {"rows": Rows(rows.cpu().numpy())}

    def _heard(self, sounds: Sequence[SoundFeatures]) -> Sequence[torch.Tensor]:
        """[rows, W] float32 of each; they have nothing for later layers.

        WHY together: the reference fills a sound up to the longest window of its conversation, and
        its last rows hear that.
        """
        mels = torch.cat([torch.from_numpy(sound.mels) for sound in sounds], dim=1)
        lengths = torch.tensor([sound.mels.shape[1] for sound in sounds], device=self._device)
        heard = self._audio(mels.to(self._device), feature_lens=lengths).last_hidden_state
        wide = nn.functional.pad(heard, (0, self._width - heard.shape[1]))
        parts: Sequence[torch.Tensor] = torch.split(wide, [sound.rows for sound in sounds])
        return parts

    def _seen(self, media: VisionFeatures) -> torch.Tensor:
        """[rows, W] float32."""
        grid = media.grid
        sizes = torch.tensor([[grid.time, grid.height, grid.width]], device=self._device)
        patches = torch.from_numpy(media.patches).to(self._device)
        made = self._vision(patches, grid_thw=sizes)
        return torch.cat([made.pooler_output, *made.deepstack_features], dim=1)


def load_encoder(checkpoint: Path, device: torch.device) -> MediaEncoder:
    """Return the checkpoint's encoders in fp32.

    Raises:
        ConfigError: weights are missing, or of another shape.
    """
    return MediaEncoder(checkpoint, device)


def _loaded(network: Any, config: Any, checkpoint: Path, prefix: str) -> nn.Module:
    """A network of transformers with a checkpoint's weights."""
    config._attn_implementation = "sdpa"
    made: nn.Module = network(config)
    tensors = dict(read_tensors(checkpoint, prefix))
    try:
        made.load_state_dict(tensors)
    except RuntimeError as error:
        raise ConfigError(f"{checkpoint}: weights of {prefix}* do not fit: {error}") from error
    return made.float().eval().requires_grad_(False)
