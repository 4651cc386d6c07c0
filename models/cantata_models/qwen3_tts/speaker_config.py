"""The speaker encoder's sizes and names, without the code that runs it."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.ecapa_config import EcapaConfig, read_ecapa_config
from cantata_layers.json_fields import read_json
from cantata_layers.weight_map import WeightMap

SAMPLE_RATE = 24_000
SPEAKER = WeightMap({"speaker_encoder.{}": "{}"})
DEFAULT = EcapaConfig(
    mels=128,
    size=1024,
    channels=(512, 512, 512, 512, 1536),
    kernels=(5, 3, 3, 3, 1),
    dilations=(1, 2, 3, 4, 1),
    attention_channels=128,
    parts=8,
    squeezed_channels=128,
)


def load_speaker_config(checkpoint: Path) -> EcapaConfig:
    """Read the sizes from a checkpoint's config.json.

    Raises:
        ConfigError: a value is wrong or not served.
    """
    fields = read_json(checkpoint / "config.json").section("speaker_encoder_config")
    rate = fields.get("sample_rate", int, SAMPLE_RATE)
    if rate != SAMPLE_RATE:
        raise ConfigError(f"{fields.where}: sample_rate {rate} is not served; valid: {SAMPLE_RATE}")
    return read_ecapa_config(fields, DEFAULT)
