"""The configuration of MOSS-TTS-Local v1.5."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json
from cantata_layers.qwen3_config import Qwen3Stack, read_qwen3_stack
from cantata_layers.sampling_settings import SamplingSettings
from cantata_models.moss_tts.config.shared import (
    STOP_SAMPLING,
    MossConfig,
    MossDefaults,
    check_consistent,
    read_codebook_size,
    read_gpt2_stack,
    read_model_type,
    read_token_ids,
)

MODEL_TYPE = "moss_tts_local"
GENERATION = MossDefaults(
    stop=STOP_SAMPLING,
    audio=SamplingSettings(temperature=1.7, top_k=25, top_p=0.8),
    repetition_penalty=1.0,
    max_frames=4096,
)
"""Of the published README and of `generate`."""


@dataclass(frozen=True, slots=True)
class LocalConfig(MossConfig):
    """The configuration of a checkpoint."""

    stop_is_text: ClassVar[bool] = False
    backbone: Qwen3Stack


def load_local_config(checkpoint: Path) -> LocalConfig:
    """Read a checkpoint's config.json.

    Raises:
        ConfigError: the file cannot be read, a value is missing or of the wrong type, or the
            checkpoint needs an unsupported feature.
    """
    root = read_json(checkpoint / "config.json")
    read_model_type(root, MODEL_TYPE)
    mode = root.get("local_text_head_mode", str, "binary")
    if mode != "binary":
        raise ConfigError(f"{root.where}: local_text_head_mode {mode!r}; valid: 'binary'")
    language = root.section("qwen3_config" if root.items("qwen3_config") else "language_config")
    backbone, gpt2 = read_qwen3_stack(language), root.section("gpt2_config")
    layers = root.get("local_transformer_layers", int, gpt2.get("n_layer", int))
    num_codebooks = root.get("n_vq", int)
    config = LocalConfig(
        tokens=read_token_ids(root),
        vocab_size=backbone.vocab_size,
        num_codebooks=num_codebooks,
        codebook_size=read_codebook_size(root, num_codebooks),
        pad_code=root.get("audio_pad_token_id", int),
        local=read_gpt2_stack(gpt2, layers),
        generation=GENERATION,
        backbone=backbone,
    )
    check_consistent(config, config.backbone.hidden_size, root.where)
    return config
