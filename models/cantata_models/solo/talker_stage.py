"""solo's talker as an AR stage serves it: the backbone in vLLM's layers, the rest shared with
training.

Letters: N rows, R requests, D hidden size, V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm
from vllm.model_executor.models.qwen3 import Qwen3DecoderLayer

from cantata.contract.errors import ConfigError, InvalidRequest
from cantata.contract.request import Payload
from cantata.contract.talker import FrameDraws, SamplingOptions, TalkerPrompt
from cantata_models.solo.checkpoint import TALKER_FILE, read_tensors
from cantata_models.solo.config import SoloConfig, load_config
from cantata_models.solo.half_weights import weights_of
from cantata_models.solo.networks.talker_parts import FrameEmbedding, LatentHead
from cantata_models.solo.networks.text_track import (
    SLOT_S,
    SLOTS_PER_FRAME,
    TextTrackEncoder,
    TrackPlan,
)
from cantata_models.solo.timing import word_timings

FUSED = {
    "q_proj": ("qkv_proj", "q"),
    "k_proj": ("qkv_proj", "k"),
    "v_proj": ("qkv_proj", "v"),
    "gate_proj": ("gate_up_proj", 0),
    "up_proj": ("gate_up_proj", 1),
}
"""A checkpoint's projection -> vLLM's fused one and the part of it."""
FIRST_BLOCK = 8
"""Frames whose rows are made before the first packet."""
BLOCK = 32
"""Frames whose rows are made at once after that, in less time than a step takes."""


class SoloTalker(nn.Module):
    """Implements `contract.talker.Talker`.

    A payload has `phones` [N] int ids, `word_starts` [N] bool, `question`, `speaker` (the index of
    a stock voice, or [F] float32), `speed`, and `sampling` with any of `seed`, `temperature` and
    `top_k`. The text track is as long as the utterance: one position is prefilled and each row
    beyond it makes a frame.
    """

    frame_period_s = SLOT_S * SLOTS_PER_FRAME
    end_code: int | None = None
    min_rows = 1

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        config = _read_config(Path(model_config.model))
        codec, hidden = config.codec, config.talker.hidden_size
        self.num_codebooks = codec.codebooks
        self._lag_s = (codec.fft_size - codec.hop) / 2 / codec.sample_rate
        self.layers = nn.ModuleList(
            Qwen3DecoderLayer(
                model_config.hf_config,
                vllm_config.cache_config,
                weights_of(model_config.dtype),
                prefix=f"{prefix}layers.{index}",
            )
            for index in range(config.talker.layers)
        )
        self.norm = RMSNorm(hidden, eps=config.talker.rms_norm_eps)
        sizes = (codec.codebooks, codec.codebook_size, codec.latent_size, hidden)
        # Whatever the backbone's dtype: durations and nearest entries are decided in float32.
        self.frame_embedding = FrameEmbedding(*sizes).float()
        self.latent_head = LatentHead(*sizes, config.talker.temperature).float()
        self.text_track = TextTrackEncoder(config.text, len(config.voices), hidden).float()

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """The backbone's sizes under the names of a Qwen3 config."""
        config = _read_config(checkpoint)
        talker = config.talker
        return {
            "model_type": config.model_type,
            "hidden_size": talker.hidden_size,
            "num_hidden_layers": talker.layers,
            "num_attention_heads": talker.heads,
            "num_key_value_heads": talker.kv_heads,
            "head_dim": talker.head_dim,
            "intermediate_size": talker.intermediate_size,
            "hidden_act": "silu",
            "rms_norm_eps": talker.rms_norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": talker.rope_theta},
            "max_position_embeddings": talker.max_positions,
            "vocab_size": config.codec.codebook_size,
        }

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Fill the backbone's fused projections and the shared parts."""
        targets = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        try:
            tensors = read_tensors(checkpoint / TALKER_FILE)
        except (FileNotFoundError, ValueError) as error:
            raise ConfigError(str(error)) from error
        loaded = {_load(targets, name, tensor) for name, tensor in tensors.items()}
        # vLLM's layers hold what no checkpoint has: scales for quantised caches, rotary tables.
        own = {name for name in targets if ".attn._" in name or ".rotary_emb." in name}
        missing = targets.keys() - own - loaded
        if missing:
            raise ConfigError(f"{checkpoint}: {TALKER_FILE} lacks {', '.join(sorted(missing))}")

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states."""
        hidden, residual = inputs_embeds, None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden, residual)
        normed: torch.Tensor = self.norm(hidden, residual)[0]
        return normed

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        return self.latent_head.code0_logits(self.latent_head(hidden_states.float()))

    def encode_prompt(self, payload: Payload) -> tuple[TalkerPrompt, SamplingOptions]:
        """Phones to a text track: durations are predicted here, before the first frame.

        Raises:
            InvalidRequest: no phones, or a speed or voice that there is not.
        """
        phones = torch.as_tensor(payload["phones"], dtype=torch.int64)
        word_starts = torch.as_tensor(payload["word_starts"], dtype=torch.bool)
        try:
            plan = self.text_track.plan(
                phones,
                word_starts,
                payload["question"],
                self._speaker(payload),
                payload["speed"],
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        blocks = self._blocks_of(plan)
        rows = next(blocks)
        rows[0] += self.frame_embedding.bos()
        words = word_timings(phones, word_starts, plan.slots.cpu(), self._lag_s)
        prompt = TalkerPrompt(
            rows, prompt_len=1, max_frames=plan.frames, words=words, later_rows=blocks
        )
        return prompt, SamplingOptions(**payload["sampling"])

    def _blocks_of(self, plan: TrackPlan) -> Iterator[torch.Tensor]:
        """[L, D] rows of one block after the other."""
        first, last = 0, min(FIRST_BLOCK, plan.frames)
        while first < last:
            yield self.text_track.rows_of(plan, first, last)
            first, last = last, min(last + BLOCK, plan.frames)

    def _speaker(self, payload: Payload) -> torch.Tensor:
        """[F]: a stock voice's vector, or the one that the request brings."""
        if isinstance(payload["speaker"], int):
            return self.text_track.stock_speakers[payload["speaker"]]
        return torch.as_tensor(payload["speaker"], dtype=torch.float32)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]."""
        rows: torch.Tensor = self.frame_embedding(frames)
        return rows

    def complete_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q]: the codes nearest to what code 0 leaves of the latent."""
        return self.latent_head.complete(self.latent_head(hidden.float()), code0)


def _read_config(checkpoint: Path) -> SoloConfig:
    try:
        return load_config(checkpoint)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{checkpoint}: not a checkpoint of solo: {error}") from error


def _load(targets: Mapping[str, torch.Tensor], name: str, tensor: torch.Tensor) -> str:
    """Copy a checkpoint's tensor to where it belongs.

    Returns:
        The name of the parameter or buffer.

    Raises:
        ConfigError: there is no such place, or it has another shape.
    """
    fused = next((part for part in FUSED if f".{part}." in name), None)
    target_name = name if fused is None else name.replace(fused, FUSED[fused][0])
    target = targets.get(target_name)
    if target is None:
        raise ConfigError(f"solo's talker has no place for {name}")
    if fused is not None:
        target.weight_loader(target, tensor, FUSED[fused][1])  # type: ignore[attr-defined]
    elif target.shape == tensor.shape:
        target.data.copy_(tensor)
    else:
        raise ConfigError(f"{name} is {list(tensor.shape)}, solo's talker has {list(target.shape)}")
    return target_name
