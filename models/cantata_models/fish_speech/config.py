"""The published config.json of both layouts, and the special tokens that speech needs.

S2 (`fish_qwen3_omni`) has a section for each stack. S1 (`dual_ar`) is flat: what the fast stack
does not say (`fast_...`) is as in the slow one.

Letters: V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import Qwen3Stack
from cantata_models.fish_speech.text.special_tokens import SEMANTIC, Special, read_special_tokens

SAMPLE_RATE = 44_100
"""Hz."""
SAMPLES_PER_FRAME = 2048
FRAME_PERIOD_S = SAMPLES_PER_FRAME / SAMPLE_RATE
CODEBOOKS = 10
DEFAULT_CODEBOOK_SIZE = 4096
MAX_POSITIONS = 32_768
"""Where a config does not say."""
ROPE_THETA = 1_000_000.0
NORM_EPS = 1e-6


class Layout(StrEnum):
    """`model_type` in config.json."""

    S2 = "fish_qwen3_omni"
    S1 = "dual_ar"


@dataclass(frozen=True, slots=True)
class FishConfig:
    """A checkpoint's sizes and the ids of its tokens."""

    layout: Layout
    slow: Qwen3Stack
    """One position for each text token and each frame; `vocab_size` counts all tokens."""
    fast: Qwen3Stack
    """One position for each codebook of a frame; `vocab_size` is the codebooks' size."""
    num_codebooks: int
    """Q."""
    tied: bool
    """The slow stack's scores come from the table of its embeddings."""
    scaled_frames: bool
    """A frame's row is divided by the root of the number of its embeddings."""
    special: Special

    @property
    def codebook_size(self) -> int:
        """Of every codebook, as the stacks count them."""
        return self.fast.vocab_size

    @property
    def first_codes(self) -> int:
        """V: what the slow stack may choose. S2: semantic tokens and the end; S1: every token."""
        return self.codebook_size + 1 if self.layout is Layout.S2 else self.slow.vocab_size


def load_config(folder: Path, layout: Layout | None = None) -> FishConfig:
    """Read a checkpoint's configuration.

    Args:
        folder: of the checkpoint.
        layout: that it must have; None: either.

    Raises:
        ConfigError: a file cannot be read, a value is missing or of the wrong type, or the
            checkpoint is of another kind.
    """
    root = read_json(folder / "config.json")
    found = root.get("model_type", str)
    valid = [str(layout)] if layout else [str(each) for each in Layout]
    if found not in valid:
        raise ConfigError(f"{root.where}: model_type must be one of {valid}, not {found!r}")
    special = read_special_tokens(folder)
    config = _read_s2(root, special) if found == Layout.S2 else _read_s1(root, special)
    _check(config, root.where)
    return config


def _read_s2(root: JsonFields, special: Special) -> FishConfig:
    text, audio = root.section("text_config"), root.section("audio_decoder_config")
    slow = _stack(text, "", None)
    return FishConfig(
        layout=Layout.S2,
        slow=slow,
        fast=_stack(audio, "", slow, vocab_size=audio.get("vocab_size", int)),
        num_codebooks=audio.get("num_codebooks", int, CODEBOOKS),
        tied=text.get("tie_word_embeddings", bool, True),
        scaled_frames=True,
        special=special,
    )


def _read_s1(root: JsonFields, special: Special) -> FishConfig:
    slow = _stack(root, "", None)
    size = root.get("codebook_size", int, DEFAULT_CODEBOOK_SIZE)
    return FishConfig(
        layout=Layout.S1,
        slow=slow,
        fast=_stack(root, "fast_", slow, vocab_size=size),
        num_codebooks=root.get("num_codebooks", int, CODEBOOKS),
        tied=root.get("tie_word_embeddings", bool, True),
        scaled_frames=root.get("scale_codebook_embeddings", bool, False),
        special=special,
    )


def _stack(
    fields: JsonFields, prefix: str, slow: Qwen3Stack | None, vocab_size: int | None = None
) -> Qwen3Stack:
    """Read a stack's sizes.

    Args:
        fields: the section.
        prefix: of its fields; the number of layers of a stack with a prefix is `n_fast_layer`.
        slow: of a fast stack, whose positions and norms are the slow one's, and whose other sizes
            are too where the section does not say.
        vocab_size: None: the section's own.
    """
    for switch in ("attention_qkv_bias", "attention_o_bias"):
        if fields.get(f"{prefix}{switch}", bool, False):
            raise ConfigError(f"{fields.where}: {prefix}{switch} is not served; valid: false")
    is_slow = slow is None
    if fields.get(f"{prefix}attention_qk_norm", bool, is_slow) is not is_slow:
        raise ConfigError(f"{fields.where}: {prefix}attention_qk_norm; valid: {is_slow}".lower())

    def size(name: str, shared: int | None) -> int:
        return fields.get(f"{prefix}{name}", int, shared)

    hidden = size("dim", slow.hidden_size if slow else None)
    heads = size("n_head", slow.heads if slow else None)
    return Qwen3Stack(
        hidden_size=hidden,
        layers=fields.get("n_fast_layer" if prefix else "n_layer", int),
        heads=heads,
        kv_heads=size("n_local_heads", slow.kv_heads if slow else None),
        head_dim=size("head_dim", slow.head_dim if slow else hidden // heads),
        intermediate_size=size("intermediate_size", slow.intermediate_size if slow else None),
        vocab_size=vocab_size or fields.get("vocab_size", int),
        rms_norm_eps=slow.rms_norm_eps if slow else fields.get("norm_eps", float, NORM_EPS),
        rope_theta=slow.rope_theta if slow else fields.get("rope_base", float, ROPE_THETA),
        max_positions=slow.max_positions if slow else _max_positions(fields),
    )


def _max_positions(fields: JsonFields) -> int:
    return fields.get("max_seq_len", int, MAX_POSITIONS)


def _check(config: FishConfig, where: str) -> None:
    special, size = config.special, config.codebook_size
    if special.semantic_count != size:
        raise ConfigError(
            f"{where}: the codebooks have {size} codes, but the tokenizer has "
            f"{special.semantic_count} tokens {SEMANTIC.format('...')}"
        )
    highest = max(special.semantic_begin + size - 1, *special.ids.values())
    if highest >= config.slow.vocab_size:
        raise ConfigError(
            f"{where}: vocab_size {config.slow.vocab_size} has no room for token {highest}"
        )
    if config.slow.rope_theta <= 0 or min(_sizes(config).values()) < 1:
        raise ConfigError(f"{where}: sizes must be positive")


def _sizes(config: FishConfig) -> Mapping[str, int]:
    return {
        "num_codebooks": config.num_codebooks,
        "slow layers": config.slow.layers,
        "fast layers": config.fast.layers,
    }
