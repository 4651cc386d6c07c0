"""Runs and observes transformers' Qwen3-Omni as a user of it does.

Its processor needs torchvision for videos; the parts of it that prompts need are called one by one.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import Qwen2Tokenizer, WhisperFeatureExtractor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen3_omni_moe import (
    Qwen3OmniMoeForConditionalGeneration,
    processing_qwen3_omni_moe,
)

from cantata_layers.json_fields import read_json
from cantata_layers.omni.messages import PromptMessage, PromptPicture, PromptSound, Text, Video
from cantata_layers.omni.tests.double_precision import DoublePrecision
from cantata_layers.omni.tests.media import collect_sounds, has_films
from cantata_models.qwen3_omni.tests.parity.scenarios import Qwen3OmniScenario

PROCESSING: Any = processing_qwen3_omni_moe


@dataclass(slots=True)
class Qwen3OmniObserved:
    tokens: NDArray[np.int64]
    """[P]: the prompt."""
    answer: NDArray[np.int64]
    positions: NDArray[np.float64]
    """[3, P]"""
    media_rows: NDArray[np.float64]
    """[M, E]: the accepted layer of media in the user's turns."""
    answer_scores: list[torch.Tensor] = field(default_factory=list)
    talker_rows: NDArray[np.float64] | None = None
    """[P', D]"""
    talker_positions: NDArray[np.float64] | None = None
    """[3, P']"""
    codes: NDArray[np.int64] | None = None
    """[T, Q]"""
    first_scores: list[torch.Tensor] = field(default_factory=list)
    """[V] per step, before any processing."""
    residual_gap: float = float("inf")
    """Smallest distance between the two best scores of any code after code 0."""
    wave: NDArray[np.float64] | None = None


class Qwen3OmniReference:
    """One checkpoint.

    Args:
        checkpoint: its folder.
        dtype: to compute in, float32 or float64.
    """

    def __init__(self, checkpoint: Path, dtype: torch.dtype) -> None:
        self._dtype = dtype
        model: Any = Qwen3OmniMoeForConditionalGeneration.from_pretrained(
            str(checkpoint), dtype=torch.float32, attn_implementation="eager"
        )
        self.model = model.to(dtype)
        for part in (self.model.thinker, self.model.talker):
            part.set_experts_implementation("eager")  # The others know no float64.
        # WHY: with sound, the talker asks its own config for an audio encoder that it lacks.
        talker, thinker = self.model.talker, self.model.thinker
        talker.config.audio_config = thinker.config.audio_config
        self._tokenizer = Qwen2Tokenizer.from_pretrained(str(checkpoint))
        template = read_json(checkpoint / "chat_template.json").get("chat_template", str)
        self._tokenizer.chat_template = template
        self._extractor: Any = WhisperFeatureExtractor.from_pretrained(str(checkpoint))
        fields = read_json(checkpoint / "preprocessor_config.json")
        self._pictures = Qwen2VLImageProcessorPil(
            patch_size=fields.get("patch_size", int),
            min_pixels=fields.get("min_pixels", int),
            max_pixels=fields.get("max_pixels", int),
            image_mean=list(fields.numbers("image_mean")),
            image_std=list(fields.numbers("image_std")),
        )

    @torch.no_grad()
    def answer(self, scenario: Qwen3OmniScenario) -> Qwen3OmniObserved:
        """Answer a scenario and speak the answer."""
        inputs = self._inputs(scenario.messages)
        watch = _Watch(self.model)
        with contextlib.closing(watch), self._precision():
            self.model.generate(
                **inputs,
                use_audio_in_video=has_films(scenario.messages),
                **({} if scenario.speaker is None else {"speaker": scenario.speaker}),
                return_audio=scenario.speaker is not None,
                thinker_max_new_tokens=scenario.max_tokens,
                thinker_eos_token_id=self.model.config.im_end_token_id,
                thinker_do_sample=False,
                thinker_output_hidden_states=True,
                thinker_return_dict_in_generate=True,
                talker_do_sample=False,
                talker_max_new_tokens=scenario.max_frames + 1,
            )
        return watch.observed(inputs["input_ids"][0])

    @torch.no_grad()
    def decode(self, frames: torch.Tensor) -> NDArray[np.float64]:
        """[T, Q] codes -> [samples] of sound."""
        with self._precision():
            wave: NDArray[np.float64] = self.model.code2wav(frames.T[None])[0, 0].double().numpy()
        return wave

    def _precision(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._dtype is torch.float32 else DoublePrecision()

    def _inputs(self, messages: tuple[PromptMessage, ...]) -> dict[str, Any]:
        media = [part for message in messages for part in message.parts]
        sounds = self._sounds(collect_sounds(messages))
        pictures = self._still([part for part in media if isinstance(part, PromptPicture)])
        videos = self._moving([part for part in media if isinstance(part, Video)])
        ids = self._ids(messages, sounds, pictures, videos)
        made = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        for name, value in (sounds | pictures | videos).items():
            made[name] = value.to(self._dtype) if value.is_floating_point() else value
        return made

    def _ids(self, messages: tuple[PromptMessage, ...], *features: dict[str, Any]) -> torch.Tensor:
        plain = [
            {"role": message.role.value, "content": [_plain(part) for part in message.parts]}
            for message in messages
        ]
        text = self._tokenizer.apply_chat_template(
            plain, tokenize=False, add_generation_prompt=True
        )
        found = {name: value for part in features for name, value in part.items()}
        lengths = found.get("feature_attention_mask", torch.zeros(0, 1)).sum(1).long()
        merging = SimpleNamespace(merge_size=2, temporal_patch_size=2)
        tokens = {f"{name}_token": f"<|{name}_pad|>" for name in ("audio", "image", "video")}
        for name in ("audio", "vision"):
            tokens[f"{name}_bos_token"] = f"<|{name}_start|>"
            tokens[f"{name}_eos_token"] = f"<|{name}_end|>"
        [expanded] = PROCESSING.Qwen3OmniMoeProcessor.replace_multimodal_special_tokens(
            SimpleNamespace(image_processor=merging, video_processor=merging, **tokens),
            [text],
            iter(PROCESSING._get_feat_extract_output_lengths(lengths)),
            iter(found.get("image_grid_thw", ())),
            iter(found.get("video_grid_thw", ())),
            video_second_per_grid=map(float, found.get("video_second_per_grid", ())),
            use_audio_in_video=has_films(messages),
            position_id_per_seconds=13.0,
            seconds_per_chunk=2.0,
        )
        return torch.tensor([self._tokenizer(expanded)["input_ids"]])

    def _sounds(self, sounds: list[PromptSound]) -> dict[str, Any]:
        if not sounds:
            return {}
        whole = [np.pad(s.samples, (0, -len(s.samples) % 160)) for s in sounds]
        made = self._extractor(
            whole,
            sampling_rate=16_000,
            padding=True,
            truncation=False,
            return_attention_mask=True,
            return_tensors="pt",
        )
        return {
            "input_features": made["input_features"],
            "feature_attention_mask": made["attention_mask"],
        }

    def _still(self, pictures: list[PromptPicture]) -> dict[str, Any]:
        if not pictures:
            return {}
        made = self._pictures([Image.fromarray(p.pixels) for p in pictures], return_tensors="pt")
        return {"pixel_values": made["pixel_values"], "image_grid_thw": made["image_grid_thw"]}

    def _moving(self, videos: list[Video]) -> dict[str, Any]:
        """Of sizes that need no resizing: patches by hand, as the reference cuts them."""
        if not videos:
            return {}
        patches, grids = zip(*(_cut(video.frames) for video in videos), strict=True)
        return {
            "pixel_values_videos": torch.cat(patches),
            "video_grid_thw": torch.tensor(grids),
            "video_second_per_grid": torch.tensor([2 / video.fps for video in videos]),
        }


class _Watch:
    """Records the networks' inputs and outputs of one answer."""

    def __init__(self, model: Any) -> None:
        self._model, self._seen = model, Qwen3OmniObserved(*[np.zeros(0)] * 4)  # type: ignore[arg-type]
        self._result: Any = None
        talker, thinker = model.talker, model.thinker
        self._handles = [
            thinker.model.register_forward_pre_hook(self._see_prompt, with_kwargs=True),
            thinker.lm_head.register_forward_hook(self._see_answer),
            talker.model.register_forward_pre_hook(self._see_talker, with_kwargs=True),
            talker.codec_head.register_forward_hook(self._see_first),
            *(h.register_forward_hook(self._see_other) for h in talker.code_predictor.lm_head),
        ]
        self._generate, self._decode = thinker.generate, model.code2wav.chunked_decode
        thinker.generate, model.code2wav.chunked_decode = self._see_result, self._see_wave

    def close(self) -> None:
        """Stop observing."""
        for handle in self._handles:
            handle.remove()
        del self._model.thinker.generate, self._model.code2wav.chunked_decode

    def observed(self, prompt: torch.Tensor) -> Qwen3OmniObserved:
        """What was seen."""
        seen, config = self._seen, self._model.config
        seen.tokens = prompt.numpy()
        seen.answer = self._result.sequences[0, len(prompt) :].numpy()
        hidden = self._result.hidden_states[0][config.talker_config.accept_hidden_layer][0]
        ids = config.thinker_config
        pads = torch.tensor([ids.audio_token_id, ids.image_token_id, ids.video_token_id])
        seen.media_rows = hidden[torch.isin(prompt, pads)].numpy()
        return seen

    def _see_prompt(self, _module: Any, _args: Any, named: dict[str, Any]) -> None:
        if named["inputs_embeds"].shape[1] > 1:
            self._seen.positions = named["position_ids"][-3:, 0].float().numpy()

    def _see_answer(self, _module: Any, _args: Any, scores: torch.Tensor) -> None:
        self._seen.answer_scores.append(scores[0, -1].clone())

    def _see_talker(self, _module: Any, _args: Any, named: dict[str, Any]) -> None:
        if named["inputs_embeds"].shape[1] > 1:
            self._seen.talker_rows = named["inputs_embeds"][0].numpy().copy()
            self._seen.talker_positions = named["position_ids"][-3:, 0].float().numpy()

    def _see_first(self, _module: Any, _args: Any, scores: torch.Tensor) -> None:
        self._seen.first_scores.append(scores[0, -1].clone())

    def _see_other(self, _module: Any, _args: Any, scores: torch.Tensor) -> None:
        best = torch.topk(scores[0, -1], 2).values
        self._seen.residual_gap = min(self._seen.residual_gap, float(best[0] - best[1]))

    def _see_result(self, *args: Any, **named: Any) -> Any:
        self._result = self._generate(*args, **named)
        return self._result

    def _see_wave(self, codes: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
        wave: torch.Tensor = self._decode(codes, *args, **named)
        self._seen.codes, self._seen.wave = codes[0].T.numpy(), wave[0, 0].numpy()
        return wave


def _plain(part: Any) -> dict[str, str]:
    match part:
        case Text(text):
            # The reference reads control tokens that a text spells; here they are text.
            return {"type": "text", "text": text}
        case PromptSound():
            return {"type": "audio"}
        case PromptPicture():
            return {"type": "image"}
        case _:
            return {"type": "video"}


def _cut(frames: NDArray[np.uint8]) -> tuple[torch.Tensor, tuple[int, int, int]]:
    """[T, H, W, 3] -> patches of 2 frames x 16 x 16, those of a 2 x 2 block together."""
    if len(frames) % 2:
        frames = np.concatenate([frames, frames[-1:]])
    count, height, width, _ = frames.shape
    grid = (count // 2, height // 16, width // 16)
    patches = []
    scaled = (frames.astype(np.float32) / 255 - 0.5) / 0.5
    for step in range(grid[0]):
        for top in range(0, height, 32):
            for left in range(0, width, 32):
                for y in (top, top + 16):
                    for x in (left, left + 16):
                        cube = scaled[2 * step : 2 * step + 2, y : y + 16, x : x + 16]
                        patches.append(cube.transpose(3, 0, 1, 2).reshape(-1))
    return torch.from_numpy(np.stack(patches)), grid
