"""Makes features of media, with transformers' own extractors for NumPy and Pillow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from transformers import WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import (
    Qwen2VLImageProcessorPil,
)

from cantata.contract.data.errors import InvalidAudio, InvalidRequest
from cantata_layers.omni.inputs import (
    Film,
    MediaFeatures,
    MediaModality,
    PatchGrid,
    SoundFeatures,
    VisionFeatures,
)
from cantata_layers.omni.messages import PromptPicture, PromptSound, Video
from cantata_layers.omni.preprocessor_config import (
    RATE,
    VIDEO_FRAME_ROWS,
    PixelLimits,
    PreprocessorConfig,
)
from cantata_layers.omni.thinker_fields import VisionGrid

MIN_S = 0.1
MAX_UNEQUAL = 200
"""The longer side of a picture, at most, as a multiple of the shorter one."""


@dataclass(frozen=True, slots=True)
class SoundRules:
    """How a model's recordings become features."""

    rows: Callable[[int], int]
    """Mel frames -> rows that the audio encoder makes of them."""
    silence: int = 0
    """Mel frames of silence on the side where recordings are filled up. Without any, the frames at
    that end of a conversation's longest sound hear it mirrored."""


class Preprocessor:
    """Makes a checkpoint's features. Safe to call from several threads. `config`: of the
    checkpoint, as the next."""

    def __init__(self, config: PreprocessorConfig, vision: VisionGrid, sound: SoundRules) -> None:
        self._config, self._vision, self._sound = config, vision, sound
        unit = (vision.patch_size * vision.merge_size) ** 2
        self._frame_pixels = PixelLimits(
            VIDEO_FRAME_ROWS.min_pixels * unit, VIDEO_FRAME_ROWS.max_pixels * unit
        )
        self._extractor = make_mel_extractor(
            config.mel_bins, "left" if config.pads_left else "right"
        )
        self._pictures = Qwen2VLImageProcessorPil(
            patch_size=vision.patch_size,
            temporal_patch_size=vision.temporal_patch_size,
            merge_size=vision.merge_size,
            image_mean=list(config.mean),
            image_std=list(config.std),
        )

    def features(
        self, media: Sequence[PromptSound | PromptPicture | Video]
    ) -> list[MediaFeatures | Film]:
        """Return the features of all that is not text in a conversation, in order.

        Raises:
            InvalidAudio: a recording is too short, too long or not finite.
            InvalidRequest: a picture or video is empty, too narrow, or not of bytes.
        """
        recordings = [one for part in media if (one := _get_sound(part)) is not None]
        sounds = iter(self._prepare_sounds(recordings))
        output: list[MediaFeatures | Film] = []
        for part in media:
            if isinstance(part, PromptSound):
                output.append(next(sounds))
                continue
            seen = self._prepare_vision(part)
            output.append(seen if _get_sound(part) is None else Film(seen, next(sounds)))
        return output

    def _prepare_vision(self, media: PromptPicture | Video) -> VisionFeatures:
        if isinstance(media, Video):
            return self._prepare_video(media)
        patches, grid = self._cut_patches(media.pixels[None], self._config.pixels)
        return VisionFeatures(MediaModality.IMAGE, patches, grid, self._vision.merge_size)

    def _prepare_sounds(self, sounds: Sequence[PromptSound]) -> list[SoundFeatures]:
        """WHY together: the reference pads a conversation's sounds to the longest, and the last
        frames of a shorter one hear that."""
        if not sounds:
            return []
        padded = [self._pad_to_hop(sound) for sound in sounds]
        output = self._extractor(
            padded,
            sampling_rate=RATE,
            padding=True,
            truncation=False,
            return_tensors="np",
        )
        return [
            self._to_features(mels, len(sound.samples))
            for mels, sound in zip(output["input_features"], sounds, strict=True)
        ]

    def _to_features(self, mels: NDArray[np.float32], samples: int) -> SoundFeatures:
        """The mel frames that are the recording's own."""
        if self._config.pads_left:
            frames = samples // HOP
            own = mels[:, -frames:]
        else:
            frames = -(-samples // HOP)
            own = mels[:, :frames]
        return SoundFeatures(np.ascontiguousarray(own, np.float32), self._sound.rows(frames))

    def _pad_to_hop(self, sound: PromptSound) -> NDArray[np.float32]:
        """[N], checked, with zeros on one side: up to a whole hop, and the model's silence."""
        samples = sound.samples
        seconds, longest = len(samples) / RATE, self._config.longest_s
        if samples.ndim != 1 or not MIN_S <= seconds <= longest:
            raise InvalidAudio(
                f"the recording has {seconds:.2f} s of sound in {samples.ndim} dimensions; "
                f"valid: one dimension, {MIN_S} to {longest:g} s",
                "messages",
            )
        if not np.isfinite(samples).all():
            raise InvalidAudio("the recording has samples that are no numbers", "messages")
        zeros = -len(samples) % HOP + self._sound.silence * HOP
        sides = (zeros, 0) if self._config.pads_left else (0, zeros)
        return np.pad(samples.astype(np.float32), sides)

    def _prepare_video(self, video: Video) -> VisionFeatures:
        if not 0 < video.fps < float("inf"):
            raise InvalidRequest(f"a video's fps must be positive, not {video.fps}", "messages")
        together = self._vision.temporal_patch_size
        frames = video.frames
        if missing := -len(frames) % together:
            frames = np.concatenate([frames, np.repeat(frames[-1:], missing, axis=0)])
        patches, grid = self._cut_patches(frames, self._frame_pixels)
        # Each frame's patches repeat it for every place in time; of each, take its own place.
        places = patches.reshape(grid.time // together, together, -1, 3, together, self._area)
        own = np.stack([places[:, t, :, :, t] for t in range(together)], axis=3)
        merged = np.ascontiguousarray(own.reshape(-1, patches.shape[1]))
        return VisionFeatures(
            MediaModality.VIDEO,
            merged,
            PatchGrid(grid.time // together, grid.height, grid.width),
            self._vision.merge_size,
            seconds_per_step=together / video.fps,
        )

    @property
    def _area(self) -> int:
        return self._vision.patch_size**2

    def _cut_patches(
        self, frames: NDArray[np.uint8], limits: PixelLimits
    ) -> tuple[NDArray[np.float32], PatchGrid]:
        """[T, H, W, 3] -> the patches of each frame by itself, and the grid with T as its time."""
        _check_pixels(frames)
        output = self._pictures(
            [Image.fromarray(frame) for frame in frames],
            size={"shortest_edge": limits.min_pixels, "longest_edge": limits.max_pixels},
            return_tensors="np",
        )
        _, height, width = output["image_grid_thw"][0].tolist()
        return output["pixel_values"], PatchGrid(len(frames), height, width)


def _get_sound(part: PromptSound | PromptPicture | Video) -> PromptSound | None:
    if isinstance(part, Video):
        return part.sound
    return part if isinstance(part, PromptSound) else None


def _check_pixels(frames: NDArray[np.uint8]) -> None:
    shape = frames.shape[1:]
    if frames.ndim != 4 or frames.dtype != np.uint8 or shape[2] != 3 or 0 in frames.shape:
        raise InvalidRequest(
            f"pixels must be uint8 [height, width, 3], not {frames.dtype} {list(shape)}", "messages"
        )
    if max(shape[:2]) > MAX_UNEQUAL * min(shape[:2]):
        raise InvalidRequest(
            f"a picture of {shape[1]} x {shape[0]} is too narrow; one side may be "
            f"{MAX_UNEQUAL} times the other",
            "messages",
        )


HOP = 160
"""Samples of a mel frame."""


def make_mel_extractor(mel_bins: int, padding_side: Literal["left", "right"] = "right") -> Any:
    """transformers' own, for mono sound at `RATE`; recordings are filled up on `padding_side`."""
    extractor: Any = WhisperFeatureExtractor  # its signatures are too narrow
    return extractor(
        feature_size=mel_bins,
        sampling_rate=RATE,
        hop_length=HOP,
        dither=0.0,
        padding_side=padding_side,
    )
