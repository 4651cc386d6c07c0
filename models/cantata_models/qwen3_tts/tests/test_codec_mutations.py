"""The goldens are effective: a fault anywhere in the codec or the encoders fails a check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cantata_models.qwen3_tts.random_checkpoint import write_checkpoint
from cantata_models.qwen3_tts.tests.codec_checks import (
    PACKAGE,
    check_beginning,
    check_reference_frames,
    check_speaker,
    check_streamed,
    check_whole,
)
from cantata_models.qwen3_tts.tests.parity.scenarios import SHAPES
from cantata_models.qwen3_tts.tests.parity.write_goldens import CODEC_CHECKPOINT
from source_faults import Mutant, assert_caught, each_mutant, mutants
from threads import threads

MODULES = (
    "cantata_layers.causal_convolutions",
    "cantata_layers.causal_decoder",
    "cantata_layers.exact_layers",
    "cantata_layers.sliding_transformer",
    f"{PACKAGE}.codec",
    "cantata_layers.ecapa",
    f"{PACKAGE}.encoder",
)
"""Modules in import order."""


MUTANTS = (
    *mutants(
        f"{PACKAGE}.codec",
        check_whole,
        ("**usual, **decoder.values}", '**usual, **decoder.values, "sliding_window": 73}'),
        ("**usual, **decoder.values}", '**usual, **decoder.values, "sliding_window": 71}'),
        ("**usual, **decoder.values}", '**usual, **decoder.values, "rope_theta": 9_000.0}'),
    ),
    *mutants(
        "cantata_layers.causal_convolutions",
        check_beginning,
        ("torch.cat([earlier, own], dim=1)", "torch.cat([own, earlier], dim=1)"),
        ('f"{name}.beta", size).exp()', 'f"{name}.beta", size)'),
        (".sin_()", ".cos_()"),
        ("wave.mul_(wave)", "wave.mul_(1.0)"),
        ("functional.gelu", "functional.silu"),
        ("x + self._gain * self._down", "x + self._down"),
        (
            "functional.layer_norm(mixed, (self._size,), *self._norm",
            "functional.layer_norm(mixed, (self._size,), *(None, None)",
        ),
        ("(self._kernel - 1) * self._dilation)", "self._kernel * self._dilation)"),
        ("bias.repeat(rate)", "0 * bias.repeat(rate)"),
        ("DILATIONS = (1, 3, 9)", "DILATIONS = (1, 3, 8)"),
        ("return x + self._pointwise(", "return self._pointwise("),
    ),
    *mutants("cantata_layers.exact_layers", check_beginning, ("torch.exp(-x)", "torch.exp(x)")),
    *mutants(
        "cantata_layers.sliding_transformer",
        check_beginning,
        (
            "key = rotation(self._key(x).view(batch, frames, self._kv_heads, self._head_dim))",
            "key = self._key(x).view(batch, frames, self._kv_heads, self._head_dim)",
        ),
        ("* self._head_dim**-0.5", ""),
        ("scores.masked_fill(outside[:, :, None, None], -torch.inf)", "scores"),
        ("x + self._attention_scale * attended", "x + attended"),
        ("x + self._mlp_scale *", "x +"),
        ("return self._norm(x)", "return x"),
    ),
    *mutants(
        f"{PACKAGE}.codec",
        check_beginning,
        ("total / usage.clamp(min=USAGE_FLOOR)[:, None]", "total"),
        ("codes[..., book + offset]", "codes[..., book + len(tables) - offset]"),
        ("return parts[0] + parts[1]", "return parts[0]"),
        ("self._wave(self._snake(x), past)", "self._wave(x, past)"),
    ),
    *mutants(
        "cantata_layers.causal_convolutions",
        check_streamed,
        ("past.positions + frames", "past.positions"),
        ("mine[slots] = theirs", "mine[slots] = 0 * theirs"),
        (
            "history[slots] for history in self.histories]",
            "history[slots] * 0 for history in self.histories]",
        ),
        ("context[:, context.shape[1] - length :]", "context[:, :length]"),
    ),
    *mutants(
        f"{PACKAGE}.encoder",
        check_reference_frames,
        ("UNLIMITED = 1 << 30", "UNLIMITED = 24"),
        ('pad_mode="replicate"', 'pad_mode="constant"'),
        ("-(-len(samples) // self.samples_per_frame)", "len(samples) // self.samples_per_frame"),
        ("codes[:, 0, :frames].t()", "codes[:, 0, :frames].flip(0).t()"),
        (
            "self.encoder_transformer(hidden.transpose(1, 2)).last_hidden_state",
            "hidden.transpose(1, 2)",
        ),
    ),
    *mutants(
        f"{PACKAGE}.encoder",
        check_speaker,
        ("HOP = 256", "HOP = 240"),
        ("MAX_FREQUENCY = 12_000.0", "MAX_FREQUENCY = 11_000.0"),
        ('norm="slaney"', "norm=None"),
        ('mel_scale="slaney"', 'mel_scale="htk"'),
        ('mode="reflect")[0]', 'mode="constant")[0]'),
        ("torch.sqrt(power + POWER_FLOOR)", "power"),
    ),
    *mutants(
        "cantata_layers.ecapa",
        check_speaker,
        ('padding_mode="reflect"', 'padding_mode="zeros"'),
        ("part if index == 0 else part + output[-1]", "part"),
        ("x * torch.sigmoid(", "torch.sigmoid("),
        ("return x + update", "return update"),
        ("layers[1:]", "layers[:-1]"),
        ("torch.tanh(self.tdnn", "torch.relu(self.tdnn"),
        (
            "self._compute_statistics(x, torch.softmax(attention, dim=2))",
            "self._compute_statistics(x, even)",
        ),
        ("variance.clamp(min=VARIANCE_FLOOR).sqrt()", "variance"),
    ),
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    key = CODEC_CHECKPOINT
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(folder, SHAPES[key.shape], key.kind, key.seed)
    with threads(1):
        yield folder


@pytest.mark.thorough(every=6)
@each_mutant(MUTANTS)
def test_a_fault_is_caught(mutant: Mutant, checkpoint: Path) -> None:
    assert_caught(mutant, MODULES, checkpoint)
