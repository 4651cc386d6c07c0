"""The talker for the AR stage: a language model whose frames are latents of 80 ms.

Its prompt is a voice, the text and a row that begins the sound. A frame is a latent, and behind it
how long ago the text ended: a request goes on for a few frames from there. Positions of a published
voice have no input: their keys and values are given. Modules are named as in the checkpoint. Source
of the details: the package `pocket_tts`, modules/transformer.py.

Letters: N rows, R requests, H hidden size, D head size, Z numbers that the heads read, E numbers of
a latent, L layers, P positions, K numbers of a position's keys, F frames.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from vllm.config import VllmConfig
from vllm.model_executor.layers.attention import Attention

from cantata.contract.data.chunks import Rows
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.model.embedding_source import (
    DeferredRows,
    EmbeddingSource,
    StaticEmbeddings,
    TalkerPrompt,
)
from cantata.contract.model.row_products import RowLinear, RowProduct, is_packed
from cantata.contract.model.talker import FrameDraws, Talker
from cantata_layers.checkpoint import read_tensors
from cantata_layers.exact_layers import gelu_tanh
from cantata_layers.parameters import ParameterLoader
from cantata_layers.talker_parts import frame_limit
from cantata_models.pocket_tts.config import BackboneSizes, PocketConfig, find_voices, load_config
from cantata_models.pocket_tts.flow_head import FlowHead, truncate_normal
from cantata_models.pocket_tts.prompt import FRAME_COLUMNS, PocketTalkerInput
from cantata_models.pocket_tts.voices import PublishedVoice, read_voice

EPS = 1e-5
MIN_ROWS = 4 if torch.cpu.get_capabilities().get("avx512_f", False) else 2
"""Of a step. oneDNN's product of four takes three quarters of the time of two (AVX-512), as its
additions do not wait for each other."""


@dataclass(frozen=True, slots=True)
class PrefilledKV:
    """Keys and values of the positions that have no input."""

    rows: torch.Tensor
    """[G] int64: where they are among the N."""
    values: torch.Tensor
    """[L, 2, G, K]: keys, rotated already, and values."""


class BackboneLinear(RowLinear):
    """A linear layer without a bias that keeps its weight only as oneDNN lays it out."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def reset_parameters(self) -> None:
        """Leave the weight as it is: a checkpoint fills it."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """[..., inputs] -> [..., outputs]."""
        # At the first use: whatever replaces the product does so before.
        if self.weight.numel() and is_packed(self.weight):
            self.multiply_by(RowProduct(self.weight))
        return super().forward(input)


class PocketBackbone(nn.Module):
    """Rows in, hidden states out. `vllm_config`: of the engine; its max_model_len bounds the
    positions."""

    def __init__(self, sizes: BackboneSizes, vllm_config: VllmConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            BackboneLayer(sizes, vllm_config, f"layers.{index}") for index in range(sizes.layers)
        )
        half = torch.arange(sizes.head_dim // 2, dtype=torch.float32)
        frequencies = torch.exp(half * (-math.log(sizes.period) * 2 / sizes.head_dim))
        positions = torch.arange(vllm_config.model_config.max_model_len, dtype=torch.float32)
        angles = positions[:, None, None] * frequencies
        self.rotary: torch.Tensor
        rotary = torch.complex(angles.cos(), angles.sin())
        self.register_buffer("rotary", rotary, persistent=False)

    def forward(
        self, positions: torch.Tensor, rows: torch.Tensor, prefilled: PrefilledKV | None
    ) -> torch.Tensor:
        """[N] positions and [N, H] rows -> [N, H] hidden states."""
        rotary = self.rotary[positions]
        for index, layer in enumerate(self.layers):
            own = None if prefilled is None else (prefilled.rows, prefilled.values[index])
            rows = layer(rotary, rows, own)
        return rows


class BackboneLayer(nn.Module):
    """Attention and perceptron, each with a norm before it and a residual connection."""

    def __init__(self, sizes: BackboneSizes, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(sizes.size, eps=EPS)
        self.self_attn = BackboneAttention(sizes, vllm_config, f"{prefix}.self_attn")
        self.norm2 = nn.LayerNorm(sizes.size, eps=EPS)
        self.linear1 = BackboneLinear(sizes.size, sizes.inner)
        self.linear2 = BackboneLinear(sizes.inner, sizes.size)

    def forward(
        self,
        rotary: torch.Tensor,
        rows: torch.Tensor,
        given: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> torch.Tensor:
        """[N, H] -> [N, H]."""
        rows = rows + self.self_attn(rotary, self.norm1(rows), given)
        inner = gelu_tanh(self.linear1(self.norm2(rows)))
        return rows + torch.as_tensor(self.linear2(inner))


class BackboneAttention(nn.Module):
    """Causal attention over a request's positions."""

    def __init__(self, sizes: BackboneSizes, vllm_config: VllmConfig, prefix: str) -> None:
        super().__init__()
        self._head_dim = sizes.head_dim
        queries = sizes.heads * sizes.head_dim
        self._num_rotated, self._keys = queries + sizes.keys, sizes.keys
        self.in_proj = BackboneLinear(sizes.size, queries + 2 * sizes.keys)
        self.out_proj = BackboneLinear(queries, sizes.size)
        self.attn = Attention(
            sizes.heads,
            sizes.head_dim,
            sizes.head_dim**-0.5,
            num_kv_heads=sizes.kv_heads,
            cache_config=vllm_config.cache_config,
            prefix=f"{prefix}.attn",
        )

    def forward(
        self,
        rotary: torch.Tensor,
        rows: torch.Tensor,
        given: tuple[torch.Tensor, torch.Tensor] | None,
    ) -> torch.Tensor:
        """[N, H] and [N, 1, D / 2] complex numbers -> [N, H]."""
        made = self.in_proj(rows)
        rotated = apply_rotary(made[:, : self._num_rotated], rotary, self._head_dim)
        query, key = rotated[:, : -self._keys], rotated[:, -self._keys :]
        value = made[:, self._num_rotated :]
        if given is not None:
            where, (keys, values) = given
            key = key.index_copy(0, where, keys)
            value = value.index_copy(0, where, values)
        return torch.as_tensor(self.out_proj(self.attn(query, key, value)))


def apply_rotary(x: torch.Tensor, rotary: torch.Tensor, head_dim: int) -> torch.Tensor:
    """[N, heads of D] rotated by [N, 1, D / 2] complex numbers: neighbours are a pair."""
    pairs = torch.view_as_complex(x.view(len(x), -1, head_dim // 2, 2))
    return torch.view_as_real(pairs * rotary).flatten(1)


MIN_FRAMES = 6
"""No frame before ends the text."""
PREFIX = "flow_lm."
FOREIGN_TENSORS = ("emb_std", "emb_mean", "speaker_proj_weight")
"""Tensors beside it that the codec and the encoder read."""
ENDED, KEYS, FIRST, TAIL, THRESHOLD = range(5)
"""Columns of a row behind its input: frames since the text ended, which frames bring; the place of
a voice's keys, counted from 1; and the same in each row of a request: the first position that may
end the text, how many frames follow, the score above which a frame ends it."""
COLUMNS = 5
STATE = 4
"""Columns of a hidden state behind what the heads read: frames since the text ended, whether this
one may end it, how many follow, the score."""


class TokenTable(nn.Module):
    """Embeds tokens."""

    def __init__(self, config: PocketConfig) -> None:
        super().__init__()
        size = config.backbone.size
        # One more than there are tokens, for padding.
        self.embed = nn.Embedding(config.vocabulary + 1, config.rank or size)
        self.proj = None if config.rank is None else RowLinear(config.rank, size, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """[T] -> [T, H]."""
        rows = self.embed(tokens)
        return torch.as_tensor(rows if self.proj is None else self.proj(rows))


class PocketTalker(nn.Module, Talker):
    """A talker of latents.

    Raises:
        ConfigError: (on construction) the deployment asks for another dtype than float32.
    """

    recordable = True
    # It puts the keys of as many voices' rows as a step has in place, and voices may be added.
    records_forward = False
    num_codebooks = 1
    end_code: int | None = 1
    min_rows = MIN_ROWS
    num_frame_options = 2
    """The noise's temperature and bound."""
    usual_steps = (1,)

    def __init__(self, *, vllm_config: VllmConfig, prefix: str = "") -> None:
        super().__init__()
        model_config = vllm_config.model_config
        if model_config.dtype != torch.float32:
            raise ConfigError(
                f"dtype {str(model_config.dtype).removeprefix('torch.')!r}: this talker's weights "
                "are published and served in float32"
            )
        self._folder = Path(model_config.model)
        config = self._config = load_config(self._folder)
        sizes = config.backbone
        self.frame_period_s: float | None = config.mimi.frame_seconds
        self.noise_size = config.mimi.latent
        self.latent_size = config.mimi.latent + FRAME_COLUMNS
        self.row_width = sizes.size + COLUMNS
        self._max_positions = model_config.max_model_len
        self._voices: dict[str, tuple[PublishedVoice, int]] = {}
        """Each that was asked for, and where its keys begin among all."""
        self._keys = torch.zeros(sizes.layers, 2, 0, sizes.keys)
        """[L, 2, P, K]: of all voices that were asked for."""
        self.conditioner = TokenTable(config)
        self.bos_emb = nn.Parameter(torch.empty(config.mimi.latent))
        if config.marks_voice:
            self.bos_before_voice = nn.Parameter(torch.empty(1, 1, sizes.size))
        self.input_linear = RowLinear(config.mimi.latent, sizes.size, bias=False)
        self.transformer = PocketBackbone(sizes, vllm_config)
        self.out_norm = nn.LayerNorm(sizes.size, eps=EPS)
        self.z_proj = RowLinear(sizes.size, sizes.output, bias=False) if sizes.projected else None
        self.out_eos = RowLinear(sizes.output, 1)
        self.flow_net = FlowHead(config)

    @classmethod
    def vllm_config_fields(cls, checkpoint: Path) -> Mapping[str, Any]:
        """Return the shape that vLLM gives memory to."""
        sizes = load_config(checkpoint).backbone
        return {
            "model_type": PREFIX.rstrip("."),
            "hidden_size": sizes.output + STATE,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "num_key_value_heads": sizes.kv_heads,
            "head_dim": sizes.head_dim,
            "vocab_size": 2,
            "max_position_embeddings": 1 << 20,
        }

    def load_checkpoint(self, checkpoint: Path) -> None:
        path = self._config.weights
        tensors = (
            (name, tensor)
            for name, tensor in read_tensors(path.parent, PREFIX, path.stem)
            if name not in FOREIGN_TENSORS
        )
        ParameterLoader(dict(self.named_parameters())).load_all(tensors, path)

    def forward(
        self,
        input_ids: torch.Tensor | None,
        positions: torch.Tensor,
        intermediate_tensors: Any = None,
        inputs_embeds: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """[N] positions and [N, H + 5] rows -> [N, Z + 4] hidden states."""
        assert inputs_embeds is not None
        rows, columns = torch.split(inputs_embeds, [self._config.backbone.size, COLUMNS], dim=1)
        hidden = self.transformer(positions, rows, self._gather_prefilled(columns[:, KEYS]))
        hidden = self.out_norm(hidden)
        if self.z_proj is not None:
            hidden = self.z_proj(hidden)
        may_end = (positions >= columns[:, FIRST]).to(hidden.dtype)
        state = (columns[:, ENDED], may_end, columns[:, TAIL], columns[:, THRESHOLD])
        return torch.cat([hidden, torch.stack(state, dim=1)], dim=1)

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """[R, Z + 4] -> [R, 2] scores of going on and of ending before this frame."""
        ends = self._count_ended(hidden_states) > hidden_states[:, self._head_input_size + 2]
        return torch.stack([~ends, ends], dim=1).to(hidden_states.dtype)

    def draw_noise(self, seed: int, num_frames: int) -> torch.Tensor:
        """[F, E]: what the published program draws on a CPU after `torch.manual_seed`, which draws
        once for the text, too."""
        generator = torch.Generator().manual_seed(seed)
        shape = (1 + num_frames, self._config.mimi.latent)
        return torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")[1:]

    def open(self, inputs: PocketTalkerInput) -> EmbeddingSource:
        """Lay out the prompt and embed its rows, once its recording is encoded if it has one.

        Raises:
            ConfigError: the voice's file cannot be used.
            InvalidRequest: the prompt leaves no room for sound.
        """
        if inputs.voice is None:

            def begin(encoded: Sequence[Any]) -> EmbeddingSource:
                return self._begin(inputs, self._lay_out(torch.from_numpy(encoded[0].values)))

            return DeferredRows((Rows,), begin)
        voice, start = self._load_voice(inputs.voice)
        if voice.rows is not None:
            return self._begin(inputs, self._lay_out(voice.rows))
        assert voice.keys is not None
        count = voice.keys.shape[2]
        rows = torch.zeros(count, self.row_width)
        rows[:, self._column(KEYS)] = torch.arange(start + 1, start + count + 1)
        return self._begin(inputs, rows)

    def embed_frames(self, frames: torch.Tensor) -> torch.Tensor:
        """[N, E + 1] -> [N, H + 1]."""
        latents, ended = torch.split(frames, [self.noise_size, FRAME_COLUMNS], dim=1)
        return torch.cat([self.input_linear(latents), ended], dim=1)

    def make_frames(
        self, hidden: torch.Tensor, code0: torch.Tensor, draws: FrameDraws
    ) -> torch.Tensor:
        """[R, Z + 4] -> [R, E + 1]."""
        assert draws.noise is not None
        assert draws.options is not None
        assert draws.steps is not None
        temperature, bound = torch.split(draws.options, 1, dim=1)
        noise = truncate_normal(draws.noise, temperature, bound)
        latents = self.flow_net(noise, hidden[:, : self._head_input_size], draws.steps)
        return torch.cat([latents, self._count_ended(hidden)[:, None]], dim=1)

    @property
    def _head_input_size(self) -> int:
        """Z."""
        return self._config.backbone.output

    def _column(self, number: int) -> int:
        return self._config.backbone.size + number

    def _count_ended(self, hidden: torch.Tensor) -> torch.Tensor:
        """[R, Z + 4] -> [R]: frames from the one that ends the text to this one; 0: none has."""
        parts = torch.split(hidden, [self._head_input_size, 1, 1, 1, 1], dim=1)
        read, ended, may_end, _, threshold = parts
        ends = (self.out_eos(read) > threshold) & (may_end > 0)
        return torch.where(ended > 0, ended + 1, ends.to(hidden.dtype))[:, 0]

    def _gather_prefilled(self, column: torch.Tensor) -> PrefilledKV | None:
        """[N] places from 1 on; 0: none."""
        where = column.nonzero()[:, 0]
        if not len(where):
            return None
        return PrefilledKV(where, self._keys[:, :, column[where].long() - 1])

    def _load_voice(self, name: str) -> tuple[PublishedVoice, int]:
        """A voice of the checkpoint's, read when it is asked for the first time, and where its keys
        begin."""
        if name not in self._voices:
            path = find_voices(self._folder).get(name)
            if path is None:
                raise InvalidRequest(f"the voice {name!r} is no longer there", "voice")
            voice, start = read_voice(path, self._config.backbone), self._keys.shape[2]
            if voice.keys is not None:
                keys = voice.keys.to(self._keys.device)
                self._keys = torch.cat([self._keys, keys], dim=2)
            self._voices[name] = voice, start
        return self._voices[name]

    def _lay_out(self, voice: torch.Tensor) -> torch.Tensor:
        """[P, H] rows of a voice -> [P or P + 1, H + 5], with what stands before them."""
        voice = voice.to(self.bos_emb.device)
        if self._config.marks_voice:
            voice = torch.cat([self.bos_before_voice[0].detach(), voice])
        return nn.functional.pad(voice, (0, COLUMNS))

    @torch.inference_mode()
    def _begin(self, inputs: PocketTalkerInput, voice: torch.Tensor) -> EmbeddingSource:
        text = torch.tensor(inputs.text, device=self.bos_emb.device)
        words = self.conditioner(text)
        begin = self.input_linear(self.bos_emb[None])
        # Frames are added to the empty row behind the prompt.
        spoken = torch.cat([words, begin, torch.zeros_like(begin)])
        rows = torch.cat([voice.to(spoken.device), nn.functional.pad(spoken, (0, COLUMNS))])
        length = len(rows) - 1
        rows[:, self._column(FIRST)] = length - 1 + MIN_FRAMES
        rows[:, self._column(TAIL)] = inputs.frames_after_eos
        rows[:, self._column(THRESHOLD)] = inputs.eos_threshold
        return StaticEmbeddings(
            TalkerPrompt(
                rows=rows,
                prompt_len=length,
                max_frames=frame_limit(
                    length, self._max_positions, wanted=None, most=inputs.max_frames
                ),
                frame_options=(inputs.temperature, inputs.noise_clamp),
                frame_steps=inputs.steps,
                sampling=inputs.sampling,
                token_ids=torch.cat([_name_rows(voice), text.cpu(), torch.zeros(1).long()]),
            )
        )


def _name_rows(voice: torch.Tensor) -> torch.Tensor:
    """[P, ...] rows -> [P] int64 by which vLLM tells voices apart: numbers of a hash of them all,
    so that a block of positions is equal only if the voices are."""
    digest = hashlib.shake_256(voice.float().cpu().contiguous().numpy().tobytes())
    numbers = torch.frombuffer(bytearray(digest.digest(4 * len(voice))), dtype=torch.int32)
    return numbers.long() & 0x7FFFFFFF
