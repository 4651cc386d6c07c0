"""Sizes of an ECAPA-TDNN, from a published config.json."""

from __future__ import annotations

import msgspec


class EcapaConfig(msgspec.Struct, frozen=True):
    """Sizes of the network. The three lists have one entry per layer."""

    mels: int = msgspec.field(name="mel_dim")
    size: int = msgspec.field(name="enc_dim")
    """E."""
    channels: tuple[int, ...] = msgspec.field(name="enc_channels")
    kernels: tuple[int, ...] = msgspec.field(name="enc_kernel_sizes")
    dilations: tuple[int, ...] = msgspec.field(name="enc_dilations")
    attention_channels: int = msgspec.field(name="enc_attention_channels")
    parts: int = msgspec.field(name="enc_res2net_scale")
    """Number of channel groups in a Res2Net block, each fed by the previous group."""
    squeezed_channels: int = msgspec.field(name="enc_se_channels")

    def __post_init__(self) -> None:
        if not len(self.channels) == len(self.kernels) == len(self.dilations) >= 3:
            raise ValueError(
                "enc_channels, enc_kernel_sizes and enc_dilations must have the same length, at "
                "least 3"
            )

    @property
    def reach(self) -> int:
        """Frames that the reflected edges need: T must be larger."""
        pairs = zip(self.kernels, self.dilations, strict=True)
        return max((kernel - 1) * dilation // 2 for kernel, dilation in pairs)
