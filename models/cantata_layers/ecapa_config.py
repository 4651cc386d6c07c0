"""Sizes of an ECAPA-TDNN, from a published config.json."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields


@dataclass(frozen=True, slots=True)
class EcapaConfig:
    """Sizes of the network. The three lists have one entry per layer."""

    mels: int
    size: int
    """E."""
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    attention_channels: int
    parts: int
    """Number of channel groups in a Res2Net block, each fed by the previous group."""
    squeezed_channels: int

    @property
    def reach(self) -> int:
        """Frames that the reflected edges need: T must be larger."""
        pairs = zip(self.kernels, self.dilations, strict=True)
        return max((kernel - 1) * dilation // 2 for kernel, dilation in pairs)


def read_ecapa_config(fields: JsonFields, default: EcapaConfig) -> EcapaConfig:
    """Read a section of a config.json; published files list only what differs from the defaults.

    Raises:
        ConfigError: a value is of the wrong type, or the lists differ in length.
    """
    config = EcapaConfig(
        mels=fields.get("mel_dim", int, default.mels),
        size=fields.get("enc_dim", int, default.size),
        channels=fields.integers("enc_channels", default.channels),
        kernels=fields.integers("enc_kernel_sizes", default.kernels),
        dilations=fields.integers("enc_dilations", default.dilations),
        attention_channels=fields.get("enc_attention_channels", int, default.attention_channels),
        parts=fields.get("enc_res2net_scale", int, default.parts),
        squeezed_channels=fields.get("enc_se_channels", int, default.squeezed_channels),
    )
    if not len(config.channels) == len(config.kernels) == len(config.dilations) >= 3:
        raise ConfigError(
            f"{fields.where}: enc_channels, enc_kernel_sizes and enc_dilations must have the same "
            "length, at least 3"
        )
    return config
