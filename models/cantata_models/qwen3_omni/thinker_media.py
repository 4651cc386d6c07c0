"""Features under the names by which vLLM's thinker takes them, one medium at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata_models.qwen3_omni.features import (
    MediaFeatures,
    Modality,
    SoundFeatures,
)


def modality_of(media: MediaFeatures) -> Modality:
    """As vLLM names it."""
    return Modality.AUDIO if isinstance(media, SoundFeatures) else media.modality


def thinker_fields(media: MediaFeatures) -> Mapping[str, NDArray[Any]]:
    """What `vllm.model_executor.models.qwen3_omni_moe_thinker` reads for one medium.

    Returns:
        For a sound `input_audio_features` [128, F] and its length; for a picture or video its
        patches [N, V] and its grid [3], for a video also the seconds between steps.
    """
    if isinstance(media, SoundFeatures):
        return {
            "input_audio_features": media.mels,
            "audio_feature_lengths": np.array(media.mels.shape[1], np.int64),
        }
    grid = np.array([media.grid.time, media.grid.height, media.grid.width], np.int64)
    if media.modality is Modality.IMAGE:
        return {"pixel_values": media.patches, "image_grid_thw": grid}
    return {
        "pixel_values_videos": media.patches,
        "video_grid_thw": grid,
        "second_per_grid_ts": np.array(media.seconds_per_step, np.float32),
        "use_audio_in_video": np.array(False),
    }


def identity_of(media: MediaFeatures) -> str:
    """Equal for media with equal rows, different for all others: SHA-256 in hexadecimal."""
    digest = hashlib.sha256()
    for name, values in thinker_fields(media).items():
        digest.update(f"{name} {values.dtype} {values.shape};".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
