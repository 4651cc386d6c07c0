"""The diffusion transformer: what changes a noisy mel spectrogram into that of some codes.

Peebles & Xie, "Scalable Diffusion Models with Transformers" (arXiv:2212.09748), over blocks of mel
frames: most layers attend within a block, some also to the block before or behind. Everything that
does not depend on the spectrogram is computed once: for a checkpoint the modulation at each of the
solver's times, for a speaker its vectors, for a window of codes its part of the input. The solver
integrates the flow from noise by Kutta's 3/8 rule on a bent grid of times.

Letters: N codes, L mel frames, M mels, C channels, H heads, D head size, E evaluations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch.nn import functional

from cantata_layers.ecapa import Ecapa
from cantata_layers.exact_layers import Linear, Rotation
from cantata_layers.weights import Weights
from cantata_models.qwen25_omni.config import DitConfig
from cantata_models.qwen25_omni.speakers import Qwen25OmniSpeaker

STEPS = 9
STAGES = 4
"""Evaluations of one step."""

Velocity = Callable[[int, torch.Tensor], torch.Tensor]
"""The number of the evaluation, and the state -> its derivative, of the same shape."""


def time_grid() -> torch.Tensor:
    """[STEPS + 1] float32 times from 0 to 1, denser at the beginning ("sway sampling", Chen et al.,
    F5-TTS, arXiv:2410.06885, with coefficient -1)."""
    even = torch.linspace(0, 1, STEPS + 1)
    return even - (torch.cos(torch.pi / 2 * even) - 1 + even)


def evaluation_times() -> torch.Tensor:
    """[STEPS * STAGES] float32: when each evaluation takes place."""
    third = 1 / 3
    times = [
        torch.stack([start, start + step * third, start + step * (2 * third), end])
        for start, end in pairwise(time_grid())
        for step in [end - start]
    ]
    return torch.cat(times)


def integrate(velocity: Velocity, state: torch.Tensor) -> torch.Tensor:
    """Return the state at time 1, from that at time 0."""
    third, number = 1 / 3, 0
    for start, end in pairwise(time_grid().tolist()):
        step = end - start
        first = velocity(number, state)
        second = velocity(number + 1, state + step * third * first)
        later = velocity(number + 2, state + step * (second - third * first))
        last = velocity(number + 3, state + step * (first - second + later))
        state = state + step / 8 * (first + 3 * (second + later) + last)
        number += STAGES
    return state


GUIDANCE = 0.5
"""Classifier-free guidance: how far to go beyond the prediction, away from that without codes and
speaker."""
TIME_SIZE = 256
TIME_SCALE = 1000.0
LAYER_NORM_EPS = 1e-6
NO_CODE = 0
"""Stands for every code in the prediction without codes."""


@dataclass(frozen=True, slots=True)
class SpeakerInput:
    """A speaker's part of the input, with and without it."""

    parts: torch.Tensor
    """[2, C]"""


class DitLayer:
    """Attention and a perceptron, both scaled, shifted and gated by the time. `times`: [E, C] the
    evaluations' times, embedded."""

    def __init__(
        self, weights: Weights, index: int, config: DitConfig, times: torch.Tensor
    ) -> None:
        name = f"transformer_blocks.{index}"
        size, inner = config.hidden_size, config.heads * config.head_dim
        self._heads, self._head_dim = config.heads, config.head_dim
        self.ahead = int(index in config.look_ahead)
        self.back = int(index in config.look_backward)
        modulation = Linear.load(weights, f"{name}.attn_norm.linear", size, 6 * size, True)
        self._modulation = modulation(times).view(len(times), 6, size)
        self._query = self._load_rotated(weights, f"{name}.attn.to_q", size)
        self._key = self._load_rotated(weights, f"{name}.attn.to_k", size)
        self._value = Linear.load(weights, f"{name}.attn.to_v", size, inner, True)
        self._out = Linear.load(weights, f"{name}.attn.to_out.0", inner, size, True)
        self._up = Linear.load(weights, f"{name}.ff.ff.0", size, config.ff_mult * size, True)
        self._down = Linear.load(weights, f"{name}.ff.ff.3", config.ff_mult * size, size, True)

    def _load_rotated(self, weights: Weights, name: str, size: int) -> Linear:
        """A projection whose first head, the only one with positions, has the values that are
        rotated together in its halves, not side by side as in the checkpoint."""
        inner = self._heads * self._head_dim
        order = torch.arange(inner)
        order[: self._head_dim] = torch.cat([order[: self._head_dim][i::2] for i in (0, 1)])
        weight = weights.take(f"{name}.weight", inner, size)
        return Linear(weight[order], weights.take(f"{name}.bias", inner)[order])

    def __call__(
        self, x: torch.Tensor, number: int, rotation: Rotation, seen: torch.Tensor
    ) -> torch.Tensor:
        """[2, L, C] at the evaluation of this number, and [L, L] -> [2, L, C]."""
        shift, scale, gate, later_shift, later_scale, later_gate = self._modulation[number]
        attended = self._attend(normed(x) * (1 + scale) + shift, rotation, seen)
        x = x + gate * attended
        inner = self._up(normed(x) * (1 + later_scale) + later_shift)
        return torch.as_tensor(
            x + later_gate * self._down(functional.gelu(inner, approximate="tanh"))
        )

    def _attend(self, x: torch.Tensor, rotation: Rotation, seen: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], self._heads, self._head_dim)
        query = self._turn(self._query(x).view(shape), rotation)
        key = self._turn(self._key(x).view(shape), rotation)
        value = self._value(x).view(shape)
        query, key, value = (part.transpose(1, 2) for part in (query, key, value))
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        return self._out(mixed.transpose(1, 2).flatten(2))

    @staticmethod
    def _turn(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
        return torch.cat([rotation(x[:, :, :1]), x[:, :, 1:]], dim=2)


class Dit:
    """Makes mel spectrograms of codes.

    Raises:
        ConfigError: (on construction) a tensor is missing or has another shape.
    """

    def __init__(self, weights: Weights, config: DitConfig, device: torch.device) -> None:
        self._config, self._device = config, device
        size = config.hidden_size
        table = "text_embed.codec_embed.weight"
        self._embedding = weights.take(table, config.codes, config.code_size)
        widths = [config.mels, config.speaker.size, config.code_size, config.speaker_size]
        projection = weights.take("input_embed.proj.weight", size, sum(widths))
        self._from_mel, self._from_heard, self._from_code, self._from_vector = (
            Linear(part) for part in torch.split(projection, widths, dim=1)
        )
        self._input_bias = weights.take("input_embed.proj.bias", size)
        self._hear = _load_ecapa(weights, "input_embed.spk_encoder", config, device)
        times = functional.silu(self._embed_times(weights))
        self._layers = [DitLayer(weights, i, config, times) for i in range(config.layers)]
        last = Linear.load(weights, "norm_out.linear", size, 2 * size, True)
        self._to_mel = Linear.load(weights, "proj_out", size, config.mels, True)
        self._last_modulation = last(times).view(len(times), 2, size)
        even = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device)
        self._inverse_frequencies = 1.0 / config.rope_theta ** (even / config.head_dim)

    def speaker_input(self, speaker: Qwen25OmniSpeaker) -> SpeakerInput:
        """Compute a speaker's part of the input; [T, M] and a vector -> [2, C]."""
        mel = speaker.mel.to(self._device).t()
        received = self._hear(torch.stack([mel, torch.zeros_like(mel)]))
        vector = speaker.vector.to(self._device)
        both = torch.stack([vector, torch.zeros_like(vector)])
        return SpeakerInput(self._from_heard(received) + self._from_vector(both) + self._input_bias)

    def sample(
        self, codes: torch.Tensor, speaker: SpeakerInput, noise: torch.Tensor
    ) -> torch.Tensor:
        """Make the spectrogram of one window of codes.

        Args:
            codes: [N] int64; the first begins a block.
            noise: [L, M] float32, L = N * repeats: where the flow starts.

        Returns:
            [L, M] float32 log-mel.
        """
        frames = len(noise)
        embedded = self._embedding[torch.stack([codes, torch.full_like(codes, NO_CODE)])]
        fixed = self._from_code(embedded).repeat_interleave(self._config.repeats, dim=1)
        fixed = fixed + speaker.parts[:, None]
        start = torch.zeros(1, device=self._device)
        rotation = Rotation(start, frames, self._inverse_frequencies)
        sights = {(layer.back, layer.ahead) for layer in self._layers}
        seen = {sight: self._seen(frames, *sight) for sight in sights}

        def velocity(number: int, mel: torch.Tensor) -> torch.Tensor:
            x = self._from_mel(mel) + fixed
            for layer in self._layers:
                x = layer(x, number, rotation, seen[layer.back, layer.ahead])
            scale, shift = self._last_modulation[number]
            guided, free = self._to_mel(normed(x) * (1 + scale) + shift)
            return torch.as_tensor(guided + (guided - free) * GUIDANCE)

        return integrate(velocity, noise)

    def _seen(self, frames: int, back: int, ahead: int) -> torch.Tensor:
        """[L, L]: which frames each frame attends to."""
        block = torch.arange(frames, device=self._device) // self._config.block_size
        apart = block[None, :] - block[:, None]
        return (apart >= -back) & (apart <= ahead)

    def _embed_times(self, weights: Weights) -> torch.Tensor:
        """[E, C]: each evaluation's time."""
        size, half = self._config.hidden_size, TIME_SIZE // 2
        exponents = torch.arange(half).float() * -(math.log(10_000) / (half - 1))
        angles = TIME_SCALE * evaluation_times()[:, None] * torch.exp(exponents)
        waves = torch.cat([angles.sin(), angles.cos()], dim=-1).to(self._device)
        first = Linear.load(weights, "time_embed.time_mlp.0", TIME_SIZE, size, True)
        second = Linear.load(weights, "time_embed.time_mlp.2", size, size, True)
        return second(functional.silu(first(waves)))


def normed(x: torch.Tensor) -> torch.Tensor:
    """[..., C], each of mean 0 and variance 1."""
    return functional.layer_norm(x, x.shape[-1:], eps=LAYER_NORM_EPS)


def _load_ecapa(weights: Weights, name: str, config: DitConfig, device: torch.device) -> Ecapa:
    network = Ecapa(config.speaker).to(device).eval().requires_grad_(False)
    shapes = {key: tensor.shape for key, tensor in network.state_dict().items()}
    network.load_state_dict(
        {key: weights.take(f"{name}.{key}", *shape) for key, shape in shapes.items()}
    )
    return network
