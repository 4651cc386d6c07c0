"""Random checkpoints of the published format and tokenizers, tiny or of the published size."""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import save_file
from sentencepiece import SentencePieceNormalizer
from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec
from tokenizers import Tokenizer, decoders, normalizers
from tokenizers.models import BPE

from cantata_layers.random_rules import Rules, Shape, gain, norm, specify, upsampling, values
from cantata_layers.random_tensors import TensorSpec, draw, write_tensors
from cantata_layers.weights import TakenShapes
from cantata_models.pocket_tts.codec import MimiDecoder
from cantata_models.pocket_tts.config import BackboneSizes, PocketConfig, load_config
from cantata_models.pocket_tts.encoder import MimiEncoder
from cantata_models.pocket_tts.flow_head import FlowHead

WEIGHTS = "hf://kyutai/pocket-tts/languages/english/model.safetensors@0123abc"
HUB = "hf://kyutai/pocket-tts-without-voice-cloning/"


class VoiceFormat(StrEnum):
    """How a published voice is stored."""

    STATE = "state"
    OLD_STATE = "old_state"
    """Its length is that of an empty tensor."""
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class PocketShape:
    config: dict[str, Any]
    voices: dict[str, VoiceFormat]

    @property
    def tokens(self) -> int:
        """The number of tokens of its tokenizer."""
        return int(self.config["flow_lm"]["lookup_table"]["n_bins"])


def _seanet(size: int, filters: int, **other: Any) -> dict[str, Any]:
    return {
        "dimension": size,
        "channels": 1,
        "n_filters": filters,
        "n_residual_layers": 1,
        "ratios": [6, 5, 4],
        "kernel_size": 7,
        "residual_kernel_size": 3,
        "last_kernel_size": 3,
        "dilation_base": 2,
        "pad_mode": "constant",
        "compress": 2,
        **other,
    }


def _windowed(size: int, heads: int, layers: int, window: int, inner: int) -> dict[str, Any]:
    return {
        "d_model": size,
        "num_heads": heads,
        "num_layers": layers,
        "layer_scale": 0.01,
        "context": window,
        "dim_feedforward": inner,
        "input_dimension": size,
        "output_dimensions": [size],
    }


def _config(
    lm: dict[str, Any], table: dict[str, Any], mimi: dict[str, Any], **root: Any
) -> dict[str, Any]:
    size = lm["transformer"]["d_model"]
    return {
        "weights_path": WEIGHTS,
        "weights_path_without_voice_cloning": WEIGHTS,
        **root,
        "flow_lm": {
            "dtype": "float32",
            **lm,
            "lookup_table": {
                "dim": size,
                "tokenizer": "tokenizers",
                "tokenizer_path": f"{HUB}languages/english/tokenizer.json@0123abc",
                **table,
            },
        },
        "mimi": {
            "dtype": "float32",
            "sample_rate": 24_000,
            "channels": 1,
            "frame_rate": 12.5,
            **mimi,
        },
    }


def _transformer(size: int, heads: int, layers: int, scale: int, **other: Any) -> dict[str, Any]:
    return {
        "d_model": size,
        "num_heads": heads,
        "num_layers": layers,
        "hidden_scale": scale,
        "max_period": 10_000,
        **other,
    }


_TABLE = {"n_bins": 400}
_OLD_TABLE = {**_TABLE, "tokenizer": "sentencepiece", "tokenizer_path": f"{HUB}tokenizer.model"}
_REPLACED = {"\u2019": "'", "\u2018": "'"}
_MIMI = {
    "seanet": _seanet(32, 4),
    "transformer": _windowed(32, 2, 2, 20, 64),
    "quantizer": {"dimension": 16, "output_dimension": 32},
}
TINY = PocketShape(
    _config(
        {
            "insert_bos_before_voice": True,
            "flow": {"depth": 2, "dim": 32},
            "transformer": _transformer(64, 2, 2, 2),
        },
        _TABLE,
        {**_MIMI, "inner_dim": 16, "outer_dim": 32},
        replace_characters=_REPLACED,
        default_temperature=0.3,
    ),
    {"alba": VoiceFormat.STATE, "marius": VoiceFormat.OLD_STATE},
)
"""As the usual checkpoints in kind."""
TINY_FIRST = PocketShape(
    _config(
        {"flow": {"depth": 2, "dim": 32}, "transformer": _transformer(64, 2, 2, 2)},
        _OLD_TABLE,
        _MIMI,
        pad_with_spaces_for_short_inputs=True,
        weights_path="hf://kyutai/pocket-tts/tts_b6369a24.safetensors",
    ),
    {"alba": VoiceFormat.ROWS},
)
"""As those of the first releases: other names of files, no mark before a voice."""
TINY_SMALL = PocketShape(
    _config(
        {
            "insert_bos_before_voice": True,
            "z_dim": 24,
            "flow": {"depth": 2, "dim": 32, "type": "drifting"},
            "transformer": _transformer(
                48, 4, 2, 1, attn_dim=128, num_kv_heads=2, dim_feedforward=80
            ),
        },
        {**_OLD_TABLE, "rank": 16},
        {
            **_MIMI,
            "inner_dim": 16,
            "outer_dim": 24,
            "quantizer": {"dimension": 16, "output_dimension": 24},
            "decoder_seanet": _seanet(24, 3 * 2, kernel_size=3),
            "decoder_transformer": _windowed(24, 2, 3, 11, 48),
        },
        remove_semicolons=True,
        replace_characters={**_REPLACED, '"': "", "\u2013": ","},
        model_recommended_frames_after_eos=2,
        default_eos_threshold=-1.0,
    ),
    {"alba": VoiceFormat.STATE},
)
"""As those of 2 to 18 million parameters in kind."""
PUBLISHED = PocketShape(
    _config(
        {
            "insert_bos_before_voice": True,
            "flow": {"depth": 6, "dim": 512},
            "transformer": _transformer(1024, 16, 6, 4),
        },
        {"n_bins": 4000},
        {
            "seanet": _seanet(512, 64),
            "transformer": _windowed(512, 8, 2, 250, 2048),
            "quantizer": {"dimension": 32, "output_dimension": 512},
            "inner_dim": 32,
            "outer_dim": 512,
        },
        replace_characters=_REPLACED,
        default_temperature=0.3,
    ),
    {"alba": VoiceFormat.STATE},
)
"""The size of the published `english`."""
SHAPES = {
    "tiny": TINY,
    "first": TINY_FIRST,
    "small": TINY_SMALL,
    "100m": PUBLISHED,
    "pointwise": replace(
        TINY_SMALL,
        config={
            **TINY_SMALL.config,
            "flow_lm": {
                **TINY_SMALL.config["flow_lm"],
                "flow": {"depth": 2, "dim": 32, "type": "pointwise"},
            },
        },
    ),
}


SPECIAL = ("<unk>", "<s>", "</s>")
BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
MERGES = (
    *(("▁", "t"), ("t", "h"), ("h", "e"), ("e", "r"), ("i", "n"), ("o", "n"), ("▁t", "he")),
    *(("▁", "a"), ("a", "n"), ("an", "d"), ("▁", "s"), ("o", "u")),
)
CHARACTERS = ("▁", *(chr(code) for code in range(0x21, 0x7F)), "\u2026", "é")


def write_tokenizer(folder: Path, shape: PocketShape) -> None:
    """Write tokenizer.json or tokenizer.model, whichever the configuration names."""
    if shape.config["flow_lm"]["lookup_table"]["tokenizer"] == "tokenizers":
        _write_json(folder / "tokenizer.json", shape.tokens)
    else:
        _write_model(folder / "tokenizer.model", shape.tokens)


def _list_tokens(count: int) -> list[str]:
    tokens = [*SPECIAL, *BYTES, *(left + right for left, right in MERGES), *CHARACTERS]
    return tokens + [f"<unused{index}>" for index in range(len(tokens), count)]


def _write_json(path: Path, count: int) -> None:
    vocabulary = {token: index for index, token in enumerate(_list_tokens(count))}
    model = BPE(vocabulary, list(MERGES), unk_token=SPECIAL[0], fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.save(str(path))


def _write_model(path: Path, count: int) -> None:
    kinds, model = ModelProto.SentencePiece, ModelProto()
    for index, piece in enumerate(_list_tokens(count)):
        kind = kinds.NORMAL
        if piece in SPECIAL:
            kind = kinds.CONTROL if index else kinds.UNKNOWN
        elif piece in BYTES:
            kind = kinds.BYTE
        elif piece.startswith("<unused"):
            kind = kinds.UNUSED
        model.pieces.add(piece=piece, type=kind, score=-float(index))
    model.trainer_spec.model_type = TrainerSpec.BPE
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = count
    normalizer = SentencePieceNormalizer(rule_name="identity")
    model.normalizer_spec.ParseFromString(normalizer.serialized_normalizer_spec())
    # Spaces in front of a text count.
    model.normalizer_spec.remove_extra_whitespaces = False
    path.write_bytes(model.SerializeToString(deterministic=True))


META = torch.device("meta")
CONFIG_FILE = "english.yaml"
VOICE_POSITIONS = 9
RULES: Rules = {
    r"emb_std$": values(0.1, 1.0),
    r"emb_mean$|bos_emb$|bos_before_voice$": values(0.7),
    r"conditioner\.embed\.weight$": values(1.0),
    r"speaker_proj_weight$": gain(1.0),
    r"time_embed\.\d+\.freqs$": values(0.4, 0.6),
    r"alpha$": norm(1.0),
    # Attention that tells positions apart.
    r"in_proj\.weight$": gain(1.4),
    r"adaLN_modulation\.1\.weight$": gain(0.7),
    # Latents about as large as those of recordings.
    r"final_layer\.linear\.weight$": gain(0.7),
    # A text seldom ends by itself at the usual threshold of -4.
    r"out_eos\.weight$": gain(0.5),
    r"out_eos\.bias$": values(0.0, -6.0),
    r"layer_scale_\d\.scale$": values(0.1, 0.5),
    r"upsample\.convtr\.convtr\.weight$": values(0.7),
    r"convtr\.weight$": upsampling(2),
    # Recordings are far from -1..1 most of the time.
    r"encoder\.model\.0\.conv\.weight$": gain(4.0),
    # What a unit adds.
    r"block\.3\.conv\.weight$": gain(0.4),
    # Sound that is loud and seldom clips.
    r"decoder\.model\.11\.conv\.weight$": gain(0.25),
    r"decoder\.model\.11\.conv\.bias$": values(0.01),
}


def write_checkpoint(folder: Path, shape: PocketShape, seed: int) -> Path:
    """Write a checkpoint of one of `configs.SHAPES` into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(shape.config, sort_keys=False, allow_unicode=True)
    (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
    address = shape.config["weights_path"].partition("@")[0]
    weights = folder / address.rpartition("/")[2]
    # The configuration names a file that has to be there.
    weights.touch()
    write_tokenizer(folder, shape)
    shapes = dict(_list_shapes(folder))
    write_tensors(weights, specify(shapes, RULES), seed, torch.float32)
    (folder / "embeddings").mkdir(exist_ok=True)
    config = load_config(folder)
    for name, kind in shape.voices.items():
        tensors = _make_voice(config.backbone, kind, zlib.crc32(f"{seed}:{name}".encode()))
        save_file(tensors, folder / "embeddings" / f"{name}.safetensors")
    return folder


def _list_shapes(folder: Path) -> Iterator[tuple[str, Shape]]:
    taken, config = TakenShapes(), load_config(folder)
    MimiEncoder(folder, META, taken.read)
    MimiDecoder(folder, META, taken.read)
    yield from taken.shapes.items()
    for name, shape in _list_talker(config):
        yield f"flow_lm.{name}", shape


def _list_talker(config: PocketConfig) -> Iterator[tuple[str, Shape]]:
    sizes = config.backbone
    size, latent = sizes.size, config.mimi.latent
    yield "conditioner.embed.weight", (config.vocabulary + 1, config.rank or size)
    if config.rank is not None:
        yield "conditioner.proj.weight", (size, config.rank)
    yield "bos_emb", (latent,)
    if config.marks_voice:
        yield "bos_before_voice", (1, 1, size)
    yield "input_linear.weight", (size, latent)
    for index in range(sizes.layers):
        layer = f"transformer.layers.{index}"
        for part in ("norm1", "norm2"):
            yield f"{layer}.{part}.weight", (size,)
            yield f"{layer}.{part}.bias", (size,)
        queries = sizes.heads * sizes.head_dim
        yield f"{layer}.self_attn.in_proj.weight", (queries + 2 * sizes.keys, size)
        yield f"{layer}.self_attn.out_proj.weight", (size, queries)
        yield f"{layer}.linear1.weight", (sizes.inner, size)
        yield f"{layer}.linear2.weight", (size, sizes.inner)
    yield "out_norm.weight", (size,)
    yield "out_norm.bias", (size,)
    if sizes.projected:
        yield "z_proj.weight", (sizes.output, size)
    yield "out_eos.weight", (1, sizes.output)
    yield "out_eos.bias", (1,)
    with META:
        head = FlowHead(config)
    for name, tensor in head.state_dict().items():
        yield f"flow_net.{name}", tuple(tensor.shape)


def _make_voice(sizes: BackboneSizes, kind: VoiceFormat, seed: int) -> dict[str, torch.Tensor]:
    """Return a voice of as many positions, among more that are empty."""
    if kind is VoiceFormat.ROWS:
        rows = draw(TensorSpec("audio_prompt", (1, VOICE_POSITIONS, sizes.size), 0.8), seed)
        return {"audio_prompt": torch.from_numpy(rows)}
    tensors = {}
    for index in range(sizes.layers):
        module = f"transformer.layers.{index}.self_attn"
        shape = (2, 1, VOICE_POSITIONS + 3, sizes.kv_heads, sizes.head_dim)
        cache = draw(TensorSpec(module, shape, 1.0), seed)
        cache[:, :, VOICE_POSITIONS:] = np.nan
        tensors[f"{module}/cache"] = torch.from_numpy(cache)
        if kind is VoiceFormat.OLD_STATE:
            tensors[f"{module}/current_end"] = torch.zeros(VOICE_POSITIONS)
        else:
            tensors[f"{module}/offset"] = torch.tensor([VOICE_POSITIONS])
    return tensors


def write_tiny(folder: Path) -> None:
    write_checkpoint(folder, TINY, seed=3)


def main() -> None:
    """Parse the command line and write the folder."""
    parser = argparse.ArgumentParser(
        prog="python -m cantata_models.pocket_tts.random_checkpoint",
        description="Write a checkpoint with random weights (100m: 0.5 GB).",
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(SHAPES), default="100m")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write_checkpoint(arguments.folder, SHAPES[arguments.size], arguments.seed)
    print(arguments.folder)


if __name__ == "__main__":
    main()
