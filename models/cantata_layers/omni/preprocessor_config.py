"""How media become features: preprocessor_config.json or, as transformers 5 saves them,
processor_config.json with a section for each kind of media."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json

RATE = 16_000
"""Hz, of recordings."""


@dataclass(frozen=True, slots=True)
class PixelLimits:
    """Height times width to which pictures, or a whole video, are resized."""

    min_pixels: int
    max_pixels: int


VIDEO_FRAME_ROWS = PixelLimits(128, 768)
"""Of each frame of a video, in squares that become a row; no file says it."""


@dataclass(frozen=True, slots=True)
class PreprocessorConfig:
    """What encoders are given."""

    mel_bins: int
    longest_s: float
    """Of a recording."""
    pads_left: bool
    """Whether recordings are filled up in front, and so end with a mel frame; otherwise behind."""
    pixels: PixelLimits
    """Of a picture."""
    mean: tuple[float, float, float]
    """Of red, green and blue, 0 to 1, as the next."""
    std: tuple[float, float, float]


def load_preprocessor_config(folder: Path) -> PreprocessorConfig:
    """Read a checkpoint's preprocessor_config.json or processor_config.json. Raises ConfigError: a
    value is missing, of the wrong type or not served."""
    fields = read_preprocessor_fields(folder)
    for key, served in (("sampling_rate", RATE), ("n_fft", 400), ("hop_length", 160)):
        fields.expect(key, served)
    return PreprocessorConfig(
        mel_bins=fields.get("feature_size", int),
        longest_s=read_longest_s(fields),
        pads_left=_pads_left(fields),
        pixels=_read_pixel_limits(fields),
        mean=_read_colours(fields, "image_mean"),
        std=_read_colours(fields, "image_std"),
    )


def read_preprocessor_fields(folder: Path) -> JsonFields:
    """The settings of sound and pictures, from whichever file a checkpoint has. Raises ConfigError:
    it has none, or a damaged one."""
    whole, merged = folder / "preprocessor_config.json", folder / "processor_config.json"
    if whole.is_file():
        return read_json(whole)
    if not merged.is_file():
        raise ConfigError(f"{folder}: neither {whole.name} nor {merged.name} is there")
    fields = read_json(merged)
    # Both sections have keys of their own, but for `processor_class` and the like.
    both = {**fields.items("image_processor"), **fields.items("feature_extractor")}
    return JsonFields(both, fields.where)


def read_longest_s(fields: JsonFields) -> float:
    """Seconds of the longest recording. Raises ConfigError: the value is missing or of the wrong
    type."""
    seconds = fields.values.get("chunk_length")
    samples = seconds * RATE if type(seconds) is int else None
    return fields.get("n_samples", int, samples) / RATE


def _pads_left(fields: JsonFields) -> bool:
    return fields.expect("padding_side", "left", "right", default="right") == "left"


def _read_pixel_limits(fields: JsonFields) -> PixelLimits:
    # transformers 5 saves `size` in place of the two keys.
    size = fields.section("size") if fields.items("size") else None
    min_pixels = fields.values.get("min_pixels") or (size and size.values.get("shortest_edge"))
    max_pixels = fields.values.get("max_pixels") or (size and size.values.get("longest_edge"))
    sides = JsonFields({"min_pixels": min_pixels, "max_pixels": max_pixels}, fields.where)
    limits = PixelLimits(sides.get("min_pixels", int), sides.get("max_pixels", int))
    if not 0 < limits.min_pixels <= limits.max_pixels:
        raise ConfigError(f"{fields.where}: min_pixels and max_pixels contradict: {limits}")
    return limits


def _read_colours(fields: JsonFields, key: str) -> tuple[float, float, float]:
    values = fields.numbers(key)
    if len(values) != 3:
        raise ConfigError(f"{fields.where}: {key} must be three numbers, not {list(values)}")
    return values[0], values[1], values[2]
