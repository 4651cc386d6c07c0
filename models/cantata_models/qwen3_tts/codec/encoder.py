"""Encodes audio to frames with the tokenizer's Mimi encoder, as implemented in transformers.

Only the encoding half is built; the whole model in transformers would include an unused decoder of
the same size. Only the quantiser's codebooks that the published tokenizer uses are kept.

Letters: N samples, T frames, Q codebooks.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from transformers import MimiConfig
from transformers.models.mimi.modeling_mimi import (
    MimiConv1d,
    MimiEncoder,
    MimiSplitResidualVectorQuantizer,
    MimiTransformerModel,
)

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_layers.weight_map import WeightMap
from cantata_models.qwen3_tts.codec.config import FOLDER

NAMES = WeightMap({"encoder.{}": "{}"})
UNLIMITED = 1 << 30
"""Number of positions that a position attends to. The checkpoints say 250 (ten seconds). But the
transformers release pinned by the published package attends to the whole past, and so its codes
depend on it."""
DOWNSAMPLING = 2
"""Transformer positions per frame."""


class ReferenceEncoder(nn.Module):
    """Encodes a recording to frames for a cloned voice's prompt."""

    def __init__(self, config: MimiConfig, sample_rate: int, samples_per_frame: int) -> None:
        super().__init__()
        self.sample_rate, self.samples_per_frame = sample_rate, samples_per_frame
        self.num_codebooks: int = config.num_quantizers
        self.encoder = MimiEncoder(config)
        self.encoder_transformer = MimiTransformerModel(config)
        self.downsample = MimiConv1d(
            config,
            config.hidden_size,
            config.hidden_size,
            kernel_size=2 * DOWNSAMPLING,
            stride=DOWNSAMPLING,
            bias=False,
            pad_mode="replicate",
        )
        self.quantizer = MimiSplitResidualVectorQuantizer(config)

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Encode a whole recording.

        Args:
            samples: [N] float32 mono at `sample_rate`, N >= 1.

        Returns:
            [T, Q] int64; the last frame may extend beyond the recording.
        """
        hidden = self.encoder(samples[None, None])
        hidden = self.encoder_transformer(hidden.transpose(1, 2)).last_hidden_state
        codes = self.quantizer.encode(self.downsample(hidden.transpose(1, 2)))
        frames = -(-len(samples) // self.samples_per_frame)
        return torch.as_tensor(codes[:, 0, :frames].t())


def load_encoder(checkpoint: Path) -> ReferenceEncoder:
    """Load the encoding half of a checkpoint's speech tokenizer, in fp32.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    root = read_json(checkpoint / FOLDER / "config.json")
    used = root.get("encoder_valid_num_quantizers", int)
    fields = dict(root.items("encoder_config")) | {
        "num_quantizers": used,
        "sliding_window": UNLIMITED,
        "attn_implementation": "eager",
    }
    try:
        config = MimiConfig(**fields)
        encoder = ReferenceEncoder(
            config,
            root.get("input_sample_rate", int),
            root.get("encode_downsample_rate", int),
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{root.where}: encoder_config is not usable: {error}") from error
    folder, wanted = checkpoint / FOLDER, encoder.state_dict()
    read = NAMES.read(folder)
    tensors = ((name, tensor.float()) for name, tensor in read if NAMES.own(name) in wanted)
    NAMES.fill(encoder, tensors, folder)
    return encoder
