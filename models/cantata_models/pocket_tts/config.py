"""Reads the configuration of a published checkpoint, a YAML file, and finds the files it names.

The publisher ships the YAML files in the package `pocket_tts` and the weights on the hub; a folder
to be served holds both. Source of the fields: the package `pocket_tts`, utils/config.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import yaml

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen3_config import check_shared_heads


class FlowKind(StrEnum):
    """How the head makes a latent of noise."""

    LSD = "lsd"
    """In steps, each told where it begins and ends (Lagrangian self-distillation)."""
    DRIFTING = "drifting"
    """In one step: its output is the latent."""
    POINTWISE = "pointwise"
    """In one step: its output is added to the noise."""


@dataclass(frozen=True, slots=True)
class BackboneSizes:
    """The language model's layers."""

    size: int
    heads: int
    kv_heads: int
    head_dim: int
    layers: int
    inner: int
    period: float
    """Longest, of rotary positions."""
    output: int
    """Of what the heads read."""
    projected: bool
    """Whether a matrix makes that of the last layer's output."""

    @property
    def keys(self) -> int:
        """Numbers of a position's keys in one layer."""
        return self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class TextRules:
    """What happens to a text before it becomes tokens."""

    padded: bool
    """Spaces go in front of a text of less than five words."""
    without_semicolons: bool
    ended: bool
    """A text that does not end as a sentence gets a mark."""
    capitalised: bool
    replaced: Mapping[str, str]
    """Characters that the model was not trained on."""


@dataclass(frozen=True, slots=True)
class SeanetSizes:
    """A stack of convolutions that changes the rate."""

    size: int
    """Channels at its slow end."""
    filters: int
    """Channels at its fast end; each stage doubles them."""
    units: int
    """Residual ones in a stage."""
    ratios: tuple[int, ...]
    """From the slow end."""
    kernel: int
    unit_kernel: int
    last_kernel: int
    dilation_base: int
    compress: int


@dataclass(frozen=True, slots=True)
class WindowedSizes:
    """A transformer of the codec."""

    size: int
    heads: int
    layers: int
    window: int
    """Positions that a position attends to, itself included."""
    period: float
    inner: int


@dataclass(frozen=True, slots=True)
class MimiSizes:
    """The codec."""

    sample_rate: int
    samples_per_frame: int
    latent: int
    encoded: int
    """Numbers of a frame of a recording."""
    stride: int
    """Positions of its transformers in a frame."""
    encoder: SeanetSizes
    encoder_transformer: WindowedSizes
    decoder: SeanetSizes
    decoder_transformer: WindowedSizes

    @property
    def frame_seconds(self) -> float:
        """How long a frame is heard."""
        return self.samples_per_frame / self.sample_rate


@dataclass(frozen=True, slots=True)
class PocketConfig:
    """A checkpoint."""

    weights: Path
    tokenizer: Path
    language: str | None
    """BCP 47."""
    vocabulary: int
    rank: int | None
    """Of the table of tokens; None: it is whole."""
    backbone: BackboneSizes
    flow: FlowKind
    flow_size: int
    flow_depth: int
    marks_voice: bool
    """A row stands before the voice's."""
    mimi: MimiSizes
    text: TextRules
    frames_after_eos: int | None
    """None: depends on the text."""
    temperature: float
    eos_threshold: float


PARTS = ("flow_lm", "mimi")
"""Keys that only such a configuration has together."""
NOISE_BLOCK = 16
"""torch makes so many normal numbers at a time; a latent is to have whole blocks."""
_ADDRESS = re.compile(r"hf://[^/]+/[^/]+/|https?://[^/]+/")
_LANGUAGES = {
    "english": "en",
    "french": "fr",
    "german": "de",
    "portuguese": "pt",
    "italian": "it",
    "spanish": "es",
    "dutch": "nl",
}


def find_config(checkpoint: Path) -> Path | None:
    """Return a folder's YAML file of such a model; None: there is none, or it is no folder. Raises
    ConfigError: there are several."""
    files = sorted(path for end in ("*.yaml", "*.yml") for path in checkpoint.glob(end))
    found = [path for path in files if set(PARTS) <= _read(path).keys()]
    if len(found) > 1:
        raise ConfigError(f"{checkpoint}: several configurations, {[path.name for path in found]}")
    return found[0] if found else None


def load_config(checkpoint: Path) -> PocketConfig:
    """Read a checkpoint's configuration. Raises ConfigError: there is none, it is of a kind that is
    not published, or a file that it names is missing."""
    path = find_config(checkpoint)
    if path is None:
        raise ConfigError(
            f"{checkpoint}: no YAML file with {' and '.join(PARTS)}; copy the model's from the "
            "config folder of the package pocket_tts"
        )
    root = JsonFields(_read(path), str(path))
    lm, mimi = root.section("flow_lm"), root.section("mimi")
    for part in (lm, mimi):
        if part.values.get("weights_path") is not None:
            raise ConfigError(
                f"{part.where}: weights_path names weights as training leaves them; the published "
                "file with both parts is needed"
            )
    table, flow = lm.section("lookup_table"), lm.section("flow")
    backbone = _backbone(lm)
    if table.size("dim") != backbone.size:
        raise ConfigError(f"{table.where}: dim must be d_model, {backbone.size}")
    own_frames = root.values.get("model_recommended_frames_after_eos")
    return PocketConfig(
        weights=_find_file(checkpoint, root, "weights_path"),
        tokenizer=_find_file(checkpoint, table, "tokenizer_path"),
        language=next((tag for name, tag in _LANGUAGES.items() if name in path.stem), None),
        vocabulary=table.size("n_bins"),
        rank=None if table.values.get("rank") is None else table.size("rank"),
        backbone=backbone,
        flow=_flow_kind(flow),
        flow_size=flow.size("dim"),
        flow_depth=flow.size("depth"),
        marks_voice=lm.get("insert_bos_before_voice", bool, default=False),
        mimi=_mimi(mimi),
        text=_text_rules(root),
        frames_after_eos=None
        if own_frames is None
        else root.get("model_recommended_frames_after_eos", int),
        temperature=root.get("default_temperature", float, 0.3),
        eos_threshold=root.get("default_eos_threshold", float, -4.0),
    )


def _read(path: Path) -> dict[str, object]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML: {error}") from error
    return values if isinstance(values, dict) else {}


def _find_file(checkpoint: Path, fields: JsonFields, key: str) -> Path:
    """Find a file by its address: under the same path as on the hub, or beside the YAML file."""
    address = fields.get(key, str)
    where = Path(_ADDRESS.sub("", address, count=1).partition("@")[0])
    for path in (checkpoint / where, checkpoint / where.name):
        if path.is_file():
            return path
    raise ConfigError(f"{fields.where}: {key}: {checkpoint} has no {where.name}")


def _flow_kind(flow: JsonFields) -> FlowKind:
    kind = flow.get("type", str, FlowKind.LSD.value)
    if kind not in set(FlowKind):
        valid = [str(one) for one in FlowKind]
        raise ConfigError(f"{flow.where}: type is {kind!r}; valid: {valid}")
    return FlowKind(kind)


def _backbone(lm: JsonFields) -> BackboneSizes:
    fields = lm.section("transformer")
    size, heads = fields.size("d_model"), fields.size("num_heads")
    kv_heads = fields.size("num_kv_heads", heads)
    check_shared_heads(heads, kv_heads, fields.where)
    wide = fields.size("attn_dim", size)
    if wide % heads or wide // heads % 2:
        raise ConfigError(f"{fields.where}: {heads} heads do not share {wide} numbers in pairs")
    projected = lm.values.get("z_dim") is not None
    return BackboneSizes(
        size=size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=wide // heads,
        layers=fields.size("num_layers"),
        inner=fields.size("dim_feedforward", size * fields.size("hidden_scale")),
        period=fields.get("max_period", float),
        output=lm.size("z_dim", size),
        projected=projected,
    )


def _text_rules(root: JsonFields) -> TextRules:
    replaced = root.items("replace_characters")
    for before, after in replaced.items():
        if not isinstance(after, str) or len(before) != 1:
            raise ConfigError(f"{root.where}: replace_characters: {before!r} is not a character")
    return TextRules(
        padded=root.get("pad_with_spaces_for_short_inputs", bool, default=False),
        without_semicolons=root.get("remove_semicolons", bool, default=False),
        ended=root.get("append_terminal_punctuation", bool, default=True),
        capitalised=root.get("capitalize_first_letter", bool, default=True),
        replaced=replaced,
    )


def _mimi(fields: JsonFields) -> MimiSizes:
    sample_rate, frame_rate = fields.size("sample_rate"), fields.get("frame_rate", float)
    samples = round(sample_rate / frame_rate)
    encoder = _seanet(fields, "seanet", "seanet")
    decoder = _seanet(fields, "decoder_seanet", "seanet")
    quantizer = fields.section("quantizer")
    latent = quantizer.size("dimension")
    if latent % NOISE_BLOCK:
        raise ConfigError(f"{quantizer.where}: dimension must be a multiple of {NOISE_BLOCK}")
    hop = 1
    for ratio in encoder.ratios:
        hop *= ratio
    whole = samples * frame_rate == sample_rate and samples % hop == 0 and samples > hop
    if not whole or decoder.ratios != encoder.ratios:
        raise ConfigError(f"{fields.where}: frame_rate and ratios do not divide sample_rate")
    outer = fields.size("outer_dim", decoder.size)
    if {outer, quantizer.size("output_dimension")} != {decoder.size}:
        raise ConfigError(
            f"{fields.where}: outer_dim and output_dimension must be {decoder.size}, the decoder's"
        )
    return MimiSizes(
        sample_rate=sample_rate,
        samples_per_frame=samples,
        latent=latent,
        encoded=fields.size("inner_dim", encoder.size),
        stride=samples // hop,
        encoder=encoder,
        encoder_transformer=_windowed(fields, "transformer", encoder.size),
        decoder=decoder,
        decoder_transformer=_windowed(fields, "decoder_transformer", decoder.size),
    )


def _seanet(mimi: JsonFields, key: str, usual: str) -> SeanetSizes:
    fields = mimi.section(usual if mimi.values.get(key) is None else key)
    for name, valid in (("pad_mode", "constant"), ("channels", 1)):
        if fields.values.get(name) != valid:
            raise ConfigError(f"{fields.where}: {name} must be {valid!r}")
    return SeanetSizes(
        size=fields.size("dimension"),
        filters=fields.size("n_filters"),
        units=fields.size("n_residual_layers"),
        ratios=fields.integers("ratios"),
        kernel=fields.size("kernel_size"),
        unit_kernel=fields.size("residual_kernel_size"),
        last_kernel=fields.size("last_kernel_size"),
        dilation_base=fields.size("dilation_base"),
        compress=fields.size("compress"),
    )


def _windowed(mimi: JsonFields, key: str, size: int) -> WindowedSizes:
    fields = mimi.section("transformer" if mimi.values.get(key) is None else key)
    ends = (fields.size("input_dimension"), *fields.integers("output_dimensions"))
    if {fields.size("d_model"), *ends} != {size} or len(ends) != 2:
        raise ConfigError(f"{fields.where}: all widths must be {size}, its convolutions'")
    heads = fields.size("num_heads")
    if size % (2 * heads):
        raise ConfigError(f"{fields.where}: {heads} heads do not share {size} numbers in pairs")
    return WindowedSizes(
        size=size,
        heads=heads,
        layers=fields.size("num_layers"),
        window=fields.size("context"),
        period=fields.get("max_period", float, 10_000.0),
        inner=fields.size("dim_feedforward"),
    )


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder has a configuration of this model's, which no JSON file names."""
    return find_config(folder) is not None


VOICE_FOLDERS = ("embeddings", "embeddings_v*", "languages/*/embeddings")
"""Where published voices are, as on the hub."""
USUAL_VOICES = (
    *("alba", "giovanni", "lola", "juergen", "rafael", "estelle", "daan"),
    *("marius", "javert", "jean", "fantine", "cosette", "eponine", "azelma"),
)
"""Those that come first, where they are there: what the publisher takes by default."""


def find_voices(checkpoint: Path) -> dict[str, Path]:
    """Return a folder's voices by name, the default one first."""
    files = [
        path for at in VOICE_FOLDERS for path in sorted(checkpoint.glob(f"{at}/*.safetensors"))
    ]
    found = {path.stem: path for path in reversed(files)}
    first = [name for name in USUAL_VOICES if name in found]
    return {name: found[name] for name in [*first, *sorted(found.keys() - set(first))]}
