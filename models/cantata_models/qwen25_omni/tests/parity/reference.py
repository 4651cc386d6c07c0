"""Runs and observes transformers' Qwen2.5-Omni in whole conversations, as a user of it does.

Its processor needs torchvision for videos; the parts of it that prompts need are called one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import Qwen2Tokenizer, WhisperFeatureExtractor
from transformers.models.qwen2_5_omni.processing_qwen2_5_omni import Qwen2_5OmniProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from cantata_layers.json_fields import read_json
from cantata_layers.omni.messages import PromptMessage, PromptPicture, PromptSound, Text, Video
from cantata_layers.omni.tests.media import collect_sounds, has_films
from cantata_models.qwen25_omni.tests.parity.conversations import Conversation

PADDING = 1
"""Tokens in front of a prompt that nothing attends to.

WHY: without any, transformers 5.19 drops the attention mask, and its talker, which begins its
speech where it is given one, adds neither the pad code nor the start code to its prompt.
"""
THINKER_ONLY = ("pixel_values", "pixel_values_videos")
"""The talker needs the sizes of pictures, for its positions, and refuses their patches."""
PATCH, TEMPORAL = 14, 2


@dataclass(slots=True)
class Qwen25OmniObserved:
    tokens: NDArray[np.int64]
    """[P]: the prompt."""
    answer: NDArray[np.int64]
    positions: NDArray[np.float32]
    """[3, P]"""
    scores: list[torch.Tensor] = field(default_factory=list)
    """[V] of each token of the answer."""
    talker_positions: NDArray[np.float32] | None = None
    """[3, P + 2]"""
    given: dict[str, torch.Tensor] = field(default_factory=dict)
    """To the talker."""
    said: list[int] = field(default_factory=list)
    """Codes, with the one that ended the speech."""
    code_scores: torch.Tensor | None = None
    """[steps, codes] before any processing."""

    @property
    def rows(self) -> NDArray[np.float32]:
        """[P + answer, E]: what came from the thinker."""
        begun, later = self.given["inputs_embeds"][0, PADDING:], self.given["thinker_reply_part"][0]
        return torch.cat([begun[:-2], begun[-1:], later[:-2]]).numpy()


class Qwen25OmniReference:
    """A loaded checkpoint in float32.

    Args:
        folder: of the checkpoint.
        model: transformers'.
    """

    def __init__(self, folder: Path, model: Any) -> None:
        self._model = model
        self._tokenizer = Qwen2Tokenizer.from_pretrained(str(folder))
        template = read_json(folder / "chat_template.json").get("chat_template", str)
        self._tokenizer.chat_template = template
        self.end = int(self._tokenizer.convert_tokens_to_ids("<|im_end|>"))
        self._pad = int(self._tokenizer.convert_tokens_to_ids("<|endoftext|>"))
        self._extractor: Any = WhisperFeatureExtractor.from_pretrained(str(folder))
        fields = read_json(folder / "preprocessor_config.json")
        self._mean, self._std = fields.numbers("image_mean"), fields.numbers("image_std")
        self._pictures = Qwen2VLImageProcessorPil(
            patch_size=fields.get("patch_size", int),
            min_pixels=fields.get("min_pixels", int),
            max_pixels=fields.get("max_pixels", int),
            image_mean=list(self._mean),
            image_std=list(self._std),
        )

    @torch.no_grad()
    def answer(self, conversation: Conversation) -> Qwen25OmniObserved:
        """Answer a conversation and speak the answer."""
        inputs = self._inputs(conversation.messages)
        prompt = inputs["input_ids"][0, PADDING:]
        codec = self._model.config.talker_config
        named: dict[str, Any] = {"generation_mode": "text"}
        if conversation.speaker is not None:
            named = {
                "speaker": conversation.speaker,
                "talker_max_new_tokens": conversation.max_frames(len(prompt)),
                "talker_do_sample": False,
                "talker_eos_token_id": [codec.tts_codec_pad_token_id, codec.tts_codec_end_token_id],
            }
        return self._watched(
            prompt.numpy(),
            **{f"thinker_{k}" if k in THINKER_ONLY else k: v for k, v in inputs.items()},
            thinker_max_new_tokens=conversation.max_tokens,
            thinker_eos_token_id=self.end,
            thinker_do_sample=False,
            use_audio_in_video=has_films(conversation.messages),
            **named,
        )

    def _watched(self, prompt: NDArray[np.int64], **named: Any) -> Qwen25OmniObserved:
        model, seen = (
            self._model,
            Qwen25OmniObserved(prompt, np.zeros(0, np.int64), np.zeros((3, 0), "f4")),
        )
        talk, think = model.talker.generate, model.thinker.generate

        def thinking(**given: Any) -> Any:
            made = think(**{**given, "return_dict_in_generate": True, "output_scores": True})
            seen.answer = made.sequences[0, given["input_ids"].shape[1] :].numpy()
            seen.scores = [scores[0].clone() for scores in made.scores]
            return made

        def talking(**given: Any) -> torch.Tensor:
            seen.given = {k: v.clone() for k, v in given.items() if torch.is_tensor(v)}
            # The reference could choose the mask code, which its decoder does not know.
            codec = model.config.talker_config
            given["suppress_tokens"] = [*given["suppress_tokens"], codec.tts_codec_mask_token_id]
            made = talk(**given, return_dict_in_generate=True, output_logits=True)
            seen.code_scores = torch.stack(made.logits)[:, 0]
            seen.said = made.sequences[0, given["input_ids"].shape[1] :].tolist()
            return torch.as_tensor(made.sequences)

        def prompted(_module: Any, _args: Any, given: dict[str, Any]) -> None:
            if given["inputs_embeds"].shape[1] > 1:
                seen.positions = given["position_ids"][-3:, 0, PADDING:].float().numpy()

        def begun(_module: Any, _args: Any, given: dict[str, Any]) -> None:
            if given["inputs_embeds"].shape[1] > 1:
                seen.talker_positions = given["position_ids"][-3:, 0, PADDING:].float().numpy()

        handles = [
            model.thinker.model.register_forward_pre_hook(prompted, with_kwargs=True),
            model.talker.model.register_forward_pre_hook(begun, with_kwargs=True),
        ]
        silent = patch.object(model.token2wav, "forward", lambda *_, **__: torch.zeros(1))
        try:
            with (
                silent,
                patch.object(model.talker, "generate", talking),
                patch.object(model.thinker, "generate", thinking),
            ):
                model.generate(**named)
        finally:
            for handle in handles:
                handle.remove()
        return seen

    def _inputs(self, messages: tuple[PromptMessage, ...]) -> dict[str, Any]:
        media = [part for message in messages for part in message.parts]
        features = {
            **self._sounds(collect_sounds(messages)),
            **self._still([part for part in media if isinstance(part, PromptPicture)]),
            **self._moving([part for part in media if isinstance(part, Video)]),
        }
        ids = self._ids(messages, features)
        return {
            "input_ids": torch.tensor([[self._pad] * PADDING + ids]),
            "attention_mask": torch.tensor([[0] * PADDING + [1] * len(ids)]),
            **features,
        }

    def _ids(self, messages: tuple[PromptMessage, ...], features: dict[str, Any]) -> list[int]:
        plain = [
            {"role": message.role.value, "content": [_plain(part) for part in message.parts]}
            for message in messages
        ]
        text = self._tokenizer.apply_chat_template(
            plain, tokenize=False, add_generation_prompt=True
        )
        lengths = features.get("feature_attention_mask", torch.zeros(0, 1)).sum(1).long()
        merging = SimpleNamespace(merge_size=2, temporal_patch_size=TEMPORAL)
        processor: Any = Qwen2_5OmniProcessor
        names: Any = SimpleNamespace(
            image_processor=merging,
            video_processor=merging,
            audio_token="<|AUDIO|>",
            image_token="<|IMAGE|>",
            video_token="<|VIDEO|>",
            audio_bos_token="<|audio_bos|>",
            audio_eos_token="<|audio_eos|>",
            vision_bos_token="<|vision_bos|>",
            vision_eos_token="<|vision_eos|>",
        )
        names.get_chunked_index = partial(processor.get_chunked_index, names)
        # As in the processor's call.
        audio_lengths = (((lengths - 1) // 2 + 1) - 2) // 2 + 1
        [expanded] = processor.replace_multimodal_special_tokens(
            names,
            [text],
            iter(audio_lengths),
            iter(features.get("image_grid_thw", ())),
            iter(features.get("video_grid_thw", ())),
            video_second_per_grid=map(float, features.get("video_second_per_grid", ())),
            use_audio_in_video=has_films(messages),
            position_id_per_seconds=25,
            seconds_per_chunk=2.0,
        )
        ids: list[int] = self._tokenizer(expanded)["input_ids"]
        return ids

    def _sounds(self, sounds: list[PromptSound]) -> dict[str, Any]:
        if not sounds:
            return {}
        made = self._extractor(
            [sound.samples for sound in sounds],
            sampling_rate=16_000,
            padding="max_length",
            return_attention_mask=True,
            return_tensors="pt",
        )
        return {
            "input_features": made["input_features"],
            "feature_attention_mask": made["attention_mask"].long(),
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
        patches, grids = zip(*(self._cut(video.frames) for video in videos), strict=True)
        return {
            "pixel_values_videos": torch.cat(patches),
            "video_grid_thw": torch.tensor(grids),
            "video_second_per_grid": torch.tensor([TEMPORAL / video.fps for video in videos]),
        }

    def _cut(self, frames: NDArray[np.uint8]) -> tuple[torch.Tensor, tuple[int, int, int]]:
        """[T, H, W, 3] -> patches of 2 frames x 14 x 14, those of a 2 x 2 block together."""
        if len(frames) % TEMPORAL:
            frames = np.concatenate([frames, frames[-1:]])
        count, height, width, _ = frames.shape
        grid = (count // TEMPORAL, height // PATCH, width // PATCH)
        scaled = (frames / 255 - np.array(self._mean)) / np.array(self._std)
        # step, frame, row, line of patches, line; row, column of patches, column; colour
        split = scaled.reshape(grid[0], TEMPORAL, grid[1] // 2, 2, PATCH, grid[2] // 2, 2, PATCH, 3)
        patches = split.transpose(0, 2, 5, 3, 6, 8, 1, 4, 7).reshape(np.prod(grid), -1)
        return torch.from_numpy(patches.astype(np.float32)), grid


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
