"""The talker for the AR stage: two language models in one, and a frame's completion by a solver.

Both language models see every position once, in the same step, so all of their layers are one model
for vLLM with one kind of memory. A frame is a patch of latents.

Letters: N rows, R requests, H hidden size, E numbers of a patch, P latents of a patch, C numbers of
a latent, F frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig

from cantata.contract.data.chunks import Rows
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, Talker
from cantata_layers.checkpoint import read_tensors
from cantata_layers.exact_layers import silu
from cantata_layers.parameters import ParameterLoader
from cantata_layers.talker_parts import frame_limit
from cantata_models.voxcpm2.config import (
    ARCHITECTURE,
    load_codec_config,
    load_config,
)
from cantata_models.voxcpm2.language_model import MiniCpm, TextModel
from cantata_models.voxcpm2.patch_solver import (
    HIDDEN_TOKENS,
    Conditions,
    PatchEncoder,
    PatchSolver,
    draw_noise,
)
from cantata_models.voxcpm2.prompt import DEFAULT_STEPS, VoxCpm2Mode, VoxCpm2TalkerInput
from cantata_models.voxcpm2.prompt_layout import VoxCpm2PromptLayout, lay_out

MIN_FRAMES = 3
"""The decision to stop counts from the fourth patch on."""
STOP = 1
"""Of the two scores, the one for ending with this patch."""
NOT_THE_TALKER_S = "audio_vae."
"""What the names begin with of tensors that programs for training also save."""
PATCH_BLOCK = 64
"""Patches of a recording encoded at a time."""


class ScalarQuantizer(nn.Module):
    """Rounds to a grid in few dimensions (Mentzer et al. 2023, arXiv:2309.15505)."""

    def __init__(self, size: int, inner: int, scale: int) -> None:
        super().__init__()
        self._scale = scale
        self.in_proj = RowLinear(size, inner)
        self.out_proj = RowLinear(inner, size)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, H] -> [N, H]."""
        steps = torch.round(torch.tanh(self.in_proj(hidden)) * self._scale)
        return torch.as_tensor(self.out_proj(steps / self._scale))


class VoxCpm2Talker(nn.Module, Talker):
    """A talker of latents.

    A row is [x | whether it is a patch]; a hidden state is that of both language models,
    [base | residual].
    """

    recordable = True
    num_codebooks = 1
    end_code: int | None = STOP
    speaks_end = True
    num_frame_options = 1
    """The guidance."""
    usual_steps = (DEFAULT_STEPS,)

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        folder = Path(model_config.model)
        config = self._config = load_config(folder)
        self.frame_period_s: float | None = load_codec_config(folder).patch_seconds
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.latent_size = self.noise_size = config.frame_size
        self._max_positions = model_config.max_model_len
        hidden, dit = config.base.hidden_size, config.dit.hidden_size
        self._hidden, self.row_width = hidden, hidden + 1
        self.base_lm = TextModel(config.vocab_size, config.base, vllm_config)
        self.residual_lm = MiniCpm(config.residual, vllm_config, config.base.layers)
        self.feat_encoder = PatchEncoder(config)
        self.feat_decoder = PatchSolver(config)
        self.fsq_layer = ScalarQuantizer(hidden, config.quantized_dim, config.quantized_scale)
        self.enc_to_lm_proj = RowLinear(config.encoder.hidden_size, hidden)
        self.lm_to_dit_proj = RowLinear(hidden, dit)
        self.res_to_dit_proj = RowLinear(hidden, dit)
        self.fusion_concat_proj = RowLinear(2 * hidden, hidden)
        self.stop_proj = RowLinear(hidden, hidden)
        self.stop_head = RowLinear(hidden, 2, bias=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the shape that vLLM gives memory to: the layers of both language models."""
        config = load_config(checkpoint)
        base, positions = config.base, config.max_length
        return {
            "model_type": ARCHITECTURE,
            "hidden_size": HIDDEN_TOKENS * base.hidden_size,
            "num_hidden_layers": base.layers + config.residual.layers,
            "num_attention_heads": base.heads,
            "num_key_value_heads": base.kv_heads,
            "head_dim": base.head_dim,
            "vocab_size": 2,
            "max_position_embeddings": positions,
        }

    def load_checkpoint(self, checkpoint: Path) -> None:
        tensors = (
            (name, tensor)
            for name, tensor in read_tensors(checkpoint)
            if not name.startswith(NOT_THE_TALKER_S)
        )
        ParameterLoader(dict(self.named_parameters())).load_all(tensors, checkpoint)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, H + 1] rows -> [N, 2 H] hidden states."""
        assert inputs_embeds is not None
        rows, is_patch = inputs_embeds[:, : self._hidden], inputs_embeds[:, self._hidden :] > 0.5
        received = self.base_lm(positions, rows)
        received = torch.where(is_patch, self.fsq_layer(received), received)
        fused = torch.cat([received, torch.where(is_patch, rows, 0.0)], dim=1)
        residual = self.residual_lm(positions, self.fusion_concat_proj(fused))
        return torch.cat([received, residual], dim=1)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, 2 H] -> [R, 2] scores of going on and of ending with the next patch."""
        received = hidden_states[:, : self._hidden]
        return torch.as_tensor(self.stop_head(silu(self.stop_proj(received))))

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        """[F, E]: what the published program draws on a CPU after `torch.manual_seed`."""
        return draw_noise(seed, num_frames, self._config.latent_dim, self._config.patch_size)

    def open(self, inputs: VoxCpm2TalkerInput) -> EmbeddingSource:
        """Lay out the prompt and embed its rows, once its recording is encoded if it has one.
        Raises InvalidRequest: the prompt leaves no room for sound."""
        if inputs.mode is VoxCpm2Mode.PLAIN:
            return self._begin(inputs, torch.zeros(0, self.latent_size))

        def begin(encoded: Sequence[Any]) -> EmbeddingSource:
            return self._begin(inputs, torch.from_numpy(encoded[0].values))

        return DeferredRows((Rows,), begin)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, E] -> [N, H + 1]."""
        weight = self.enc_to_lm_proj.weight
        rows = self.enc_to_lm_proj(self.feat_encoder(self._to_patches(frames, weight.dtype)))
        return torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, 2 H] -> [R, E]."""
        assert draws.noise is not None
        assert draws.previous is not None
        assert draws.options is not None
        assert draws.steps is not None
        received, residual = torch.split(hidden, self._hidden, dim=1)
        tokens = (self.lm_to_dit_proj(received), self.res_to_dit_proj(residual))
        conditions = Conditions(
            hidden=torch.stack(tokens, dim=1),
            previous=self._to_patches(draws.previous, hidden.dtype),
            guidance=draws.options[:, 0],
        )
        noise = self._to_patches(draws.noise, hidden.dtype)
        output = self.feat_decoder(noise, conditions, draws.steps)
        return torch.as_tensor(output).flatten(1).float()

    def _begin(self, inputs: VoxCpm2TalkerInput, recording: torch.Tensor) -> EmbeddingSource:
        layout = lay_out(inputs.text, inputs.mode, recording)
        return StaticEmbeddings(
            TalkerPrompt(
                rows=self._embed(layout),
                prompt_len=len(layout.tokens),
                max_frames=frame_limit(
                    len(layout.tokens),
                    self._max_positions,
                    wanted=None,
                    most=inputs.max_frames,
                    least=MIN_FRAMES + 1,
                ),
                min_frames=MIN_FRAMES,
                context=layout.context,
                frame_options=(inputs.guidance,),
                frame_steps=inputs.steps,
                sampling=inputs.sampling,
            )
        )

    def _to_patches(self, frames: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """[R, E] -> [R, P, C] in the network's dtype."""
        return frames.to(dtype).view(-1, self._config.patch_size, self._config.latent_dim)

    def _embed(self, layout: VoxCpm2PromptLayout) -> torch.Tensor:
        """Return the rows of a layout and an empty one behind them, to which frames are added:
        [L + 1, H + 1]."""
        weight = self.base_lm.embed_tokens.weight
        rows = weight.new_zeros(len(layout.tokens) + 1, self.row_width)
        device = weight.device
        tokens, is_patch = layout.tokens.to(device), layout.is_patch.to(device)
        rows[:-1, :-1] = self.base_lm.embed_tokens(tokens)
        if len(layout.patches):
            blocks = torch.split(layout.patches.to(device), PATCH_BLOCK)
            rows[:-1][is_patch] = torch.cat([self.embed_frames(block) for block in blocks])
        return rows
