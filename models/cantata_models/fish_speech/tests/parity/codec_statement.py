"""The codec in plain PyTorch: torch's own convolutions, attention over whole sequences.

Letters: T frames, Q codebooks, L positions, C channels.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import torch
from torch.nn import functional

HEAD, BASE, EPS = 64, 10_000.0, 1e-5
FRAME_WINDOW, WAVE_WINDOW = 128, 512
UP, DOWN = (8, 8, 4, 2), (2, 4, 8, 8)
SAMPLES = 2048


class CodecStatement:
    """A checkpoint's codec, in float64.

    Args:
        checkpoint: its folder.
    """

    def __init__(self, checkpoint: Path) -> None:
        config = json.loads((checkpoint / "config.json").read_text())
        fast = config.get("audio_decoder_config", {})
        self._semantic: int = fast.get("vocab_size") or config["codebook_size"]
        tensors = torch.load(checkpoint / "codec.pth", weights_only=True)
        self._tensors: dict[str, torch.Tensor] = {
            name: tensor.double() for name, tensor in tensors.items()
        }

    def decode(self, codes: torch.Tensor) -> torch.Tensor:
        """[T, Q] -> [T * 2048]."""
        x = torch.zeros(1, 1, 1).double()
        for book in range(codes.shape[1]):
            table = self._tensors[f"{_book(book)}.codebook.weight"]
            entries = codes[:, book].tolist()
            if book == 0:
                entries = [code if code < self._semantic else 0 for code in entries]
            entries = [min(code, len(table) - 1) for code in entries]
            x = x + self._conv(table[entries].T[None], f"{_book(book)}.out_proj")
        x = self._transformer(x, "quantizer.post_module", FRAME_WINDOW)
        for index in range(2):
            x = self._raised(x, f"quantizer.upsample.{index}.0.conv", 2)
            x = self._conv_next(x, f"quantizer.upsample.{index}.1")
        x = self._conv(x, "decoder.model.0.conv")
        for index, rate in enumerate(UP, start=1):
            block = f"decoder.model.{index}.block"
            x = self._raised(self._snake(x, f"{block}.0"), f"{block}.1.conv", rate)
            for unit, dilation in zip((2, 3, 4), (1, 3, 9), strict=True):
                x = self._residual(x, f"{block}.{unit}.block", dilation)
        x = self._conv(self._snake(x, "decoder.model.5"), "decoder.model.6.conv")
        return x[0, 0].tanh()

    def encode(self, samples: torch.Tensor) -> tuple[torch.Tensor, float]:
        """[N] -> [T, Q] codes, and the smallest margin between two cosines of a choice."""
        missing = -len(samples) % SAMPLES
        x = torch.cat([samples, samples.new_zeros(missing)])[None, None].double()
        x = self._conv(x, "encoder.block.0.conv")
        for index, rate in enumerate(DOWN, start=1):
            block = f"encoder.block.{index}.block"
            for unit, dilation in zip((0, 1, 2), (1, 3, 9), strict=True):
                x = self._residual(x, f"{block}.{unit}.block", dilation)
            x = self._conv(self._snake(x, f"{block}.3"), f"{block}.4.conv", stride=rate)
        x = self._transformer(x, "encoder.block.4.block.5", WAVE_WINDOW)
        x = self._conv(self._snake(x, "encoder.block.5"), "encoder.block.6.conv")
        for index in range(2):
            x = self._conv(x, f"quantizer.downsample.{index}.0.conv", stride=2)
            x = self._conv_next(x, f"quantizer.downsample.{index}.1")
        return self._quantized(self._transformer(x, "quantizer.pre_module", FRAME_WINDOW))

    def _quantized(self, x: torch.Tensor) -> tuple[torch.Tensor, float]:
        codes, margin, book = [], math.inf, 0
        while f"{_book(book)}.codebook.weight" in self._tensors:
            table = self._tensors[f"{_book(book)}.codebook.weight"]
            inside = self._conv(x, f"{_book(book)}.in_proj")[0].T
            cosines = functional.normalize(inside) @ functional.normalize(table).T
            best = cosines.topk(2, dim=1)
            margin = min(margin, float((best.values[:, 0] - best.values[:, 1]).min()))
            codes.append(best.indices[:, 0])
            x = x - self._conv(table[codes[-1]].T[None], f"{_book(book)}.out_proj")
            book += 1
        return torch.stack(codes, dim=1), margin

    def _weight(self, name: str) -> torch.Tensor:
        """A convolution's weight: a direction times a length where both are stored."""
        for length, direction in (
            (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
            (".weight_g", ".weight_v"),
        ):
            if name + length in self._tensors:
                v = self._tensors[name + direction]
                return self._tensors[name + length] * v / v.square().sum((1, 2), True).sqrt()
        return self._tensors[f"{name}.weight"]

    def _conv(self, x: torch.Tensor, name: str, dilation: int = 1, stride: int = 1) -> torch.Tensor:
        """Causal: as much silence in front as the kernel reaches back."""
        weight = self._weight(name)
        reach = (weight.shape[2] - 1) * dilation + 1 - stride
        x = functional.pad(x, (reach, 0))
        bias = self._tensors[f"{name}.bias"]
        return functional.conv1d(x, weight, bias, stride=stride, dilation=dilation)

    def _raised(self, x: torch.Tensor, name: str, rate: int) -> torch.Tensor:
        """Transposed; what reaches beyond the last position is dropped."""
        weight, bias = self._weight(name), self._tensors[f"{name}.bias"]
        return functional.conv_transpose1d(x, weight, bias, stride=rate)[..., : x.shape[2] * rate]

    def _snake(self, x: torch.Tensor, name: str) -> torch.Tensor:
        alpha = self._tensors[f"{name}.alpha"]
        return x + (alpha * x).sin() ** 2 / (alpha + 1e-9)

    def _residual(self, x: torch.Tensor, name: str, dilation: int) -> torch.Tensor:
        inner = self._conv(self._snake(x, f"{name}.0"), f"{name}.1.conv", dilation=dilation)
        return x + self._conv(self._snake(inner, f"{name}.2"), f"{name}.3.conv")

    def _conv_next(self, x: torch.Tensor, name: str) -> torch.Tensor:
        t = self._tensors
        depthwise, bias = t[f"{name}.dwconv.conv.weight"], t[f"{name}.dwconv.conv.bias"]
        inner = functional.conv1d(
            functional.pad(x, (6, 0)), depthwise, bias, groups=x.shape[1]
        ).transpose(1, 2)
        shape = (x.shape[1],)
        inner = functional.layer_norm(
            inner, shape, t[f"{name}.norm.weight"], t[f"{name}.norm.bias"], eps=1e-6
        )
        inner = inner @ t[f"{name}.pwconv1.weight"].T + t[f"{name}.pwconv1.bias"]
        inner = functional.gelu(inner) @ t[f"{name}.pwconv2.weight"].T + t[f"{name}.pwconv2.bias"]
        return x + (t[f"{name}.gamma"] * inner).transpose(1, 2)

    def _transformer(self, x: torch.Tensor, name: str, window: int) -> torch.Tensor:
        """[1, C, L] -> [1, C, L]."""
        rows, index = x[0].T, 0
        steps = 1.0 / BASE ** (torch.arange(0, HEAD, 2).float() / HEAD)
        angles = torch.arange(len(rows)).float()[:, None] * steps
        turn = torch.complex(*(p.bfloat16().double() for p in (angles.cos(), angles.sin())))
        apart = torch.arange(len(rows))[:, None] - torch.arange(len(rows))
        unseen = (apart < 0) | (apart >= window)
        while f"{name}.layers.{index}.attention.wqkv.weight" in self._tensors:
            rows = self._layer(rows, f"{name}.layers.{index}", turn, unseen)
            index += 1
        return self._norm(rows, f"{name}.norm").T[None]

    def _layer(
        self, x: torch.Tensor, name: str, turn: torch.Tensor, unseen: torch.Tensor
    ) -> torch.Tensor:
        t = self._tensors
        joined = self._norm(x, f"{name}.attention_norm") @ t[f"{name}.attention.wqkv.weight"].T
        q, k, v = joined.view(len(x), 3, -1, HEAD).unbind(1)
        q, k = (
            torch.view_as_real(
                torch.view_as_complex(each.reshape(len(x), -1, HEAD // 2, 2)) * turn[:, None]
            ).flatten(-2)
            for each in (q, k)
        )
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(HEAD)
        mixed = torch.einsum("hqk,khd->qhd", scores.masked_fill(unseen, -math.inf).softmax(-1), v)
        mixed = mixed.reshape(len(x), -1) @ t[f"{name}.attention.wo.weight"].T
        x = x + t[f"{name}.attention_layer_scale.gamma"] * mixed
        inner = self._norm(x, f"{name}.ffn_norm")
        gate, down, up = (t[f"{name}.feed_forward.w{part}.weight"] for part in (1, 2, 3))
        made = (functional.silu(inner @ gate.T) * (inner @ up.T)) @ down.T
        return x + t[f"{name}.ffn_layer_scale.gamma"] * made

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        scale = (x.square().mean(-1, keepdim=True) + EPS).sqrt()
        return x / scale * self._tensors[f"{name}.weight"]


def _book(index: int) -> str:
    if index == 0:
        return "quantizer.semantic_quantizer.quantizers.0"
    return f"quantizer.quantizer.quantizers.{index - 1}"
