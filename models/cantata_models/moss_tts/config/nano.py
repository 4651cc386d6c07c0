"""The configuration of MOSS-TTS-Nano."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.moss_tts.config.shared import (
    STOP_SAMPLING,
    Gpt2Stack,
    MossConfig,
    MossDefaults,
    check_consistent,
    read_codebook_size,
    read_gpt2_stack,
    read_model_type,
    read_token_ids,
)

MODEL_TYPE = "moss_tts_nano"
ARCHITECTURE = "global_local_transformer"
GENERATION = MossDefaults(
    stop=STOP_SAMPLING,
    audio=SamplingSettings(temperature=0.8, top_k=25, top_p=0.95),
    repetition_penalty=1.2,
    max_frames=375,
)
"""Of the published program. The defaults of the model's own methods differ."""


@dataclass(frozen=True, slots=True)
class NanoConfig(MossConfig):
    """The configuration of a checkpoint."""

    stop_is_text: ClassVar[bool] = True
    backbone: Gpt2Stack


def load_nano_config(checkpoint: Path) -> NanoConfig:
    """Read a checkpoint's config.json.

    Raises:
        ConfigError: the file cannot be read, a value is missing or of the wrong type, or the
            checkpoint needs an unsupported feature.
    """
    root = read_json(checkpoint / "config.json")
    read_model_type(root, MODEL_TYPE)
    architecture = root.get("model_architecture", str, ARCHITECTURE)
    if architecture != ARCHITECTURE:
        raise ConfigError(
            f"{root.where}: model_architecture {architecture!r}; valid: {ARCHITECTURE!r}"
        )
    gpt2 = root.section("gpt2_config")
    num_codebooks = root.get("n_vq", int)
    config = NanoConfig(
        tokens=read_token_ids(root),
        vocab_size=gpt2.get("vocab_size", int),
        num_codebooks=num_codebooks,
        codebook_size=read_codebook_size(root, num_codebooks),
        pad_code=root.get("audio_pad_token_id", int),
        local=read_gpt2_stack(gpt2, root.get("local_transformer_layers", int)),
        generation=GENERATION,
        backbone=read_gpt2_stack(gpt2, gpt2.get("n_layer", int)),
    )
    check_consistent(config, config.backbone.hidden_size, root.where)
    return config
