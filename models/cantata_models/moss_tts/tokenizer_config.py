"""The audio tokenizers' files: where a checkpoint's is, and its values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_models.moss_tts.config import MossConfig

MODEL_TYPE = "moss-audio-tokenizer"
CHANNELS = 2
QUANTIZERS = ("rlfq", "random_prefix_rlfq")
"""Names of the residual quantizer by cosine; they differ in training alone."""
SERVED = {"gating": "none", "norm": "layer_norm", "positional_embedding": "rope"}
"""What every published transformer says."""


@dataclass(frozen=True, slots=True)
class PatchConfig:
    """Joins neighbouring positions to one in the encoder, and splits them again in the decoder."""

    size: int


@dataclass(frozen=True, slots=True)
class MossTransformerConfig:
    """A causal transformer at one rate, between two projections."""

    inputs: int
    outputs: int
    width: int
    heads: int
    layers: int
    inner_width: int
    """Of the perceptron."""
    window: int
    """Number of positions that a position attends to, including itself."""
    rope_theta: float
    frame_positions: int
    """Positions per frame."""

    @property
    def head_dim(self) -> int:
        return self.width // self.heads


ModuleConfig: TypeAlias = PatchConfig | MossTransformerConfig


@dataclass(frozen=True, slots=True)
class QuantizerConfig:
    """The residual quantizer's sizes."""

    latent: int
    """Width of a frame on the side of the encoder and the decoder."""
    residual: int
    """Width of a frame between its own projections."""
    codebooks: int
    """In use. The first ones are a coarser tokenizer of their own."""
    codebook_size: int
    codebook_dim: int


@dataclass(frozen=True, slots=True)
class TokenizerConfig:
    sample_rate: int
    """Hz."""
    samples_per_frame: int
    """Per channel."""
    encoder: tuple[ModuleConfig, ...]
    decoder: tuple[ModuleConfig, ...]
    quantizer: QuantizerConfig


def load_tokenizer_config(folder: Path, codebooks: int) -> TokenizerConfig:
    """Read a tokenizer's config.json.

    Args:
        codebooks: how many of its codebooks the model uses.

    Raises:
        ConfigError: the file or a value is missing, a value is wrong, or the tokenizer is another.
    """
    root = read_json(folder / "config.json")
    root.expect("model_type", MODEL_TYPE)
    root.expect("number_channels", CHANNELS)
    root.expect("enable_channel_interleave", True)
    sample_rate = root.size("sampling_rate")
    samples_per_frame = root.size("downsample_rate")
    signal = _Signal(root, CHANNELS * sample_rate, CHANNELS * samples_per_frame)
    quantizer = _read_quantizer(root, codebooks)
    return TokenizerConfig(
        sample_rate=sample_rate,
        samples_per_frame=samples_per_frame,
        encoder=signal.encoder(quantizer.latent),
        decoder=signal.decoder(quantizer.latent),
        quantizer=quantizer,
    )


class _Signal:
    """Follows the signal of interleaved channels through the encoder's and decoder's modules.

    Args:
        rate: the signal's samples per second.
        frame: the signal's samples per frame.
    """

    def __init__(self, root: JsonFields, rate: int, frame: int) -> None:
        self._root, self._rate, self._frame = root, rate, frame
        self._duration = root.get("causal_transformer_context_duration", float, 10.0)

    def encoder(self, latent: int) -> tuple[ModuleConfig, ...]:
        """The modules from the signal to frames `latent` wide."""
        modules, width, positions = [], 1, self._frame
        for fields in self._root.sections("encoder_kwargs"):
            module = self._read_module(fields, width, positions)
            if isinstance(module, PatchConfig):
                _check_divides(fields, module.size, positions, "positions of a frame")
                width, positions = width * module.size, positions // module.size
            else:
                width = module.outputs
            modules.append(module)
        self._check_end("encoder_kwargs", (width, positions), (latent, 1))
        return tuple(modules)

    def decoder(self, latent: int) -> tuple[ModuleConfig, ...]:
        """The modules from frames `latent` wide to the signal."""
        modules, width, positions = [], latent, 1
        for fields in self._root.sections("decoder_kwargs"):
            module = self._read_module(fields, width, positions)
            if isinstance(module, PatchConfig):
                _check_divides(fields, module.size, width, "channels")
                width, positions = width // module.size, positions * module.size
            else:
                width = module.outputs
            modules.append(module)
        self._check_end("decoder_kwargs", (width, positions), (1, self._frame))
        return tuple(modules)

    def _read_module(self, fields: JsonFields, width: int, positions: int) -> ModuleConfig:
        kind = fields.get("module_type", str)
        if kind == "PatchedPretransform":
            return PatchConfig(fields.size("patch_size"))
        if kind == "Transformer":
            return self._read_transformer(fields, width, positions)
        raise ConfigError(
            f"{fields.where}: module_type {kind!r} is not served; "
            "valid: 'PatchedPretransform', 'Transformer'"
        )

    def _read_transformer(
        self, fields: JsonFields, width: int, positions: int
    ) -> MossTransformerConfig:
        fields.expect("causal", True)
        for key, value in SERVED.items():
            fields.expect(key, value)
        fields.get("layer_scale", float)
        fields.expect("input_dimension", width)
        seconds = fields.get("context_duration", float, self._duration)
        config = MossTransformerConfig(
            inputs=width,
            outputs=fields.size("output_dimension"),
            width=fields.size("d_model"),
            heads=fields.size("num_heads"),
            layers=fields.size("num_layers"),
            inner_width=fields.size("dim_feedforward"),
            window=round(self._rate * positions / self._frame * seconds),
            rope_theta=fields.get("max_period", float, 10_000.0),
            frame_positions=positions,
        )
        if config.width % (2 * config.heads):
            raise ConfigError(
                f"{fields.where}: d_model {config.width} does not split into {config.heads} heads "
                "of even width"
            )
        if config.window < 1:
            raise ConfigError(f"{fields.where}: context_duration {seconds} holds no position")
        return config

    def _check_end(self, key: str, output: tuple[int, int], wanted: tuple[int, int]) -> None:
        if output != wanted:
            raise ConfigError(
                f"{self._root.where}: {key} ends with {output[1]} positions of {output[0]} "
                f"channels a frame, not {wanted[1]} of {wanted[0]}"
            )


def _read_quantizer(root: JsonFields, codebooks: int) -> QuantizerConfig:
    fields = root.section("quantizer_kwargs")
    older = root.get("quantizer_type", str, QUANTIZERS[0])
    fields.expect("quantizer_type", *QUANTIZERS, default=older)
    held = fields.size("num_quantizers")
    if codebooks > held:
        raise ConfigError(
            f"{fields.where}: num_quantizers is {held}, but the model uses {codebooks} codebooks"
        )
    latent = fields.size("input_dim")
    fields.expect("output_dim", latent)
    return QuantizerConfig(
        latent=latent,
        residual=fields.size("rvq_dim"),
        codebooks=codebooks,
        codebook_size=fields.size("codebook_size"),
        codebook_dim=fields.size("codebook_dim"),
    )


def _check_divides(fields: JsonFields, size: int, whole: int, of_what: str) -> None:
    if whole % size:
        raise ConfigError(f"{fields.where}: patch_size {size} does not divide {whole} {of_what}")


KEYS = ("audio_tokenizer_name_or_path", "audio_tokenizer_pretrained_name_or_path")
"""Where Local's and Nano's config.json name the tokenizer, by its id on the hub."""
INSIDE = "audio_tokenizer"
"""Subfolder of a checkpoint that may hold it."""


def tokenizer_folder(checkpoint: Path) -> Path:
    """Return the folder of a checkpoint's tokenizer.

    It is beside the checkpoint, under the last part of its id, or inside the checkpoint.

    Raises:
        ConfigError: the checkpoint names no tokenizer, or neither folder holds one.
    """
    root = read_json(checkpoint / "config.json")
    name = next((found for key in KEYS if (found := root.get(key, str, ""))), None)
    if name is None:
        raise ConfigError(f"{root.where}: names no audio tokenizer ({' or '.join(KEYS)})")
    beside = checkpoint.absolute().parent / PurePosixPath(name).name
    inside = checkpoint / INSIDE
    for folder in (beside, inside):
        if (folder / "config.json").is_file():
            return folder
    raise ConfigError(
        f"{checkpoint}: its audio tokenizer {name!r} is missing; "
        f"download it into {beside} or {inside}"
    )


def checked_tokenizer(checkpoint: Path, config: MossConfig) -> Path:
    """Return the folder of a checkpoint's tokenizer, whose config.json fits the checkpoint's.
    Raises ConfigError: as `tokenizer_folder`, or it cannot be served, or its codes are others."""
    folder = tokenizer_folder(checkpoint)
    size = load_tokenizer_config(folder, config.num_codebooks).quantizer.codebook_size
    if size != config.codebook_size:
        raise ConfigError(
            f"{folder}: codebooks of {size} codes; those of {checkpoint} have "
            f"{config.codebook_size}"
        )
    return folder
