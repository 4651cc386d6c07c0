"""The talkers of both layouts for the AR stage: a slow stack on vLLM's Qwen3 layers, a fast one in
plain torch.

Code 0 of a frame is a semantic token, counted from the first one; the token that ends speech
follows them. S1 may choose any other token too: those come behind.

Letters: N rows, R requests, D hidden size, V codes in codebook 0, Q codebooks, L tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

from cantata.contract.data.chunks import Codes
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.sampling import penalize_repetition
from cantata.contract.model.talker import SAFE_MIN_ROWS, FrameDraws, SamplerInputs, Talker
from cantata_layers.code_predictor import ChooseCode, PredictorRmsNorm
from cantata_layers.qwen3 import config_fields, make_layers
from cantata_layers.talker_parts import frame_limit
from cantata_models.fish_speech.config import FRAME_PERIOD_S, FishConfig, FishLayout, load_config
from cantata_models.fish_speech.networks import FastDecoder, load_parameters, rounded
from cantata_models.fish_speech.prompt import FishTalkerInput
from cantata_models.fish_speech.prompt_rows import Embedding, latest, prompt_rows
from cantata_models.fish_speech.sampling import (
    PENALTY_FRAMES,
    RAS_FRAMES,
    draw_codes,
    draw_unrepeated,
    penalize_recent,
)

MAX_NEW_TOKENS = 1024
"""Where a request does not say; the last one is never heard."""
S1_RESIDUAL_CODES = 1024
"""Of the fast stack's scores, S1 looks at the first so many."""


class FishTalker(nn.Module, Talker):
    """What both talkers share; each has a law of its own for code 0."""

    recordable = True
    penalizes_residual = True
    layout: ClassVar[FishLayout]
    frame_period_s = FRAME_PERIOD_S

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        config = load_config(Path(model_config.model), self.layout)
        slow, size = config.slow, config.codebook_size
        self._config = config
        self._max_positions = model_config.max_model_len
        self.num_codebooks = config.num_codebooks
        self.end_code: int | None = size
        # Below float32 vLLM's products are not exact per row, for any number of rows.
        self.min_rows = SAFE_MIN_ROWS if model_config.dtype == torch.float32 else 1
        self.layers = make_layers(vllm_config, slow.layers, prefix)
        self._turn_pairs(vllm_config)
        self.norm = PredictorRmsNorm(slow.hidden_size, slow.rms_norm_eps)
        self.embeddings = nn.Embedding(slow.vocab_size, slow.hidden_size)
        self.codebook_embeddings = nn.Embedding(size * config.num_codebooks, slow.hidden_size)
        self.head = RowLinear(slow.hidden_size, config.first_codes, bias=False)
        is_s1 = self.layout is FishLayout.S1
        most = min(S1_RESIDUAL_CODES, size) if is_s1 else size
        self.fast = FastDecoder(config.fast, slow.hidden_size, config.num_codebooks, most)
        self.tokens: torch.Tensor
        self.register_buffer("tokens", _list_tokens_by_code(config), persistent=False)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the slow stack's sizes under the names of a Qwen3 config."""
        config = load_config(checkpoint, cls.layout)
        return config_fields(config.slow, cls.layout, config.first_codes)

    def load_checkpoint(self, checkpoint: Path) -> None:
        """Load both stacks of a published checkpoint."""
        load_parameters(self, checkpoint, self._config)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, D] rows -> [N, D] hidden states before the last norm."""
        hidden: Any = inputs_embeds
        residual: Any = None
        for layer in self.layers:
            hidden, residual = layer(positions, hidden, residual)
        return torch.add(hidden, residual)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, D] -> [R, V]."""
        scores: torch.Tensor = self.head(self.norm(hidden_states))
        return scores

    def open(self, inputs: FishTalkerInput) -> EmbeddingSource:
        """Embed the prompt's rows, once its recordings are encoded if it has any.

        Raises:
            InvalidRequest: the prompt leaves no room for sound.
        """
        if not inputs.recordings:
            return self._begin(inputs, None)

        def begin(encoded: Sequence[Any]) -> EmbeddingSource:
            return self._begin(inputs, torch.from_numpy(encoded[0].values).long())

        return DeferredRows((Codes,), begin)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, Q] -> [N, D]; a token that is not semantic has no codes."""
        config, code0 = self._config, frames[:, :1]
        is_semantic = code0 < config.codebook_size
        offsets = torch.arange(self.num_codebooks, device=frames.device) * config.codebook_size
        codes = self.codebook_embeddings(frames.masked_fill(~is_semantic, 0) + offsets)
        token = self.embeddings(self.tokens[code0])
        whole = torch.cat((token, codes), dim=1).sum(dim=1)
        if config.scaled_frames:
            whole = whole / (self.num_codebooks + 1) ** 0.5
        return torch.where(is_semantic, whole, token[:, 0])

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, D] and [R] -> [R, Q]."""
        spoken = torch.where(code0 < self._config.codebook_size, code0, 0)
        frames: torch.Tensor = self.fast(
            self._to_fast_input(hidden), spoken, self._build_choice(draws)
        )
        return torch.cat((code0[:, None], frames[:, 1:]), dim=1)

    def _to_fast_input(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, D] hidden states -> [R, D] what the fast stack takes."""
        raise NotImplementedError

    def _build_choice(self, draws: FrameDraws) -> ChooseCode:
        """How the codes after code 0 are drawn."""

        def choose(scores: torch.Tensor, codebook: int) -> torch.Tensor:
            if not draws.is_sampled:
                return scores.argmax(dim=-1)
            return draw_codes(scores.float(), draws.uniforms[:, codebook], draws.sampling)

        return choose

    def _turn_pairs(self, vllm_config: VllmConfig) -> None:
        """Give the layers a rotation of their own: vLLM's are shared by all models of equal
        sizes."""
        slow = self._config.slow
        positions = max(slow.max_positions, vllm_config.model_config.max_model_len)
        rotary = RotaryEmbedding(
            *(slow.head_dim, slow.head_dim, positions, slow.rope_theta),
            is_neox_style=False,
            dtype=torch.float32,
        )
        rotary.cos_sin_cache = rounded(rotary.cos_sin_cache)
        for layer in self.layers:
            attention: Any = layer.self_attn
            attention.rotary_emb = rotary

    def _begin(self, inputs: FishTalkerInput, recorded: torch.Tensor | None) -> EmbeddingSource:
        recordings = sum(recording.frames for recording in inputs.recordings)
        room = self._max_positions - len(inputs.tokens) - recordings
        spoken = latest(inputs.spoken, room, inputs.max_frames or MAX_NEW_TOKENS - 1)
        device = self.tokens.device
        embed = Embedding(
            tokens=lambda tokens: self.embeddings(torch.tensor(tokens, device=device)),
            frames=lambda frames: self.embed_frames(frames.to(device)),
        )
        rows = prompt_rows(replace(inputs, spoken=spoken), recorded, embed)
        # A frame's row is its own embedding: what follows the prompt adds nothing.
        rows = torch.cat((rows, torch.zeros_like(rows[:1])))
        prompt_len = len(rows) - 1
        return StaticEmbeddings(
            TalkerPrompt(
                rows=rows,
                prompt_len=prompt_len,
                max_frames=frame_limit(
                    prompt_len, self._max_positions, inputs.max_frames, MAX_NEW_TOKENS - 1
                ),
                sampling=inputs.sampling,
            )
        )


class S2Talker(FishTalker):
    layout = FishLayout.S2
    law_draws, history_frames = 1, RAS_FRAMES + 1

    def draw_first(self, scores: torch.Tensor, draws: SamplerInputs) -> torch.Tensor:
        """Draw code 0; a code that was just said is drawn again."""
        if not draws.is_sampled:
            return scores.argmax(dim=-1)
        recent = draws.recent[:, :, 0]
        assert self.end_code is not None
        return draw_unrepeated(scores, draws.uniforms, draws.sampling, recent, self.end_code)

    def _to_fast_input(self, hidden: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self.norm(hidden)
        return normed


class S1Talker(FishTalker):
    layout = FishLayout.S1
    law_draws, history_frames = 0, PENALTY_FRAMES + 1

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__(vllm_config=vllm_config, prefix=prefix)
        self.codes_of_tokens: torch.Tensor
        self.register_buffer("codes_of_tokens", self.tokens.argsort(), persistent=False)

    def draw_first(self, scores: torch.Tensor, draws: SamplerInputs) -> torch.Tensor:
        """Draw code 0; what the oldest frame in the window has is less likely.

        The published program looks at all rows of that frame, codes as if they were tokens. For
        the second frame its window has only zeros, so the token with id 0 is less likely.
        """
        penalized = penalize_repetition(scores, self._select_history(draws.recent), draws.penalty)
        if not draws.is_sampled:
            return penalized.argmax(dim=-1)
        return draw_codes(penalized, draws.uniforms[:, 0], draws.sampling)

    def _select_history(self, recent: torch.Tensor) -> torch.Tensor:
        """[R, F, Q] -> [R, Q + 1] codes 0 to penalize; -1 before the second frame.

        `recent` has one frame more than the window: either the frame before it, or the first one,
        which is never in it.
        """
        began = recent[:, :, 0] >= 0
        place = began.long().argmax(dim=1) + 1
        rows = torch.arange(len(recent), device=recent.device)
        oldest = recent[rows, place.clamp(max=recent.shape[1] - 1)]
        spoken = oldest.clone()
        spoken[:, 0] = torch.where(oldest[:, 0] < self._config.codebook_size, oldest[:, 0], 0)
        codes = torch.cat((oldest[:, :1], self.codes_of_tokens[spoken.clamp(min=0)]), dim=1)
        only_zeros = (place == recent.shape[1])[:, None]
        codes = torch.where(only_zeros, self.codes_of_tokens[0], codes)
        return codes.masked_fill(~began.any(dim=1, keepdim=True), -1)

    def _to_fast_input(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden

    def _build_choice(self, draws: FrameDraws) -> ChooseCode:
        choose, repetition = super()._build_choice(draws), draws.repetition
        if repetition is None:
            return choose

        def choose_unrepeated(scores: torch.Tensor, codebook: int) -> torch.Tensor:
            spoken = repetition.spoken[:, :, codebook]
            return choose(penalize_recent(scores.float(), spoken, repetition.penalty), codebook)

        return choose_unrepeated


def _list_tokens_by_code(config: FishConfig) -> torch.Tensor:
    """[V]: the token of each code 0."""
    special, size = config.special, config.codebook_size
    chosen = torch.arange(special.semantic_begin, special.semantic_begin + size)
    chosen = torch.cat((chosen, torch.tensor([special.end])))
    if config.layout is FishLayout.S2:
        return chosen
    others = torch.ones(config.slow.vocab_size, dtype=torch.bool)
    others[chosen] = False
    return torch.cat((chosen, torch.arange(len(others))[others]))
