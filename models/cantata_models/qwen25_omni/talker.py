"""The talker for the AR stage: Qwen2 layers with heads of their own width, one codebook.

Its rows are as wide as the thinker's before `thinker_to_talker_proj`, a linear layer. So a row's
parts are projected one by one, beforehand: what the thinker sends as it comes, the embeddings of
codes and of special tokens when the checkpoint is loaded.

Letters: N rows, R requests, D hidden size, E the thinker's, V codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from vllm.config import VllmConfig
from vllm.model_executor.layers.layernorm import RMSNorm

from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers.checkpoint import read_rows
from cantata_layers.parameters import ParameterLoader
from cantata_layers.qwen3 import run_layers
from cantata_layers.talker_parts import frame_limit
from cantata_layers.weights import WeightMap, check_fit
from cantata_models.qwen25_omni.config import (
    FRAME_PERIOD_S,
    MAX_FRAMES,
    Qwen25OmniConfig,
    load_config,
)
from cantata_models.qwen25_omni.layers import make_layers, make_rotation, qwen2_config_fields
from cantata_models.qwen25_omni.rows import (
    BEHIND_PROMPT,
    FixedRows,
    Qwen25OmniAnswerRows,
    Qwen25OmniTalkerInput,
)
from cantata_models.qwen25_omni.speakers import Qwen25OmniSpeaker, load_speakers

NAMES = WeightMap(
    {
        "talker.codec_head.{}": "codec_head.{}",
        "talker.thinker_to_talker_proj.{}": "thinker_to_talker_proj.{}",
        "talker.model.{}": "{}",
        "talker.{}": "{}",
    }
)
TEXT_EMBEDDING = "thinker.model.embed_tokens.weight"
CODE_EMBEDDING = "talker.model.embed_tokens.weight"
ROW_BLOCK = 16
"""Rows projected at a time.

WHY: the order of summation in matrix libraries depends on the number of rows. A row must have the
same bits whether it comes alone or with its whole prompt.
"""


class Qwen25OmniTalker(nn.Module, Talker):
    num_codebooks = 1
    rotary_axes = 3
    frame_period_s = FRAME_PERIOD_S

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        checkpoint = Path(model_config.model)
        config = load_config(checkpoint)
        talker, codec = config.talker, config.talker.codec
        self._config = config
        self._speakers: Mapping[str, Qwen25OmniSpeaker] = load_speakers(checkpoint, config)
        self._max_positions = model_config.max_model_len
        self.end_code: int | None = codec.end
        self.prompt_codes = (codec.mask, codec.pad, codec.start)
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.rotation = make_rotation(talker.stack, talker.mrope_section)
        self.layers = make_layers(vllm_config, talker.stack.layers, self.rotation, prefix)
        self.norm = RMSNorm(talker.stack.hidden_size, eps=talker.stack.rms_norm_eps)
        self.thinker_to_talker_proj = RowLinear(talker.embedding_size, talker.stack.hidden_size)
        self.codec_head = RowLinear(talker.stack.hidden_size, talker.stack.vocab_size, bias=False)
        self.codes = nn.Embedding(talker.stack.vocab_size, talker.stack.hidden_size)
        self.tokens = nn.Embedding(len(self._speakers) + 2, talker.stack.hidden_size)
        self.suppressed: torch.Tensor
        self.register_buffer("suppressed", _mask_suppressed_codes(config), persistent=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        return qwen2_config_fields(load_config(checkpoint).talker.stack)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load the talker's part of a published checkpoint, and five rows of the thinker's."""
        targets = {name: p for name, p in self.named_parameters() if name not in _PROJECTED}
        loader, embedding = ParameterLoader(targets, NAMES), dict[str, torch.Tensor]()
        for name, tensor in NAMES.read(checkpoint):
            if name == CODE_EMBEDDING:
                embedding[name] = tensor
            else:
                loader.load(name, tensor)
        loader.check_complete(checkpoint)
        talker = self._config.talker
        shape = (talker.stack.vocab_size, talker.embedding_size)
        check_fit({CODE_EMBEDDING: shape}, embedding, checkpoint)
        self._project_tables(
            embedding[CODE_EMBEDDING], read_rows(checkpoint, TEXT_EMBEDDING, self._special_tokens)
        )

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] or [3, N] positions and [N, D] rows -> [N, D] hidden states."""
        return run_layers(self.layers, self.norm, self.rotation.angles(positions), inputs_embeds)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]; of the control codes, pad and end can be chosen."""
        scores: torch.Tensor = self.codec_head(hidden_states)
        return scores.masked_fill(self.suppressed, -torch.inf)

    def open(self, inputs: Qwen25OmniTalkerInput | None) -> Qwen25OmniAnswerRows:
        """Prepare to speak an answer.

        Raises:
            InvalidRequest: there is no such speaker, or the prompt leaves no room for sound.
            RequestFailed: the request does not say how to speak.
        """
        if inputs is None:
            raise RequestFailed("the talker has not been told how to speak")
        names = list(self._speakers)
        if inputs.speaker not in names:
            raise InvalidRequest(
                f"no speaker {inputs.speaker!r}; valid: {', '.join(names)}", "voice"
            )
        codec, tokens = self._config.talker.codec, self.tokens.weight.detach()
        codes = self.codes.weight.detach()
        fixed = FixedRows(
            speaker=tokens[2 + names.index(inputs.speaker)] + codes[codec.pad],
            start=codes[codec.start],
            end=tokens[0],
            pad=tokens[1],
        )
        most = frame_limit(
            inputs.prompt_rows + BEHIND_PROMPT,
            self._max_positions,
            inputs.max_frames,
            MAX_FRAMES,
            param="messages",
        )
        return Qwen25OmniAnswerRows(inputs, fixed, self._project, most)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, 1] -> [N, D]."""
        return torch.as_tensor(self.codes(frames[:, 0]))

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, 1]. The pad code ends the speech too."""
        codec = self._config.talker.codec
        return torch.where(code0 == codec.pad, codec.end, code0)[:, None]

    @property
    def _special_tokens(self) -> list[int]:
        text = self._config.talker.text
        return [text.end, text.pad, *(speaker.bos_token for speaker in self._speakers.values())]

    @torch.no_grad()
    def _project_tables(self, codes: torch.Tensor, tokens: torch.Tensor) -> None:
        """Fill the tables from [V, E] codes and [tokens, E]. Only text has the projection's bias,
        because each row has one part that is text."""
        weight = self.thinker_to_talker_proj.weight
        # In float32, for the sums of a row's parts are rounded only once then.
        matrix = weight.float().t()
        self.codes.weight.copy_(codes.to(matrix) @ matrix)
        bias = self.thinker_to_talker_proj.bias.float()
        self.tokens.weight.copy_(tokens.to(matrix) @ matrix + bias)

    def _project(self, rows: torch.Tensor) -> torch.Tensor:
        """[L, E] float32 rows of the thinker -> [L, D]."""
        padded = functional.pad(rows.to(self.codes.weight), (0, 0, 0, -len(rows) % ROW_BLOCK))
        blocks = [self.thinker_to_talker_proj(block) for block in torch.split(padded, ROW_BLOCK)]
        return torch.cat([*blocks, self.codes.weight[:0]])[: len(rows)]


_PROJECTED = {"codes.weight", "tokens.weight"}
"""Parameters that no checkpoint has: tables, projected."""


def _mask_suppressed_codes(config: Qwen25OmniConfig) -> torch.Tensor:
    """[V] bool: codes that are never chosen. The reference rejects the start code alone, but the
    decoder knows no others behind its own."""
    codes = torch.arange(config.talker.stack.vocab_size)
    codec = config.talker.codec
    return (codes >= config.codes) & (codes != codec.pad) & (codes != codec.end)
