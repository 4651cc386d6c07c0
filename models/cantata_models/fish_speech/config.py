"""The published config.json of both layouts, and the special tokens that speech needs.

S2 (`fish_qwen3_omni`) has a section for each stack. S1 (`dual_ar`) is flat; the fast stack's fields
begin with `fast_`.

Letters: V codes in codebook 0, Q codebooks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import Qwen3Stack, check_shared_heads
from cantata_models.fish_speech.tokenizers import SEMANTIC, Special, read_special_tokens

SAMPLE_RATE = 44_100
"""Hz."""
SAMPLES_PER_FRAME = 2048
FRAME_PERIOD_S = SAMPLES_PER_FRAME / SAMPLE_RATE
CODEBOOKS = 10
DEFAULT_CODEBOOK_SIZE = 4096
MAX_POSITIONS = 32_768
"""Where a config does not say."""
S1_FAST_LAYERS = 4
"""Where a config does not say."""
NOT_SHARED = -1
"""As a number of heads of keys: each head of queries has its own."""


@dataclass(frozen=True, slots=True)
class FishDefaults:
    """What a layout means where its config does not say."""

    rope_base: float
    norm_eps: float


S1_DEFAULTS = FishDefaults(rope_base=10_000.0, norm_eps=1e-5)
S2_DEFAULTS = FishDefaults(rope_base=1_000_000.0, norm_eps=1e-6)


class FishLayout(StrEnum):
    """`model_type` in config.json."""

    S2 = "fish_qwen3_omni"
    S1 = "dual_ar"


@dataclass(frozen=True, slots=True)
class FishConfig:
    """A checkpoint's sizes and the ids of its tokens."""

    layout: FishLayout
    slow: Qwen3Stack
    """One position for each text token and each frame; `vocab_size` counts all tokens."""
    fast: Qwen3Stack
    """One position for each codebook of a frame; `vocab_size` is the codebooks' size."""
    num_codebooks: int
    """Q."""
    slow_norms: bool | None
    """Whether the slow stack normalizes queries and keys; None: if there are weights for it."""
    fast_norms: bool | None
    """The same of the fast stack."""
    tied: bool
    """The slow stack's scores come from the table of its embeddings."""
    scaled_frames: bool
    """A frame's row is divided by the root of the number of its embeddings."""
    special: Special

    @property
    def codebook_size(self) -> int:
        """The size of every codebook, as the stacks count them."""
        return self.fast.vocab_size

    @property
    def first_codes(self) -> int:
        """V: what the slow stack may choose. S2: semantic tokens and the end; S1: every token."""
        return self.codebook_size + 1 if self.layout is FishLayout.S2 else self.slow.vocab_size


def load_config(folder: Path, layout: FishLayout | None = None) -> FishConfig:
    """Read a checkpoint's configuration.

    Args:
        folder: of the checkpoint.
        layout: that it must have; None: either.

    Raises:
        ConfigError: a file cannot be read, a value is missing or of the wrong type, or the
            checkpoint is of another kind.
    """
    root = read_json(folder / "config.json")
    found = root.expect(
        "model_type", *(each.value for each in ([layout] if layout else FishLayout))
    )
    special = read_special_tokens(folder)
    config = _read_s2(root, special) if found == FishLayout.S2 else _read_s1(root, special)
    _check(config, root.where)
    return config


def _read_s2(root: JsonFields, special: Special) -> FishConfig:
    text, audio = root.section("text_config"), root.section("audio_decoder_config")
    slow = _read_slow_stack(text, S2_DEFAULTS)
    return FishConfig(
        layout=FishLayout.S2,
        slow=slow,
        fast=_read_fast_stack(audio, "", slow, audio.size("n_layer"), audio.size("vocab_size")),
        num_codebooks=audio.size("num_codebooks", CODEBOOKS),
        slow_norms=_switch(text, "attention_qk_norm"),
        fast_norms=_switch(audio, "attention_qk_norm"),
        tied=text.get("tie_word_embeddings", bool, True),
        scaled_frames=True,
        special=special,
    )


def _read_s1(root: JsonFields, special: Special) -> FishConfig:
    slow = _read_slow_stack(root, S1_DEFAULTS)
    layers = root.size("n_fast_layer", S1_FAST_LAYERS)
    size = root.size("codebook_size", DEFAULT_CODEBOOK_SIZE)
    return FishConfig(
        layout=FishLayout.S1,
        slow=slow,
        fast=_read_fast_stack(root, "fast_", slow, layers, size),
        num_codebooks=root.size("num_codebooks", CODEBOOKS),
        slow_norms=_switch(root, "attention_qk_norm"),
        fast_norms=_switch(root, "fast_attention_qk_norm"),
        tied=root.get("tie_word_embeddings", bool, True),
        scaled_frames=root.get("scale_codebook_embeddings", bool, False),
        special=special,
    )


def _read_slow_stack(fields: JsonFields, defaults: FishDefaults) -> Qwen3Stack:
    _check_biases(fields, "")
    hidden, heads = fields.size("dim"), fields.size("n_head")
    shared = fields.get("n_local_heads", int, NOT_SHARED) != NOT_SHARED
    return Qwen3Stack(
        hidden_size=hidden,
        layers=fields.size("n_layer"),
        heads=heads,
        kv_heads=fields.size("n_local_heads") if shared else heads,
        head_dim=fields.size("head_dim", hidden // heads),
        intermediate_size=fields.size("intermediate_size", _compute_intermediate_size(hidden)),
        vocab_size=fields.size("vocab_size"),
        rms_norm_eps=fields.get("norm_eps", float, defaults.norm_eps),
        rope_theta=fields.get("rope_base", float, defaults.rope_base),
        max_positions=fields.size("max_seq_len", MAX_POSITIONS),
    )


def _read_fast_stack(
    fields: JsonFields, prefix: str, slow: Qwen3Stack, layers: int, vocab_size: int
) -> Qwen3Stack:
    """Read the fast stack's sizes. Where its section does not say, and in positions and norms, it
    is as the slow one.

    Args:
        fields: the section.
        prefix: of its fields.
        slow: the slow stack.
        layers: its own.
        vocab_size: its own.
    """
    _check_biases(fields, prefix)

    def size(name: str, shared: int) -> int:
        return fields.size(f"{prefix}{name}", shared)

    return replace(
        slow,
        hidden_size=size("dim", slow.hidden_size),
        layers=layers,
        heads=size("n_head", slow.heads),
        kv_heads=size("n_local_heads", slow.kv_heads),
        head_dim=size("head_dim", slow.head_dim),
        intermediate_size=size("intermediate_size", slow.intermediate_size),
        vocab_size=vocab_size,
    )


def _check_biases(fields: JsonFields, prefix: str) -> None:
    for switch in ("attention_qkv_bias", "attention_o_bias"):
        fields.expect(f"{prefix}{switch}", False, default=False)


def _switch(fields: JsonFields, key: str) -> bool | None:
    """Return what a section says; None: nothing."""
    return None if fields.values.get(key) is None else fields.get(key, bool)


def _compute_intermediate_size(hidden: int) -> int:
    """Two thirds of four times the width, up to the next multiple of 256."""
    return -(-(8 * hidden // 3) // 256) * 256


def check_codec(
    config: FishConfig, checkpoint: Path, num_codebooks: int, samples_per_frame: int
) -> None:
    """Check that a checkpoint's codec fits its talker.

    Raises:
        ConfigError: it has other codebooks, or frames of another length.
    """
    if num_codebooks != config.num_codebooks:
        raise ConfigError(
            f"{checkpoint}: the codec has {num_codebooks} codebooks, the talker "
            f"{config.num_codebooks}"
        )
    if samples_per_frame != SAMPLES_PER_FRAME:
        raise ConfigError(
            f"{checkpoint}: the codec has {samples_per_frame} samples for a frame; valid: "
            f"{SAMPLES_PER_FRAME}"
        )


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
    for stack in (config.slow, config.fast):
        check_shared_heads(stack.heads, stack.kv_heads, where)
    if config.slow.rope_theta <= 0:
        raise ConfigError(f"{where}: rope_base must be positive")
