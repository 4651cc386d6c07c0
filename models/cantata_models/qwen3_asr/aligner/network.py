"""The aligner's network: transformers' own, with a checkpoint's weights.

Letters: P tokens of a prompt, M of them of the sound, C classes of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from transformers.models.qwen3_asr.configuration_qwen3_asr import Qwen3ASRConfig
from transformers.models.qwen3_asr.modeling_qwen3_asr import Qwen3ASRForTokenClassification

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_tensors
from cantata_layers.json_fields import read_json
from cantata_layers.omni.encoder import fill_network
from cantata_layers.omni.features import SoundFeatures
from cantata_layers.omni.sound_rows import WINDOW_FRAMES
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer
from cantata_models.qwen3_asr.config import (
    PUBLISHED,
    SAVED_AGAIN,
    Qwen3AsrConfig,
    find_token,
    load_config,
)

STEP_MS = 80.0
"""Milliseconds of a class of time, unless a checkpoint says otherwise."""
HEAD = "score."
"""How transformers' tensors of the head begin."""


@dataclass(frozen=True, slots=True)
class TimedMarks:
    """What the aligner says of a transcript's marks: two for each word, its start and its end."""

    milliseconds: NDArray[np.float64]
    """[2 * words]"""
    probabilities: NDArray[np.float64]
    """[2 * words]: of these times."""


class AlignerNetwork:
    """A forced aligner.

    Args:
        checkpoint: its folder.
        device: of the network, in float32.

    Raises:
        ConfigError: a file is missing, or a value or tensor is wrong or not served.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        config = load_config(checkpoint, aligns=True)
        fields = read_json(checkpoint / "config.json")
        self._device = device
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self._step_ms = fields.get("timestamp_segment_time", float, STEP_MS)
        self._audio_start, self._audio_end, self._audio_pad, self._timestamp = (
            find_token(self._tokenizer, token)
            for token in ("<|audio_start|>", "<|audio_end|>", "<|audio_pad|>", "<timestamp>")
        )
        named = fields.get("timestamp_token_id", int)
        if (named, config.audio_pad) != (self._timestamp, self._audio_pad):
            raise ConfigError(
                f"{fields.where}: timestamp_token_id {named} or audio_token_id {config.audio_pad} "
                "is not the tokenizer's"
            )
        tensors = {_own_name(name): tensor for name, tensor in read_tensors(checkpoint)}
        self._network = fill_network(
            _make_network(config, tensors.get(f"{HEAD}weight")),
            tensors,
            f"{checkpoint}: the aligner's weights",
            device,
        )

    def align(self, sound: SoundFeatures, words: Sequence[str]) -> TimedMarks:
        """Say when words, at least one, were spoken.

        Args:
            sound: in which they are heard.
            words: letters and digits alone, in order.
        """
        tokens = self.prompt(sound.rows, words)
        mels = torch.from_numpy(sound.mels)
        frames = mels.shape[1]
        whole = functional.pad(mels, (0, -frames % WINDOW_FRAMES))[None]
        is_own = torch.arange(whole.shape[2])[None] < frames
        scores = self._network(
            input_ids=tokens[None].to(self._device),
            input_features=whole.to(self._device),
            input_features_mask=is_own.long().to(self._device),
            use_cache=False,
        ).logits[0, tokens == self._timestamp]
        best = scores.softmax(dim=-1).max(dim=-1)
        return TimedMarks(
            best.indices.double().cpu().numpy() * self._step_ms,
            best.values.double().cpu().numpy(),
        )

    def prompt(self, rows: int, words: Sequence[str]) -> torch.Tensor:
        """[P] int64: the sound, and two marks behind each word."""
        tokens = [self._audio_start, *[self._audio_pad] * rows, self._audio_end]
        for word in words:
            tokens += self._tokenizer.encode(word, add_special_tokens=False).ids
            tokens += [self._timestamp] * 2
        return torch.tensor(tokens)


def _make_network(config: Qwen3AsrConfig, head: torch.Tensor | None) -> Any:
    if head is None or head.ndim != 2:
        raise ConfigError("the aligner's head is missing")
    stack = config.stack
    make: Any = Qwen3ASRConfig
    sizes = make(
        audio_config={"model_type": "qwen3_asr_encoder", **config.encoder},
        text_config={
            "model_type": "qwen3",
            "head_dim": stack.head_dim,
            "hidden_size": stack.hidden_size,
            "intermediate_size": stack.intermediate_size,
            "max_position_embeddings": stack.max_positions,
            "num_attention_heads": stack.heads,
            "num_hidden_layers": stack.layers,
            "num_key_value_heads": stack.kv_heads,
            "rms_norm_eps": stack.rms_norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": stack.rope_theta},
            "vocab_size": stack.vocab_size,
        },
        audio_token_id=config.audio_pad,
        num_labels=len(head),
    )
    network: Any = Qwen3ASRForTokenClassification
    return network._from_config(sizes, attn_implementation="sdpa")


def _own_name(name: str) -> str:
    """A tensor's name in transformers' network; other names stay as they are."""
    theirs = (*PUBLISHED.projector, PUBLISHED.encoder, PUBLISHED.network, PUBLISHED.head)
    ours = (*SAVED_AGAIN.projector, SAVED_AGAIN.encoder, SAVED_AGAIN.network, HEAD)
    for begin, own in zip(theirs, ours, strict=True):
        if name.startswith(begin):
            return own + name.removeprefix(begin)
    return name
